"""The batches of a process as its part of JAX's global arrays: ``Loader(device=sharding)``."""

from __future__ import annotations

from typing import Any


def make_global(
    sharding: Any,
    batch: Any,  # leaves that are not arrays stay as they are
) -> Any:
    """Return a tree of NumPy arrays as global arrays, which hold the rows of all processes.

    Raises BufferError if JAX would narrow 64-bit values. Raises ValueError if JAX cannot divide the
    rows among the devices.
    """
    import jax

    def put(array: Any) -> Any:
        if not hasattr(array, "dtype"):
            return array
        narrowed = jax.dtypes.canonicalize_dtype(array.dtype)
        if narrowed != array.dtype:
            raise BufferError(
                f"jax would truncate {array.dtype} to {narrowed}: call "
                'jax.config.update("jax_enable_x64", True) first, or cast with dtype='
            )
        return jax.make_array_from_process_local_data(sharding, array)

    return jax.tree.map(put, batch)
