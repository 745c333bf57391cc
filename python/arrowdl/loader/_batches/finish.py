"""`Finish`: what only the training's process does with a batch: pinned memory, global arrays."""

from __future__ import annotations

import time
from typing import Any

from arrowdl.loader._batches.jax_arrays import make_global
from arrowdl.loader._batches.pin import pin


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
        made = pin(batch) if self._sharding is None else make_global(self._sharding, batch)
        self.seconds = time.perf_counter() - begin
        return made
