"""Nulls that are replaced in the memory of a stream, before a Loader converts its rows."""

from __future__ import annotations

import datetime
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from arrowdl import _core
from arrowdl.loader._parquet import polars_decoder
from helpers.options import group

ROWS = 1_000
NUMBERS = [
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64"),
]
COUNTS = ["date", "moment"]  # numbers to a tensor
OTHERS = {  # a type and a value of each
    "bool": (pa.bool_(), True),
    "date": (pa.date32(), datetime.date(2026, 1, 1)),
    "moment": (pa.timestamp("us"), datetime.datetime(2026, 1, 1)),
    "money": (pa.decimal128(12, 2), Decimal("1.50")),
    "text": (pa.string(), "a"),
    "bytes": (pa.binary(3), b"abc"),
    "pair": (pa.list_(pa.float32(), 2), [1.5, 2.5]),
    "list": (pa.list_(pa.int32()), [3]),
    "code": (pa.dictionary(pa.int8(), pa.string()), "a"),
    "struct": (pa.struct({"x": pa.float32()}), {"x": 1.5}),
}


def make_mask(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(ROWS) < 0.3


def make_numbers(kind: str, seed: int = 1) -> pa.Array:
    numbers = np.random.default_rng(seed).integers(1, 100, ROWS).astype(kind)
    return pa.array(numbers, mask=make_mask(seed + 1))


def make_table() -> pa.Table:
    columns = {kind: make_numbers(kind, i) for i, kind in enumerate(NUMBERS)}
    columns["full"] = pa.array(np.arange(ROWS, dtype="int32"))
    for name, (kind, value) in OTHERS.items():
        columns[name] = pa.array([None if null else value for null in make_mask(3)], kind)
    return pa.table(columns)


def copy_table(table: pa.Table) -> pa.Table:
    """Return the rows in new memory, as batches that begin within bytes of the bitmap."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    (copied,) = pa.ipc.open_stream(sink.getvalue().to_pybytes())
    own = [copied.slice(0, 3), copied.slice(3, 500), copied.slice(503)]
    return pa.Table.from_batches(own)


def choose(zeros: list[str], nans: list[str]) -> _core.ColumnOptions:
    return _core.ColumnOptions({**dict.fromkeys(zeros, "fill"), **dict.fromkeys(nans, "nan")})


def fill(table: pa.Table, zeros: list[str], nans: list[str]) -> pa.Table:
    stream = arrowdl.from_arrow_stream(copy_table(table))
    return pa.table(_core.fill_nulls(stream, choose(zeros, nans)))


def test_numbers_become_zero_and_nan_and_others_stay() -> None:
    table = make_table()
    names = table.column_names
    zeros, nans = fill(table, names, []), fill(table, [], names)
    for name in names:
        column = table[name].combine_chunks()
        assert zeros.schema.field(name) == table.schema.field(name)
        if name in [*NUMBERS, *COUNTS]:
            zero = pa.array([0], "int32" if name == "date" else "int64").cast(column.type)[0]
            expected = pc.if_else(column.is_valid(), column, zero)
            assert zeros[name].combine_chunks() == expected
            assert zeros[name].null_count == 0
        else:
            assert zeros[name].combine_chunks() == column
        if name.startswith("float"):
            nan = pa.scalar(np.array(np.nan, name)[()], column.type)
            filled = nans[name].combine_chunks()
            assert filled.null_count == 0
            expected = pc.if_else(column.is_valid(), column, nan)
            np.testing.assert_array_equal(filled.to_numpy(), expected.to_numpy())
        else:
            assert nans[name].combine_chunks() == column


def test_values_stay_where_they_are() -> None:
    table = copy_table(pa.table({"x": make_numbers("float32")}))
    before = [batch["x"].buffers()[1].address for batch in table.to_batches()]
    filled = list(_core.fill_nulls(arrowdl.from_arrow_stream(table), choose(["x"], [])))
    assert [pa.array(array.field("x")).buffers()[1].address for array in filled] == [
        address + 4 * start for address, start in zip(before, (0, 3, 503), strict=True)
    ]
    assert all(array.field("x").null_count == 0 for array in filled)


def test_a_stream_of_no_such_column_is_as_it_was() -> None:
    table = pa.table({"x": make_numbers("float32"), "text": ["a"] * ROWS})
    for names in ([], ["text"], ["other"]):
        assert (
            pa.table(_core.fill_nulls(arrowdl.from_arrow_stream(table), choose(names, []))) == table
        )
    with pytest.raises(TypeError, match="struct"):
        _core.fill_nulls(arrowdl.from_arrow_stream(table["x"]), choose(["x"], []))


def list_batches(source: Any, **options: Any) -> list[dict[str, Any]]:
    return list(arrowdl.Loader(source, 64, **group(**options)))


def expect_equal(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    elif isinstance(one, tuple):  # values and mask: the value of a null is any
        assert torch.equal(one[1], other[1])
        expect_equal(*(values * mask for values, mask in (one, other)))
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            expect_equal(one[name], other[name])
    else:
        for own, expected in zip(one, other, strict=True):
            expect_equal(own, expected)


def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def name_options(value: Any) -> str:
    """Name a function without its address: workers must agree on ids."""
    if not isinstance(value, dict):
        return ""
    return ",".join(f"{name}={getattr(own, '__name__', own)}" for name, own in value.items())


MATRIX = {"m": ["float32", "second"]}
INTEGERS = {"int8": "fill", "int64": "fill"}


@pytest.mark.parametrize(
    "options",
    [
        {"nulls": "fill"},
        {"nulls": {"float32": "nan", "second": "fill", "int8": "fill", "int64": "mask"}},
        {"nulls": {"float32": "nan", "second": "mask", "int8": "mask", "int64": "mask"}},
        {"nulls": "fill", "dtype": {"int8": "float32"}},
        {"nulls": INTEGERS | {"m": "nan"}, "stack": MATRIX},
        {"nulls": INTEGERS | {"m": "fill", "second": "nan"}, "stack": MATRIX},
        {"nulls": INTEGERS | {"m": "nan", "n": "fill"}, "stack": MATRIX | {"n": ["second"]}},
        {"nulls": "nan", "stack": True, "columns": ["second", "float32"]},
        {"nulls": "fill", "transform_arrow": keep},
        {"nulls": "fill", "on_error": "skip"},
        {"nulls": "fill", "splits": 4},
        {"nulls": "fill", "num_workers": 1},
        {"nulls": "fill", "decoder": "polars"},
        {"nulls": "fill", "filter": pc.field("float32") > 20},
    ],
    ids=name_options,
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_rows_that_are_filled_one_by_one(
    options: dict[str, Any], shuffle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table().select(["float32", "int8", "int64"])
    table = table.append_column("second", make_numbers("float32", 5))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=333)
    monkeypatch.setattr(polars_decoder, "_FEWEST_VALUES", 1)
    batches = list_batches(tmp_path, shuffle=shuffle, **options)
    monkeypatch.setattr(_core, "fill_nulls", lambda stream, options: stream)
    # A worker process, which is not patched, would fill.
    rest = {name: value for name, value in options.items() if name != "num_workers"}
    expect_equal(batches, list_batches(tmp_path, shuffle=shuffle, **rest))


@pytest.mark.parametrize("nulls", ["fill", "nan"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", ["missing", "null type", "all null", "fields of a missing struct"])
def test_columns_of_nulls_alone(
    kind: str, shuffle: bool, nulls: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyarrow gives these one block of zeros for the values and the bits, of several columns."""
    table = make_table().select(["float32", "float64"])
    if kind.startswith("fields"):
        table = pa.table({"s": table.to_struct_array().combine_chunks(), "full": np.ones(ROWS)})
    last = {
        "missing": lambda: table.select(["float32"]),
        "null type": lambda: table.set_column(1, "float64", pa.nulls(ROWS)),
        "all null": lambda: table.set_column(1, "float64", pa.nulls(ROWS, pa.float64())),
    }.get(kind, lambda: table.select(["full"]))()
    pq.write_table(table, tmp_path / "0.parquet")
    pq.write_table(last, tmp_path / "1.parquet")
    columns = ["s.float32", "s.float64"] if kind.startswith("fields") else None
    options: dict[str, Any] = {"nulls": nulls, "shuffle": shuffle, "columns": columns}
    batches = list_batches(tmp_path, **options)
    monkeypatch.setattr(_core, "fill_nulls", lambda stream, options: stream)
    expect_equal(batches, list_batches(tmp_path, **options))


def test_arrays_without_rows() -> None:
    kind = pa.float32()
    none, part = pa.array([], kind), make_numbers("float32").slice(7, 0)
    bare = pa.Array.from_buffers(kind, 0, [None, None])
    table = pa.table({"x": pa.chunked_array([none, part, bare, pa.nulls(0, kind)], kind)})
    batches = [pa.record_batch({"x": chunk}) for chunk in table["x"].chunks]
    stream = _core.chain([arrowdl.from_arrow(batch) for batch in batches])
    assert [len(array) for array in _core.fill_nulls(stream, choose(["x"], []))] == [0, 0, 0, 0]


def test_slices_of_one_array_of_nulls() -> None:
    batch = pa.record_batch({"x": pa.nulls(ROWS, pa.float32()), "y": pa.nulls(ROWS, pa.int8())})
    table = pa.Table.from_batches([batch.slice(start, 100) for start in range(0, ROWS, 100)])
    filled = pa.table(_core.fill_nulls(arrowdl.from_arrow_stream(table), choose(["y"], ["x"])))
    assert np.isnan(filled["x"]).all()
    assert not filled["y"].to_numpy().any()
    assert table == pa.Table.from_batches([batch])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"nulls": "fill"}, (["a", "b"], [])),
        ({"nulls": {"a": "nan"}}, ([], ["a"])),
        ({"nulls": {"m": "nan"}, "stack": {"m": ["a", "b"]}}, ([], ["a", "b"])),
        ({"nulls": {"m": "nan", "b": "fill"}, "stack": {"m": ["a", "b"]}}, (["b"], ["a"])),
        ({"nulls": {"m": "nan", "n": "fill"}, "stack": {"m": ["a", "b"], "n": ["b"]}}, ([], ["a"])),
        ({"nulls": "mask"}, ([], [])),
        ({"nulls": "fill", "dtype": "float64"}, ([], [])),
        ({"nulls": "fill", "transform_arrow": keep}, ([], [])),
        ({"nulls": "fill", "on_error": "skip"}, ([], [])),
    ],
    ids=name_options,
)
def test_columns_that_only_the_conversion_reads_are_filled(
    options: dict[str, Any], expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"a": [1.5, None], "b": [2.5, None]}), tmp_path / "a.parquet")
    calls = []
    fill_nulls = _core.fill_nulls

    def note(stream: Any, options: _core.ColumnOptions) -> Any:
        rows = pa.table(fill_nulls(stream, options))
        (last,) = rows.slice(1).to_pylist()
        zeros = [name for name, value in last.items() if value == 0]
        calls.append((zeros, [name for name, value in last.items() if value != value]))
        return arrowdl.from_arrow_stream(rows)

    monkeypatch.setattr(_core, "fill_nulls", note)
    with suppress(BufferError):  # nulls that stay, and raise
        list_batches(tmp_path, **options)
    assert calls == ([expected] if any(expected) else [])


