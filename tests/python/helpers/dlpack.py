"""DLPack tensors made by hand over numpy arrays, that count how often they are released."""

from __future__ import annotations

from typing import Any

import numpy as np
from arrowdl.testing import _raw_tensor
from arrowdl.testing._raw_tensor import CODES
from arrowdl.testing._structs import (
    CPU,
    IS_COPIED,
    READ_ONLY,
    Deleter,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLPackVersion,
    DLTensor,
)

from helpers.capsules import capsule_address, capsule_name, make_capsule

__all__ = [
    "CODES",
    "CPU",
    "IS_COPIED",
    "READ_ONLY",
    "DLDataType",
    "DLDevice",
    "DLManagedTensor",
    "DLManagedTensorVersioned",
    "DLPackVersion",
    "DLTensor",
    "Deleter",
    "MadeTensor",
    "read_capsule",
]


class MadeTensor(_raw_tensor.RawTensor):
    """A managed tensor over the memory of a numpy array (or at an address, or NULL)."""

    lingers = False  # tests look whether the memory is let go of

    def __init__(
        self,
        data: np.ndarray | int | None,
        shape: tuple[int, ...] | None = None,
        *,
        dtype: str | tuple[int, ...] | None = None,
        **fields: Any,
    ) -> None:
        """`shape` and `dtype` are the array's unless given."""
        if isinstance(data, np.ndarray):
            shape = data.shape if shape is None else shape
            dtype = data.dtype.name if dtype is None else dtype
        assert shape is not None
        assert dtype is not None
        address = data.ctypes.data if isinstance(data, np.ndarray) else data
        super().__init__(address, shape, dtype=dtype, **fields)
        self.data = data

    def capsule(self, name: str | None = None) -> Any:
        """As a producer hands it out, also under another name than DLPack's."""
        if name is None:
            return super().capsule()
        return make_capsule(self.address, name, lambda: self.managed.deleter(self.address))


def read_capsule(capsule: Any) -> DLManagedTensor | DLManagedTensorVersioned:
    """The struct in an unconsumed DLPack capsule, which keeps owning it."""
    is_versioned = capsule_name(capsule) == "dltensor_versioned"
    struct = DLManagedTensorVersioned if is_versioned else DLManagedTensor
    return struct.from_address(capsule_address(capsule))
