"""`NoRoomError`: why there is no shared memory for a batch, and what to do."""

from __future__ import annotations

import errno
import os

from arrowdl.loader._workers.anonymous_memory import IS_DESCRIPTOR_KEPT
from arrowdl.loader._workers.available_memory import find_available

_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ETOOMANYREFS)
_NO_MEMORY = (errno.ENOSPC, errno.ENOMEM, errno.EFBIG)


class NoRoomError(OSError):
    """The system has no shared memory of the wanted size, or no file descriptor for it."""

    def __init__(
        self,
        size: int,  # bytes of the batch
        code: int,  # an errno that `is_no_room` knows
        folder: str | None = None,  # the file system that the memory would be in, if it is in one
    ) -> None:
        if code in _NO_FILES:
            text = _explain_files(size, code)
        elif code == errno.EFBIG:
            text = _explain_limit(size, code)
        elif folder is not None:
            text = _explain_folder(size, code, folder)
        else:
            text = _explain_memory(size, code)
        super().__init__(code, text)


def is_no_room(error: OSError) -> bool:
    """Whether the system has no more memory or descriptors."""
    return error.errno in (*_NO_FILES, *_NO_MEMORY)


def _explain_memory(size: int, code: int) -> str:
    available = find_available()
    room = "" if available is None else f"{available} bytes are available "
    room += f"({os.strerror(code)})"
    return (
        f"no shared memory for a batch of {size} bytes: {room}. Each worker process "
        "keeps some batches in shared memory, which counts as memory of this machine and of its "
        "container (cgroup): give them more memory, keep fewer batches, or give the Loader smaller "
        "batches, fewer workers, a smaller prefetch, or num_workers=0"
    )


def _explain_folder(size: int, code: int, folder: str) -> str:
    return (
        f"no shared memory for a batch of {size} bytes: {_describe_room(code, folder)}. Each "
        f"worker process keeps some batches in shared memory, in {folder} since this system "
        "refuses memfd_create: start the container with more (docker run --shm-size=4g, an "
        "emptyDir of medium Memory in Kubernetes), or give the Loader smaller batches, fewer "
        "workers, a smaller prefetch, or num_workers=0, which needs none"
    )


def _describe_room(code: int, folder: str) -> str:
    try:
        room = os.statvfs(folder)
    except (OSError, AttributeError):
        return os.strerror(code)
    free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    return f"{folder} has {free} bytes free, of {total} ({os.strerror(code)})"


def _explain_limit(size: int, code: int) -> str:
    limit = _read_limit("RLIMIT_FSIZE")
    return (
        f"no shared memory for a batch of {size} bytes: the worker process may make files of "
        f"{limit} bytes (ulimit -f; {os.strerror(code)}), and shared memory is one. Raise the "
        "limit, or give the Loader smaller batches, or num_workers=0, which needs none"
    )


def _explain_files(size: int, code: int) -> str:
    need = "is needed for a moment: close files"
    if IS_DESCRIPTOR_KEPT:
        need = (
            "is kept as long as the batch is alive, in the training's process and in its worker: "
            "keep fewer batches (copy what you keep, as by tensor.clone())"
        )
    return (
        f"no file descriptor for the shared memory of a batch of {size} bytes: "
        f"{_describe_files(code)}. One {need}, raise the limit, or give the Loader num_workers=0, "
        "which needs none"
    )


def _describe_files(code: int) -> str:
    if code == errno.ENFILE:
        return os.strerror(code)
    limit = _read_limit("RLIMIT_NOFILE")
    if code == errno.EMFILE:
        return f"this process may have {limit} files open (ulimit -n; {os.strerror(code)})"
    return (
        f"this user may have {limit} descriptors on their way between processes (ulimit -n; "
        f"{os.strerror(code)})"
    )


def _read_limit(name: str) -> int:
    import resource

    limit, _ = resource.getrlimit(getattr(resource, name))
    return limit
