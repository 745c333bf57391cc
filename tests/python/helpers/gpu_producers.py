"""Doubles of what GPU libraries export, on the fake CUDA driver, with the calls around streams that
the real ones make. Each names its source. Consumers are in gpu_libraries.py."""

from __future__ import annotations

import ctypes
from typing import Any

from helpers.dlpack import MadeTensor
from helpers.fake_cuda import FakeCuda
from helpers.gpu_libraries import Xla


class Producer:
    """Rows of uint8 that are written by work on `stream`, when that is so far.

    Attributes
    ----------
    asked : list
        The streams that `__dlpack__` was given.
    """

    def __init__(self, cuda: FakeCuda, values: list[int], stream: int) -> None:
        self.cuda, self.stream, self.asked = cuda, stream, list[Any]()
        self.size, self.memory = len(values), cuda.allocate(len(values))
        self._source = (ctypes.c_ubyte * len(values))(*values)
        cuda.library.arrowdl_fake_enqueue_copy(
            0, stream, self.memory, ctypes.addressof(self._source), len(values)
        )
        self.made = MadeTensor(self.memory, (self.size,), dtype="uint8", device=(2, 0))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    @property
    def released(self) -> int:
        return self.made.released


class CupyArray(Producer):
    """cupy.ndarray, written on CuPy's current stream: the consumer's stream waits for it. Source:
    ndarray.__dlpack__ in cupy/_core/core.pyx."""

    def __dlpack__(
        self, *, stream: int | None = None, max_version: Any = None, copy: Any = None
    ) -> Any:
        self.asked.append(stream)
        if stream != -1:
            self.cuda.order(self.stream, 1 if stream is None else stream)
        return self.made.capsule()


class JaxArray(Producer):
    """jax.Array, written on XLA's compute stream. The consumer's stream waits for its definition
    event, and without a stream the host does. Sources: to_dlpack in jax/_src/dlpack.py,
    WaitUntilBufferReadyOnStream in xla/pjrt."""

    def __init__(self, xla: Xla, values: list[int]) -> None:
        super().__init__(xla.cuda, values, xla.compute_stream)

    def __dlpack__(
        self, *, stream: int | None = None, max_version: Any = None, copy: Any = None
    ) -> Any:
        self.asked.append(stream)
        if stream is None:
            self.cuda.synchronize(self.stream)
        else:
            self.cuda.order(self.stream, stream)
        return self.made.capsule()


class CoreBuffer(Producer):
    """cuda.core's Buffer, whose `__dlpack__` ignores the stream, "as if it is -1": the caller keeps
    the order. Source: Buffer.__dlpack__ in cuda_core/cuda/core/_memory."""

    def __dlpack__(
        self, *, stream: int | None = None, max_version: Any = None, copy: Any = None
    ) -> Any:
        self.asked.append(stream)
        return self.made.capsule()


class OldProducer(Producer):
    """A library of before DLPack 1.0, without `stream`: its work is on the default stream."""

    def __dlpack__(self) -> Any:
        self.asked.append("nothing")
        return self.made.capsule()


class NumbaArray:
    """What numba.cuda.as_cuda_array(array) returns: it waits on the host for the array's stream,
    and keeps the array. Source: from_cuda_array_interface in numba/cuda/api.py."""

    def __init__(self, cuda: FakeCuda, array: Any) -> None:
        described = array.__cuda_array_interface__
        if described["stream"] is not None:
            cuda.synchronize(described["stream"])
        self.memory, self.owner = described["data"][0], array


class NcclWork:
    """An asynchronous all-reduce on NCCL's stream. Its `wait` makes the current stream wait, and
    until then it keeps the tensors: recordStream does nothing for memory that is not of torch's
    caching allocator. Sources: collective and WorkNCCL::synchronizeStream in
    torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, recordStream in
    c10/cuda/CUDACachingAllocator.cpp.
    """

    def __init__(self, cuda: FakeCuda, nccl: int, current: int, tensor: list[Any]) -> None:
        self._cuda, self._nccl, self._current, self._kept = cuda, nccl, current, tensor
        cuda.order(current, nccl)

    def read(self, memory: int, size: int) -> Any:
        return self._cuda.read(self._nccl, memory, size)

    def wait(self) -> None:
        self._cuda.order(self._nccl, self._current)
        self._kept.clear()
