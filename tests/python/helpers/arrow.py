"""Arrow C structs made by hand over numpy arrays, that count how often they are released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from arrowdl.testing import _made_arrow
from arrowdl.testing._made_arrow import MadeDeviceArray, MadeSchema, encode_metadata
from arrowdl.testing._structs import (
    NULLABLE,
    ArrayRelease,
    ArrowArray,
    ArrowDeviceArray,
    ArrowSchema,
    SchemaRelease,
)

__all__ = [
    "NULLABLE",
    "ArrayRelease",
    "ArrowArray",
    "ArrowDeviceArray",
    "ArrowSchema",
    "MadeArray",
    "MadeDeviceArray",
    "MadeSchema",
    "SchemaRelease",
    "encode_metadata",
]


class MadeArray(_made_arrow.MadeArray):
    """An ArrowArray over numpy arrays (or addresses, or None). Change `struct` at will."""

    def __init__(
        self, length: int, buffers: Sequence[np.ndarray | int | None] = (), **fields: Any
    ) -> None:
        addresses = [
            buffer.ctypes.data if isinstance(buffer, np.ndarray) else buffer for buffer in buffers
        ]
        super().__init__(length, addresses, **fields)
        self.buffers = list(buffers)
