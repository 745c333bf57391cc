"""How well a shuffle mixes sorted rows, beside a permutation, and the memory that it takes.

``python -m benchmarks.loader.mixing`` prints a table, of a process for each row. The spread is the
standard deviation of the means of batches over that of a permutation.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.loader.shapes import read_memory

BATCH_ROWS = 256
BATCH_BYTES = 2**24  # several are in memory: they are not what is measured
MOST_SPREAD = 1.3
MOST_BYTES = 3 * 2**28  # of a buffer of 256 MiB, what is decoded ahead, and what malloc keeps


@dataclass(frozen=True)
class Case:
    """A file of sorted rows, with `width` bytes beside the sorted column, in `splits` sequences."""

    rows: int
    groups: int
    width: int
    splits: int | None = None


CASES = {
    "fits": Case(400_000, 1, 32),
    "fits-splits": Case(400_000, 3, 32, 8),
    "many-row-groups": Case(12_000_000, 120, 64),
    "few-row-groups": Case(12_000_000, 12, 64),
    "odd-row-groups": Case(12_000_000, 50, 64),
    "odd-row-groups-splits": Case(12_000_000, 50, 64, 8),
    "few-row-groups-splits": Case(12_000_000, 12, 64, 8),
    "wide-rows": Case(1_500, 15, 2**20),
}


def measure(name: str) -> dict[str, float]:
    """Return the spread, the bytes that a pass adds, and its seconds."""
    case = CASES[name]
    batch_rows = min(BATCH_ROWS, case.rows // 16, BATCH_BYTES // case.width)
    if case.splits is not None:
        batch_rows -= batch_rows % case.splits
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sorted.parquet"
        # By a process of its own: what malloc keeps of that would hide what the pass takes.
        write = [sys.executable, "-m", "benchmarks.loader.mixing", "--write", name, str(path)]
        subprocess.run(write, check=True)
        list(arrowdl.Loader(pa.table({"x": [1.0]}), 1, framework="numpy"))  # imports
        before = read_memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
        start = time.perf_counter()
        ranks = arrowdl.Ranks(splits=case.splits)
        loader = arrowdl.Loader(path, batch_rows, framework="numpy", shuffle=True, ranks=ranks)
        means = [float(batch["x"].mean(dtype="f8")) for batch in loader if len(batch["x"])]
        seconds = time.perf_counter() - start
        memory = read_memory("VmHWM") - before
    expected = math.sqrt((case.rows - batch_rows) / (case.rows - 1) / batch_rows / 12)
    spread = float(np.std(means[: case.rows // batch_rows])) / expected
    return {"spread": spread, "memory": memory, "seconds": seconds}


def write_file(path: Path, case: Case) -> None:
    """Write the file, a row group at a time."""
    draw = np.random.default_rng(0)
    rows = case.rows // case.groups
    writer = None
    for group in range(case.groups):
        x = (np.arange(rows, dtype="f8") + group * rows) / case.rows
        columns: dict[str, Any] = {"x": x.astype("f4")}
        if case.width > 1_000:
            columns["image"] = [draw.bytes(case.width) for _ in range(rows)]
        else:
            names = range(case.width // 4)
            columns |= {f"c{i}": draw.random(rows, dtype=np.float32) for i in names}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
        del table, columns
    assert writer is not None
    writer.close()


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        write_file(Path(sys.argv[3]), CASES[sys.argv[2]])
        return
    if sys.argv[1:2] == ["--probe"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    print("| case | spread | memory | seconds | within |\n|---|--:|--:|--:|---|")
    for name in sys.argv[1:] or CASES:
        command = [sys.executable, "-m", "benchmarks.loader.mixing", "--probe", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        is_within = found["spread"] < MOST_SPREAD and found["memory"] < MOST_BYTES
        print(
            f"| `{name}` | {found['spread']:.2f} | {found['memory'] >> 20} MiB "
            f"| {found['seconds']:.1f} | {'yes' if is_within else '**no**'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
