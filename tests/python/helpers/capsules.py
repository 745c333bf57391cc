"""PyCapsules made and read through ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

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
# A capsule on its way out has no references left: by address, not as a py_object.
_dying_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)


def _kept(name: str) -> bytes:
    return _NAMES.setdefault(name, name.encode())


def make_capsule(address: int, name: str, release: Any = None) -> Any:
    """A capsule around `address`; `release()` is called if it dies under the name it has now.

    That is Python code: keep the capsule in a variable while an exception may be on its way.
    """
    if release is None:
        return _new(address, _kept(name), None)

    @_Destructor
    def destructor(capsule: int) -> None:
        if _dying_name(capsule) == name.encode():
            release()

    _DESTRUCTORS.append(destructor)
    return _new(address, _kept(name), ctypes.cast(destructor, ctypes.c_void_p))


def make_tensor_capsule(address: int, name: str) -> Any:
    """A DLPack capsule that calls the deleter of its tensor unless a consumer took it.

    With the destructor of numpy's capsules, which runs no Python code.
    """
    options = {"max_version": (1, 0)} if name == "dltensor_versioned" else {}
    model = np.zeros(1).__dlpack__(**options)
    assert _get_name(model) == name.encode()
    return _new(address, _kept(name), _get_destructor(model))


_DESTRUCTORS: list[Any] = []  # C callbacks may be called until the process ends


def capsule_name(capsule: Any) -> str:
    return _get_name(capsule).decode()


def rename_capsule(capsule: Any, name: str) -> None:
    _set_name(capsule, _kept(name))


def capsule_address(capsule: Any) -> int:
    """The pointer in `capsule`, whatever its name."""
    return _get_pointer(capsule, _get_name(capsule))
