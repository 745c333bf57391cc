"""Functions that draw at random, for the worker processes of a Loader and of a DataLoader."""

from __future__ import annotations

import random
from typing import Any

import numpy as np


def draw_legacy(batch: Any) -> Any:
    """Add what the generators of the process draw."""
    rows = len(batch["id"])
    normal = np.random.randn()  # NumPy keeps another number for the next call
    batch["drawn"] = np.array([[random.random(), np.random.rand(), normal]] * rows)
    return batch


def draw_torch(batch: Any) -> Any:
    """Add what torch draws beside the others."""
    import torch

    first = torch.rand(len(batch["id"]), 1, dtype=torch.float64)
    drawn = torch.tensor([[random.random(), np.random.rand()]]).expand(len(first), 2)
    batch["drawn"] = torch.cat([first, drawn], 1)
    return batch


def draw_given(batch: Any, generator: Any) -> Any:
    """Add what a generator of NumPy draws."""
    batch["drawn"] = generator.random((len(batch["id"]), 2))
    return batch


def draw_both(batch: Any, generator: Any) -> Any:
    """Add what the generators of the process draw, and a generator of NumPy."""
    given = generator.random((len(batch["id"]), 2))
    drawn = draw_legacy(batch)["drawn"]
    batch["drawn"] = np.hstack([given, drawn])
    return batch


def draw_arrow(batch: Any, generator: Any) -> dict[str, Any]:
    """Add a column that a generator of NumPy draws."""
    return {"id": batch["id"], "arrow": generator.random(batch.num_rows)}


def draw_arrow_legacy(batch: Any) -> dict[str, Any]:
    """Add a column that NumPy's legacy functions draw."""
    return {"id": batch["id"], "arrow": np.random.rand(batch.num_rows)}


def is_drawn(batch: Any, generator: Any) -> Any:
    """Keep half of the rows."""
    return generator.random(len(batch["id"])) < 0.5


def list_draws(batches: Any) -> list[Any]:
    """Return the ids and the drawn numbers of batches as lists."""
    return [
        {
            name: np.asarray(batch[name]).tolist()
            for name in ("id", "drawn", "arrow")
            if name in batch
        }
        for batch in batches
    ]
