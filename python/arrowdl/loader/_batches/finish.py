"""`Finish`: what only the training's process does with a batch: pinned memory, global arrays."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any


class Finish:
    """Copies a batch into pinned memory, or to JAX's devices."""

    def __init__(
        self,
        sharding: Any,  # of global arrays. None: the batch is pinned
    ) -> None:
        self._sharding = sharding
        self.seconds: float = 0.0  # that the last call took

    def __call__(self, batch: Any) -> Any:
        begin = time.perf_counter()
        finished = pin(batch) if self._sharding is None else make_global(self._sharding, batch)
        self.seconds = time.perf_counter() - begin
        return finished


def pin(batch: Any) -> Any:
    """Return `batch` with each tensor in pinned memory; other leaves stay as they are."""
    if isinstance(batch, Mapping):
        return {name: pin(value) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pin, batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(pin(value) for value in batch)
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


def make_global(
    sharding: Any,
    batch: Any,  # leaves that are not arrays stay as they are
) -> Any:
    """Return a tree of NumPy arrays as global arrays, which hold the rows of all processes.

    Raises BufferError if JAX would narrow 64-bit values. Raises ValueError if JAX cannot divide the
    rows among the devices.
    """
    import jax

    leaves, structure = jax.tree.flatten(batch)
    places = [i for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype")]
    arrays = [leaves[i] for i in places]
    for array in arrays:
        narrowed = jax.dtypes.canonicalize_dtype(array.dtype)
        if narrowed != array.dtype:
            raise BufferError(
                f"jax would truncate {array.dtype} to {narrowed}: call "
                'jax.config.update("jax_enable_x64", True) first, or cast with dtype='
            )
    if sharding.is_fully_addressable:  # one call for all columns takes half of the time
        tensors = jax.device_put(arrays, sharding)
    else:
        tensors = [jax.make_array_from_process_local_data(sharding, array) for array in arrays]
    for place, array in zip(places, tensors, strict=True):
        leaves[place] = array
    return jax.tree.unflatten(structure, leaves)
