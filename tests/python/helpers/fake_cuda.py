"""The fake CUDA driver of the C++ tests, in a process that finds it as libcuda.so.1.

It runs on the CPU with real asynchronous streams: its memory can be read here, and work that no
call waits for is late.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from helpers.capsules import capsule_address, make_capsule, make_tensor_capsule
from helpers.dlpack import (
    CPU,
    DLDevice,
    DLManagedTensorVersioned,
    DLPackVersion,
    DLTensor,
    MadeTensor,
)

ROOT = Path(__file__).resolve().parents[3]
DRIVERS = ROOT / os.environ.get("ARROWDL_DOUBLES", "build/dev") / "tests/cpp/fake_driver"
FOLDERS = [DRIVERS / name for name in ("fake_cuda", "fake_hip")]
HIPRTC = DRIVERS / "fake_hiprtc"
FAKE_TORCH = DRIVERS / "fake_torch/libtorch_cuda.so"

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

# Run after the code of a test. HIP's double is loaded if the test has used ROCm.
ENDING = """
settle()
import os
assert cuda.misuses() == 0, f"{cuda.misuses()} calls or kernels used what is freed"
try:
    hip = ctypes.CDLL("libamdhip64.so.6", mode=os.RTLD_NOLOAD)
except OSError:
    hip = None
assert hip is None or hip.arrowdl_fake_misuses() == 0, "on HIP"
"""


def replace_framework(name: str, framework: Any) -> None:
    """Make arrowdl load `framework` under this name; once, before its first use in the process."""
    sys.modules[f"arrowdl._frameworks.{name}"] = SimpleNamespace(FRAMEWORK=framework)


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


def check_label(tensor: DLTensor) -> None:
    """Require that memory of the GPU is labelled with the GPU that the driver says it is of.

    A framework would take the label's word. The fake's memory can be read as the host's, too.
    """
    library = ctypes.CDLL("libcuda.so.1")

    def ask(attribute: int) -> int | None:
        value = ctypes.c_int()
        address = ctypes.c_void_p(tensor.data)
        status = library.cuPointerGetAttribute(ctypes.byref(value), attribute, address)
        return None if status else value.value

    memory_type, is_managed, ordinal = map(ask, (2, 8, 9))  # CUpointer_attribute
    if tensor.data and memory_type == 2 and not is_managed:  # CU_MEMORYTYPE_DEVICE
        labelled = tensor.device.device_type, tensor.device.device_id
        assert labelled == (2, ordinal), f"memory of GPU {ordinal} is labelled {labelled}"


def read_as_host(tensor: Any) -> Any:
    """A stand-in for the `from_dlpack` of a framework on the fake device: numpy, which can read the
    fake's memory once it is told that it is the CPU's."""
    capsule = tensor.__dlpack__(stream=None, max_version=(1, 0))
    managed = DLManagedTensorVersioned.from_address(capsule_address(capsule))
    device = managed.dl_tensor.device
    said = tensor.__dlpack_device__()
    labelled = device.device_type, device.device_id
    assert labelled == said, f"a tensor of {said} is labelled {labelled}"
    check_label(managed.dl_tensor)
    managed.dl_tensor.device = DLDevice(CPU, 0)
    return np.from_dlpack(_Relabelled(capsule))


class FakeCuda:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.library.arrowdl_fake_close_gate.argtypes = [ctypes.c_void_p]
        self.library.arrowdl_fake_close_gate_on.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self.library.arrowdl_fake_set_capturing.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.library.arrowdl_fake_enqueue_copy.argtypes = [
            ctypes.c_int,
            *[ctypes.c_void_p] * 3,
            ctypes.c_size_t,
        ]
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

    def make_stream(self, device: int = 0) -> int:
        return self.make("cuStreamCreate", 1, device=device)

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream; its work goes on."""
        with self.context(0):
            self.call("cuStreamDestroy_v2", ctypes.c_void_p(stream))

    def order(self, first: int, then: int) -> None:
        """Later work on the stream `then` waits for the work that `first` holds now."""
        event = ctypes.c_void_p(self.make("cuEventCreate", 2))
        with self.context(0):
            self.call("cuEventRecord", event, ctypes.c_void_p(first))
            self.call("cuStreamWaitEvent", ctypes.c_void_p(then), event, 0)
            self.call("cuEventDestroy_v2", event)

    def read(self, stream: int, memory: int, size: int, device: int = 0) -> Any:
        """The bytes that a kernel on `stream` reads, when it runs."""
        target = (ctypes.c_ubyte * size)()
        address = ctypes.addressof(target)
        self.library.arrowdl_fake_enqueue_copy(device, stream, address, memory, size)
        return target

    def synchronize(self, stream: int) -> None:
        with self.context(0):
            self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    @contextmanager
    def capture(self, stream: int) -> Iterator[None]:
        """`stream` is captured into a graph by a thread in the global mode."""
        self.library.arrowdl_fake_set_global_capture(1)
        self.library.arrowdl_fake_set_capturing(stream, 1)
        try:
            yield
        finally:
            is_broken = self.library.arrowdl_fake_is_capture_broken()
            self.library.arrowdl_fake_set_capturing(stream, 0)
            self.library.arrowdl_fake_set_global_capture(0)
        assert not is_broken, "a call has invalidated the capture"

    def misuses(self) -> int:
        """The number of calls with a handle that was destroyed, and of operations on memory that is
        freed, or beyond its end."""
        misuses: int = self.library.arrowdl_fake_misuses()
        return misuses

    def reuse_handles(self) -> None:
        """From now on a new stream gets the handle of the one that was destroyed last."""
        self.library.arrowdl_fake_set_handle_reuse(1)

    @contextmanager
    def gate(self, stream: int, device: int = 0) -> Iterator[None]:
        """While it is closed, nothing that `stream` is given happens."""
        gate = self.library.arrowdl_fake_close_gate_on(device, stream)
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