def test_errors_are_those_of_the_conversion(tmp_path: Path) -> None:
    table = make_table().select(["int8", "float32"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(BufferError, match='nulls="nan" needs a floating point type'):
        list_batches(tmp_path, nulls="nan")
    with pytest.raises(BufferError, match="has nulls"):
        list_batches(tmp_path, nulls={"float32": "fill"})


def test_transform_arrow_gets_the_nulls(tmp_path: Path) -> None:
    table = make_table().select(["float32"])
    pq.write_table(table, tmp_path / "a.parquet")
    counts = []

    def count(batch: pa.RecordBatch) -> pa.RecordBatch:
        counts.append(batch["float32"].null_count)
        return batch

    list_batches(tmp_path, nulls="fill", transform_arrow=count)
    assert sum(counts) == table["float32"].null_count


@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_of_the_user_are_not_written_to(shuffle: bool, tmp_path: Path) -> None:
    table = copy_table(make_table().select(["float32", "int8"]))
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)

    def read_all() -> list[bytes]:  # the values under nulls, too
        chunks = [chunk for column in table.columns for chunk in column.chunks]
        return [chunk.buffers()[1].to_pybytes() for chunk in chunks] + [path.read_bytes()]

    before = read_all()
    list_batches(table, nulls="fill", shuffle=shuffle)
    for memory_map in (False, True):
        list_batches(path, nulls="fill", shuffle=shuffle, memory_map=memory_map)
    assert read_all() == before
