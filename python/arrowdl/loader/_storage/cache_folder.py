"""`CacheFolder`: the room of a folder, which processes share.

The bound holds for all processes together, and nothing is counted that could drift. Room is taken
under a lock file by making the temporary file in its full length, so that the lengths of the files
in the folder are the truth at any time. The lock file has their sum, to save listing the folder for
each entry; it may be too large, after a crash for example, which the next listing mends. A process
holds a lock on each temporary file that it writes. The kernel drops it when the process ends, in
whatever way: such a file without a lock is left over, and is removed.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arrowdl.loader._storage.cache_entry import ENTRY, PART

_LOCK, _LOCK_BYTES = "lock", 32
# A listing makes more room than is needed, so that it is seldom done.
_SHARE_AFTER_EVICTION = 0.9
# For an entry that another process or thread fetches, and for the lock file.
_POLL_SECONDS = 0.005
_PATIENCE_SECONDS = 30.0
FLAGS = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_log = logging.getLogger("arrowdl.loader")


class CacheFolder:
    """A folder whose files have at most `nbytes` bytes."""

    def __init__(
        self,
        path: Path,  # the folder is made when the first entry is
        nbytes: int,
    ) -> None:
        self.path = path
        self.nbytes = nbytes
        self.is_failed = False  # whether nothing more is written, and waits for a lock end
        self._is_checked = False

    @property
    def room(self) -> int:
        """Bytes of all entries together."""
        return self.nbytes - _LOCK_BYTES

    def make_file(self, name: str, size: int) -> int | None:
        """Make room and a locked file for an entry; None if it has a writer or no room.

        Raises OSError if the folder cannot be written to.
        """
        self._make()
        with self.locked() as lock:
            path = self.path / (name + PART)
            if path.exists() and not _remove_left_over(path):
                return None
            used = _read_number(lock) if self._is_checked else None
            if used is None or used + size > self.room:
                used = self._evict(self.room - size)
                self._is_checked = True
            if used + size > self.room:  # other writers have the rest
                _write_number(lock, used)
                return None
            _write_number(lock, used + size)
            return self._make_locked_file(path, size)

    def _make_locked_file(self, path: Path, size: int) -> int:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | FLAGS, 0o600)
        try:
            # One that waits for its writer may look whether it has one.
            self._wait_for_lock(file, path, time.monotonic() + _PATIENCE_SECONDS)
            os.truncate(file, size)
        except BaseException:
            os.close(file)
            path.unlink()
            raise
        return file

    def _make(self) -> None:
        try:
            self.path.mkdir(0o700, parents=True, exist_ok=True)
        except FileNotFoundError as error:  # its parent goes, or is a broken link
            raise NotADirectoryError(error.errno, error.strerror) from error

    def _evict(self, room: int) -> int:
        """Remove the least recently used entries beyond `room` bytes; return the bytes that
        remain."""
        entries: list[tuple[int, int, str]] = []
        used = 0
        with os.scandir(self.path) as items:
            for item in items:
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:  # renamed, removed as damaged
                    continue
                if item.name.endswith(PART):
                    if not _remove_left_over(Path(item.path)):
                        used += status.st_size
                elif item.name.endswith(ENTRY):
                    entries.append((status.st_mtime_ns, status.st_size, item.path))
                    used += status.st_size
        if used <= room:
            return used
        least = min(room, int(self.nbytes * _SHARE_AFTER_EVICTION))
        for _, size, path in sorted(entries):
            if used <= least:
                break
            Path(path).unlink(missing_ok=True)
            used -= size
        return used

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the lock file of the folder.

        Raises OSError if it is not a file of this user, or another process holds it for too long.
        """
        end = time.monotonic() + _PATIENCE_SECONDS
        path = self.path / _LOCK
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | FLAGS, 0o600)
            try:
                self._wait_for_lock(file, path, end)
                status = os.fstat(file)
                if not status.st_nlink:  # it was removed while this waited
                    continue
                is_ours = self.is_of_user(status) and status.st_nlink == 1
                if not is_ours or status.st_size not in (0, _LOCK_BYTES):
                    raise OSError(errno.EINVAL, f"{str(path)!r} is not a lock file of this user")
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
                if time.monotonic() >= end or self.is_failed:
                    raise TimeoutError(
                        errno.ETIMEDOUT,
                        f"another process has held {str(path)!r} for {_PATIENCE_SECONDS:g} s",
                    ) from None
                time.sleep(_POLL_SECONDS / 5)
            else:
                return

    def wait_for_writer(self, name: str) -> None:
        """Wait until an entry has no writer, or for as long as one has patience."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while _is_locked(self.path / (name + PART)):
            if time.monotonic() >= end:
                _log.warning(
                    "another process has written %r for %g s: its data are read over the network",
                    str(self.path / (name + PART)),
                    _PATIENCE_SECONDS,
                )
                return
            time.sleep(_POLL_SECONDS)

    def is_of_user(self, status: os.stat_result) -> bool:
        """Whether a file is a plain one, of this user or of that of the folder.

        The folder's owner is another one where a network's file system maps users.
        """
        owners = os.geteuid(), self.path.stat().st_uid
        return stat.S_ISREG(status.st_mode) and status.st_uid in owners


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
        file = os.open(path, os.O_RDONLY | FLAGS)
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


def _read_number(file: int) -> int | None:
    text = os.pread(file, _LOCK_BYTES, 0)
    return int(text) if text.isdigit() else None


def _write_number(file: int, number: int) -> None:
    os.pwrite(file, b"%0*d" % (_LOCK_BYTES, number), 0)
