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
from benchmarks.gpu.place import Place

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
        "drain(shuffled)",
    ],
    targets={
        "drain(stream(pinned).to('cuda'))": 0.9,
        "drain(stream(pageable).to('cuda'))": 0.8,
        "drain(shuffled)": 0.5,
    },
)

TRAINING = Call("training", "train(loader)", "train(resident)", target=1.02, may_wait=True)


def make_copy_names(size: int, place: Place) -> Names:
    pageable = torch.ones(size // 4)
    pinned = place.pin(pageable)
    gpu = pageable.to(place.device, copy=True)
    finish = place.make_finish()
    finish()
    return {
        "pageable_tensor": pageable,
        "pinned_tensor": pinned,
        "gpu_tensor": gpu,
        "pageable_array": arrowdl.to_arrow_device(pageable),
        "pinned_array": arrowdl.to_arrow_device(pinned),
        "gpu_array": arrowdl.to_arrow_device(gpu),
        "finish": finish,
    }


def make_pass_names(place: Place) -> Names:
    table = make_table(place)
    pageable = [arrowdl.from_arrow(batch) for batch in table.to_batches(place.shrink(BATCH_ROWS))]
    pinned = [batch.to(place.adapt("cuda_host")) for batch in pageable]
    for batch in pinned:
        batch.synchronize()
    return {
        "pageable": pageable,
        "pinned": pinned,
        "loader": arrowdl.Loader(table, place.shrink(BATCH_ROWS), device=place.device),
        "shuffled": arrowdl.Loader(
            table, place.shrink(BATCH_ROWS), shuffle=True, device=place.device
        ),
        "stream": arrowdl.from_arrow_stream,
        "drain": partial(drain, place),
        "copy_pinned": _make_pinned_copy(place),
    }


def make_training_names(place: Place) -> Names:
    loader = arrowdl.Loader(make_table(place), place.shrink(BATCH_ROWS), device=place.device)
    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.ReLU(), torch.nn.Linear(4 * WIDTH, 1)
    ).to(place.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    return {
        "loader": loader,
        "resident": list(loader),
        "train": partial(train, place, model, optimizer),
    }


def drain(place: Place, batches: Iterable[Any]) -> None:
    """Take every batch, keep none, and wait for the last copy."""
    for batch in batches:
        del batch
    place.synchronize()


def train(place: Place, model: Any, optimizer: Any, batches: Iterable[Any]) -> None:
    for batch in batches:
        model(batch["x"]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    place.synchronize()


def make_table(place: Place) -> pa.Table:
    rows = BATCHES * place.shrink(BATCH_ROWS)
    values = np.random.default_rng(7).random(rows * WIDTH, np.float32)
    return pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(values), WIDTH)})


def _make_pinned_copy(place: Place) -> Any:
    """Copy as many bytes with torch alone, into existing memory."""
    source = place.pin(torch.ones(BATCH_ROWS, WIDTH))
    target = torch.empty_like(source, device=place.device)

    def copy() -> None:
        for _ in range(BATCHES):
            target.copy_(source, non_blocking=True)
        place.synchronize()

    return copy
