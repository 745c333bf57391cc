"""PyCapsules made and read through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from arrowdl._core import make_borrowed_capsule as make_tensor_capsule
from arrowdl.testing._capsules import capsule_address, capsule_name, rename_capsule

__all__ = [
    "capsule_address",
    "capsule_name",
    "make_capsule",
    "make_tensor_capsule",
    "rename_capsule",
]

_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# A capsule that is being deleted has no references left: by address, not as a py_object.
_dying_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)

# A capsule borrows its name, and C callbacks may be called until the process ends.
_NAMES: dict[str, bytes] = {}
_DESTRUCTORS: list[Any] = []


def make_capsule(address: int, name: str, release: Callable[[], None] | None = None) -> Any:
    """Return a capsule around `address`; `release()` is called if it is deleted under this name.

    `release` is Python code: keep the capsule in a variable while an exception may be pending.
    """
    kept = _NAMES.setdefault(name, name.encode())
    if release is None:
        return _new(address, kept, None)

    def destroy(capsule: int) -> None:
        if _dying_name(capsule) == name.encode():
            release()

    destructor = _Destructor(destroy)
    _DESTRUCTORS.append(destructor)
    return _new(address, kept, ctypes.cast(destructor, ctypes.c_void_p))
