"""The three data sets of the loader's benchmarks, as Parquet and as Arrow IPC files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUP_ROWS = 65_536
BATCH_ROWS = {"emb": 1024, "tab": 4096, "tok": 1024}


def make_table(name: str) -> pa.Table:
    """`emb`: embeddings; `tab`: 20 columns of floats, some null; `tok`: ragged tokens."""
    random = np.random.default_rng(7)
    if name == "emb":
        rows, width = 200_000, 256
        values = random.random(rows * width, dtype=np.float32)
        return pa.table(
            {
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(values), width),
                "label": random.integers(0, 10, rows),
                "weight": random.random(rows, dtype=np.float32),
            }
        )
    if name == "tab":
        rows = 2_000_000
        columns = {f"x{i}": _make_floats(random, rows, i % 4 == 0) for i in range(20)}
        return pa.table({**columns, "label": random.integers(0, 2, rows)})
    rows = 200_000
    lengths = random.integers(0, 257, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    tokens = random.integers(0, 50_000, offsets[-1]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(tokens))
    return pa.table({"tokens": lists, "label": random.integers(0, 10, rows)})


def make_sorted_table() -> pa.Table:
    """Rows of ten floats, with their numbers: of a range of these, most row groups have none."""
    random = np.random.default_rng(7)
    columns = {f"x{i}": _make_floats(random, 1_000_000, False) for i in range(10)}
    return pa.table({"row": np.arange(1_000_000), **columns})


def _make_floats(random: np.random.Generator, rows: int, has_nulls: bool) -> pa.Array:
    mask = random.random(rows) < 0.01 if has_nulls else None
    return pa.array(random.random(rows, dtype=np.float32), mask=mask)


def write_files(folder: Path) -> None:
    """`NAME.parquet` and `NAME.arrow` for each data set, if they do not exist yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in BATCH_ROWS:
        parquet, ipc = folder / f"{name}.parquet", folder / f"{name}.arrow"
        if parquet.exists() and ipc.exists():
            continue
        table = make_table(name)
        pq.write_table(table, parquet, row_group_size=GROUP_ROWS)
        with pa.ipc.new_file(ipc, table.schema) as writer:
            writer.write_table(table, max_chunksize=GROUP_ROWS)
    if not (path := folder / "sorted.parquet").exists():
        pq.write_table(make_sorted_table(), path, row_group_size=GROUP_ROWS)
