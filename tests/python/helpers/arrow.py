"""Arrow C structs made by hand, field by field, that count how often they are released."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from helpers.capsules import make_capsule

NULLABLE = 2


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


SchemaRelease = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
ArrayRelease = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))

ArrowSchema._fields_ = (
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", SchemaRelease),
    ("private_data", ctypes.c_void_p),
)

ArrowArray._fields_ = (
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ArrayRelease),
    ("private_data", ctypes.c_void_p),
)


class ArrowDeviceArray(ctypes.Structure):
    _fields_ = (
        ("array", ArrowArray),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    )


assert ctypes.sizeof(ArrowSchema) == 72
assert ctypes.sizeof(ArrowArray) == 80
assert ctypes.sizeof(ArrowDeviceArray) == 128

_unreleased: set[Any] = set()  # nobody else may hold a struct that is still in use


def encode_metadata(pairs: Mapping[str, str]) -> bytes:
    """Key-value metadata in the C data interface's encoding."""
    parts = [struct.pack("=i", len(pairs))]
    for text in (text for pair in pairs.items() for text in pair):
        encoded = text.encode()
        parts += [struct.pack("=i", len(encoded)), encoded]
    return b"".join(parts)


class _Made:
    """What the two structs have in common: children, a dictionary, and a counted release."""

    _Struct: Any
    _Release: Any

    def __init__(self, children: Sequence[Any], dictionary: Any) -> None:
        self.children = list(children)
        self.dictionary = dictionary
        self.released = 0
        self.struct = self._Struct()
        pointers = [ctypes.pointer(child.struct) for child in self.children]
        self._pointers = (ctypes.POINTER(self._Struct) * max(len(pointers), 1))(*pointers)
        self.struct.n_children = len(pointers)
        if pointers:
            self.struct.children = ctypes.cast(
                self._pointers, ctypes.POINTER(ctypes.POINTER(self._Struct))
            )
        if dictionary is not None:
            self.struct.dictionary = ctypes.pointer(dictionary.struct)
        self._callback = self._Release(self._release)
        self.struct.release = self._callback
        _unreleased.add(self)

    def _release(self, pointer: Any) -> None:
        """A consumer may have moved the struct: `pointer` says where it is now."""
        self.released += 1
        pointer.contents.release = self._Release()
        parts = [*self.children, *([] if self.dictionary is None else [self.dictionary])]
        for part in parts:
            if part.struct.release:
                part.struct.release(ctypes.pointer(part.struct))
        _unreleased.discard(self)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    @property
    def all_released(self) -> list[int]:
        """How often this node and each one below it was released, in preorder."""
        counts = [self.released]
        for child in self.children:
            counts += child.all_released
        return counts + ([] if self.dictionary is None else self.dictionary.all_released)

    def drop(self) -> None:
        """Releases it as an owner would that no consumer took it from."""
        if self.struct.release:
            self.struct.release(ctypes.pointer(self.struct))


class MadeSchema(_Made):
    """An ArrowSchema. Change `struct` at will before it is handed out."""

    _Struct = ArrowSchema
    _Release = SchemaRelease

    def __init__(
        self,
        format: str | None,
        name: str = "",
        *,
        metadata: Mapping[str, str] | bytes | None = None,
        flags: int = NULLABLE,
        children: Sequence[MadeSchema] = (),
        dictionary: MadeSchema | None = None,
    ) -> None:
        super().__init__(children, dictionary)
        self.struct.format = None if format is None else format.encode()
        self.struct.name = name.encode()
        self.struct.flags = flags
        if metadata is not None:
            raw = metadata if isinstance(metadata, bytes) else encode_metadata(metadata)
            self._metadata = ctypes.create_string_buffer(raw, len(raw))
            self.struct.metadata = ctypes.addressof(self._metadata)

    def capsule(self) -> Any:
        return make_capsule(self.address, "arrow_schema", self.drop)


class MadeArray(_Made):
    """An ArrowArray over numpy arrays (or addresses, or None). Change `struct` at will."""

    _Struct = ArrowArray
    _Release = ArrayRelease

    def __init__(
        self,
        length: int,
        buffers: Sequence[np.ndarray | int | None] = (),
        *,
        null_count: int = 0,
        offset: int = 0,
        children: Sequence[MadeArray] = (),
        dictionary: MadeArray | None = None,
    ) -> None:
        super().__init__(children, dictionary)
        self.buffers = list(buffers)
        addresses = [
            buffer.ctypes.data if isinstance(buffer, np.ndarray) else buffer for buffer in buffers
        ]
        self._addresses = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self.struct.length = length
        self.struct.null_count = null_count
        self.struct.offset = offset
        self.struct.n_buffers = len(addresses)
        self.struct.buffers = ctypes.cast(self._addresses, ctypes.POINTER(ctypes.c_void_p))

    def capsule(self) -> Any:
        return make_capsule(self.address, "arrow_array", self.drop)


class MadeDeviceArray:
    """An ArrowDeviceArray around a MadeArray, which it moves in."""

    def __init__(
        self, array: MadeArray, device: tuple[int, int] = (1, -1), sync_event: int | None = None
    ) -> None:
        self.array = array
        self.struct = ArrowDeviceArray()
        ctypes.memmove(ctypes.addressof(self.struct), array.address, ctypes.sizeof(ArrowArray))
        array.struct.release = ArrayRelease()
        self.struct.device_type, self.struct.device_id = device
        self.struct.sync_event = sync_event

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    def drop(self) -> None:
        if self.struct.array.release:
            self.struct.array.release(ctypes.pointer(self.struct.array))

    def capsule(self) -> Any:
        return make_capsule(self.address, "arrow_device_array", self.drop)
