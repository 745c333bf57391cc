"""DLPack capsules of a producer: their structs, their deleters counted, their values read."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from math import prod
from typing import Any

from arrowdl.testing._capsules import capsule_address, capsule_name, is_capsule, rename_capsule
from arrowdl.testing._structs import (
    HOST_READABLE,
    Deleter,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)

LEGACY, VERSIONED = "dltensor", "dltensor_versioned"
NEWEST = (1, 3)
"""The DLPack version whose rules are checked."""

# Code: its bits, and how `struct` reads a value of that many bits.
_FORMATS = {
    0: {8: "b", 16: "h", 32: "i", 64: "q"},
    1: {8: "B", 16: "H", 32: "I", 64: "Q"},
    2: {16: "e", 32: "f", 64: "d"},
    6: {8: "?"},
}

# Code: the bits that DLPack defines for it; None where any number of bits is a type.
CODES: dict[int, frozenset[int] | None] = {
    0: None,
    1: None,
    2: None,
    3: None,
    4: frozenset({16}),
    5: frozenset({32, 64, 128, 256}),
    6: frozenset({8}),
    **{code: frozenset({8}) for code in range(7, 15)},
    15: frozenset({6}),
    16: frozenset({6}),
    17: frozenset({4}),
}


class Exported:
    """A DLPack capsule that a producer returned. The capsule owns the tensor until `take`."""

    def __init__(self, capsule: Any) -> None:
        if not is_capsule(capsule):
            raise TypeError(f"__dlpack__ returned {type(capsule).__name__}, not a PyCapsule")
        self.capsule: Any = capsule
        self.name = capsule_name(capsule)
        self.is_versioned = self.name == VERSIONED
        kind = DLManagedTensorVersioned if self.is_versioned else DLManagedTensor
        self.address = capsule_address(capsule)
        self.managed: Any = kind.from_address(self.address)

    @property
    def is_known(self) -> bool:
        """Whether the name says which struct it is; nothing else may be read otherwise."""
        return self.name in (LEGACY, VERSIONED)

    @property
    def tensor(self) -> DLTensor:
        tensor: DLTensor = self.managed.dl_tensor
        return tensor

    @property
    def flags(self) -> int:
        return int(self.managed.flags) if self.is_versioned else 0

    @property
    def version(self) -> tuple[int, int]:
        version = self.managed.version
        return (version.major, version.minor)

    def take(self) -> None:
        """Take the tensor out, as a consumer does."""
        rename_capsule(self.capsule, f"used_{self.name}")

    def delete(self, *, with_lock: bool = True) -> None:
        """Call the deleter, with or without the interpreter lock."""
        deleter = deleter_address(self.managed)
        if deleter:
            prototype = ctypes.PYFUNCTYPE if with_lock else ctypes.CFUNCTYPE
            prototype(None, ctypes.c_void_p)(deleter)(self.address)

    def take_and_delete(self) -> None:
        self.take()
        self.delete()


def export_newest(array: Any) -> Exported:
    """Export an array in the newest version that it knows."""
    try:
        return Exported(array.__dlpack__(max_version=NEWEST))
    except TypeError:
        return Exported(array.__dlpack__())


def deleter_address(managed: Any) -> int:
    return ctypes.cast(managed.deleter, ctypes.c_void_p).value or 0


class CountedDeleter:
    """Stands in for the deleter of a tensor, counts its calls and passes them on."""

    def __init__(self, managed: Any) -> None:
        self.calls = 0
        self._foreign = deleter_address(managed)
        self._callback = Deleter(self._call)
        _CALLBACKS.append(self._callback)
        managed.deleter = self._callback

    def _call(self, address: int) -> None:
        self.calls += 1
        if self.calls == 1 and self._foreign:
            ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self._foreign)(address)


_CALLBACKS: list[Any] = []  # a leaked tensor may call its deleter until the process ends


def shape_of(tensor: DLTensor) -> tuple[int, ...]:
    return tuple(tensor.shape[axis] for axis in range(tensor.ndim))


def strides_of(tensor: DLTensor) -> tuple[int, ...]:
    """The strides in elements; those of row-major order if they are NULL."""
    if tensor.strides:
        return tuple(tensor.strides[axis] for axis in range(tensor.ndim))
    return row_major(shape_of(tensor))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def size_of(tensor: DLTensor) -> int:
    return prod(shape_of(tensor))


def start_of(tensor: DLTensor) -> int:
    return int((tensor.data or 0) + tensor.byte_offset)


def can_read(tensor: DLTensor) -> bool:
    """Whether `read_values` can read the tensor."""
    dtype = tensor.dtype
    return (
        tensor.device.device_type in HOST_READABLE
        and dtype.lanes == 1
        and dtype.bits in _FORMATS.get(dtype.code, {})
        and (bool(tensor.data) or size_of(tensor) == 0)
    )


MOST_READ = 10_000
"""How many values are read of a tensor: half of them its first, half its last."""


def read_indices(size: int) -> list[int]:
    """The numbers, in row-major order, of the elements that `read_values` reads of `size`."""
    if size <= MOST_READ:
        return list(range(size))
    return [*range(MOST_READ // 2), *range(size - MOST_READ // 2, size)]


def read_values(tensor: DLTensor) -> list[Any]:
    """The values of a tensor in host memory, in row-major order: those of `read_indices`."""
    dtype = tensor.dtype
    code = _FORMATS[dtype.code][dtype.bits]
    width = dtype.bits // 8
    axes = list(zip(shape_of(tensor), strides_of(tensor), strict=True))[::-1]
    start = start_of(tensor)
    values = []
    for index in read_indices(size_of(tensor)):
        address = start
        for extent, stride in axes:
            index, along = divmod(index, extent)
            address += along * stride * width
        values.append(struct.unpack(code, ctypes.string_at(address, width))[0])
    return values


def rounded(tensor: DLTensor, value: Any) -> Any:
    """`value` as the type of `tensor` holds it; unchanged if it is not a value of the type."""
    code = _FORMATS[tensor.dtype.code][tensor.dtype.bits]
    if code not in "efd":
        return value
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except (struct.error, OverflowError):
        return value


def on_threads(count: int, run: Callable[[], None]) -> list[BaseException]:
    """Call `run` on `count` threads at once; return what they raised."""
    raised: list[BaseException] = []
    barrier = threading.Barrier(count)

    def work() -> None:
        try:
            barrier.wait()
            run()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised
