"""Arrays in GPU memory as multiprocessing sends them to other processes.

The memory is a copy that the system frees when no process has a mapping or a descriptor of it. Its
descriptor goes by multiprocessing's resource sharer, which keeps a duplicate until the receiver
fetches it.
"""

from __future__ import annotations

import os
from multiprocessing import AuthenticationError, resource_sharer
from multiprocessing.reduction import ForkingPickler
from typing import Any

from arrowdl import _core
from arrowdl._device_type import DeviceType

_SHARED = {DeviceType.cuda, DeviceType.rocm}
_NEEDED_DESCRIPTORS = 4  # at once: the driver's, the copy's, its duplicate's, and a connection's


def prepare() -> None:
    """Let multiprocessing send arrays; the extension calls this for the first one on a GPU."""
    ForkingPickler.register(_core.DeviceArray, _reduce)


def _reduce(array: _core.DeviceArray) -> Any:
    if array.is_released or array.device.type not in _SHARED:
        return array.__reduce__()  # raises an error that says what to send instead
    try:
        description, descriptor = _core.make_shared_copy(array)
        try:
            # Also in the arguments of a process that is being spawned. It would inherit the
            # descriptor by its number, and it would be unknown when to close it here.
            memory = None if descriptor < 0 else resource_sharer.DupFd(descriptor)
        finally:
            if descriptor >= 0:
                os.close(descriptor)
    except (OSError, BufferError, MemoryError) as error:  # drivers do not say why
        _check_descriptors(error)
        raise
    return _open, (description, memory, os.getpid())


def _check_descriptors(error: Exception) -> None:
    """Raise that file descriptors lack, if this process may have no more of them."""
    opened: list[int] = []
    try:
        while len(opened) < _NEEDED_DESCRIPTORS:
            opened.extend(os.pipe())
    except OSError as lack:
        raise OSError(
            lack.errno,
            "an array that is sent and not yet received takes a file descriptor, and this process "
            "may have no more: let the others receive their arrays, or raise the limit (ulimit -n)",
        ) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _open(
    description: bytes, memory: resource_sharer.DupFd | None, sender: int
) -> _core.DeviceArray:
    if memory is None:
        return _core.open_shared_copy(description, -1)
    try:
        descriptor = memory.detach()
    except (OSError, EOFError, RuntimeError, AuthenticationError) as error:
        _check_descriptors(error)
        raise RuntimeError(
            f"process {sender} sent an array in GPU memory, and does not give access to it: it has "
            "to live until the array is received, and an array is received once "
            f"({type(error).__name__}: {error})"
        ) from error
    try:
        return _core.open_shared_copy(description, descriptor)
    finally:
        os.close(descriptor)
