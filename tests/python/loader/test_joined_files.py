"""Small Parquet files that are read as one: which are, and that the rows are those of each file."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._parquet.scan_limits import DECODE_ROWS

FILES = 12
ROWS = 40
NUMBERS = range(ROWS)
TABLE = pa.table(
    {
        "id": pa.array(NUMBERS, pa.int32()),
        "x": [None if i % 7 == 0 else i / 3 for i in NUMBERS],
        "s": [None if i % 5 == 0 else "x" * i for i in NUMBERS],
        "v": pa.array([b"y" * (i % 15) for i in NUMBERS], pa.binary()),
        "b": [i % 3 == 0 for i in NUMBERS],
        "d": [decimal.Decimal(i) for i in NUMBERS],
        "t": [dt.datetime(2020, 1, 1, 0, i) for i in NUMBERS],
        "p": [{"a": i, "b": None if i % 2 else str(i)} for i in NUMBERS],
        "n": pa.array([None] * ROWS, pa.float32()),
    }
)


def _write_groups(path: str, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=7)


def _write_pages(path: str, table: pa.Table) -> None:
    pq.write_table(table, path, data_page_size=30, write_batch_size=5, use_dictionary=False)


def _write_newest(path: str, table: pa.Table) -> None:
    options = {"write_page_index": True, "compression": "zstd", "write_page_checksum": True}
    pq.write_table(table, path, version="2.6", data_page_version="2.0", **options)


def _write_encoded(path: str, table: pa.Table) -> None:
    encodings = {"id": "DELTA_BINARY_PACKED", "x": "BYTE_STREAM_SPLIT", "s": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=encodings)


def _write_bare(path: str, table: pa.Table) -> None:
    pq.write_table(table, path, store_schema=False, write_statistics=False, compression="none")


def _write_int96(path: str, table: pa.Table) -> None:
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)


def _write_polars(path: str, table: pa.Table) -> None:
    pl.from_arrow(table).write_parquet(path, row_group_size=15)


def _write_duckdb(path: str, table: pa.Table) -> None:
    duckdb.from_arrow(table).write_parquet(path)


def _write_plain(path: str, table: pa.Table) -> None:
    pq.write_table(table, path)


WRITERS = [
    _write_plain,
    _write_groups,
    _write_pages,
    _write_newest,
    _write_encoded,
    _write_bare,
    _write_int96,
    _write_polars,
    _write_duckdb,
]


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each call has read as one; 0 if it refused."""
    join, counts = arrowdl._core.join_parquet_files, []

    def count(paths: list[str], most: int) -> Any:
        found = join(paths, most)
        counts.append(0 if found is None else len(paths))
        return found

    monkeypatch.setattr("arrowdl._core.join_parquet_files", count)
    return counts


def _write(
    folder: Path, write: Callable[[str, pa.Table], None] = _write_plain, table: pa.Table = TABLE
) -> list[str]:
    """Write files of some rows each; the first column tells them from each other."""
    paths = [str(folder / f"{i:02}.parquet") for i in range(FILES)]
    for i, path in enumerate(paths):
        part = table.slice(i % 5, ROWS - i % 3 * 10)
        numbers = pa.array(range(100 * i, 100 * i + len(part)), pa.int32())
        write(path, part.set_column(0, "id", numbers))
    return paths


def _read(source: Any, **options: Any) -> pa.Table:
    loader: Any = arrowdl.Loader(source, 16, **options)
    units = range(len(loader._source.units))
    return pa.table(loader._source.read(units)).combine_chunks()


def _expect(paths: list[str], schema: pa.Schema) -> pa.Table:
    names = schema.names
    tables = [pq.read_table(path, partitioning=None).select(names) for path in paths]
    return pa.concat_tables([table.cast(schema) for table in tables]).combine_chunks()


@pytest.mark.parametrize("write", WRITERS)
def test_rows_are_those_of_each_file(
    tmp_path: Path, joined: list[int], write: Callable[[str, pa.Table], None]
) -> None:
    paths = _write(tmp_path, write)
    table = _read(paths)
    assert table.equals(_expect(paths, table.schema))
    assert sum(joined) >= FILES - 4, joined  # the first scans are some row groups


