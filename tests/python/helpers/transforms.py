"""Transforms for the worker processes of a Loader, which import them from here."""

from __future__ import annotations

import os
import signal
import time
from collections import namedtuple
from typing import Any

import numpy as np

Pair = namedtuple("Pair", ["x", "y"])
SPECIAL = 40  # the id at which something happens


def add_process(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "process": os.getpid()}


def make_tree(batch: dict[str, Any]) -> Any:
    import torch  # not by the others: their processes start sooner

    ids = batch["id"]
    return {
        "pair": Pair(ids.float() / 2, [ids.to(torch.bfloat16), ids % 2 == 0]),
        "matrix": ids[:, None] * torch.arange(3),
        "columns": (ids[:, None] * torch.arange(3)).T,
        "jagged": torch.nested.nested_tensor_from_jagged(
            torch.arange(2 * len(ids)), torch.arange(len(ids) + 1) * 2
        ),
        "numpy": ids.numpy().astype("uint8"),
        "scalar": torch.tensor(2.5),
        "one": torch.tensor([1]),
        "grad": torch.ones(2, requires_grad=True),
        "dates": np.array(["2024-01-01"], "datetime64[D]"),
        "text": ("a", {"b": None}),
        "count": len(ids),
    }


def grow(batch: dict[str, Any]) -> dict[str, Any]:
    """Larger and larger tensors of the first id."""
    first = int(batch["id"][0])
    return {"id": batch["id"], "large": np.full((first * 1000,), first)}


def raise_error(batch: dict[str, Any]) -> dict[str, Any]:
    if SPECIAL in batch["id"]:
        raise LookupError("no such row")
    return batch


class LocalError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raise_what_cannot_be_pickled(batch: dict[str, Any]) -> dict[str, Any]:
    raise LocalError(1, 2)


def give_what_cannot_be_pickled(batch: dict[str, Any]) -> Any:
    return {"function": lambda: None}


def kill_process(batch: dict[str, Any]) -> dict[str, Any]:
    if SPECIAL in batch["id"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def exit_process(batch: dict[str, Any]) -> dict[str, Any]:
    raise SystemExit(3)


def sleep_shortly(batch: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.3)
    return batch


def sleep_long(batch: dict[str, Any]) -> dict[str, Any]:
    if SPECIAL in batch["id"]:
        time.sleep(600)
    return batch


def add_one(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "more": batch["id"] + 1, "step": 3}


def alternate(batch: dict[str, Any]) -> Any:
    """Batches of which none is like the one before."""
    ids = batch["id"]
    shapes = [
        {"id": ids},
        {"id": ids.astype("int8"), "none": ids[:0]},
        {"id": ids, "matrix": np.stack([ids] * 1000)},
        [ids, ids[::2], {"text": str(ids)}],
        (ids, None, ids[::2]),
        {"other": ids},
        ids[:1].reshape(()),
        "no tensor",
    ]
    return shapes[int(ids[0]) // len(ids) % len(shapes)]
