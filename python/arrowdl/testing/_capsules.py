"""PyCapsules read and renamed through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_NAMES: dict[str, bytes] = {}  # a capsule borrows its name: these live as long as the process


def find_function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a function of Python's C API, called with the interpreter lock."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_get_name = find_function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_set_name = find_function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_get_pointer = find_function(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)
_get_destructor = find_function("PyCapsule_GetDestructor", ctypes.c_void_p, ctypes.py_object)


def is_capsule(value: object) -> bool:
    return type(value).__name__ == "PyCapsule"


def capsule_name(capsule: Any) -> str:
    name: bytes | None = _get_name(capsule)
    return "" if name is None else name.decode()


def rename_capsule(capsule: Any, name: str) -> None:
    _set_name(capsule, _NAMES.setdefault(name, name.encode()))


def capsule_address(capsule: Any) -> int:
    """Return the pointer in `capsule`, whatever its name."""
    address: int = _get_pointer(capsule, _get_name(capsule))
    return address


def capsule_destructor(capsule: Any) -> int:
    """Return the address of the capsule's destructor, 0 if it has none."""
    address: int | None = _get_destructor(capsule)
    return address or 0
