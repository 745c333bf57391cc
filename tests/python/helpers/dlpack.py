"""DLPack tensors made by hand, field by field, that count how often they are released."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from helpers.capsules import (
    capsule_address,
    capsule_name,
    make_capsule,
    make_tensor_capsule,
)

READ_ONLY = 1
IS_COPIED = 2

CPU = 1

# name: (type code, bits)
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
}


class DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", Deleter))


class DLPackVersion(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = (
        ("version", DLPackVersion),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


assert ctypes.sizeof(DLTensor) == 48
assert ctypes.sizeof(DLManagedTensor) == 64
assert ctypes.sizeof(DLManagedTensorVersioned) == 80

_unreleased: set[MadeTensor] = set()  # nobody else may hold a struct that is still in use


class MadeTensor:
    """A managed tensor over the memory of a numpy array (or at an address, or NULL).

    Attributes
    ----------
    released : int
        How often its deleter was called.
    tensor : DLTensor
        To be changed at will before it is handed out.
    managed : DLManagedTensor or DLManagedTensorVersioned
    """

    def __init__(
        self,
        data: np.ndarray | int | None,
        shape: tuple[int, ...] | None = None,
        *,
        dtype: str | tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        byte_offset: int = 0,
        device: tuple[int, int] = (CPU, 0),
        versioned: bool = True,
        version: tuple[int, int] = (1, 3),
        flags: int = 0,
        deleter: bool = True,
    ) -> None:
        """`shape` and `dtype` are the array's unless given; `strides` (in elements) are NULL
        unless given; `dtype` is a name of CODES or (code, bits[, lanes])."""
        self.data = data
        self.released = 0
        if shape is None:
            assert isinstance(data, np.ndarray)
            shape = data.shape
        if dtype is None:
            assert isinstance(data, np.ndarray)
            dtype = data.dtype.name
        code = CODES[dtype] if isinstance(dtype, str) else dtype
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self._deleter = Deleter(self._release)
        self.is_versioned = versioned
        self.managed = DLManagedTensorVersioned() if versioned else DLManagedTensor()
        if versioned:
            self.managed.version = DLPackVersion(*version)
            self.managed.flags = flags
        if deleter:
            self.managed.deleter = self._deleter
            _unreleased.add(self)
        tensor = self.managed.dl_tensor
        tensor.data = data.ctypes.data if isinstance(data, np.ndarray) else data
        tensor.device = DLDevice(*device)
        tensor.ndim = len(shape)
        tensor.dtype = DLDataType(*code, *([1] if len(code) == 2 else []))
        tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        if self._strides is not None:
            tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        tensor.byte_offset = byte_offset

    @property
    def tensor(self) -> DLTensor:
        return self.managed.dl_tensor

    @property
    def address(self) -> int:
        return ctypes.addressof(self.managed)

    def _release(self, address: int) -> None:
        assert address == self.address
        self.released += 1
        _unreleased.discard(self)

    def capsule(self, name: str | None = None) -> Any:
        """As a producer hands it out: released with the capsule unless a consumer took it."""
        if name is None:
            standard = "dltensor_versioned" if self.is_versioned else "dltensor"
            return make_tensor_capsule(self.address, standard)
        return make_capsule(self.address, name, lambda: self.managed.deleter(self.address))


def read_capsule(capsule: Any) -> DLManagedTensor | DLManagedTensorVersioned:
    """The struct in an unconsumed DLPack capsule, which keeps owning it."""
    is_versioned = capsule_name(capsule) == "dltensor_versioned"
    struct = DLManagedTensorVersioned if is_versioned else DLManagedTensor
    return struct.from_address(capsule_address(capsule))
