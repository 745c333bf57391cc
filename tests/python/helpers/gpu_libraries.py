"""Doubles of GPU libraries on the fake CUDA driver, with the calls around streams that the
real ones make. Each names its source."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from helpers.capsules import capsule_address, capsule_name
from helpers.dlpack import DLManagedTensor, DLManagedTensorVersioned
from helpers.fake_cuda import FakeCuda


def data_of(capsule: Any) -> int:
    """The address in a DLPack capsule. The capsule stands for the consumer's tensor: it calls the
    deleter when it is dropped."""
    is_legacy = capsule_name(capsule) == "dltensor"
    struct = DLManagedTensor if is_legacy else DLManagedTensorVersioned
    address: int = struct.from_address(capsule_address(capsule)).dl_tensor.data
    return address


def install(name: str, **attributes: Any) -> ModuleType:
    """Make `import name` find a module with these attributes."""
    module = ModuleType(name)
    vars(module).update(attributes)
    sys.modules[name] = module
    return module


class TorchStream:
    """torch.cuda.Stream: the default one has the handle 0. Source: torch/csrc/cuda/Stream.cpp."""

    def __init__(self, handle: int, index: int = 0) -> None:
        self.cuda_stream, self.device_index = handle, index
        self.device = SimpleNamespace(type="cuda", index=index)


class AcceleratorStream:
    """torch.Stream, for torch.accelerator. Source: torch/csrc/Stream.cpp."""

    def __init__(self, handle: int, type: str = "cuda", index: int = 0) -> None:
        self.native_handle, self.stream_id, self.device_index = handle, 3, index
        self.device = SimpleNamespace(type=type, index=index)

    def wait_event(self, event: Any) -> None: ...


def torch_from_dlpack(array: Any, stream: TorchStream) -> Any:
    """Source: from_dlpack in torch/utils/dlpack.py."""
    array.__dlpack_device__()
    number = 1 if stream.cuda_stream == 0 else stream.cuda_stream
    return array.__dlpack__(stream=number, max_version=(1, 0))


class CupyEvent:
    """cupy.cuda.Event. Source: cupy/cuda/stream.pyx."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.ptr = cuda.make("cuEventCreate", 2)

    def record(self, stream: Any = None) -> None: ...

    def synchronize(self) -> None: ...


class CupyStream:
    """cupy.cuda.Stream, which destroys its stream with the object. Source: cupy/cuda/stream.pyx."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda, self.ptr, self.device_id = cuda, cuda.make_stream(), 0

    def __del__(self) -> None:
        self._cuda.destroy_stream(self.ptr)

    def wait_event(self, event: Any) -> None: ...


class Cupy:
    """Sources: from_dlpack in cupy/_core/dlpack.pyx, current streams in cupy/cuda/stream.pyx."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self._stack = cuda, list[Any]()
        package = install("cupy")
        null = SimpleNamespace(ptr=0, device_id=-1)
        package.cuda = install(  # type: ignore[attr-defined]
            "cupy.cuda", get_current_stream=lambda: self._stack[-1] if self._stack else null
        )

    @contextmanager
    def stream(self) -> Iterator[CupyStream]:
        self._stack.append(CupyStream(self.cuda))
        yield self._stack[-1]
        self._stack.pop()

    def from_dlpack(self, array: Any) -> Any:
        array.__dlpack_device__()
        return array.__dlpack__(stream=self._stack[-1].ptr, max_version=(1, 0), copy=None)


class XlaDevice:
    """A jax.Device."""

    platform = "gpu"
    local_hardware_id = 0

    def __init__(self, next_stream: Callable[[], int]) -> None:
        self.get_stream_for_external_ready_events = next_stream


class XlaArray:
    """The result of a computation, ready when the compute stream is that far."""

    def __init__(self, xla: Xla) -> None:
        self._xla = xla

    def __dlpack__(self, *, stream: int) -> None:
        self._xla.cuda.order(self._xla.compute_stream, stream)


class Xla:
    """JAX on XLA's GPU client: it waits for foreign memory on one of four streams, and computes on
    another. Sources: _from_dlpack in jax/_src/dlpack.py; LocalDeviceState, kComputeSynchronized and
    ~TrackedDeviceBuffer in xla/pjrt; TfrtGpuBuffer in xla/pjrt/gpu/tfrt.

    Attributes
    ----------
    probes : int
        The number of computations that jitted functions have dispatched.
    """

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.probes, self.is_started = cuda, 0, False
        self.compute_stream = cuda.make_stream()
        self._ready_streams = itertools.cycle([cuda.make_stream() for _ in range(4)])
        self.device = XlaDevice(lambda: next(self._ready_streams))
        install(
            "jax",
            jit=self._jit,
            device_put=lambda x, _: x,
            transfer_guard=lambda _: nullcontext(),
        )
        client = SimpleNamespace(local_devices=lambda: [self.device])
        bridge = install(
            "jax._src.xla_bridge",
            backends_are_initialized=lambda: self.is_started,
            backends=self._start,
        )
        install("jax._src", xla_bridge=bridge)
        self._clients = {"cpu": None, "cuda": client}

    def _start(self) -> dict[str, Any]:
        self.is_started = True
        return self._clients

    def _jit(self, function: Callable[[Any], Any]) -> Callable[[Any], XlaArray]:
        def dispatch(_value: Any) -> XlaArray:
            self.probes += 1
            return XlaArray(self)

        return dispatch

    def from_dlpack(self, array: Any) -> Any:
        """jax.dlpack.from_dlpack. The capsule stands for the PjRtBuffer."""
        self.is_started = True
        stream = self.device.get_stream_for_external_ready_events()
        capsule = array.__dlpack__(stream=stream)  # a legacy one
        self.cuda.order(stream, self.compute_stream)  # the buffer's definition event
        return capsule

    def donate(self, arguments: list[Any], client: str, aliases: bool) -> int:
        """A jitted function whose argument is donated: the address of its result, which is that of
        the argument if the compiler `aliases` them.

        Sources: prepare_inputs and execute_fn in xla/pjrt/gpu/tfrt/tfrt_gpu_executable.cc, where
        the result takes the address as memory of XLA's allocator, and Commit() calls the deleter
        before the computation; ForeignRawSEDeviceMemory in xla/pjrt/se_raw_buffer.cc, which the
        result keeps, and whose UnsafeReleaseMemory() is fatal.
        """
        memory = data_of(arguments[0])
        if client == "tfrt":
            arguments.pop()
        elif not aliases:
            raise RuntimeError("LOG(FATAL): foreign memory cannot be donated")
        return memory

    def compute(self, memory: int, size: int) -> Any:
        """A jitted function of a buffer: dispatched, and read when it runs."""
        assert memory % 16 == 0, "XLA: the address of a buffer must be a multiple of 16"
        return self.cuda.read(self.compute_stream, memory, size)
