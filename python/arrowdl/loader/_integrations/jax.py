"""Batches of a process as its part of JAX's global arrays."""

from __future__ import annotations

from typing import Any


def make_global(sharding: Any, batch: Any) -> Any:
    """The NumPy arrays in `batch`, a tree, as arrays of `sharding`, rows of all processes together.

    Other leaves stay as they are.

    Raises
    ------
    BufferError
        JAX would cut 64-bit values down.
    ValueError
        The rows cannot be divided among the devices: JAX says so.
    """
    import jax

    def put(array: Any) -> Any:
        if not hasattr(array, "dtype"):
            return array
        narrowed = jax.dtypes.canonicalize_dtype(array.dtype)
        if narrowed != array.dtype:
            raise BufferError(
                f"jax would cut {array.dtype} down to {narrowed}: call "
                'jax.config.update("jax_enable_x64", True) first, or cast the data'
            )
        return jax.make_array_from_process_local_data(sharding, array)

    return jax.tree.map(put, batch)
