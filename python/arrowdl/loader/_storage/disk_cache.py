"""`DiskCache`: a bounded folder of entries, shared by the processes of a machine.

An entry is a file of its data and, at its end, their checksum: what a crash or the disk has damaged
is found when it is read, removed, and made again. Entries are written under a temporary name and
renamed. A read sets the time of the file, so that the least recently used entries go first.

The bound holds for all processes together, and nothing is counted that could drift. Room is taken
under a lock file by making the temporary file in its full length, so that the lengths of the files
in the folder are the truth at any time. The lock file has their sum, to save listing the folder for
each entry; it may be too large, after a crash for example, which the next listing mends. A process
holds a lock on each temporary file that it writes. The kernel drops it when the process ends, in
whatever way: such a file without a lock is left over, and is removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ENTRY, _PART = ".range", ".part"
_LOCK, _LOCK_BYTES = "lock", 32
_MAGIC = b"arrowdl1"
_END = struct.Struct("<8sQI")  # magic, bytes of the data, checksum
# A listing makes more room than is needed, so that it is seldom done.
_KEPT_SHARE = 0.9
# For an entry that another process or thread fetches.
_POLL_SECONDS = 0.005
_PATIENCE_SECONDS = 30.0
_WRITTEN_AT_ONCE = 2**22


class DiskCache:
    """Data by their keys in a folder, which is made when the first entry is.

    If the folder cannot be written to, for any reason, one warning says so, and nothing more is
    kept. What was kept before is still read.

    Parameters
    ----------
    folder : pathlib.Path
    nbytes : int
        All files of the folder together have at most so many.
    """

    def __init__(self, folder: Path, nbytes: int) -> None:
        self.folder = folder
        self.nbytes = nbytes
        self._forget()

    def _forget(self) -> None:
        self._warning = threading.Lock()
        self._is_failed = self._has_warned = self._is_checked = False

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "nbytes": self.nbytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def read(self, key: str, nbytes: int, fetch: Callable[[], Any]) -> Any:
        """Return the data of `key`, which `fetch` makes if they are not kept.

        Several callers, also of several processes, that need the same data wait for one of them to
        fetch these.

        Parameters
        ----------
        key : str
        nbytes : int
            Bytes of the data. Data of another length are returned, and not kept.
        fetch : callable
            Returns a bytes-like object. Its errors are raised.
        """
        name = _name_entry(key)
        data = self._load(name)
        if data is not None:
            return data
        file = self._start(name, nbytes)
        if file is not None:
            return self._fill(file, name, nbytes, fetch)
        self._wait_for_writer(name)
        data = self._load(name)
        return fetch() if data is None else data

    def find(self, key: str) -> bytes | None:
        """Return the data of `key`, or None; wait for nobody who fetches them."""
        return self._load(_name_entry(key))

    def _wait_for_writer(self, name: str) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end and _is_locked(self.folder / (name + _PART)):
            time.sleep(_POLL_SECONDS)

    def _fill(self, file: int, name: str, nbytes: int, fetch: Callable[[], Any]) -> Any:
        part = self.folder / (name + _PART)
        is_kept = False
        try:
            data = self._load(name)  # written since it was looked for
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
            _write(file, data)
            with self._locked():  # a listing could miss a file that is renamed meanwhile
                (self.folder / (name + _PART)).replace(self.folder / (name + _ENTRY))
            return True
        return False

    def _load(self, name: str) -> bytes | None:
        """Return the data of an entry, or None; a damaged one is removed."""
        path = self.folder / (name + _ENTRY)
        try:
            with path.open("rb") as file:
                length = os.fstat(file.fileno()).st_size - _END.size
                data = file.read(length) if length >= 0 else b""
                end = file.read(_END.size)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(error)
            return None
        if end != _END.pack(_MAGIC, max(0, length), zlib.crc32(data)):
            with contextlib.suppress(OSError):  # read-only: it stays, and is refused each time
                path.unlink()
            return None
        with contextlib.suppress(OSError):  # read-only, or just evicted: its age does not matter
            os.utime(path)
        return data

    def _start(self, name: str, nbytes: int) -> int | None:
        """Make room and a locked file for an entry; None if it has a writer or no room."""
        size = nbytes + _END.size
        if self._is_failed:
            return None
        room = self.nbytes - _LOCK_BYTES
        if size > room:
            self._warn(f"cache_bytes={self.nbytes} is less than the {size} bytes of one range")
            return None
        with self._degrading():
            self._make_folder()
            with self._locked() as lock:
                path = self.folder / (name + _PART)
                if path.exists() and not _remove_left_over(path):
                    return None
                used = _read_number(lock) if self._is_checked else None
                if used is None or used + size > room:
                    used = self._evict(room - size)
                    self._is_checked = True
                if used + size > room:  # other writers have the rest
                    _write_number(lock, used)
                    return None
                _write_number(lock, used + size)
                return _make_locked_file(path, size)
        return None

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError as error:  # its parent goes, or is a broken link
            raise NotADirectoryError(error.errno, error.strerror) from error

    def _evict(self, room: int) -> int:
        """Remove the least recently used entries if the files have more bytes than `room`.

        Returns
        -------
        int
            The bytes of the files that are left.
        """
        entries: list[tuple[int, int, str]] = []
        used = 0
        with os.scandir(self.folder) as found:
            for item in found:
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:  # renamed, removed as damaged
                    continue
                if item.name.endswith(_PART):
                    if not _remove_left_over(Path(item.path)):
                        used += status.st_size
                elif item.name.endswith(_ENTRY):
                    entries.append((status.st_mtime_ns, status.st_size, item.path))
                    used += status.st_size
        if used <= room:
            return used
        least = min(room, int(self.nbytes * _KEPT_SHARE))
        for _, size, path in sorted(entries):
            if used <= least:
                break
            Path(path).unlink(missing_ok=True)
            used -= size
        return used

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock file of the folder."""
        import fcntl

        path = self.folder / _LOCK
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file).st_nlink:  # it was not removed while this waited
                    yield file
                    return
            finally:
                os.close(file)

    @contextmanager
    def _degrading(self) -> Iterator[None]:
        """Turn an error of the disk into a warning; nothing more is kept then.

        A folder that was removed meanwhile is none: the next entry makes it again.
        """
        try:
            yield
        except FileNotFoundError:
            return
        except OSError as error:
            self._is_failed = True
            self._warn(error)

    def _warn(self, reason: OSError | str) -> None:
        with self._warning:
            if self._has_warned:
                return
            self._has_warned = True
        if isinstance(reason, OSError):
            name = errno.errorcode.get(reason.errno or 0, type(reason).__name__)
            reason = f"{name}: {reason.strerror or reason}"
        logging.getLogger("arrowdl.loader").warning(
            "cache=%r is not used, or not wholly, and data are read over the network instead: %s",
            str(self.folder),
            reason,
        )