@pytest.mark.parametrize(
    ("columns", "joins"), [(["s", "id", "v", "x", "t", "d"], True), (["b"], False)]
)
def test_files_are_read_whole_if_most_of_them_is_asked_for(
    tmp_path: Path, joined: list[int], columns: list[str], joins: bool
) -> None:
    paths = _write(tmp_path)
    table = _read(paths, columns=columns)
    assert table.equals(_expect(paths, table.schema))
    assert bool(sum(joined)) == joins


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[i] * (i % 4) for i in NUMBERS]),
        pa.array([{str(i): i} for i in NUMBERS], pa.map_(pa.string(), pa.int64())),
        pa.array([str(i % 3) for i in NUMBERS]).dictionary_encode(),
    ],
    ids=["list", "map", "dictionary"],
)
def test_columns_whose_rows_pages_do_not_count_are_read_by_file(
    tmp_path: Path, joined: list[int], column: pa.Array
) -> None:
    paths = _write(tmp_path, table=pa.table({"id": NUMBERS, "c": column}))
    rows = [row for batch in arrowdl.Loader(paths, 16, columns=["id"]) for row in batch["id"]]
    assert len(rows) == sum(pq.read_metadata(path).num_rows for path in paths)
    joined.clear()
    table = _read(paths)
    assert table["id"].equals(_expect(paths, table.select(["id"]).schema)["id"])
    assert len(table) == len(rows)
    assert sum(joined) == 0


def test_files_that_differ_are_read_apart(tmp_path: Path, joined: list[int]) -> None:
    paths = _write(tmp_path)
    for path in paths[3:6]:  # of another writer's run
        table = pq.read_table(path).replace_schema_metadata({"run": path})
        pq.write_table(table, path)
    for path in paths[8:10]:
        table = pq.read_table(path)
        pq.write_table(table.select(table.column_names[::-1]), path)
    table = _read(paths, columns=["id", "x", "s", "v"])
    assert table.equals(_expect(paths, table.schema))


def _change_page(path: str) -> None:
    """Let the header of a page say one row more than the footer."""
    data = bytearray(Path(path).read_bytes())
    rows = pq.read_metadata(path).num_rows
    # Thrift: a struct in field 5, an int32 in its field 1, zigzag.
    place = data.index(bytes([0x2C, 0x15, 2 * rows]))
    data[place + 2] += 2
    Path(path).write_bytes(data)


def test_a_page_that_says_more_is_found_in_its_file(tmp_path: Path, joined: list[int]) -> None:
    table = pa.table({"id": NUMBERS, "y": [float(i) for i in NUMBERS]})
    paths = _write(tmp_path, _write_bare, table)
    _change_page(paths[6])
    with pytest.raises(OSError, match=r"06\.parquet"):
        _read(paths)
    assert 0 in joined


def test_files_that_are_read_as_one_have_a_batch_of_rows_at_most(
    tmp_path: Path, joined: list[int]
) -> None:
    count = 50_000  # in few bytes
    for i in range(FILES):
        pq.write_table(pa.table({"x": [i] * count}), tmp_path / f"{i:02}.parquet")
    table = _read(sorted(tmp_path.glob("*.parquet")))
    assert table["x"].to_pylist() == [i for i in range(FILES) for _ in range(count)]
    assert 0 < max(joined) * count <= DECODE_ROWS


def test_a_column_of_another_type_than_its_schema_is_of_its_file(tmp_path: Path) -> None:
    """A reader looks at the type of the first row group alone, which is another file's here."""
    for i in range(3):
        pq.write_table(pa.table({"x": [i] * 5}), tmp_path / f"{i}.parquet")
    data = (tmp_path / "1.parquet").read_bytes()
    is_int64, is_int32 = b"\x15\x04\x19\x35", b"\x15\x02\x19\x35"  # of a ColumnMetaData
    assert data.count(is_int64) == 1
    (tmp_path / "1.parquet").write_bytes(data.replace(is_int64, is_int32))
    with pytest.raises(OSError, match=r"1\.parquet"):
        _read(tmp_path)
