"""`DiskCache`: a bounded folder of entries, shared by the processes of a machine.

An entry is a file of its data and, at its end, a checksum of its name and of them: what a crash or
the disk has damaged, or another entry copied over it, is found when it is read, removed, and made
again. The folder and its files are of one user. Whatever else is in their place (links, pipes,
files of others) is not followed, read or waited for. Entries are written under a temporary name and
renamed. A read sets the time of the file, so that the least recently used entries go first.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arrowdl.loader._storage.cache_entry import (
    END,
    ENTRY,
    PART,
    make_end,
    name_entry,
    name_group,
    write_entry,
)
from arrowdl.loader._storage.cache_folder import FLAGS, CacheFolder

_log = logging.getLogger("arrowdl.loader")


class DiskCache:
    """Data by their keys in a folder, which is made when the first entry is.

    If the folder cannot be written to, for any reason, one warning says so, and nothing more is
    kept. What was kept before is still read.
    """

    def __init__(
        self,
        folder: Path,
        nbytes: int,  # the most that all files of the folder together have
    ) -> None:
        self.folder = folder
        self.nbytes = nbytes
        self._forget()

    def _forget(self) -> None:
        self._warning = threading.Lock()
        self._has_warned = False
        self._room = CacheFolder(self.folder, self.nbytes)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "nbytes": self.nbytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def read(
        self,
        key: str,  # with the name of a group and "\\x01" before it, `drop` finds it by that
        nbytes: int,  # bytes of the data. Data of another length are returned, and not kept
        fetch: Callable[[], Any],  # returns a bytes-like object. Its errors are raised
    ) -> Any:
        """Return the data of `key`, which `fetch` makes if they are not kept.

        Several callers, also of several processes, that need the same data wait for one of them to
        fetch these.
        """
        name = name_entry(key)
        data = self._load(name, nbytes)
        if data is not None:
            return data
        file = self._start(name, nbytes)
        if file is not None:
            return self._fill(file, name, nbytes, fetch)
        self._room.wait_for_writer(name)
        data = self._load(name, nbytes)
        return fetch() if data is None else data

    def find(self, key: str, nbytes: int) -> bytes | None:
        """Return the data of `key`, or None; do not wait for a thread that fetches them."""
        return self._load(name_entry(key), nbytes)

    def drop(self, group: str) -> None:
        """Remove the entries of a group."""
        with contextlib.suppress(OSError):  # there is no folder, or it is read-only
            for path in self.folder.glob(f"{name_group(group)}*{ENTRY}"):
                path.unlink(missing_ok=True)

    def _fill(self, file: int, name: str, nbytes: int, fetch: Callable[[], Any]) -> Any:
        part = self.folder / (name + PART)
        is_kept = False
        try:
            data = self._load(name, nbytes)  # written since it was looked for
            if data is None:
                data = fetch()
                if len(data) == nbytes:
                    is_kept = self._keep(file, name, data)
        finally:
            if not is_kept:
                with self._degrading():
                    part.unlink(missing_ok=True)
            os.close(file)
        return data

    def _keep(self, file: int, name: str, data: Any) -> bool:
        """Write an entry; return whether it is complete."""
        with self._degrading():
            write_entry(file, name, data)
            with self._room.locked():  # a listing could miss a file that is renamed meanwhile
                (self.folder / (name + PART)).replace(self.folder / (name + ENTRY))
            return True
        return False

    def _load(self, name: str, nbytes: int) -> bytes | None:
        """Return the data of an entry, or None; one that is damaged, or no entry, is removed."""
        path = self.folder / (name + ENTRY)
        try:
            file = os.open(path, os.O_RDONLY | FLAGS)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):  # a link, a socket
                self._warn(error)
                return None
            data = None
        else:
            data = self._read_entry(file, name, nbytes)
        if data is None:
            with contextlib.suppress(OSError):  # read-only: it stays, and is refused each time
                is_folder = path.is_dir() and not path.is_symlink()
                path.rmdir() if is_folder else path.unlink()
        return data

    def _read_entry(self, file: int, name: str, nbytes: int) -> bytes | None:
        """Read and close the file of an entry, of which nothing is believed."""
        status = os.fstat(file)
        if not self._room.is_of_user(status) or status.st_size != nbytes + END.size:
            os.close(file)  # open() refuses a folder, and does not close it
            return None
        with open(file, "rb") as opened:
            try:
                data = opened.read(nbytes)
                end = opened.read(END.size)
            except OSError as error:
                self._warn(error)
                return None
            if end != make_end(name, data):
                return None
            with contextlib.suppress(OSError):  # read-only: its age does not matter
                os.utime(file)
            return data

    def _start(self, name: str, nbytes: int) -> int | None:
        """Return a file for an entry; None if it has a writer, no room, or nothing is kept."""
        size = nbytes + END.size
        if self._room.is_failed:
            return None
        if size > self._room.room:
            self._warn(
                f"Storage.cache_bytes={self.nbytes} is less than the {size} bytes of one range"
            )
            return None
        with self._degrading():
            return self._room.make_file(name, size)
        return None

    @contextmanager
    def _degrading(self) -> Iterator[None]:
        """Turn an error of the disk into a warning; nothing more is cached then."""
        # A folder that was removed meanwhile is not an error: the next entry makes it again.
        try:
            yield
        except FileNotFoundError:
            return
        except OSError as error:
            self._room.is_failed = True
            self._warn(error)

    def _warn(self, reason: OSError | str) -> None:
        with self._warning:
            if self._has_warned:
                return
            self._has_warned = True
        if isinstance(reason, OSError):
            name = errno.errorcode.get(reason.errno or 0, type(reason).__name__)
            reason = f"{name}: {reason.strerror or reason}"
        _log.warning(
            "Storage.cache=%r is not used, or not wholly, and data are read over the network "
            "instead: %s",
            str(self.folder),
            reason,
        )


def open_cache(folder: str | os.PathLike[str] | None, nbytes: int | None) -> DiskCache | None:
    """Return the cache of a Loader's options, which are checked; None without one."""
    if folder is None or nbytes is None:
        return None
    return DiskCache(Path(os.path.abspath(os.fsdecode(folder))), nbytes)  # of every process
