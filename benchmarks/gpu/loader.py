"""Batches to the GPU: their rate, and how long a model waits for them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import torch

from benchmarks.gpu.cases import Call, Direction, Names

BATCHES = 32
BATCH_ROWS = 8192
WIDTH = 256
SIZE = BATCHES * BATCH_ROWS * WIDTH * 4
"""Bytes of all batches, of 8 MiB each."""

PASS = Direction(
    f"{BATCHES} batches to the GPU",
    "copy_pinned()",
    [
        "drain(stream(pinned).to('cuda'))",
        "drain(stream(pageable).to('cuda'))",
        "drain(stream(pageable).to('cuda', pin_memory=False))",
        "drain(loader)",
    ],
    targets={"drain(stream(pinned).to('cuda'))": 0.9},
)

TRAINING = Call("training", "train(loader)", "train(resident)")


def make_pass_names() -> Names:
    table = _make_table()
    pageable = [arrowdl.from_arrow(batch) for batch in table.to_batches(BATCH_ROWS)]
    pinned = [batch.to("cuda_host") for batch in pageable]
    for batch in pinned:
        batch.synchronize()
    return {
        "pageable": pageable,
        "pinned": pinned,
        "loader": arrowdl.Loader(table, BATCH_ROWS, device="cuda"),
        "stream": arrowdl.from_arrow_stream,
        "drain": drain,
        "copy_pinned": _make_pinned_copy(),
    }


def make_training_names() -> Names:
    loader = arrowdl.Loader(_make_table(), BATCH_ROWS, device="cuda")
    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.ReLU(), torch.nn.Linear(4 * WIDTH, 1)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    return {
        "loader": loader,
        "resident": list(loader),
        "train": partial(train, model, optimizer),
    }


def drain(batches: Iterable[Any]) -> None:
    """Take every batch, keep none, and wait for the last copy."""
    for batch in batches:
        del batch
    torch.cuda.synchronize()


def train(model: Any, optimizer: Any, batches: Iterable[Any]) -> None:
    for batch in batches:
        model(batch["x"]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


def _make_table() -> pa.Table:
    values = np.random.default_rng(7).random(BATCHES * BATCH_ROWS * WIDTH, np.float32)
    return pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(values), WIDTH)})


def _make_pinned_copy() -> Any:
    """Copy as many bytes with torch alone, into existing memory."""
    source = torch.ones(BATCH_ROWS, WIDTH).pin_memory()
    target = torch.empty_like(source, device="cuda")

    def copy() -> None:
        for _ in range(BATCHES):
            target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()

    return copy
