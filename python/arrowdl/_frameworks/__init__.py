"""How arrowdl makes tensors of each array framework: one module a framework, one interface."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from arrowdl._frameworks.interface import Framework


def load(name: str) -> Framework:
    """Return the framework of the module `name` ("torch", "jax" or "numpy"), which imports it.

    Raises
    ------
    ImportError
        The framework is not installed.
    """
    framework: Framework = import_module(f"arrowdl._frameworks.{name}").FRAMEWORK
    return framework


def find_device(device: Any) -> tuple[str, int]:
    """Return the name and the id of the device that a `torch.device` or `jax.Device` names.

    A `torch.device` without an index names torch's current device of its type.

    Raises
    ------
    BufferError
        The framework has no current device of this type, or DLPack has no such device type.
    """
    name = "jax" if hasattr(device, "platform") else "torch"
    found: tuple[str, int] = import_module(f"arrowdl._frameworks.{name}").find_device(device)
    return found
