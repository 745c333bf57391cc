"""A batch of 1 MB from one worker process: ours beside PyTorch's DataLoader, in alternating passes.

Run it with ``python -m benchmarks.loader.handover``. What both do in the worker is nothing: the
batch is there already. So a pass is the hand-over alone, and the first batches, during which
processes start, are not counted.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import time
from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Any

import arrowdl
import pyarrow as pa
import torch
from torch.utils.data import DataLoader, IterableDataset

from benchmarks.timing import format_seconds

BATCH_BYTES = 1 << 20
COLUMNS = (3, 21, 200)


@cache
def make_batch(columns: int) -> dict[str, Any]:
    rows = BATCH_BYTES // 4 // columns
    return {f"c{i}": torch.rand(rows) for i in range(columns)}


class Repeat(IterableDataset[Any]):  # type: ignore[misc]
    """The same dict of tensors, `count` times."""

    def __init__(self, columns: int, count: int) -> None:
        self.columns, self.count = columns, count

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(make_batch(self.columns), self.count)


def replace_batch(columns: int, batch: Any) -> dict[str, Any]:
    """A transform that gives the same dict for every batch."""
    return make_batch(columns)


def time_batches(batches: Iterable[Any], warm_up: int) -> float:
    """Seconds per batch, after the first `warm_up`."""
    count = 0
    begin = 0.0
    for count, batch in enumerate(batches, 1):
        del batch
        if count == warm_up:
            begin = time.perf_counter()
    return (time.perf_counter() - begin) / (count - warm_up)


def measure(columns: int, passes: int, count: int) -> dict[str, float]:
    warm_up = count // 10
    table = pa.table({"x": range(count)})
    ours = arrowdl.Loader(table, 1, workers=1, transform=partial(replace_batch, columns))
    torchs = DataLoader(
        Repeat(columns, count), batch_size=None, num_workers=1, persistent_workers=True
    )
    seconds: dict[str, list[float]] = {"arrowdl": [], "DataLoader": []}
    for _ in range(passes):
        gc.collect()
        seconds["arrowdl"].append(time_batches(ours, warm_up))
        seconds["DataLoader"].append(time_batches(torchs, warm_up))
    return {name: statistics.median(times) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--batches", type=int, default=300, help="of a pass")
    arguments = parser.parse_args()
    print("| columns | DataLoader | arrowdl | ratio |\n|---|---|---|---|")
    for columns in COLUMNS:
        seconds = measure(columns, arguments.passes, arguments.batches)
        ours, peer = seconds["arrowdl"], seconds["DataLoader"]
        print(
            f"| {columns} | {format_seconds(peer)} | {format_seconds(ours)} | {ours / peer:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