class _ExchangeApi(ctypes.Structure):
    _fields_ = (
        ("version", DLPackVersion),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("borrow", ctypes.c_void_p),
        ("work_stream", ctypes.c_void_p),
    )


class StandInFramework:
    """A stand-in for torch on the fake device: its exchange API, with memory and a stream of its
    own. The objects it makes are numpy arrays over the fake's memory.

    Attributes
    ----------
    stream : int
        The stream of its work.
    addresses : list of int
        What it allocated.
    """

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.stream, self.addresses = cuda, cuda.make_stream(), list[int]()
        callback = functools.partial(ctypes.PYFUNCTYPE, ctypes.c_int)
        address = ctypes.c_void_p
        self._callbacks = [
            callback(address, address, address, address)(self._allocate),
            callback(address, address)(self._to_object),
            callback(ctypes.c_int32, ctypes.c_int32, address)(self._work_stream),
        ]
        allocate, to_object, work_stream = (
            ctypes.cast(function, address).value for function in self._callbacks
        )
        version = DLPackVersion(1, 3)
        self._api = _ExchangeApi(version, None, allocate, None, to_object, None, work_stream)
        api = make_capsule(ctypes.addressof(self._api), "dlpack_exchange_api")
        self.tensor_type = type("Tensor", (), {"__dlpack_c_exchange_api__": api})

    def _allocate(self, prototype: int, out: int, _context: int, _set_error: int) -> int:
        wanted = DLTensor.from_address(prototype)
        length, dtype = wanted.shape[0], (wanted.dtype.code, wanted.dtype.bits)
        device = (wanted.device.device_type, wanted.device.device_id)
        self.addresses.append(self.cuda.allocate(max(length * dtype[1] // 8, 1), device[1]))
        made = MadeTensor(self.addresses[-1], (length,), dtype=dtype, device=device)
        ctypes.c_void_p.from_address(out).value = made.address
        return 0

    def _to_object(self, managed: int, out: int) -> int:
        tensor = DLManagedTensorVersioned.from_address(managed).dl_tensor
        check_label(tensor)
        tensor.device = DLDevice(CPU, 0)
        capsule = make_tensor_capsule(managed, "dltensor_versioned")
        made = np.from_dlpack(_Relabelled(capsule))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        ctypes.c_void_p.from_address(out).value = id(made)
        return 0

    def _work_stream(self, _type: int, _index: int, out: int) -> int:
        ctypes.c_void_p.from_address(out).value = self.stream
        return 0
