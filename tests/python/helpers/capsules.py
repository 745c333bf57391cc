"""PyCapsules made and read through ctypes."""

from __future__ import annotations

from arrowdl._core import make_borrowed_capsule as make_tensor_capsule
from arrowdl.testing._capsules import (
    capsule_address,
    capsule_name,
    make_capsule,
    rename_capsule,
)

__all__ = [
    "capsule_address",
    "capsule_name",
    "make_capsule",
    "make_tensor_capsule",
    "rename_capsule",
]
