"""`DiskCache`: a bounded folder of entries, shared by the processes of a machine.

An entry is a file of its data and, at its end, a checksum of its name and of them: what a crash or
the disk has damaged, or another entry copied over it, is found when it is read, removed, and made
again. The folder and its files are of one user. Whatever else is in their place (links, pipes,
files of others) is not followed, read or waited for. Entries are written under a temporary name and
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
import stat
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
_log = logging.getLogger("arrowdl.loader")
_MAGIC = b"arrowdl2"
_END = struct.Struct("<8sQI")  # magic, bytes of the data, checksum
# A listing makes more room than is needed, so that it is seldom done.
_KEPT_SHARE = 0.9
# For an entry that another process or thread fetches, and for the lock file.
_POLL_SECONDS = 0.005
_PATIENCE_SECONDS = 30.0
_WRITTEN_AT_ONCE = 2**22
_FLAGS = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_OF_GROUP = "\x01"  # in a key, after the name of the group


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
            With the name of a group and "\\x01" before it, `drop` finds it by that.
        nbytes : int
            Bytes of the data. Data of another length are returned, and not kept.
        fetch : callable
            Returns a bytes-like object. Its errors are raised.
        """
        name = _name_entry(key)
        data = self._load(name, nbytes)
        if data is not None:
            return data
        file = self._start(name, nbytes)
        if file is not None:
            return self._fill(file, name, nbytes, fetch)
        self._wait_for_writer(name)
        data = self._load(name, nbytes)
        return fetch() if data is None else data

    def find(self, key: str, nbytes: int) -> bytes | None:
        """Return the data of `key`, or None; wait for nobody who fetches them."""
        return self._load(_name_entry(key), nbytes)

    def drop(self, group: str) -> None:
        """Remove the entries of a group."""
        with contextlib.suppress(OSError):  # there is no folder, or it is read-only
            for path in self.folder.glob(f"{_name_group(group)}*{_ENTRY}"):
                path.unlink(missing_ok=True)

    def _wait_for_writer(self, name: str) -> None:
        end = time.monotonic() + _PATIENCE_SECONDS
        while _is_locked(self.folder / (name + _PART)):
            if time.monotonic() >= end:
                _log.warning(
                    "another process has written %r for %g s: its data are read over the network",
                    str(self.folder / (name + _PART)),
                    _PATIENCE_SECONDS,
                )
                return
            time.sleep(_POLL_SECONDS)

    def _fill(self, file: int, name: str, nbytes: int, fetch: Callable[[], Any]) -> Any:
        part = self.folder / (name + _PART)
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
            _write(file, name, data)
            with self._locked():  # a listing could miss a file that is renamed meanwhile
                (self.folder / (name + _PART)).replace(self.folder / (name + _ENTRY))
            return True
        return False

    def _load(self, name: str, nbytes: int) -> bytes | None:
        """Return the data of an entry, or None; one that is damaged, or no entry, is removed."""
        path = self.folder / (name + _ENTRY)
        try:
            file = os.open(path, os.O_RDONLY | _FLAGS)
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
        if not self._is_of_user(status) or status.st_size != nbytes + _END.size:
            os.close(file)  # open() refuses a folder, and does not close it
            return None
        with open(file, "rb") as opened:
            try:
                data = opened.read(nbytes)
                end = opened.read(_END.size)
            except OSError as error:
                self._warn(error)
                return None
            if end != _make_end(name, data):
                return None
            with contextlib.suppress(OSError):  # read-only: its age does not matter
                os.utime(file)
            return data

    def _is_of_user(self, status: os.stat_result) -> bool:
        """Whether a file is a plain one, of this user or of that of the folder.

        The folder's owner is another one where a network's file system maps users.
        """
        owners = os.geteuid(), self.folder.stat().st_uid
        return stat.S_ISREG(status.st_mode) and status.st_uid in owners

    def _start(self, name: str, nbytes: int) -> int | None:
        """Make room and a locked file for an entry; None if it has a writer or no room."""
        size = nbytes + _END.size
        if self._is_failed:
            return None
        room = self.nbytes - _LOCK_BYTES
        if size > room:
            self._warn(
                f"Storage.cache_bytes={self.nbytes} is less than the {size} bytes of one range"
            )
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
                return self._make_locked_file(path, size)
        return None

    def _make_locked_file(self, path: Path, size: int) -> int:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        try:
            # One that waits for its writer may look whether it has one.
            self._wait_for_lock(file, path, time.monotonic() + _PATIENCE_SECONDS)
            os.truncate(file, size)
        except BaseException:
            os.close(file)
            path.unlink()
            raise
        return file

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
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
        """Hold the lock file of the folder.

        Raises
        ------
        OSError
            It is no file of this user, or another process holds it for too long.
        """
        end = time.monotonic() + _PATIENCE_SECONDS
        path = self.folder / _LOCK
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
            try:
                self._wait_for_lock(file, path, end)
                status = os.fstat(file)
                if not status.st_nlink:  # it was removed while this waited
                    continue
                is_ours = self._is_of_user(status) and status.st_nlink == 1
                if not is_ours or status.st_size not in (0, _LOCK_BYTES):
                    raise OSError(errno.EINVAL, f"{str(path)!r} is no lock file of this user")
                yield file
                return
            finally:
                os.close(file)

    def _wait_for_lock(self, file: int, path: Path, end: float) -> None:
        """Lock a file for its only user."""
        import fcntl

        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end or self._is_failed:
                    raise TimeoutError(
                        errno.ETIMEDOUT,
                        f"another process has held {str(path)!r} for {_PATIENCE_SECONDS:g} s",
                    ) from None
                time.sleep(_POLL_SECONDS / 5)
            else:
                return

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


def _name_entry(key: str) -> str:
    return _name_group(key.partition(_OF_GROUP)[0]) + _digest(key)


def _name_group(group: str) -> str:
    return _digest(group)[:16]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def _remove_left_over(path: Path) -> bool:
    """Remove a temporary file without a writer; return whether it is gone."""
    if _is_locked(path):
        return False
    path.unlink(missing_ok=True)
    return True


def _is_locked(path: Path) -> bool:
    """Whether a temporary file has a writer."""
    import fcntl

    try:
        file = os.open(path, os.O_RDONLY | _FLAGS)
    except OSError:  # it is gone, or a link
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def _make_end(name: str, data: Any) -> bytes:
    """Return what follows the data of an entry."""
    return _END.pack(_MAGIC, len(data), zlib.crc32(data, zlib.crc32(name.encode())))


def _write(file: int, name: str, data: Any) -> None:
    view = memoryview(data).cast("B")
    end = _make_end(name, view)
    for begin in range(0, len(view), _WRITTEN_AT_ONCE):
        _write_all(file, view[begin : begin + _WRITTEN_AT_ONCE])
    _write_all(file, memoryview(end))


def _write_all(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]


def _read_number(file: int) -> int | None:
    text = os.pread(file, _LOCK_BYTES, 0)
    return int(text) if text.isdigit() else None


def _write_number(file: int, number: int) -> None:
    os.pwrite(file, b"%0*d" % (_LOCK_BYTES, number), 0)
