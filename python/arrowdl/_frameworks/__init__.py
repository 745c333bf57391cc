"""How arrowdl makes tensors of each array framework: one module a framework, one interface."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from arrowdl._frameworks.allocators import find_torch
from arrowdl._frameworks.interface import Framework


def load(name: str) -> Framework:
    """Return the framework of the module `name` ("torch", "jax" or "numpy"), which imports it."""
    framework: Framework = import_module(f"arrowdl._frameworks.{name}").FRAMEWORK
    return framework


def find_device(device: Any) -> tuple[str, int]:
    """Return the name and the id of the device that a `torch.device` or `jax.Device` names.

    A `torch.device` without an index names torch's current device of its type.

    Raises BufferError if the framework has no current device of this type, or DLPack has no such
    device type.
    """
    name = "jax" if hasattr(device, "platform") else "torch"
    device_id: tuple[str, int] = import_module(f"arrowdl._frameworks.{name}").find_device(device)
    return device_id


def find_current(
    name: str,  # of DLPack's device type
    driver: int | None,  # the driver's current device of this thread, if there is one
    # the framework that the tensors are for: JAX has a default device of its own, and sets none in
    # the driver
    framework: str = "",
) -> int:
    """Return the id of the current device of a type, for a name such as "cuda" without an index."""
    if framework == "jax" and (device_id := _find_current_of_jax(name)) is not None:
        return device_id
    if name == "oneapi":
        device_id = _find_current_of_xpu()
        return 0 if device_id is None else device_id
    torch = find_torch(name)
    if torch is not None:
        return int(torch.cuda.current_device())
    if driver is not None:
        return driver
    device_id = _find_current_of_jax(name)
    return 0 if device_id is None else device_id


def _find_current_of_jax(name: str) -> int | None:
    if "jax" not in sys.modules or not hasattr(sys.modules["jax"], "local_devices"):
        return None
    device_id: int | None = import_module("arrowdl._frameworks.jax").find_current(name)
    return device_id


def _find_current_of_xpu() -> int | None:
    torch = sys.modules.get("torch")
    xpu = getattr(torch, "xpu", None)
    if torch is None or xpu is None or not xpu.is_initialized():
        return None
    return find_device(torch.device("xpu"))[1]
