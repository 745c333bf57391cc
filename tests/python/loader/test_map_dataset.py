"""Loader.map_dataset(): rows by their numbers, compared with what pyarrow takes."""

from __future__ import annotations

import collections
import gc
import itertools
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import MapDataset
from arrowdl.loader._random_access.unit_cache import UnitCache

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
    loader = arrowdl.Loader(**arguments, **more)
    plain = {
        key: value
        for key, value in arguments.items()
        if key not in ("shuffle", "rank", "world_size")
    }
    in_order = arrowdl.Loader(**plain)
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


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_are_those_that_pyarrow_takes(kind: str, tmp_path: Path) -> None:
    dataset, ids = make(kind, tmp_path)
    assert len(dataset) == len(ids) > 10
    for numbers in NUMBERS.values():
        spread = [n * (len(ids) // 10) if n >= 0 else n for n in numbers]
        batch = dataset[spread]
        assert same(batch, expect([ids[n] for n in spread], batch)), numbers


@pytest.mark.parametrize("kind", ["chunks", "ipc files", "parquet files"])
@pytest.mark.parametrize("cache_bytes", [2**29, 1, 0])
def test_every_row_and_every_pair(kind: str, cache_bytes: int, tmp_path: Path) -> None:
    dataset, ids = make(kind, tmp_path, cache_bytes)
    for i in range(ROWS):
        assert dataset[i]["id"] == ids[i]
        j = (i * 17 + 5) % ROWS
        assert dataset[[i, j, i]]["id"].tolist() == [ids[i], ids[j], ids[i]]
        assert dataset[i : i + 15]["id"].tolist() == ids[i : i + 15]
    everything = np.random.default_rng(3).permutation(ROWS)
    assert same(dataset[everything], expect([ids[i] for i in everything], dataset[[0]]))


LISTS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "int8": lambda rows: np.array(rows, "int8"),
    "uint8": lambda rows: np.array([row % ROWS for row in rows], "uint8"),
    "uint64": lambda rows: np.array([row % ROWS for row in rows], "uint64"),
    "int64": lambda rows: np.array(rows),
    "strided": lambda rows: np.repeat(np.array(rows, "int32"), 3)[::3],
    "NumPy's integers": lambda rows: [np.int16(row) for row in rows],
    "pyarrow": lambda rows: pa.array(rows, pa.int32()),
    "chunked": lambda rows: pa.chunked_array([rows[:2], rows[2:]]),
    "buffer": lambda rows: memoryview(np.array(rows, "int64")),
    "sequence": lambda rows: collections.deque(rows),
}


@pytest.mark.parametrize("make_rows", LISTS.values(), ids=LISTS)
def test_row_numbers_of_many_types(make_rows: Callable[[list[int]], Any]) -> None:
    dataset = arrowdl.Loader(TABLE.select(["id"]), 8, framework="numpy").map_dataset()
    rows = [5, -1, 0, 5, 30]
    assert dataset[make_rows(rows)]["id"].tolist() == [row % ROWS for row in rows]


def test_torch_tensors_and_ranges_as_row_numbers() -> None:
    import torch

    dataset = arrowdl.Loader(TABLE.select(["id"]), 8).map_dataset()
    assert dataset[torch.tensor([7, -2])]["id"].tolist() == [7, 58]
    assert dataset[torch.tensor([3])]["id"].tolist() == [3]  # one row number in one dimension
    assert dataset[[torch.tensor(3), torch.tensor(1)]]["id"].tolist() == [3, 1]
    assert dataset[range(9, 0, -4)]["id"].tolist() == [9, 5, 1]
    for mask in ([torch.tensor(1), torch.tensor(True)], torch.tensor(True), torch.ones(60).bool()):
        with pytest.raises(TypeError, match="flatnonzero"):
            dataset[mask]
    for one in (4, np.int32(4), np.array(4), torch.tensor(4), -56):
        item = dataset[one]["id"]
        assert isinstance(item, torch.Tensor)
        assert (item.shape, item.item()) == ((), 4)


@pytest.mark.parametrize(
    ("rows", "count"),
    [(slice(None), 60), (slice(50, 99), 10), (slice(9, 2, -3), 3), (slice(5, 2), 0)],
)
def test_slices_are_batches(rows: slice, count: int) -> None:
    dataset = arrowdl.Loader(make_chunks(TABLE), 8, framework="numpy", nulls="fill").map_dataset()
    found = dataset[rows]["id"].tolist()
    assert found == list(range(ROWS))[rows]
    assert len(found) == count


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        (60, IndexError, "row 60 of 60: rows have the numbers 0 to 59"),
        ([0, -61], IndexError, "row -61 of 60"),
        (2**70, IndexError, f"row {2**70} of 60"),
        (np.array([2**64 - 1], "uint64"), IndexError, f"row {2**64 - 1} of 60"),
        ([1.0], TypeError, "float"),
        (1.5, TypeError, "row numbers of type float"),
        (np.array([1.0]), TypeError, "row numbers of type"),
        (np.ones(60, bool), TypeError, "flatnonzero"),
        ([True, False], TypeError, "flatnonzero"),
        (True, TypeError, "a bool is no row number"),
        (pa.array([True] * 60), TypeError, "flatnonzero"),
        (np.array([[1]]), TypeError, "one-dimensional"),
        (pa.array([1, None]), ValueError, "nulls"),
        (pa.array([1], pa.timestamp("s")), TypeError, "row numbers of type"),
        ("id", TypeError, "row numbers of type str"),
        (b"id", TypeError, "row numbers of type bytes"),
        ({"id": 1}, TypeError, "row numbers of type dict"),
        ([[1]], TypeError, "list"),
        (None, TypeError, "row numbers of type NoneType"),
        ({1, 2}, TypeError, "row numbers of type set"),
        (iter([1, 2]), TypeError, "row numbers of type list_iterator"),
    ],
    ids=repr,
)
def test_what_is_no_row_number(rows: Any, error: type[Exception], text: str) -> None:
    dataset = arrowdl.Loader(TABLE.select(["id"]), 8, framework="numpy").map_dataset()
    with pytest.raises(error, match=text):
        dataset[rows]
    assert dataset[[1]]["id"].tolist() == [1]


def test_iterating_ends() -> None:
    dataset = arrowdl.Loader(TABLE.select(["id"]), 8, framework="numpy").map_dataset()
    assert [int(item["id"]) for item in dataset] == list(range(ROWS))


def test_no_rows(tmp_path: Path) -> None:
    empty = TABLE.slice(0, 0)
    for source in (empty, write_ipc(tmp_path, empty), write_parquet(tmp_path, empty)):
        dataset = arrowdl.Loader(source, 8, framework="numpy", nulls="fill").map_dataset()
        assert len(dataset) == 0
        assert dataset[[]]["v"].shape == (0, 2)
        with pytest.raises(IndexError, match="row 0 of a source without rows"):
            dataset[0]


# ---------------------------------------------------------------------------
# Items


def test_items_are_rows_of_each_tensor() -> None:
    table = TABLE.append_column(
        "nested", pa.array([[[i], [i, i + 1]] for i in range(ROWS)], pa.list_(pa.list_(pa.int8())))
    ).append_column("s", pa.array([{"a": i, "b": [i] * (i % 3)} for i in range(ROWS)]))
    loader = arrowdl.Loader(table, 8, framework="numpy", nulls={"x": "mask"})
    for items in (
        loader.map_dataset().__getitems__([10, 7]),
        [loader.map_dataset()[i] for i in (10, 7)],
    ):
        ten, seven = items
        assert (ten["id"], ten["flag"], ten["v"].tolist()) == (10, False, [20.0, 21.0])
        assert ten["tokens"].tolist() == []
        assert seven["tokens"].tolist() == [0, 1]
        assert bytes(seven["text"]) == b"row 7"
        assert (ten["x"], seven["x"][1]) == ((2.5, True), False)
        values, offsets = seven["nested"]
        assert (values.tolist(), offsets.tolist()) == ([7, 7, 8], [0, 1, 3])
        assert (seven["s"]["a"], seven["s"]["b"].tolist()) == (7, [7])


def test_items_of_torch() -> None:
    import torch

    dataset = arrowdl.Loader(TABLE, 8, nulls="fill").map_dataset()
    item = dataset[8]
    assert torch.equal(item["tokens"], torch.tensor([0, 1, 2], dtype=torch.int32))
    assert torch.equal(item["v"], torch.tensor([16.0, 17.0], dtype=torch.float64))
    padded = arrowdl.Loader(TABLE, 8, nulls="fill", ragged="padded").map_dataset()
    rows, length = padded.__getitems__([8, 9])[0]["tokens"]
    assert (rows.tolist(), int(length)) == ([0, 1, 2, 0], 3)


def test_items_of_a_transform() -> None:
    def loader(transform: Callable[[Any], Any], **more: Any) -> MapDataset:
        return arrowdl.Loader(
            TABLE.select(["id"]), 8, framework="numpy", transform=transform, **more
        ).map_dataset()

    pairs = loader(lambda batch: (batch["id"], {"twice": batch["id"] * 2, "name": "n"}))
    assert pairs[5] == (5, {"twice": 10, "name": "n"})
    assert pairs.__getitems__([5, 6])[1] == (6, {"twice": 12, "name": "n"})
    assert loader(lambda batch: batch, stack=True)[5].tolist() == [5]
    with pytest.raises(ValueError, match=r"shape \(2,\) for 1 rows: read whole batches"):
        loader(lambda batch: np.zeros(2))[5]
    with pytest.raises(ValueError, match="returned object for 1 rows"):
        loader(lambda batch: object())[5]


# ---------------------------------------------------------------------------
# Options of the Loader


def test_batches_are_the_loaders(tmp_path: Path) -> None:
    """In order, with every option that makes batches."""
    options: list[dict[str, Any]] = [
        {"nulls": "mask", "ragged": "padded", "pad_to_multiple": 4},
        {
            "nulls": "fill",
            "ragged": {"tokens": "padded"},
            "max_length": {"tokens": 2},
            "pad_value": 9,
        },
        {
            "nulls": "fill",
            "stack": {"m": ["id", "x"]},
            "dtype": "float32",
        },
        {"nulls": "fill", "pad_last": True},
        {"nulls": "fill", "transform_arrow": lambda batch: batch.select(["id", "v"])},
        {"nulls": "fill", "transform": lambda batch: {"sum": batch["id"] + batch["x"]}},
        {"nulls": "fill", "vocabulary": {"text": [f"row {i}" for i in reversed(range(ROWS))]}},
        {"nulls": "fill", "writable": False},
        {"nulls": "fill", "transform": lambda batch: batch["v"], "num_threads": 2},
        {"nulls": "fill", "pad_last": True, "batch_size": None, "global_batch_size": 16},
    ]
    for source in (make_chunks(TABLE), write_parquet(tmp_path)):
        for given in options:
            arguments = {"batch_size": 16, "splits": None, "framework": "numpy", **given}
            loader = arrowdl.Loader(source, **arguments)
            dataset = loader.map_dataset()
            for i, batch in enumerate(loader):
                assert same(dataset[i * 16 : (i + 1) * 16], batch), given
                rows = list(range(i * 16, min(ROWS, (i + 1) * 16)))
                assert same(dataset[rows[::-1]], dataset[rows[::-1]])


def test_pad_last_pads_up_to_the_batch_size() -> None:
    dataset = arrowdl.Loader(
        TABLE.select(["id"]), 4, framework="numpy", pad_last=True
    ).map_dataset()
    batch = dataset[[9, 8, 7]]
    assert batch["id"].tolist() == [9, 8, 7, 9]
    assert batch["valid"].tolist() == [True, True, True, False]
    assert [int(item["id"]) for item in dataset.__getitems__([9, 8, 7])] == [9, 8, 7]
    for rows in ([1] * 5, []):
        with pytest.raises(ValueError, match="pads a batch to batch_size=4 rows, and"):
            dataset[rows]


def test_errors_name_what_the_loader_names(tmp_path: Path) -> None:
    dataset = arrowdl.Loader(write_parquet(tmp_path), 4, framework="numpy").map_dataset()
    with pytest.raises(BufferError, match=r"give the Loader nulls=.*rows\.parquet"):
        dataset[[7]]
    with pytest.raises(RuntimeError, match="no such thing") as raised:
        arrowdl.Loader(TABLE, 4, transform_arrow=fail).map_dataset()[[1]]
    assert "in transform_arrow, with a batch of a map dataset" in raised.value.__notes__


def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
    raise RuntimeError("no such thing")


@pytest.mark.parametrize("kind", ["table", "ipc", "parquet"])
@pytest.mark.parametrize("rows", [slice(2, 9), [4, 2, 11], [5]])
def test_writing_changes_nothing_else(kind: str, rows: Any, tmp_path: Path) -> None:
    dataset, _ = make(kind, tmp_path)
    before = dataset[rows]["v"].copy()
    batch = dataset[rows]
    batch["v"][:] = -1
    assert np.array_equal(dataset[rows]["v"], before)
    if kind == "table":
        assert TABLE["v"][2].as_py() == [4.0, 5.0]


@pytest.mark.parametrize("kind", ["table", "ipc", "parquet"])
def test_consecutive_rows_are_shared_if_nobody_writes(kind: str, tmp_path: Path) -> None:
    dataset, _ = make(kind, tmp_path, writable=False)
    dataset[[3]]  # decodes it
    one, two = dataset[[3, 4, 5]]["v"], dataset[4:6]["v"]
    assert np.shares_memory(one, two)
    assert not one.flags.writeable
    assert not np.shares_memory(one, dataset[[4, 3]]["v"])
    if kind == "table":
        values = TABLE["v"].chunk(0).flatten().to_numpy()
        assert np.shares_memory(one, values)


def test_the_codes_of_dictionaries_are_the_loaders(tmp_path: Path) -> None:
    other = pa.table({"k": pa.array(["b", "a"]).dictionary_encode(), "id": [0, 1]})
    more = pa.table({"k": pa.array(["a", "c"]).dictionary_encode(), "id": [2, 3]})
    files = tmp_path / "files"
    files.mkdir()
    for i, part in enumerate((other, more)):
        pq.write_table(part, files / f"{i}.parquet")
    for source in (pa.concat_tables([other, more]), files):
        loader = arrowdl.Loader(source, 4, framework="numpy")
        dataset = loader.map_dataset()
        assert loader.vocabulary("k").to_pylist() == ["b", "a", "c"]
        assert dataset[[3, 2, 1, 0]]["k"].tolist() == [2, 1, 1, 0]
        assert dataset[[2, 3]]["k"].tolist() == [1, 2]


# ---------------------------------------------------------------------------
# What has no random access


@pytest.mark.parametrize(
    "source",
    [
        lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
        lambda: iter(TABLE.to_batches()),
        lambda: TABLE.to_reader,
    ],
)
def test_streams_say_what_to_do(source: Callable[[], Any]) -> None:
    loader = arrowdl.Loader(source(), 4, framework="numpy")
    with pytest.raises(TypeError, match=r"read from its start: .*pyarrow\.table\(source\)"):
        loader.map_dataset()


def test_mixtures_say_what_to_do() -> None:
    mixture = arrowdl.Loader.mix({"a": TABLE, "b": TABLE}, 4, weights={"a": 1, "b": 1}, splits=2)
    with pytest.raises(TypeError, match=r"ConcatDataset, and let a sampler weigh them"):
        mixture.map_dataset()


def test_arguments_are_checked() -> None:
    loader = arrowdl.Loader(TABLE, 4)
    for wrong in (-1, 1.5, True, "1 GB"):
        with pytest.raises(ValueError, match="cache_bytes="):
            loader.map_dataset(cache_bytes=wrong)  # type: ignore[arg-type]
    loader.close()
    with pytest.raises(RuntimeError, match="this Loader was closed"):
        loader.map_dataset()


# ---------------------------------------------------------------------------
# The cache


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


def count_reads(dataset: MapDataset) -> CountingSource:
    return CountingSource(dataset)


def unit_bytes(dataset: MapDataset) -> int:
    return max(
        sum(array.nbytes for array in dataset._source.read([unit]))
        for unit in range(len(dataset._source.units))
    )


def cache_of(dataset: MapDataset) -> UnitCache:
    return dataset._rows._cache  # type: ignore[union-attr]


def test_the_cache_keeps_what_was_used_last(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)  # 6 row groups
    loader = arrowdl.Loader(path, 4, framework="numpy")
    most = unit_bytes(loader.map_dataset())
    dataset = loader.map_dataset(cache_bytes=2 * most)
    source = count_reads(dataset)
    dataset[[0, 15]]
    assert source.read_units == [0, 1]
    dataset[[5]]  # group 1 was used before group 0 then
    dataset[[25]]
    assert source.read_units == [0, 1, 2]
    dataset[[3, 27]]
    assert source.read_units == [0, 1, 2]
    assert dataset[[12, 3]]["id"].tolist() == [12, 3]
    assert source.read_units == [0, 1, 2, 1]
    assert cache_of(dataset).nbytes <= 2 * most


def test_a_gather_of_more_than_the_cache_keeps_no_more(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    loader = arrowdl.Loader(path, 4, framework="numpy")
    most = unit_bytes(loader.map_dataset())
    for limit, kept in ((0, 0), (1, most), (3 * most, 3 * most)):
        dataset = loader.map_dataset(cache_bytes=limit)
        rows = [(i * 23) % ROWS for i in range(ROWS)]
        assert dataset[rows]["id"].tolist() == rows
        assert cache_of(dataset).nbytes <= kept
    dataset.close()
    with pytest.raises(RuntimeError, match="this map dataset was closed"):
        dataset[0]
    dataset.close()
    assert len(dataset) == ROWS
    assert "closed" in repr(dataset)
    assert [len(batch["id"]) for batch in loader][:2] == [4, 4]  # the Loader is open


def test_close_releases_the_row_groups(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    with arrowdl.Loader(path, 4, framework="numpy").map_dataset() as dataset:
        batch = dataset[[1, 30]]
        cache = weakref.ref(cache_of(dataset))
        assert cache().nbytes > 0  # type: ignore[union-attr]
    gc.collect()
    assert cache() is None
    assert batch["id"].tolist() == [1, 30]


def test_threads_read_at_once(tmp_path: Path) -> None:
    """Each group is read once, by several threads, which then all have it."""
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    dataset = arrowdl.Loader(path, 4, framework="numpy").map_dataset()
    dataset[0:0]  # opens the rows
    source = dataset._rows._source = dataset._rows._cache._source = count_reads(dataset)  # type: ignore[union-attr]
    gate = threading.Barrier(8)
    source.before = lambda: None
    wrong: list[Any] = []

    def read(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(ROWS)
        gate.wait(30)
        for start in range(0, ROWS, 7):
            rows = order[start : start + 7]
            found = dataset[rows]["id"].tolist()
            if found != rows.tolist():
                wrong.append((found, rows))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert sorted(source.read_units) == list(range(6))


def test_a_thread_that_fails_leaves_the_work_to_those_that_wait(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    dataset = arrowdl.Loader(path, 4, framework="numpy").map_dataset()
    dataset[0:0]
    source = dataset._rows._cache._source = count_reads(dataset)  # type: ignore[union-attr]
    started, go_on = threading.Event(), threading.Event()

    def fail_once() -> None:
        if len(source.read_units) == 1:
            started.set()
            go_on.wait(30)
            raise OSError("a disk that comes back")

    source.before = fail_once
    outcomes: dict[str, Any] = {}

    def read(name: str) -> None:
        try:
            outcomes[name] = dataset[[4, 2]]["id"].tolist()
        except OSError as error:
            outcomes[name] = str(error)

    first = threading.Thread(target=read, args=("first",))
    first.start()
    assert started.wait(30)
    second = threading.Thread(target=read, args=("second",))
    second.start()
    go_on.set()
    first.join(30)
    second.join(30)
    assert outcomes == {"first": "a disk that comes back", "second": [4, 2]}


# ---------------------------------------------------------------------------
# Files that change


@pytest.mark.parametrize("kind", ["parquet", "ipc", "ipc, read", "ipc files"])
@pytest.mark.parametrize("is_read_before", [False, True])
def test_a_file_that_changed(kind: str, is_read_before: bool, tmp_path: Path) -> None:
    dataset, _ = make(kind, tmp_path, cache_bytes=0)
    if is_read_before:
        dataset[[1, 2]]
    path = next(path for path in sorted(tmp_path.rglob("*.*")) if path.is_file())
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    with pytest.raises(OSError, match="has changed since this Loader was made"):
        dataset[[2, 1]]


@pytest.mark.parametrize("kind", ["parquet files", "ipc files"])
def test_the_first_read_compares_all_files(kind: str, tmp_path: Path) -> None:
    dataset, _ = make(kind, tmp_path)
    last = max(path for path in tmp_path.rglob("*.*") if path.is_file())
    os.utime(last, ns=(0, last.stat().st_mtime_ns + 10**9))
    with pytest.raises(OSError, match=f"{last.name}' has changed"):
        dataset[[0]]


def test_only_the_files_of_the_rows_are_compared(tmp_path: Path) -> None:
    dataset, ids = make("ipc files", tmp_path)
    dataset[[0]]
    last = max((tmp_path / "arrow").iterdir())
    os.utime(last, ns=(0, last.stat().st_mtime_ns + 10**9))
    assert dataset[[3, 1]]["id"].tolist() == [ids[3], ids[1]]
    with pytest.raises(OSError, match=f"{last.name}' has changed"):
        dataset[[1, 59]]


# ---------------------------------------------------------------------------
# Pickles


@pytest.mark.parametrize(
    "kind", ["table", "record batches", "ipc", "ipc files", "parquet", "filter"]
)
def test_pickles(kind: str, tmp_path: Path) -> None:
    dataset, ids = make(kind, tmp_path, cache_bytes=10**6)
    dataset[[1]]
    data = pickle.dumps(dataset)
    if kind in ("parquet", "ipc"):
        assert len(data) < 100_000  # no rows
    again = pickle.loads(data)
    assert len(again) == len(dataset)
    assert again[[9, 2]]["id"].tolist() == [ids[9], ids[2]]
    assert again._cache_bytes == 10**6


# ---------------------------------------------------------------------------
# PyTorch's DataLoader


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


def test_samplers_of_torch() -> None:
    import torch
    import torch.utils.data as torch_data

    dataset = arrowdl.Loader(TABLE, 8, nulls=NULLS).map_dataset()
    ids = {}
    for name, batches in make_loaders(dataset).items():
        ids[name] = []
        for batch in batches:
            rows = batch["id"].tolist()
            expected = arrowdl.to_torch(TABLE.take(rows), nulls=NULLS)
            assert list(batch) == list(expected)
            assert batch["tokens"].is_nested  # what the Loader makes, and no collate could stack
            for column in ("id", "v", "flag", "k"):
                assert torch.equal(batch[column], expected[column])
            ids[name] += rows
    assert sorted(ids["subset"]) == list(range(10, 40))
    assert len(ids["weighted"]) == 50
    assert all(i % 2 == 0 for i in ids["weighted"])
    others = [torch_data.DistributedSampler(dataset, 4, rank, seed=2) for rank in (0, 2, 3)]
    assert sorted([*ids["distributed"], *(i for other in others for i in other)]) == list(
        range(ROWS)
    )


def test_a_subset_and_a_split_pass_whole_batches_on() -> None:
    import torch.utils.data as torch_data
    from torch.utils.data import DataLoader

    dataset = arrowdl.Loader(TABLE, 8, nulls=NULLS).map_dataset()
    subset = torch_data.Subset(torch_data.Subset(dataset, range(5, 25)), range(10))
    batch = next(iter(DataLoader(subset, batch_size=4)))
    assert batch["id"].tolist() == [5, 6, 7, 8]
    assert batch["tokens"].is_nested


def test_other_collate_functions_get_items() -> None:
    import torch.utils.data as torch_data
    from torch.utils.data import DataLoader

    dataset = arrowdl.Loader(TABLE, 8, nulls=NULLS).map_dataset()
    for given in (dataset, torch_data.Subset(dataset, range(ROWS))):
        items = next(iter(DataLoader(given, batch_size=3, collate_fn=list)))
        assert [int(item["id"]) for item in items] == [0, 1, 2]
        assert items[2]["tokens"].tolist() == [0, 1]


class Wrapped:
    """Somebody's dataset around a map dataset, which looks at the items."""

    def __init__(self, dataset: MapDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [int(item["id"]) for item in self.dataset.__getitems__(indices)]


def test_datasets_of_datasets() -> None:
    import torch.utils.data as torch_data
    from torch.utils.data import DataLoader

    plain = arrowdl.Loader(TABLE.select(["id", "v"]), 8).map_dataset()
    assert next(iter(DataLoader(Wrapped(plain), batch_size=3))).tolist() == [0, 1, 2]
    joined = torch_data.ConcatDataset([plain, plain])
    batch = next(iter(DataLoader(torch_data.Subset(joined, [59, 60]), batch_size=2)))
    assert batch["id"].tolist() == [59, 0]
    stacked = torch_data.StackDataset(a=plain, b=plain)
    assert next(iter(DataLoader(stacked, batch_size=2)))["b"]["v"].tolist() == [[0, 1], [2, 3]]


def test_whole_batches_by_a_batch_sampler() -> None:
    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

    loader = arrowdl.Loader(TABLE, 8, nulls=NULLS, transform=lambda b: (b["id"], b["tokens"]))
    sampler = BatchSampler(SequentialSampler(range(ROWS)), 32, drop_last=False)
    batches = list(DataLoader(loader.map_dataset(), batch_size=None, sampler=sampler))
    assert [len(ids) for ids, _ in batches] == [32, 28]
    assert batches[1][1].is_nested
    by_default = list(DataLoader(loader.map_dataset(), batch_size=32))
    assert [len(ids) for ids, _ in by_default] == [32, 28]


FORK = """
import os, sys, threading
from pathlib import Path
import arrowdl
from test_map_dataset import ROWS, TABLE, CountingSource, write_parquet

dataset = arrowdl.Loader(
    write_parquet(Path(sys.argv[1]), TABLE.select(["id"]), 10), 4, framework="numpy"
).map_dataset()
dataset[[0, 55]]
cache = dataset._rows._cache
source = cache._source = CountingSource(dataset)
reading, go_on = threading.Event(), threading.Event()

def hold():
    reading.set()
    go_on.wait(60)

source.before = hold
threading.Thread(target=lambda: dataset[[25]]).start()
reading.wait(60)  # one thread reads group 2, and another one has the lock
locked = threading.Event()

def lock():
    with cache._lock:
        locked.set()
        go_on.wait(60)

threading.Thread(target=lock).start()
locked.wait(60)
child = os.fork()
if child == 0:
    source.before = lambda: None
    source.read_units.clear()
    source._lock = threading.Lock()
    found = dataset[[25, 3, 55]]["id"].tolist(), source.read_units
    os._exit(0 if found == ([25, 3, 55], [2]) else 1)
go_on.set()
assert os.waitpid(child, 0)[1] == 0
assert dataset[[25, 26]]["id"].tolist() == [25, 26]
print("done")
"""


def run_script(text: str, folder: Path, *arguments: Any, seconds: float = 120) -> None:
    script = folder / "script.py"
    script.write_text(text)
    paths = [str(Path(__file__).parent), *(path for path in sys.path if path)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", script, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_needs_no_thread_of_its_parent(tmp_path: Path) -> None:
    run_script(FORK, tmp_path, tmp_path, seconds=60)


WORKERS = """
import os, sys, threading
import numpy as np, pyarrow as pa, torch
import arrowdl
from pathlib import Path
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler
from test_map_dataset import ROWS, TABLE, make_chunks, make_loaders, write_ipc, write_parquet

def twice(batch):
    batch["id"] *= 2
    return batch

def main(method, folder):
    folder = Path(folder)
    sources = [write_parquet(folder)]
    if method == "fork":
        sources += [make_chunks(TABLE), write_ipc(folder, TABLE)]
    for i, source in enumerate(sources):
        loader = arrowdl.Loader(source, 8, nulls="fill", columns=["id", "v", "x"], transform=twice)
        dataset = loader.map_dataset()
        dataset[[0, 40]]  # the parent has read, and has a cache
        stop = threading.Event()
        def read():
            while not stop.is_set():
                dataset[np.random.permutation(ROWS)[:20]]
        busy = [threading.Thread(target=read) for _ in range(2)]
        for thread in busy:
            thread.start()  # at the fork they may hold any lock
        try:
            arguments = {"num_workers": 2, "multiprocessing_context": method}
            name, batches = list(make_loaders(dataset, **arguments).items())[i]
            count = 0
            for batch in batches:
                rows = batch["id"] // 2
                assert torch.equal(batch["v"][:, 0], rows.double() * 2), name
                count += len(rows)
            assert count == {"subset": 30, "weighted": 50, "distributed": 15}[name], count
        finally:
            stop.set()
            for thread in busy:
                thread.join()
    if method == "spawn":
        return
    pinned = arrowdl.Loader(TABLE.select(["id"]), 8, device="cpu").map_dataset()
    try:
        next(iter(DataLoader(pinned, batch_size=4, num_workers=1, multiprocessing_context=method)))
    except RuntimeError as error:
        assert "device= of the Loader is for the training's process" in str(error), error
    else:
        raise AssertionError("device= in a worker")

if __name__ == "__main__":
    main(*sys.argv[1:])
    print("done")
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_of_a_data_loader(method: str, tmp_path: Path) -> None:
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    run_script(WORKERS, tmp_path, method, tmp_path)
