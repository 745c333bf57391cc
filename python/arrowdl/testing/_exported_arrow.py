"""Arrow capsules of a producer: their structs, their release callbacks counted, their streams."""

from __future__ import annotations

import ctypes
from typing import Any

from arrowdl.testing._capsules import capsule_address, capsule_name, is_capsule
from arrowdl.testing._structs import (
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
)

SCHEMA = "__arrow_c_schema__"
ARRAYS = {"__arrow_c_array__": "arrow_array", "__arrow_c_device_array__": "arrow_device_array"}
STREAMS = {
    "__arrow_c_stream__": "arrow_array_stream",
    "__arrow_c_device_stream__": "arrow_device_array_stream",
}
DEVICE_METHODS = ("__arrow_c_device_array__", "__arrow_c_device_stream__")

STRUCTS: dict[str, Any] = {
    "arrow_schema": ArrowSchema,
    "arrow_array": ArrowArray,
    "arrow_device_array": ArrowDeviceArray,
    "arrow_array_stream": ArrowArrayStream,
    "arrow_device_array_stream": ArrowDeviceArrayStream,
}

_CALLBACKS: list[Any] = []  # what leaked may call its release until the process ends


class Held:
    """A capsule and the struct in it."""

    def __init__(self, capsule: Any, expected: str) -> None:
        if not is_capsule(capsule):
            raise TypeError(f"{type(capsule).__name__} instead of a PyCapsule")
        self.capsule: Any = capsule
        self.name = capsule_name(capsule)
        if self.name != expected:
            raise TypeError(f'the capsule is named "{self.name}", not "{expected}"')
        self.struct: Any = STRUCTS[expected].from_address(capsule_address(capsule))

    @property
    def base(self) -> Any:
        """The struct with the release callback: the array in a device array."""
        return array_of(self.struct)

    def release(self) -> None:
        release_struct(self.base)

    def count(self) -> CountedRelease:
        return CountedRelease(self.base)


def release_struct(struct: Any) -> None:
    """Call the release callback without the interpreter lock; a released struct is left alone."""
    release = ctypes.cast(struct.release, ctypes.c_void_p).value
    if release:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release)(ctypes.addressof(struct))


class CountedRelease:
    """Stands in for the release callback of a struct, counts its calls and passes them on."""

    def __init__(self, struct: Any) -> None:
        self.calls = 0
        self.marked = False
        self._foreign = ctypes.cast(struct.release, ctypes.c_void_p).value or 0
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._call)
        _CALLBACKS.append(self._callback)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        is_typed = isinstance(struct, ArrowSchema | ArrowArray)
        struct.release = type(struct.release)(address) if is_typed else address
        self._struct_type = type(struct)

    def _call(self, address: int) -> None:
        self.calls += 1
        if self.calls > 1:
            return
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self._foreign)(address)
        struct = self._struct_type.from_address(address)
        self.marked = not struct.release
        _mark_released(struct)  # else whoever looks at it next would release it once more


def _mark_released(struct: Any) -> None:
    is_typed = isinstance(struct, ArrowSchema | ArrowArray)
    struct.release = type(struct.release)() if is_typed else None


def copy_struct(source: Any) -> Any:
    """Move a struct to another address: the copy is the only one that is not released."""
    target = type(source)()
    ctypes.memmove(ctypes.addressof(target), ctypes.addressof(source), ctypes.sizeof(source))
    _mark_released(array_of(source))
    return target


class StreamReader:
    """Calls the functions of a stream, with or without the interpreter lock."""

    def __init__(self, stream: Any, *, with_lock: bool = True) -> None:
        self.stream = stream
        self._make = ctypes.PYFUNCTYPE if with_lock else ctypes.CFUNCTYPE
        self._is_device = isinstance(stream, ArrowDeviceArrayStream)

    def _call(self, name: str, result: Any, *structs: Any) -> Any:
        function = self._make(result, *[ctypes.c_void_p] * (1 + len(structs)))
        pointers = [ctypes.addressof(struct) for struct in (self.stream, *structs)]
        return function(getattr(self.stream, name))(*pointers)

    def get_schema(self) -> tuple[int, Any]:
        schema = ArrowSchema()
        return self._call("get_schema", ctypes.c_int, schema), schema

    def get_next(self) -> tuple[int, Any]:
        array = ArrowDeviceArray() if self._is_device else ArrowArray()
        return self._call("get_next", ctypes.c_int, array), array

    def get_last_error(self) -> bytes | None:
        text: bytes | None = self._call("get_last_error", ctypes.c_char_p)
        return text

    def release(self) -> None:
        if self.stream.release:
            self._call("release", None)


def array_of(array: Any) -> Any:
    """The ArrowArray in an array of either interface."""
    return array.array if isinstance(array, ArrowDeviceArray) else array