def open_cache(folder: str | os.PathLike[str] | None, nbytes: int | None) -> DiskCache | None:
    """Return the cache of a Loader's options, which are checked; None without one."""
    if folder is None or nbytes is None:
        return None
    return DiskCache(Path(os.path.abspath(os.fsdecode(folder))), nbytes)  # of every process


def _name_entry(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=20).hexdigest()


def _make_locked_file(path: Path, size: int) -> int:
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file, size)
    except BaseException:
        os.close(file)
        path.unlink()
        raise
    return file


def _remove_left_over(path: Path) -> bool:
    """Remove a temporary file without a writer; return whether it is gone."""
    import fcntl

    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(file)


def _is_locked(path: Path) -> bool:
    """Whether a temporary file has a writer."""
    import fcntl

    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def _write(file: int, data: Any) -> None:
    view = memoryview(data).cast("B")
    checksum = zlib.crc32(view)
    for begin in range(0, len(view), _WRITTEN_AT_ONCE):
        _write_all(file, view[begin : begin + _WRITTEN_AT_ONCE])
    _write_all(file, memoryview(_END.pack(_MAGIC, len(view), checksum)))


def _write_all(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]


def _read_number(file: int) -> int | None:
    text = os.pread(file, _LOCK_BYTES, 0)
    return int(text) if text.isdigit() else None


def _write_number(file: int, number: int) -> None:
    os.pwrite(file, b"%0*d" % (_LOCK_BYTES, number), 0)
