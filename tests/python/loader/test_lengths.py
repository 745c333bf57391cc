"""`LengthsSource`: the lengths of a source's rows, in the order in which the source is read."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._epoch.lengths import LENGTH, LengthsSource, measure_rows
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sequences import Sequences
from arrowdl.loader._epoch.sharding import Span, locate_sequence
from arrowdl.loader._open.source import open_source
from arrowdl.loader._parquet.scans import scan
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.request import Request
from helpers.random_cases import check_cases

LENGTHS = [3, 0, 5, 1, 2, 4]


def make_table(rows: int, seed: int = 0) -> pa.Table:
    draw = random.Random(seed)
    lengths = [draw.choice([0, 1, 2, 5, 30]) for _ in range(rows)]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "tokens": pa.array([list(range(n)) for n in lengths], pa.list_(pa.int32())),
            "n_tokens": pa.array(lengths, pa.int64()),
        }
    )


def open_indexed(source: Any, columns: list[str] | None = None, filter: Any = None) -> Any:
    found = open_source(source, Request(columns, filter))
    assert isinstance(found, IndexedSource)
    return found


def list_lengths(source: IndexedSource) -> list[int]:
    return [n for array in source.read(range(len(source.units))) for n in to_list(array)]


def to_list(array: Any) -> list[int]:
    return pa.array(array.field(LENGTH)).to_pylist()


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int64()),
        pa.large_list(pa.float32()),
        pa.list_view(pa.int8()),
        pa.list_(pa.list_(pa.int8())),
        pa.map_(pa.int8(), pa.int8()),
        pa.string(),
        pa.large_binary(),
        pa.string_view(),
        pa.binary_view(),
        pa.uint16(),
    ],
    ids=str,
)
def test_types_and_nulls(kind: pa.DataType) -> None:
    def make(n: int | None) -> Any:
        if n is None or pa.types.is_integer(kind):
            return n
        if kind in (pa.string(), pa.string_view()):
            return "\u00e4" * (n // 2) + "x" * (n % 2)  # its bytes count
        if kind in (pa.large_binary(), pa.binary_view()):
            return b"x" * n
        if pa.types.is_map(kind):
            return [(i, i) for i in range(n)]
        return [[]] * n if pa.types.is_list(getattr(kind, "value_type", pa.null())) else [0] * n

    values = pa.array([make(n) for n in [7, 3, None, 0, 2, None]], kind)
    column = arrowdl.from_arrow(pa.record_batch([values], names=["x"])).field("x")
    assert measure_rows(column, "x").equals(pa.array([7, 3, 0, 0, 2, 0], pa.int32()))
    assert measure_rows(column[1:5], "x").equals(pa.array([3, 0, 0, 2], pa.int32()))
    assert measure_rows(column[:0], "x").equals(pa.array([], pa.int32()))


def test_a_null_list_may_have_values_under_it() -> None:
    offsets, items = pa.array([0, 2, 5, 6], pa.int32()), pa.array(range(6), pa.int8())
    mask = pa.array([False, True, False])
    column = arrowdl.from_arrow(pa.ListArray.from_arrays(offsets, items, mask=mask))
    assert measure_rows(column, "x").to_pylist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        (pa.array([1.5]), TypeError, '"x" is double, which has no lengths'),
        (pa.array([1, -3]), ValueError, '"x" has -3 for a length'),
        (pa.array([1, 2**31]), ValueError, '"x" has a length of more than 2147483647'),
        (pa.array([2**64 - 1], pa.uint64()), ValueError, "more than 2147483647"),
    ],
)
def test_what_is_no_length(values: pa.Array, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        measure_rows(arrowdl.from_arrow(values), "x")


def test_a_column_that_is_not_read() -> None:
    source = open_indexed(make_table(3), ["id"])
    with pytest.raises(ValueError, match=r"\"tokens\" is not one of the columns .* \['id'\]"):
        LengthsSource(source, "tokens")


@pytest.mark.parametrize("column", ["tokens", "n_tokens"])
@pytest.mark.parametrize("kind", ["table", "parquet", "ipc", "compressed", "filter"])
def test_sources(kind: str, column: str, tmp_path: Path) -> None:
    table, filter = make_table(50), None
    source: Any = table if kind == "table" else tmp_path
    for i, part in enumerate((table[:20], table[20:])):
        if kind in ("parquet", "filter"):
            pq.write_table(part, tmp_path / f"{i}.parquet", row_group_size=7)
        elif kind in ("ipc", "compressed"):
            codec = "uncompressed" if kind == "ipc" else "lz4"
            feather.write_feather(part, tmp_path / f"{i}.arrow", compression=codec, chunksize=6)
    if kind == "filter":
        filter = ds.field("id") > 11
    expected = table["n_tokens"].to_pylist()
    found = LengthsSource(open_indexed(source, None, filter), column)
    assert list_lengths(found) == (expected[12:] if kind == "filter" else expected)
    order = list(reversed(range(len(found.units))))
    starts = [sum(found.units[:unit]) for unit in range(len(found.units))]
    whole = list_lengths(found)
    assert [n for array in found.read(order) for n in to_list(array)] == [
        n for unit in order for n in whole[starts[unit] : starts[unit] + found.units[unit]]
    ]
    assert list_lengths(pickle.loads(pickle.dumps(found))) == whole


def test_one_column_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(make_table(30), tmp_path / "0.parquet", row_group_size=7)
    source = open_indexed(tmp_path)
    scans = []

    def note(scanner: Any, *arguments: Any) -> Any:
        scans.append(scanner.projected_schema.names)
        return scan(scanner, *arguments)

    monkeypatch.setattr("arrowdl.loader._parquet.unit_scanner.open_row_groups", lambda *_: None)
    monkeypatch.setattr("arrowdl.loader._parquet.scans.scan", note)
    found = LengthsSource(source, "n_tokens")
    assert scans == [], "lazily"
    lengths = list_lengths(found)
    assert scans == [["n_tokens"]] * 2, "a row group, then the others"
    assert list_lengths(found) == lengths
    assert len(scans) == 2
    assert source.column_names == ["id", "tokens", "n_tokens"], "the source itself is as before"


def test_fields_of_structs(tmp_path: Path) -> None:
    table = make_table(9)
    inner = pa.StructArray.from_arrays([table["tokens"].combine_chunks()], names=["ids"])
    nested = pa.table({"text": inner, "x": table["id"]})
    pq.write_table(nested, tmp_path / "0.parquet", row_group_size=4)
    for source in (nested, tmp_path):
        found = LengthsSource(open_indexed(source, ["x", "text.ids"]), "text.ids")
        assert list_lengths(found) == table["n_tokens"].to_pylist()


def test_a_file_that_changed(tmp_path: Path) -> None:
    pq.write_table(make_table(9), tmp_path / "0.parquet")
    found = LengthsSource(open_indexed(tmp_path), "tokens")
    pq.write_table(make_table(12), tmp_path / "0.parquet")
    with pytest.raises(OSError, match="has changed"):
        list_lengths(found)


def check_order(draw: random.Random, folder: Path) -> None:
    """The sequences of the lengths are those of the rows."""
    table = make_table(draw.randrange(1, 120), draw.randrange(99))
    if draw.random() < 0.5:
        batches = table.to_batches(max_chunksize=draw.choice([3, 20]))
        source = open_indexed(pa.Table.from_batches(batches))
    else:
        pq.write_table(table, folder / "0.parquet", row_group_size=draw.choice([3, 10, 200]))
        filter = ds.field("id") > 20 if draw.random() < 0.3 else None
        source = open_indexed(str(folder), None, filter)
    order = Order(draw.randrange(9), draw.choice([None, 5, 40, 1000]))
    if order.buffer_size is not None:
        source = source.cut_for_shuffle(order.buffer_size)
    splits, epoch = draw.choice([1, 2, 3, 7]), draw.randrange(3)
    wanted = [(i, locate_sequence(i, splits, source.num_rows)) for i in range(splits)]
    starts = [draw.randrange(len(span) + 1) for _, span in wanted]
    spans = [(i, Span(start, len(span))) for (i, span), start in zip(wanted, starts, strict=True)]
    read = {}
    for name, found in (("rows", source), ("lengths", LengthsSource(source, "tokens"))):
        sequences = Sequences(found, order, epoch, splits, shares_units=name == "rows")
        opened = sequences.open(spans)
        column = "n_tokens" if name == "rows" else LENGTH
        read[name] = [
            [n for array in stream for n in pa.array(array.field(column)).to_pylist()]
            for stream in opened
        ]
    assert read["rows"] == read["lengths"]


def test_random_lengths_are_in_the_order_of_the_rows(tmp_path: Path) -> None:
    check_cases(lambda draw: check_order(draw, tmp_path), 40)
