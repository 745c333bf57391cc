"""Arrow and DLPack, one bridge, every device.

`to_arrow_device` takes tensors to Arrow, `from_arrow` takes Arrow arrays in, and a `DeviceArray`
speaks every protocol of both sides. `to_torch`, `to_jax` and `to_numpy` read whole arrays and
tables as tensors.
"""

from enum import IntEnum

from arrowdl._core import (
    Device,
    DeviceArray,
    DeviceStream,
    Schema,
    __version__,
    device_type_numbers,
    from_address,
    from_arrow,
    register_synchronizer,
    set_blocking_release,
    set_release_limit,
    set_staging_limit,
    set_thread_limit,
    stream,
    to_address,
    to_arrow_device,
    to_jax,
    to_numpy,
    to_torch,
)
from arrowdl.loader import Loader

# mypy wants to see the members; they are facts of the core's table, known when it is loaded.
device_types = IntEnum("device_types", device_type_numbers, module=__name__)  # type: ignore[misc]
device_types.__doc__ = "DLPack's device types by name; Arrow's numbers are the same."


def doctor() -> str:
    """Say what arrowdl finds: device runtimes, array and Arrow libraries, and how it meets them.

    The first thing to paste into a bug report; ``python -m arrowdl doctor`` prints it. Imports the
    array libraries that are installed.

    Returns
    -------
    str
    """
    from arrowdl import _doctor

    return _doctor.report()


__all__ = [
    "Device",
    "DeviceArray",
    "DeviceStream",
    "Loader",
    "Schema",
    "__version__",
    "device_types",
    "doctor",
    "from_address",
    "from_arrow",
    "register_synchronizer",
    "set_blocking_release",
    "set_release_limit",
    "set_staging_limit",
    "set_thread_limit",
    "stream",
    "to_address",
    "to_arrow_device",
    "to_jax",
    "to_numpy",
    "to_torch",
]
