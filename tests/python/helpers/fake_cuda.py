"""The fake CUDA driver of the C++ tests, in a process that finds it as libcuda.so.1.

It runs on the CPU with real asynchronous streams: its memory can be read here, and what nobody
waits for is late.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from helpers.capsules import capsule_address
from helpers.dlpack import CPU, DLDevice, DLManagedTensorVersioned

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = [ROOT / "build/dev/tests/cpp/fake_driver" / name for name in ("fake_cuda", "fake_hip")]


PREAMBLE = """
import ctypes, gc, time, weakref
import arrowdl
from arrowdl import debug
from helpers.fake_cuda import FakeCuda, HasInterface

cuda = FakeCuda()

def settle():
    while debug.pending_releases():
        time.sleep(0.001)

def refused(error, says, use):
    try:
        use()
    except error as raised:
        assert says in str(raised), raised
    else:
        raise AssertionError(says)
"""


class HasInterface:
    """An object with an interface and nothing better."""

    def __init__(self, entries: Any) -> None:
        self.__cuda_array_interface__ = entries


class _Relabelled:
    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


def read_as_host(tensor: Any) -> Any:
    """A stand-in for the `from_dlpack` of a framework on the fake device: numpy, which can read the
    fake's memory once it is told that it is the CPU's."""
    capsule = tensor.__dlpack__(stream=None, max_version=(1, 0))
    managed = DLManagedTensorVersioned.from_address(capsule_address(capsule))
    managed.dl_tensor.device = DLDevice(CPU, 0)
    return np.from_dlpack(_Relabelled(capsule))


class FakeCuda:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.library.arrowdl_fake_close_gate.argtypes = [ctypes.c_void_p]
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        assert status == 0, f"{name} says {status}"

    @contextmanager
    def context(self, device: int) -> Iterator[None]:
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)
        yield
        self.call("cuCtxPopCurrent_v2", ctypes.byref(context))

    def make(self, name: str, *arguments: Any, device: int = 0) -> int:
        """The handle or address that a call gives in its first argument."""
        made = ctypes.c_void_p()
        with self.context(device):
            self.call(name, ctypes.byref(made), *arguments)
        assert made.value is not None
        return made.value

    def allocate(self, size: int, device: int = 0) -> int:
        return self.make("cuMemAlloc_v2", ctypes.c_size_t(size), device=device)

    def make_stream(self) -> int:
        return self.make("cuStreamCreate", 1)

    @contextmanager
    def gate(self, stream: int) -> Iterator[None]:
        """While it is closed, nothing that `stream` is given happens."""
        gate = self.library.arrowdl_fake_close_gate(stream)
        try:
            yield
        finally:
            self.library.arrowdl_fake_open_gate(gate)

    def is_idle(self, stream: int) -> bool:
        with self.context(0):
            status = self.library.cuStreamQuery(ctypes.c_void_p(stream))
        assert status in {0, 600}
        return status == 0

    def tensor(self, memory: int, shape: tuple[int, ...], **entries: Any) -> HasInterface:
        described = {"shape": shape, "typestr": "<i4", "data": (memory, False), "version": 3}
        return HasInterface({**described, **entries})
