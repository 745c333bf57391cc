"""Objects whose buffer has the fields that a test gives: types of C, which Python cannot make."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

_GET, _RELEASE = 1, 2  # Py_bf_getbuffer, Py_bf_releasebuffer


class _Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


_GetBuffer = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int
)
_ReleaseBuffer = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.POINTER(_Buffer))


class MadeBuffer:
    """An exporter of the eight bytes and the fields that are given; `object` is what exports.

    `requested` are the flags of each request, `released` is how often a buffer came back.
    """

    def __init__(
        self,
        *,
        length: int = 8,
        itemsize: int = 1,
        ndim: int = 1,
        format: bytes | None = b"B",
        shape: Sequence[int] | None = (8,),
        strides: Sequence[int] | None = (1,),
        suboffsets: Sequence[int] | None = None,
        address: int | None = -1,
    ) -> None:
        self.memory = ctypes.create_string_buffer(bytes(range(8)), 64)
        self.requested: list[int] = []
        self.released = 0

        def numbers(values: Sequence[int] | None) -> Any:
            return None if values is None else (ctypes.c_ssize_t * len(values))(*values)

        given = {"shape": shape, "strides": strides, "suboffsets": suboffsets}
        pointers = {name: numbers(values) for name, values in given.items()}

        def get(exporter: Any, buffer: Any, flags: int) -> int:
            self.requested.append(flags)
            out = buffer.contents
            out.buf = ctypes.addressof(self.memory) if address == -1 else address
            out.obj = exporter
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(exporter))  # the buffer's
            out.len, out.itemsize, out.ndim, out.format = length, itemsize, ndim, format
            out.readonly = 0
            for name, values in pointers.items():
                cast = ctypes.cast(values, ctypes.POINTER(ctypes.c_ssize_t)) if values else None
                setattr(out, name, cast)
            out.internal = None
            return 0

        def release(exporter: Any, buffer: Any) -> None:
            self.released += 1

        self._functions = (_GetBuffer(get), _ReleaseBuffer(release))
        slots = (_Slot * 3)()
        for slot, number, function in zip(slots, (_GET, _RELEASE), self._functions, strict=False):
            slot.slot, slot.function = number, ctypes.cast(function, ctypes.c_void_p).value
        size = object.__basicsize__
        self._spec = _Spec(b"made.Buffer", size, 0, 0, slots)
        make = ctypes.pythonapi.PyType_FromSpec
        make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_Spec)]
        self.object = make(self._spec)()
