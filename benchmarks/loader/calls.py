"""Single calls of the loader, in absolute time."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.loader.data import make_table
from benchmarks.timing import FULL, measure

MICROSECOND = 1e-6


def measure_calls(folder: Path) -> list[dict[str, Any]]:
    """Median seconds of each call, and the most that it may take."""
    tokens = make_table("tok").slice(0, 1024)["tokens"].combine_chunks()
    columns = {f"x{i}": np.random.default_rng(i).random(4096, dtype=np.float32) for i in range(20)}
    loader = arrowdl.Loader(folder / "tab.arrow", 4096, nulls="fill", prefetch=0)
    batches = len(loader)
    eight = pa.table({f"x{i}": columns["x0"] for i in range(8)})
    names = {
        "to_torch": arrowdl.to_torch,
        "tokens": arrowdl.from_arrow(tokens),
        "batch": arrowdl.from_arrow(pa.record_batch(columns)),
        "loader": loader,
        "eight": arrowdl.Loader(
            pa.concat_tables([eight] * 100).combine_chunks(),
            4096,
            framework="numpy",
            writable=False,
            prefetch=0,
        ),
        "deque": deque,
        "frame": pd.DataFrame({f"x{i}": np.arange(100_000, dtype=np.float32) for i in range(20)}),
    }
    calls = [
        ("to_torch(tokens, ragged='padded')", 100 * MICROSECOND, 1),
        ("to_torch(batch, stack=True)", 50 * MICROSECOND, 1),
        ("to_torch(frame)", 600 * MICROSECOND, 1),
        ("deque(loader, maxlen=0)", 30 * MICROSECOND, batches),
        ("deque(eight, maxlen=0)", 5 * MICROSECOND, 100),
    ]
    titles = [
        "padding 1,024 lists of mean 128",
        "20 float columns by 4,096 to a matrix",
        "a pandas frame of 20 float columns by 100,000",
        "a 21-column batch of 4,096 from memory-mapped IPC",
        "an 8-column batch of 4,096 of a table, for NumPy",
    ]
    timings = measure([statement for statement, _, _ in calls], names, FULL)
    return [
        {"name": title, "median": timing.median / count, "target": target}
        for title, timing, (_, target, count) in zip(titles, timings, calls, strict=True)
    ]
