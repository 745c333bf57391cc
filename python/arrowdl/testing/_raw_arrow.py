"""Arrow C structs made by hand, field by field, that count how often they are released."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence
from typing import Any

from arrowdl._core import make_borrowed_capsule
from arrowdl.testing._raw_tensor import (
    Memory,
    keep_until_released,
    released,
    take_pending_exception,
)
from arrowdl.testing._structs import (
    NULLABLE,
    ArrayRelease,
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
    SchemaRelease,
)

_ReleaseAt = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _TestStruct:
    """What the two structs have in common: children, a dictionary, and a counted release."""

    _Struct: Any
    _Release: Any
    lingers = True

    def __init__(self, children: Sequence[Any], dictionary: Any) -> None:
        self.children = list(children)
        self.dictionary = dictionary
        self.released = 0  # how often its release callback was called
        # whether it was released inside its parent, and not by the parent's callback: a consumer
        # may only move it out and release it elsewhere
        self.in_place = False
        self.has_parent = False
        self._by_parent = False
        # the exception that was pending during the last call, which a callback in Python loses
        self.pending: BaseException | None = None
        self.struct: Any = self._Struct()
        pointers = [ctypes.pointer(child.struct) for child in self.children]
        self._pointers = (ctypes.POINTER(self._Struct) * max(len(pointers), 1))(*pointers)
        self.struct.n_children = len(pointers)
        if pointers:
            self.struct.children = ctypes.cast(
                self._pointers, ctypes.POINTER(ctypes.POINTER(self._Struct))
            )
        if dictionary is not None:
            self.struct.dictionary = ctypes.pointer(dictionary.struct)
        for part in self._parts:
            part.has_parent = True
        # With an address: ctypes cannot make a pointer object while an exception is pending.
        self._callback = _ReleaseAt(self._release)
        self.struct.release = ctypes.cast(self._callback, self._Release)
        keep_until_released(self)

    @property
    def _parts(self) -> list[Any]:
        return [*self.children, *([] if self.dictionary is None else [self.dictionary])]

    def _release(self, address: int) -> None:
        """A consumer may have moved the struct: it is now at `address`."""
        self.pending = take_pending_exception()
        self.released += 1
        is_here = address == self.address
        self.in_place |= self.has_parent and is_here and not self._by_parent
        self._Struct.from_address(address).release = self._Release()
        for part in self._parts:
            if part.struct.release:
                part._by_parent = True
                part.struct.release(ctypes.pointer(part.struct))
        released(self)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    @property
    def nodes(self) -> list[Any]:
        """This node and each one below it, in preorder."""
        return [self, *(node for part in self._parts for node in part.nodes)]

    def forget(self) -> None:
        """Leave nothing to call in the struct, if it was not moved."""
        self.struct.release = self._Release()

    def drop(self) -> None:
        """Release it as an owner would that no consumer took it from."""
        if self.struct.release:
            self.struct.release(ctypes.pointer(self.struct))


class RawSchema(_TestStruct):
    """An ArrowSchema. Change `struct` at will before it is handed out."""

    _Struct = ArrowSchema
    _Release = SchemaRelease

    def __init__(
        self,
        format: str | None,
        name: str = "",
        *,
        flags: int = NULLABLE,
        children: Sequence[RawSchema] = (),
        dictionary: RawSchema | None = None,
    ) -> None:
        super().__init__(children, dictionary)
        self.struct.format = None if format is None else format.encode()
        self.struct.name = name.encode()
        self.struct.flags = flags

    def capsule(self) -> Any:
        return make_borrowed_capsule(self.address, "arrow_schema")


class RawArray(_TestStruct):
    """An ArrowArray over `Memory` (or addresses, or None). Change `struct` at will."""

    _Struct = ArrowArray
    _Release = ArrayRelease

    def __init__(
        self,
        length: int,
        buffers: Sequence[Memory | int | None] = (),
        *,
        null_count: int = 0,
        offset: int = 0,
        children: Sequence[RawArray] = (),
        dictionary: RawArray | None = None,
    ) -> None:
        super().__init__(children, dictionary)
        self.buffers: list[Any] = list(buffers)
        self.moved_into: Any = None
        addresses = [buffer.address if isinstance(buffer, Memory) else buffer for buffer in buffers]
        self._addresses = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self.struct.length = length
        self.struct.null_count = null_count
        self.struct.offset = offset
        self.struct.n_buffers = len(addresses)
        self.struct.buffers = ctypes.cast(self._addresses, ctypes.POINTER(ctypes.c_void_p))

    def capsule(self) -> Any:
        return make_borrowed_capsule(self.address, "arrow_array")


class RawDeviceArray:
    """An ArrowDeviceArray around a RawArray, which it moves in."""

    def __init__(
        self, array: RawArray, device: tuple[int, int] = (1, -1), sync_event: int | None = None
    ) -> None:
        self.array = array
        self.struct = ArrowDeviceArray()
        ctypes.memmove(ctypes.addressof(self.struct), array.address, ctypes.sizeof(ArrowArray))
        array.struct.release = ArrayRelease()
        self.struct.device_type, self.struct.device_id = device
        array.moved_into = self  # as long as the array is not released
        self.struct.sync_event = sync_event

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    def drop(self) -> None:
        if self.struct.array.release:
            self.struct.array.release(ctypes.pointer(self.struct.array))

    def capsule(self) -> Any:
        return make_borrowed_capsule(self.address, "arrow_device_array")


_GetStruct = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_GetError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class RawStream:
    """An ArrowArrayStream, or ArrowDeviceArrayStream, that writes down how it is used."""

    lingers = True

    def __init__(
        self,
        schema: Any,
        arrays: Sequence[RawArray],
        *,
        error: str | None = None,
        device: tuple[int, int] | None = None,
    ) -> None:
        """`schema` is a function that makes a RawSchema. After `arrays` get_next fails with the
        text `error`, or the stream ends. With `device` it is a device stream."""
        self._make_schema = schema
        self.arrays = list(arrays)
        self._left = list(arrays)
        self._error = None if error is None else ctypes.create_string_buffer(error.encode())
        self._device = device
        self._failed = False
        self.schemas: list[RawSchema] = []  # what get_schema gave
        self.released = 0
        self.pending: BaseException | None = None
        self.misuse: list[str] = []  # calls that the specification forbids
        self._owners: list[Any] = [
            _GetStruct(self._get_schema),
            _GetStruct(self._get_next),
            _GetError(self._get_last_error),
            _ReleaseAt(self._release),
        ]
        self.struct: Any = ArrowArrayStream() if device is None else ArrowDeviceArrayStream()
        if device is not None:
            self.struct.device_type = device[0]
        names = ("get_schema", "get_next", "get_last_error", "release")
        for name, callback in zip(names, self._owners, strict=True):
            setattr(self.struct, name, ctypes.cast(callback, ctypes.c_void_p))
        keep_until_released(self)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    def _note(self, name: str) -> None:
        if self.released:
            self.misuse.append(f"{name} after release")

    def _get_schema(self, _stream: int, out: int) -> int:
        self._note("get_schema")
        self._failed = False
        schema = self._make_schema()
        self.schemas.append(schema)
        ctypes.memmove(out, schema.address, ctypes.sizeof(ArrowSchema))
        schema.struct.release = SchemaRelease()
        return 0

    def _get_next(self, _stream: int, out: int) -> int:
        self._note("get_next")
        self._failed = False
        if self._left:
            self._give(self._left.pop(0), out)
        elif self._error is not None:
            self._failed = True
            return errno.EIO
        else:
            size = ctypes.sizeof(ArrowArray if self._device is None else ArrowDeviceArray)
            ctypes.memset(out, 0, size)
        return 0

    def _give(self, array: RawArray, out: int) -> None:
        if self._device is None:
            ctypes.memmove(out, array.address, ctypes.sizeof(ArrowArray))
            array.struct.release = ArrayRelease()
            return
        device_array = RawDeviceArray(array, self._device)
        ctypes.memmove(out, device_array.address, ctypes.sizeof(ArrowDeviceArray))

    def _get_last_error(self, _stream: int) -> int | None:
        self._note("get_last_error")
        if not self._failed:
            self.misuse.append("get_last_error without an error")
        return None if self._error is None else ctypes.addressof(self._error)

    def _release(self, stream: int) -> None:
        self.pending = take_pending_exception()
        self._note("release")
        self.released += 1
        type(self.struct).from_address(stream).release = None
        for array in self._left:
            array.drop()
        released(self)

    def forget(self) -> None:
        """Leave nothing to call in the struct, if it was not moved."""
        self.struct.release = None

    def drop(self) -> None:
        if self.struct.release:
            _ReleaseAt(self.struct.release)(self.address)

    def capsule(self) -> Any:
        plain = self._device is None
        name = "arrow_array_stream" if plain else "arrow_device_array_stream"
        return make_borrowed_capsule(self.address, name)
