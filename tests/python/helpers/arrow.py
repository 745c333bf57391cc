"""Arrow C structs made by hand over numpy arrays, that count how often they are released."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from arrowdl.testing import _raw_arrow
from arrowdl.testing._raw_arrow import RawDeviceArray as MadeDeviceArray
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
    "list_releases",
]


def encode_metadata(pairs: Mapping[str, str]) -> bytes:
    """Key-value metadata in the C data interface's encoding."""
    parts = [struct.pack("=i", len(pairs))]
    for text in (text for pair in pairs.items() for text in pair):
        encoded = text.encode()
        parts += [struct.pack("=i", len(encoded)), encoded]
    return b"".join(parts)


class MadeSchema(_raw_arrow.RawSchema):
    """An ArrowSchema, which may have metadata. Change `struct` at will."""

    def __init__(
        self,
        format: str | None,
        name: str = "",
        *,
        metadata: Mapping[str, str] | bytes | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(format, name, **fields)
        if metadata is not None:
            raw = metadata if isinstance(metadata, bytes) else encode_metadata(metadata)
            self._metadata = ctypes.create_string_buffer(raw, len(raw))
            self.struct.metadata = ctypes.addressof(self._metadata)


def list_releases(made: _raw_arrow.RawArray | _raw_arrow.RawSchema) -> list[int]:
    """How often a struct and each one below it was released, in preorder."""
    return [node.released for node in made.nodes]


class MadeArray(_raw_arrow.RawArray):
    """An ArrowArray over numpy arrays (or addresses, or None). Change `struct` at will."""

    def __init__(
        self, length: int, buffers: Sequence[np.ndarray | int | None] = (), **fields: Any
    ) -> None:
        addresses = [
            buffer.ctypes.data if isinstance(buffer, np.ndarray) else buffer for buffer in buffers
        ]
        super().__init__(length, addresses, **fields)
        self.buffers = list(buffers)
