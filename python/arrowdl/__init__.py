"""Arrow and DLPack, one bridge, every device.

`to_arrow_device` converts tensors to Arrow arrays, `from_arrow` imports Arrow data; both return a
`DeviceArray`, which supports the protocols of both sides. `to_torch`, `to_jax` and `to_numpy`
convert Arrow arrays and tables to tensors.
"""

from arrowdl._config import config
from arrowdl._core import (
    Device,
    DeviceArray,
    DeviceStream,
    Schema,
    __version__,
    flatten_cu_seqlens,
    from_arrow,
    from_arrow_stream,
    register_synchronizer,
    to_arrow_device,
    to_jax,
    to_numpy,
    to_torch,
)

# Type checkers take it for true. The module `typing` takes longer to import than this package.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from arrowdl import c_data as c_data
    from arrowdl import debug as debug
    from arrowdl import loader as loader
    from arrowdl import testing as testing
    from arrowdl._async_stream import AsyncDeviceStream
    from arrowdl._device_type import DeviceType
    from arrowdl.loader import (
        Audio,
        Buckets,
        Image,
        Loader,
        Pack,
        Padded,
        Ranks,
        Report,
        Retries,
        Seed,
        Shuffle,
        Skip,
        Storage,
        Tokenize,
        Tokens,
    )

# Loaded on first use (PEP 562): the Loader imports more than all other modules together.
_MODULES = ("c_data", "debug", "loader", "testing")
_CLASSES = {
    "AsyncDeviceStream": "arrowdl._async_stream",
    "DeviceType": "arrowdl._device_type",
    "Audio": "arrowdl.loader",
    "Buckets": "arrowdl.loader",
    "Image": "arrowdl.loader",
    "Loader": "arrowdl.loader",
    "Pack": "arrowdl.loader",
    "Padded": "arrowdl.loader",
    "Ranks": "arrowdl.loader",
    "Report": "arrowdl.loader",
    "Retries": "arrowdl.loader",
    "Seed": "arrowdl.loader",
    "Shuffle": "arrowdl.loader",
    "Skip": "arrowdl.loader",
    "Storage": "arrowdl.loader",
    "Tokenize": "arrowdl.loader",
    "Tokens": "arrowdl.loader",
}


if not TYPE_CHECKING:  # a type checker that saw these would let any name pass

    def __getattr__(name):
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"arrowdl.{name}")
        if name in _CLASSES:
            value = globals()[name] = getattr(import_module(_CLASSES[name]), name)
            return value
        raise AttributeError(f"module 'arrowdl' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__, *_MODULES} - {"TYPE_CHECKING"})


def doctor() -> str:
    """Report what arrowdl finds on this machine, and how it imports from each library.

    Paste it into a bug report; ``python -m arrowdl doctor`` prints it. Imports all installed array
    libraries.

    Returns
    -------
    str
        Versions, device runtimes, array libraries and Arrow libraries, one line each.
    """
    from arrowdl import _doctor

    return _doctor.report()


__all__ = [
    "AsyncDeviceStream",
    "Audio",
    "Buckets",
    "Device",
    "DeviceArray",
    "DeviceStream",
    "DeviceType",
    "Image",
    "Loader",
    "Pack",
    "Padded",
    "Ranks",
    "Report",
    "Retries",
    "Schema",
    "Seed",
    "Shuffle",
    "Skip",
    "Storage",
    "Tokenize",
    "Tokens",
    "__version__",
    "config",
    "doctor",
    "flatten_cu_seqlens",
    "from_arrow",
    "from_arrow_stream",
    "register_synchronizer",
    "to_arrow_device",
    "to_jax",
    "to_numpy",
    "to_torch",
]
