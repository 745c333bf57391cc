"""PyCapsules made and read through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_NAMES: dict[str, bytes] = {}  # a capsule borrows its name: these live as long as the process

_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype = ctypes.c_char_p
_get_name.argtypes = [ctypes.py_object]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_destructor = ctypes.pythonapi.PyCapsule_GetDestructor
_get_destructor.restype = ctypes.c_void_p
_get_destructor.argtypes = [ctypes.py_object]
# A capsule that is being deleted has no references left: by address, not as a py_object.
_dying_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)

_DESTRUCTORS: list[Any] = []  # C callbacks may be called until the process ends


def _kept(name: str) -> bytes:
    return _NAMES.setdefault(name, name.encode())


def make_capsule(address: int, name: str, release: Callable[[], None] | None = None) -> Any:
    """Return a capsule around `address`; `release()` is called if it is deleted under this name.

    `release` is Python code: keep the capsule in a variable while an exception may be pending.
    """
    if release is None:
        return _new(address, _kept(name), None)

    def destroy(capsule: int) -> None:
        if _dying_name(capsule) == name.encode():
            release()

    destructor = _Destructor(destroy)
    _DESTRUCTORS.append(destructor)
    return _new(address, _kept(name), ctypes.cast(destructor, ctypes.c_void_p))


def is_capsule(value: object) -> bool:
    return type(value).__name__ == "PyCapsule"


def capsule_name(capsule: Any) -> str:
    name: bytes | None = _get_name(capsule)
    return "" if name is None else name.decode()


def rename_capsule(capsule: Any, name: str) -> None:
    _set_name(capsule, _kept(name))


def capsule_address(capsule: Any) -> int:
    """Return the pointer in `capsule`, whatever its name."""
    address: int = _get_pointer(capsule, _get_name(capsule))
    return address


def capsule_destructor(capsule: Any) -> int:
    """Return the address of the capsule's destructor, 0 if it has none."""
    address: int | None = _get_destructor(capsule)
    return address or 0
