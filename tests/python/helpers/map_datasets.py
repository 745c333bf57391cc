"""Map datasets over every kind of source, and what they are compared with."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from arrowdl.loader import MapDataset

from helpers.options import group

ROWS = 60
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array([i / 4 if i % 7 else None for i in range(ROWS)], pa.float32()),
        "flag": pa.array([i % 3 == 0 for i in range(ROWS)]),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2.0 * ROWS)), 2),
        "tokens": pa.array([list(range(i % 5)) for i in range(ROWS)], pa.list_(pa.int32())),
        "text": pa.array([f"row {i}" for i in range(ROWS)]),
        "k": pa.array([f"key {i % 4}" for i in range(ROWS)]).dictionary_encode(),
    }
)
NULLS = {"x": "nan"}


def make_chunks(table: pa.Table) -> pa.Table:
    """Chunks of several lengths, one of them empty."""
    ends = [0, 7, 7, 20, 41, ROWS]
    return pa.concat_tables(
        table.slice(start, stop - start) for start, stop in itertools.pairwise(ends)
    )


def write_ipc(folder: Path, table: pa.Table, **options: Any) -> Path:
    path = folder / "rows.arrow"
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=13)
    return path


def write_parquet(folder: Path, table: pa.Table = TABLE, groups: int = 13) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(table, path, row_group_size=groups)
    return path


def write_files(folder: Path, suffix: str) -> Path:
    """Files of several lengths, in a folder."""
    target = folder / suffix
    target.mkdir()
    for i, start in enumerate(range(0, ROWS, 17)):
        part = TABLE.slice(start, 17)
        if suffix == "parquet":
            pq.write_table(part, target / f"{i}.parquet", row_group_size=5)
        else:
            with pa.ipc.new_file(target / f"{i}.arrow", part.schema) as writer:
                writer.write_table(part)
    return target


def write_partitions(folder: Path) -> ds.Dataset:
    """A column that is in the names of the directories."""
    table = TABLE.append_column("part", pc.bit_wise_and(TABLE["id"], 1))
    ds.write_dataset(
        table.drop_columns("k"),
        folder / "parts",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("part", pa.int64())]), flavor="hive"),
    )
    return ds.dataset(folder / "parts", partitioning="hive")


SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "table": lambda folder: {"source": TABLE},
    "chunks": lambda folder: {"source": make_chunks(TABLE)},
    "record batch": lambda folder: {"source": TABLE.combine_chunks().to_batches()[0]},
    "record batches": lambda folder: {"source": TABLE.to_batches(max_chunksize=9)},
    "columns": lambda folder: {"source": make_chunks(TABLE), "columns": ["v", "id"]},
    "shuffled": lambda folder: {
        "source": make_chunks(TABLE),
        "shuffle": True,
        "rank": 1,
        "world_size": 2,
    },
    "ipc": lambda folder: {"source": write_ipc(folder, TABLE)},
    "ipc files": lambda folder: {"source": write_files(folder, "arrow")},
    "ipc, read": lambda folder: {"source": write_ipc(folder, TABLE), "memory_map": False},
    "ipc, compressed": lambda folder: {"source": write_ipc(folder, TABLE, compression="zstd")},
    "parquet": lambda folder: {"source": write_parquet(folder)},
    "parquet files": lambda folder: {"source": write_files(folder, "parquet")},
    "dataset": lambda folder: {"source": ds.dataset(write_files(folder, "parquet"))},
    "partitions": lambda folder: {
        "source": write_partitions(folder),
        "columns": ["part", "id", "x"],
        "filter": (ds.field("id") > 5) & (ds.field("x") > 3),
    },
    "filter": lambda folder: {
        "source": write_files(folder, "parquet"),
        "columns": ["text", "id"],
        "filter": ds.field("id") >= 19,
    },
}
NUMBERS = {
    "in order": [3, 4, 5, 6],
    "all of it": list(range(10)),
    "unsorted": [9, 0, 5, 3, 8],
    "duplicates": [2, 2, 7, 2, 7],
    "negative": [-1, 0, -10, 9],
    "one": [4],
    "none": [],
}


def make(kind: str, folder: Path, cache_bytes: int = 2**29, **more: Any) -> tuple[MapDataset, list]:
    """A map dataset, and the ids of its rows in the order of the source."""
    arguments = {"framework": "numpy", "nulls": "fill", "batch_size": 8, **SOURCES[kind](folder)}
    loader = arrowdl.Loader(**group(**arguments, **more))
    plain = {
        key: value
        for key, value in arguments.items()
        if key not in ("shuffle", "rank", "world_size")
    }
    in_order = arrowdl.Loader(**group(**plain))
    return loader.map_dataset(cache_bytes=cache_bytes), [
        i for batch in in_order for i in batch["id"].tolist()
    ]


def expect(ids: list[int], names: Any) -> dict[str, Any]:
    """What the Loader would make of the rows that pyarrow takes."""
    part = pc.bit_wise_and(TABLE["id"], 1).cast("int32")  # as pyarrow reads directories
    table = TABLE.append_column("part", part).take(pa.array(ids, pa.int64()))
    return arrowdl.to_numpy(table.select(list(names)), nulls="fill")


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], expected[k]) for k in expected)
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=True)


class CountingSource:
    """Notes which units are read, and lets a test hold the reads."""

    def __init__(self, dataset: MapDataset) -> None:
        self._source = dataset._source
        self.read_units: list[int] = []
        self.before = lambda: None
        self._lock = threading.Lock()
        dataset._source = self

    def read(self, units: list[int]) -> Any:
        with self._lock:
            self.read_units += units
        self.before()
        return self._source.read(units)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def make_loaders(dataset: MapDataset, **arguments: Any) -> dict[str, Any]:
    """A DataLoader of each kind of sampler."""
    import torch
    import torch.utils.data as torch_data
    from torch.utils.data import DataLoader

    order = torch.Generator().manual_seed(4)
    weights = [0.0 if i % 2 else 1.0 for i in range(len(dataset))]
    samplers = {
        "subset": torch_data.SubsetRandomSampler(range(10, 40), generator=order),
        "weighted": torch_data.WeightedRandomSampler(weights, 50, generator=order),
        "distributed": torch_data.DistributedSampler(dataset, 4, 1, seed=2),
    }
    return {
        name: DataLoader(dataset, batch_size=8, sampler=sampler, **arguments)
        for name, sampler in samplers.items()
    }


def run_script(text: str, folder: Path, *arguments: Any, seconds: float = 120) -> None:
    script = folder / "script.py"
    script.write_text(text)
    paths = [path for path in sys.path if path]
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", script, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
