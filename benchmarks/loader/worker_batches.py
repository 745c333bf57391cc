"""Compares batches of 1 MB from one worker process with those of PyTorch's DataLoader.

Run it with ``python -m benchmarks.loader.worker_batches``. The workers return a batch that exists
already, so only its transfer takes time. The passes alternate. The first batches of a pass, during
which processes start, are not counted.
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
# Columns of the batch, batches of our pass (the DataLoader is slower, so its pass has a quarter of
# them), and the largest allowed ratio of our time to the DataLoader's.
ROWS = ((3, 1200, 0.1), (21, 1200, 0.015), (200, 400, 0.01))


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
    """A transform that returns the same dict for every batch."""
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


def measure(columns: int, count: int, passes: int) -> tuple[float, float]:
    """Seconds per batch of ours and of the DataLoader: medians of passes in turn."""
    table = pa.table({"x": range(count)})
    ours = arrowdl.Loader(table, 1, num_workers=1, transform=partial(replace_batch, columns))
    few = count // 4
    theirs = DataLoader(
        Repeat(columns, few), batch_size=None, num_workers=1, persistent_workers=True
    )
    seconds: list[tuple[float, float]] = []
    for _ in range(passes):
        gc.collect()
        seconds.append((time_batches(ours, count // 10), time_batches(theirs, few // 10)))
    our_seconds, their_seconds = map(statistics.median, zip(*seconds, strict=True))
    return our_seconds, their_seconds


def measure_rows(passes: int = 5) -> Iterator[dict[str, Any]]:
    """The rows of the table, as `benchmarks.loader` has them."""
    for columns, count, target in ROWS:
        ours, peer = measure(columns, count, passes)
        yield {
            "name": f"worker-batch-{columns}",
            "ours": {"median": ours},
            "peer": {"median": peer},
            "peer_name": "DataLoader, a batch of one worker",
            "ratio": ours / peer,
            "target": target,
            "reached": ours / peer <= target,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=5)
    for row in measure_rows(parser.parse_args().passes):
        times = [format_seconds(row[name]["median"]) for name in ("ours", "peer")]
        print(
            f"{row['name']:14} {row['ratio']:.4f} (at most {row['target']:g})", *times, flush=True
        )


if __name__ == "__main__":
    main()
