"""Shuffles that permute rows in the memory of the stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from arrowdl.loader._parquet.dataset import DatasetSource

ROWS = 6_000
COLUMNS = 300  # of four bytes: more than one block of a window


def make_table(**more: pa.Array) -> pa.Table:
    random = np.random.default_rng(7)
    columns = {f"x{i}": random.random(ROWS, dtype=np.float32) for i in range(COLUMNS)}
    return pa.table({"row": np.arange(ROWS), **columns, **more})


def cut(table: pa.Table) -> list[pa.RecordBatch]:
    """Batches of new memory, some of them slices of the same."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    (copied,) = pa.ipc.open_stream(sink.getvalue())
    return [copied.slice(0, 1_500), copied.slice(1_500, 2_500), copied.slice(4_000)]


def shuffle(batches: list[pa.RecordBatch], **options: Any) -> pa.Table:
    stream = arrowdl.from_arrow_stream(pa.Table.from_batches(batches))
    shuffled = stream.shuffle(4_500, 3, **options).rebatch(700)
    # Copied: what was permuted in place is permuted once.
    return pa.table(shuffled).combine_chunks()


def make_numbers(random: np.random.Generator) -> dict[str, pa.Array]:
    def make(kind: str) -> np.ndarray[Any, Any]:
        return random.integers(0, 100, ROWS).astype(kind)

    flat = pa.array(random.integers(0, 100, 3 * ROWS, dtype=np.int16))
    codes = pa.array(random.integers(0, 2, ROWS, dtype=np.int8))
    struct = pa.StructArray.from_arrays([pa.array(make("u1")), pa.array(make("f8"))], ["a", "b"])
    return {
        "byte": pa.array(make("i1")),
        "half": pa.array(make("f2")),
        "double": pa.array(make("f8")),
        "decimal": pa.array(make("i4")).cast(pa.decimal128(20, 2)),
        "bytes": pa.array([bytes([i % 256] * 5) for i in range(ROWS)], pa.binary(5)),
        "list": pa.FixedSizeListArray.from_arrays(flat, 3),
        "code": pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"])),
        "struct": struct,
    }


def test_rows_are_those_of_a_shuffle_into_new_memory() -> None:
    table = make_table(**make_numbers(np.random.default_rng(1)))
    batches = cut(table)
    expected = shuffle(batches)
    assert pa.Table.from_batches(batches).equals(table)
    assert shuffle(batches, in_place=True).equals(expected)
    moved = pa.Table.from_batches(batches)
    assert moved.slice(0, 4_500).equals(expected.slice(0, 4_500))
    assert moved.slice(4_500).equals(table.slice(4_500))  # a small window


@pytest.mark.parametrize(
    "make_column",
    [
        lambda: pa.array([None, 1] * (ROWS // 2), pa.int32()),
        lambda: pa.array(["a", "bc"] * (ROWS // 2)),
        lambda: pa.array([True, False] * (ROWS // 2)),
        lambda: pa.FixedSizeListArray.from_arrays(pa.array(np.arange(40.0 * ROWS)), 40),
    ],
    ids=["nulls", "strings", "bits", "long lists"],
)
def test_other_columns_are_copied(make_column: Callable[[], pa.Array]) -> None:
    table = make_table(other=make_column())
    batches = cut(table)
    expected = shuffle(batches)
    assert shuffle(batches, in_place=True).equals(expected)
    assert pa.Table.from_batches(batches).equals(table)


def test_columns_that_share_memory_are_copied() -> None:
    table = make_table()
    batches = [
        pa.record_batch([*batch.columns, batch.column(5)], [*batch.schema.names, "again"])
        for batch in cut(table)
    ]
    expected = shuffle(batches)
    assert shuffle(batches, in_place=True).equals(expected)
    assert pa.Table.from_batches(batches).drop_columns("again").equals(table)


def test_small_windows_are_copied() -> None:
    batches = cut(make_table().select(["row", "x1", "x2"]))
    expected = shuffle(batches)
    assert shuffle(batches, in_place=True).equals(expected)
    assert pa.Table.from_batches(batches)["row"].to_pylist() == list(range(ROWS))


def read_from(path: Path, begin: int) -> dict[str, list[float]]:
    """Read all batches from batch `begin` on."""

    def open_loader() -> arrowdl.Loader:
        return arrowdl.Loader(path, 500, shuffle=arrowdl.Shuffle(4_500), seed=3)

    loader = open_loader()
    batches = iter(loader)
    for _ in range(begin):
        next(batches)
    state = loader.state_dict()
    loader = open_loader()
    loader.load_state_dict(state)
    rest = list(loader)
    return {name: torch.cat([batch[name] for batch in rest]).tolist() for name in ("row", "x7")}


@pytest.mark.parametrize("begin", [0, 5, 10])
def test_a_loader_of_parquet_files_has_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: int
) -> None:
    path = tmp_path / "wide.parquet"
    table = make_table()
    pq.write_table(table, path, row_group_size=1_700)
    read = read_from(path, begin)
    assert read["x7"] == table["x7"].take(pa.array(read["row"], pa.int64())).to_pylist()
    made = DatasetSource.__init__

    def make(self: DatasetSource, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        assert self.is_decoded
        self.is_decoded = False

    monkeypatch.setattr(DatasetSource, "__init__", make)
    assert read_from(path, begin) == read
