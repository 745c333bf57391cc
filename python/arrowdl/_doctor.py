"""Reports what arrowdl finds on this machine, for bug reports."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

from arrowdl import _core

# Each library's module, and how to make a small array, which shows what the library exports.
_ARRAY_LIBRARIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "numpy": ("numpy", lambda np: np.zeros(1)),
    "torch": ("torch", lambda torch: torch.zeros(1)),
    "jax": ("jax", lambda jax: jax.numpy.zeros(1)),
    "cupy": ("cupy", lambda cupy: cupy.zeros(1)),
    "dpnp": ("dpnp", lambda dpnp: dpnp.zeros(1)),
    "tensorflow": ("tensorflow", lambda tf: tf.zeros(1)),
    "paddle": ("paddle", lambda paddle: paddle.zeros([1])),
    "mlx": ("mlx.core", lambda mx: mx.zeros(1)),
}
_ARROW_LIBRARIES = ("pyarrow", "polars", "duckdb", "nanoarrow", "arro3.core", "pandas", "cudf")
_DISTRIBUTIONS = {"tensorflow": ("tensorflow", "tensorflow-cpu"), "arro3.core": ("arro3-core",)}
_DISTRIBUTIONS["paddle"] = ("paddlepaddle", "paddlepaddle-gpu")


def report() -> str:
    """Return the report of `arrowdl.doctor`."""
    libraries = _installed(_ARRAY_LIBRARIES, _array_library)  # first: some load a device runtime
    sections = [
        ("arrowdl", _describe_package()),
        ("device runtimes", [_runtime(backend) for backend in _core.list_backends()]),
        ("array libraries", libraries),
        ("Arrow libraries", _installed(_ARROW_LIBRARIES, _arrow_library)),
    ]
    return "\n\n".join(
        "\n".join([title, *(f"  {line}" for line in lines or ["none"])])
        for title, lines in sections
    )


def _describe_package() -> list[str]:
    return [
        f"version   {_core.__version__}",
        f"DLPack    {_core.dlpack_version[0]}.{_core.dlpack_version[1]}",
        f"Python    {platform.python_version()} on {platform.platform()}, {platform.machine()}",
        f"module    {_core.__file__}",
    ]


def _runtime(backend: dict[str, Any]) -> str:
    types = ", ".join(backend["types"])
    if backend["problem"]:
        return f"{types}: {backend['problem']}"
    count = backend["device_count"]
    return f"{types}: {backend['name']} {backend['version']}, {count} device{'s' * (count != 1)}"


def _installed(names: Any, describe: Callable[[str, str], str]) -> list[str]:
    versions = ((name, _version(name)) for name in names)
    return [describe(name, version) for name, version in versions if version is not None]


def _version(name: str) -> str | None:
    for distribution in _DISTRIBUTIONS.get(name, (name,)):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


def _array_library(name: str, version: str) -> str:
    module, make = _ARRAY_LIBRARIES[name]
    try:
        array = make(importlib.import_module(module))
        return f"{name} {version}: {_find_entry_point(array)}"
    except Exception as error:  # the report says which library fails, and goes on
        return f"{name} {version}: does not work: {type(error).__name__}: {error}"


def _find_entry_point(array: Any) -> str:
    """Return the protocol by which arrowdl imports a tensor of this class."""
    if hasattr(type(array), "__dlpack_c_exchange_api__"):
        return "DLPack's C exchange API"
    try:
        capsule = array.__dlpack__(max_version=_core.dlpack_version)
    except TypeError:
        capsule = array.__dlpack__()
    versioned = '"dltensor_versioned"' in repr(capsule)
    return f"__dlpack__, {'versioned' if versioned else 'legacy'} capsules"


def _arrow_library(name: str, version: str) -> str:
    loaded = " (imported)" if name in sys.modules else ""
    return f"{name} {version}{loaded}: Arrow's PyCapsule protocols"
