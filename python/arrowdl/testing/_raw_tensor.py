"""DLPack tensors made by hand, field by field, that count how often they are released."""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

from arrowdl._core import make_borrowed_capsule
from arrowdl._lifecycle import at_exit
from arrowdl.testing._structs import (
    CPU,
    Deleter,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLPackVersion,
    DLTensor,
)

# name: (type code, bits[, lanes])
CODES: dict[str, tuple[int, ...]] = {
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "bool": (6, 8),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
    "float4_e2m1fn_x2": (17, 4, 2),
    "float4_e2m1fn": (17, 4),
    "int2": (0, 2),
    "int4": (0, 4),
    "uint2": (1, 2),
    "uint4": (1, 4),
}

_unreleased: set[Any] = set()  # a struct in use may have no other reference
_recent: deque[Any] = deque(maxlen=4096)  # their capsules look at them once more


def keep_until_released(tensor: Any) -> None:
    """Keep `tensor`, which has a method `forget`, until `released` is called with it."""
    _unreleased.add(tensor)


def released(tensor: Any) -> None:
    """A wrong consumer may still use it: it stays for a while."""
    if tensor.lingers:
        _recent.append(tensor)
    _unreleased.discard(tensor)


@at_exit
def _forget_leaked() -> None:
    """No callback in Python may run after the interpreter has ended."""
    for tensor in list(_unreleased):
        tensor.forget()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))  # its memory may still be in use


class Memory:
    """Bytes at an address that is a multiple of 64, plus `shift`."""

    def __init__(self, content: bytes, shift: int = 0) -> None:
        self.size = len(content)
        self._block = ctypes.create_string_buffer(self.size + 64 + shift)
        start = ctypes.addressof(self._block)
        self.address = (start + 63) // 64 * 64 + shift
        self.write(content)

    @classmethod
    def of(cls, code: str, values: Sequence[Any], shift: int = 0) -> Memory:
        """`values` packed as `struct` packs them by `code`, in native byte order."""
        return cls(struct.pack(f"={len(values)}{code}", *values), shift)

    def write(self, content: bytes) -> None:
        ctypes.memmove(self.address, content, len(content))

    def read(self) -> bytes:
        return ctypes.string_at(self.address, self.size)


class RawTensor:
    """A managed tensor over a `Memory` (or at an address, or NULL).

    Its `tensor` may be changed at will before it is handed out.
    """

    lingers = True

    def __init__(
        self,
        data: Memory | int | None,
        shape: tuple[int, ...],
        *,
        dtype: str | tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        byte_offset: int = 0,
        device: tuple[int, int] = (CPU, 0),
        versioned: bool = True,
        version: tuple[int, int] = (1, 3),
        flags: int = 0,
        deleter: bool = True,
    ) -> None:
        """`strides` (in elements) are NULL unless given; `dtype` is a name of CODES or
        (code, bits[, lanes])."""
        self.data: Any = data
        self.released = 0  # how often its deleter was called
        # the exception that was pending then. A deleter in Python loses it, so the consumer cannot
        # raise it
        self.pending: BaseException | None = None
        code = CODES[dtype] if isinstance(dtype, str) else dtype
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self._deleter = Deleter(self._release)
        self.is_versioned = versioned
        self.managed: Any = DLManagedTensorVersioned() if versioned else DLManagedTensor()
        if versioned:
            self.managed.version = DLPackVersion(*version)
            self.managed.flags = flags
        if deleter:
            self.managed.deleter = self._deleter
            keep_until_released(self)
        else:
            released(self)
        tensor = self.managed.dl_tensor
        tensor.data = data.address if isinstance(data, Memory) else data
        tensor.device = DLDevice(*device)
        tensor.ndim = len(shape)
        tensor.dtype = DLDataType(*code, *([1] if len(code) == 2 else []))
        tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        if self._strides is not None:
            tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        tensor.byte_offset = byte_offset

    @property
    def tensor(self) -> DLTensor:
        tensor: DLTensor = self.managed.dl_tensor
        return tensor

    @property
    def address(self) -> int:
        return ctypes.addressof(self.managed)

    def _release(self, address: int) -> None:
        self.pending = take_pending_exception()
        assert address == self.address
        self.released += 1
        released(self)

    def forget(self) -> None:
        """Leave nothing to call in the struct."""
        self.managed.deleter = Deleter()

    def capsule(self) -> Any:
        """As a producer hands it out: released with the capsule unless a consumer took it."""
        name = "dltensor_versioned" if self.is_versioned else "dltensor"
        return make_borrowed_capsule(self.address, name)


_occurred = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyErr_Occurred", ctypes.pythonapi))


def take_pending_exception() -> BaseException | None:
    """Return the exception that C code raised before it called back, and clear it."""
    try:
        _occurred()  # ctypes raises what is pending when the function returns
    except BaseException as pending:
        return pending
    return None
