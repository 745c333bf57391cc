"""JAX's arrays, and what names a device in JAX."""

from __future__ import annotations

from typing import Any

import jax

from arrowdl._frameworks import numpy_like
from arrowdl._frameworks.interface import Framework


def find_device(device: jax.Device) -> tuple[str, int]:
    """Return the name and the id of a `jax.Device`."""
    # "gpu" is NVIDIA or AMD: jax.dlpack too reads which in the platform version.
    name = device.platform
    if name == "gpu":
        name = "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
    if name not in {"cpu", "cuda", "rocm", "metal"}:
        raise BufferError(
            f"Arrow and DLPack have no device type for {device!r}, of the platform {name!r}: "
            "supported are cpu, cuda, rocm and metal"
        )
    index = device.local_hardware_id or 0
    if name == "cpu" and index:  # from_dlpack() would use the first
        raise BufferError(
            f"{device!r} is not the first CPU of JAX, and Arrow and DLPack know one CPU: call "
            "jax.device_put(tensors, device), or give a Loader "
            "device=jax.sharding.SingleDeviceSharding(device)"
        )
    return name, index


def find_current(name: str) -> int | None:
    """Return the id of JAX's default device of a platform; None if JAX has not started it."""
    from jax._src import xla_bridge

    if not xla_bridge.backends_are_initialized():
        return None
    default = jax.config.jax_default_device
    try:
        devices = [default] if hasattr(default, "platform") else jax.local_devices(backend="gpu")
    except RuntimeError:  # JAX has no GPU
        return None
    for device in devices:
        jax_device, index = find_device(device)
        if jax_device == name:
            return index
    return None


# jax 0.10 takes none of them by DLPack: "PjRt CPU buffers only support default layout" for its own
# float4, "no DLPack equivalent" for integers.
_PACKED = {"float4_e2m1fn", "int2", "int4", "uint2", "uint4"}


def _from_dlpack(tensor: Any) -> jax.Array:
    name = tensor.dtype.removesuffix("_x2")  # torch's pairs
    if name in _PACKED:
        return jax.dlpack.from_dlpack(tensor._as_integers(is_copied=True)).view(name)
    # Without x64, jax truncates 64-bit values on import without a warning.
    try:
        narrowed = jax.dtypes.canonicalize_dtype(tensor.dtype).name
    except TypeError as error:
        raise BufferError(f"jax has no {tensor.dtype}: {numpy_like.advise_bytes('jax')}") from error
    if narrowed != tensor.dtype:
        raise BufferError(
            f"jax would truncate {tensor.dtype} to {narrowed}: call "
            'jax.config.update("jax_enable_x64", True) first, or cast with dtype='
        )
    return jax.dlpack.from_dlpack(tensor)


def _from_offsets(tensor: Any) -> jax.Array:
    import numpy as np

    if tensor.dtype == "int64" and not jax.config.jax_enable_x64:
        if tensor.__dlpack_device__()[0] != 1:
            raise BufferError(
                "offsets and lengths on a device are int64, which jax would truncate: call "
                'jax.config.update("jax_enable_x64", True) first'
            )
        offsets = np.from_dlpack(tensor)
        if offsets.size == 0 or offsets.max() <= np.iinfo(np.int32).max:
            return jax.numpy.asarray(offsets.astype(np.int32))
        raise BufferError(
            "the offsets of this list array need int64: call "
            'jax.config.update("jax_enable_x64", True) first'
        )
    return jax.dlpack.from_dlpack(tensor)


def _put(array: jax.Array, name: str, index: int) -> jax.Array:
    try:
        device = next(one for one in jax.devices(name) if one.local_hardware_id in {index, None})
    except (RuntimeError, StopIteration) as error:
        raise BufferError(f"jax has no device {name}:{index}: {error}") from error
    return jax.device_put(array, device)


FRAMEWORK = Framework(
    from_dlpack=_from_dlpack,
    from_offsets=_from_offsets,
    make_jagged=numpy_like.make_jagged,
    make_variable=numpy_like.make_variable,
    **numpy_like.make_operations(jax.numpy),
    put=_put,
    alignment=64,
    # XLA, kEntryParameterAlignBytes: an execution with another parameter fails.
    device_alignment=16,
    donates=True,
)
