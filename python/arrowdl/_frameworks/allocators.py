"""Allocators of device memory that other libraries have, for `config.allocator`.

An allocator is a function ``(name, index, nbytes, stream)`` of a device's name and id, a number
of bytes and a stream of arrowdl's own. It returns the address, an owner whose end frees the memory,
and the handle of a stream whose earlier work may still use the memory, or None. arrowdl drops the
owner when no work uses the memory any more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

Allocated = tuple[int, object, int | None]
Allocator = Callable[[str, int, int, int], Allocated]

_LEGACY_DEFAULT = {"cuda": 1, "rocm": 0}


def allocate_auto(name: str, index: int, nbytes: int, stream: int) -> Allocated | None:
    """Allocate by torch where it uses the GPU; None leaves the memory to arrowdl's pool."""
    torch = find_torch(name)
    return None if torch is None else allocate_by_torch(name, index, nbytes, stream)


def allocate_by_torch(name: str, index: int, nbytes: int, stream: int) -> Allocated:
    """Allocate by torch. Where torch has the functions of C for it, core calls them next time."""
    import torch

    torch_stream = _find_stream_of_torch(stream, index)
    with torch.cuda.stream(torch_stream):
        memory = torch.empty(nbytes, dtype=torch.uint8, device=torch.device("cuda", index))
    return memory.data_ptr(), memory, stream


def find_allocator(allocator: Any) -> Allocator | None:
    """Return the allocator of an object of torch, CuPy or RMM, or of a function; else None."""
    if isinstance(allocator, type):
        is_torch = (allocator.__module__, allocator.__name__) == ("torch", "Tensor")
        return allocate_by_torch if is_torch else None
    if callable(getattr(allocator, "deallocate", None)) and hasattr(allocator, "allocate"):
        return partial(_allocate_by_rmm, allocator)
    return partial(_allocate_by_function, allocator) if callable(allocator) else None


def find_torch(name: str) -> Any:
    """Return torch if it is imported and uses GPUs of this type; else None."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    version = getattr(torch, "version", None)
    if cuda is None or version is None or name.partition("_")[0] not in {"cuda", "rocm"}:
        return None
    is_rocm = getattr(version, "hip", None) is not None
    if is_rocm != name.startswith("rocm") or not cuda.is_initialized():
        return None
    return torch


def free_caches(name: str) -> None:
    """Free the device memory that torch and CuPy keep without using it."""
    torch = find_torch(name)
    if torch is not None:
        torch.cuda.empty_cache()
    get_pool = getattr(sys.modules.get("cupy"), "get_default_memory_pool", None)
    if get_pool is not None:
        get_pool().free_all_blocks()


# torch keeps memory for the stream that it was allocated on. On arrowdl's own, a copy does not wait
# for the training. With the backend cudaMallocAsync, work of that stream allocates.
@cache
def _find_stream_of_torch(stream: int, index: int) -> Any:
    import torch

    return torch.cuda.ExternalStream(stream, device=torch.device("cuda", index))


def _allocate_by_rmm(resource: Any, name: str, index: int, nbytes: int, stream: int) -> Allocated:
    rmm = import_module("rmm")
    memory = rmm.DeviceBuffer(size=nbytes, mr=resource)  # on RMM's default stream
    return memory.ptr, memory, _LEGACY_DEFAULT[name]


def _allocate_by_function(
    function: Callable[[int], Any], name: str, index: int, nbytes: int, stream: int
) -> Allocated:
    memory = function(nbytes)
    interface = getattr(memory, "__cuda_array_interface__", None)
    if interface is not None:
        address, used = interface["data"][0], interface.get("stream")
        return int(address), memory, _LEGACY_DEFAULT[name] if used is None else int(used)
    address = getattr(memory, "ptr", None)
    if address is None:
        raise TypeError(
            f"the allocator {function!r} returned {memory!r}: an object with "
            "__cuda_array_interface__ or with the address as ptr is needed, which frees the memory "
            "when it is deleted"
        )
    return int(address), memory, _current_stream_of_cupy(memory, _LEGACY_DEFAULT[name])


def _current_stream_of_cupy(memory: Any, default: int) -> int:
    if type(memory).__module__.partition(".")[0] != "cupy":
        return default
    return sys.modules["cupy"].cuda.get_current_stream().ptr or default
