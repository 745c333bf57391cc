"""Memory that processes share by its file descriptor: it has no name, and lasts as long as they."""

from __future__ import annotations

import errno
import mmap
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Where glibc and musl keep POSIX shared memory. Other systems do not say where.
FOLDER = "/dev/shm"
# The system has no such call, or a sandbox (seccomp, vm.memfd_noexec) refuses it.
_REFUSALS = (errno.ENOSYS, errno.EPERM, errno.EACCES)
# A mapping keeps a copy of its descriptor, unless Python (3.13) can leave it out. On macOS a
# descriptor that was sent, but not received yet, is lost if its sender has no copy.
IS_DESCRIPTOR_KEPT = sys.version_info < (3, 13) or sys.platform == "darwin"
_OPTIONS: dict[str, Any] = {} if IS_DESCRIPTOR_KEPT else {"trackfd": False}


def make_memory(
    size: int,  # bytes, at least 1
) -> int:
    """Make memory that is reserved: otherwise the first write to it may be a SIGBUS.

    Returns a descriptor, which the caller closes. Raises OSError, whose `filename` is `FOLDER` if
    the memory would be there, else None.
    """
    file, folder = _open()
    try:
        with _errors_of(folder):
            _reserve(file, size)
    except BaseException:
        os.close(file)
        raise
    return file


def _open() -> tuple[int, str | None]:
    if hasattr(os, "memfd_create"):
        try:
            return os.memfd_create("arrowdl-batch"), None
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
    folder = FOLDER if os.path.isdir(FOLDER) else None
    with _errors_of(folder):
        return _open_posix(), folder


def _open_posix() -> int:
    """Open POSIX shared memory whose name is gone again."""
    from _posixshmem import shm_open, shm_unlink  # type: ignore[import-not-found]

    name = f"/arrowdl-{secrets.token_hex(8)}"  # macOS takes 30 characters
    file: int = shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
    try:
        shm_unlink(name)
    except BaseException:
        os.close(file)
        raise
    return file


@contextmanager
def _errors_of(folder: str | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), folder) from None


def _reserve(file: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)


def map_memory(file: int) -> mmap.mmap:
    """Map all of the memory. The caller may close the file."""
    return mmap.mmap(file, 0, **_OPTIONS)
