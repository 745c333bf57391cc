"""Batches in pinned host memory, for ``Loader(device="cuda_host")``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pin(batch: Any) -> Any:
    """Return `batch` with each tensor in pinned memory; other leaves stay as they are."""
    if isinstance(batch, Mapping):
        return {name: pin(value) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pin, batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(pin(value) for value in batch)
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch
