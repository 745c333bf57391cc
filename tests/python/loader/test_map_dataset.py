"""Loader.map_dataset(): rows by their numbers, compared with what pyarrow takes."""

from __future__ import annotations

import collections
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import MapDataset
from helpers.map_datasets import (
    NUMBERS,
    ROWS,
    SOURCES,
    TABLE,
    expect,
    make,
    make_chunks,
    same,
    write_ipc,
    write_parquet,
)
from helpers.options import group


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
        ([1.0], TypeError, "a row number of type float: give an int, a slice, or a list"),
        (1.5, TypeError, "row numbers of type float"),
        (np.array([1.0]), TypeError, "row numbers of type"),
        (np.ones(60, bool), TypeError, "flatnonzero"),
        ([True, False], TypeError, "flatnonzero"),
        (True, TypeError, "a bool is not a row number"),
        (pa.array([True] * 60), TypeError, "flatnonzero"),
        (np.array([[1]]), TypeError, "one-dimensional"),
        (pa.array([1, None]), ValueError, "nulls"),
        (pa.array([1], pa.timestamp("s")), TypeError, "row numbers of type"),
        ("id", TypeError, "row numbers of type str"),
        (b"id", TypeError, "row numbers of type bytes"),
        ({"id": 1}, TypeError, "row numbers of type dict"),
        ([[[1, 2]]], TypeError, "a row number of type list: give an int, a slice, or a list"),
        (None, TypeError, "row numbers of type NoneType"),
        ({1, 2}, TypeError, "row numbers of type set"),
        (iter([1, 2]), TypeError, "row numbers of type list_iterator"),
    ],
    ids=lambda value: type(value).__name__,  # reprs of arrays have addresses
)
def test_what_is_no_row_number(rows: Any, error: type[Exception], text: str) -> None:
    dataset = arrowdl.Loader(TABLE.select(["id"]), 8, framework="numpy").map_dataset()
    with pytest.raises(error, match=text):
        dataset[rows]
    assert dataset[[1]]["id"].tolist() == [1]


def test_items_without_a_length_are_not_row_numbers() -> None:
    """Expressions of query libraries have an item for each number."""

    class Expression:
        number = 0

        def __getitem__(self, key: object) -> Expression:
            self.number += 1
            assert self.number < 1000
            return self

    dataset = arrowdl.Loader(TABLE.select(["id"]), 8, framework="numpy").map_dataset()
    for read in (dataset.__getitem__, dataset.__getitems__):
        with pytest.raises(TypeError, match=r"row numbers of type .*Expression"):
            read(Expression())


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
            TABLE.select(["id"]), 8, framework="numpy", transform=transform, **group(**more)
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
            loader = arrowdl.Loader(source, **group(**arguments))
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
    mixture = arrowdl.Loader.mix(
        {"a": TABLE, "b": TABLE},
        weights={"a": 1, "b": 1},
        ranks=arrowdl.Ranks(global_batch_size=4, splits=2),
    )
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
