"""Row groups that are read without a scanner have the rows that a scanner returns."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._parquet.fragments import join_fragments
from arrowdl.loader._parquet.read_ahead import read_ahead
from arrowdl.loader._parquet.row_groups import RowGroupFiles
from arrowdl.loader._parquet.scan_limits import (
    LOCAL,
    REMOTE,
    ROW_GROUPS,
    ScanLimits,
    choose_limits,
)

ROWS = 40


def _write(folder: Path, tables: list[pa.Table]) -> list[Path]:
    paths = [folder / f"{i}.parquet" for i in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, row_group_size=ROWS // 2)
    return paths


def _make_table(start: int = 0) -> pa.Table:
    numbers = list(range(start, start + ROWS))
    return pa.table(
        {
            "x": numbers,
            "s": [str(i) for i in numbers],
            "l": [[{"a": i, "b": float(i)}] * (i % 3) for i in numbers],
        }
    )


def _find_readers(loader: arrowdl.Loader) -> list[bool]:
    """Say of each unit whether it is read without a scanner."""
    source: Any = loader._source
    files = source.scanner.row_groups
    return [files is not None and files.can_read(unit) for unit in source._units_of_files.fragments]


def _read_all(loader: arrowdl.Loader) -> pa.Table:
    source: Any = loader._source
    return pa.table(source.read(range(len(source.units)))).combine_chunks()


@pytest.mark.parametrize("columns", [None, ["s", "x"], ["l"]])
def test_rows_are_those_of_a_scan(tmp_path: Path, columns: list[str] | None) -> None:
    paths = _write(tmp_path, [_make_table(i * ROWS) for i in range(5)])
    loader = arrowdl.Loader(paths, 7, columns=columns)
    assert all(_find_readers(loader))
    expected = ds.dataset([str(path) for path in paths]).to_table(columns=columns)
    found = _read_all(loader)
    assert found.equals(expected.combine_chunks())
    assert found.schema.equals(expected.schema)


def test_small_files_are_joined(tmp_path: Path) -> None:
    paths = _write(tmp_path, [_make_table(i * ROWS) for i in range(30)])
    source: Any = arrowdl.Loader(paths, 7)._source
    rows = [len(array) for array in source.read(range(len(source.units))) if len(array)]
    assert rows[0] == ROWS // 2  # a row group comes early
    assert sum(rows) == 30 * ROWS
    assert len(rows) < 10


def test_large_row_groups_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are read whole, also between large ones."""
    table = _make_table()
    path = tmp_path / "0.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        for start, stop in ((0, 2), (2, 20), (20, 25), (25, 26), (26, 40)):
            writer.write_table(table.slice(start, stop - start))
    source: Any = arrowdl.Loader(path, 7)._source
    files: RowGroupFiles = source.scanner.row_groups
    assert all(map(files.can_read, source._units_of_files.fragments))
    for least, most in ((0, 2**30), (0, 1), (2**20, 2**30), (400, 2**30)):
        monkeypatch.setattr("arrowdl.loader._parquet.row_groups._THREADED_BYTES", least)
        monkeypatch.setattr("arrowdl.loader._parquet.row_groups._WHOLE_BYTES", most)
        for rows in (1, 5, 14, 100):
            units = source._units_of_files.fragments
            batches = list(files.read(units, rows, 2**20, lambda paths: None, lambda done: ""))
            assert pa.Table.from_batches(batches).equals(table)
            assert max(batch.num_rows for batch in batches) <= max(rows, 40)


@pytest.mark.parametrize(
    ("cores", "nbytes", "largest_share", "scans"),
    [
        (2, 2**22, 0.99, 1),  # a core is the training's
        (4, 2**22, 0.99, 3),
        (16, 2**22, 0.1, 2),  # ten columns keep ten cores busy
        (16, 2**22, 0.01, 1),
        (2, 2**26, 0.99, 2),
        (2, 2**26, 0.01, 1),
        (1, 2**22, 1.0, 1),
    ],
)
def test_columns_keep_the_cores_busy_before_more_scans_do(
    monkeypatch: pytest.MonkeyPatch, cores: int, nbytes: float, largest_share: float, scans: int
) -> None:
    monkeypatch.setattr("pyarrow.cpu_count", lambda: cores)
    limits = choose_limits(
        [nbytes] * 8, is_local=True, is_fetched=False, largest_share=largest_share
    )
    assert limits.scans == scans


@pytest.mark.parametrize(("cores", "scans"), [(1, 1), (2, 2), (16, 2)])
@pytest.mark.parametrize("units", [100, 1000])
def test_two_threads_open_small_files(
    monkeypatch: pytest.MonkeyPatch, cores: int, scans: int, units: int
) -> None:
    """More of them would wait for each other, for the interpreter lock."""
    monkeypatch.setattr("pyarrow.cpu_count", lambda: cores)
    limits = choose_limits([2.0**18] * units, is_local=True, is_fetched=False, largest_share=1.0)
    assert limits.scans == scans


def test_scans_of_small_files_end_with_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan opens its files, and decodes their footers: none has less of a file than it may."""
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 2)
    sizes = [2.0**18] * 200
    limits = choose_limits(sizes, is_local=True, is_fetched=False, largest_share=1.0)
    alone = limits.cut(range(200), sizes, [f"{i}.parquet" for i in range(200)])
    assert [len(scan) for scan in alone] == [1, *[4] * 49, 3]
    of_three = limits.cut(range(200), sizes, [f"{i // 3}.parquet" for i in range(200)])
    assert [len(scan) for scan in of_three[:5]] == [1, 4, 4, 6, 6]
    assert [len(scan) for scan in limits.cut(range(200), sizes, ["a"] * 200)] == [1, 4, 20, 100, 75]
    shared = limits.divide(2).cut(range(200), sizes, [f"{i}.parquet" for i in range(200)])
    assert [len(scan) for scan in shared] == [1, 4, 20, 100, 75]  # lanes read side by side anyway


@pytest.mark.parametrize("limits", [LOCAL, ROW_GROUPS, LOCAL.divide(4), ROW_GROUPS.divide(4)])
def test_the_first_scan_is_one_unit_and_the_next_ones_grow(limits: ScanLimits) -> None:
    """What is done for each file before a scan begins delays its first rows."""
    files = [f"{i}.parquet" for i in range(400)]
    scans = limits.cut(range(400), [1000.0] * 400, files)
    assert [len(scan) for scan in scans] == [1, 4, 20, 100, 275]
    assert list(chain.from_iterable(scans)) == list(range(400))
    assert len(limits.cut(range(400), [0.0] * 400, files)) == 1  # unknown
    large = limits.cut(range(9), [float(limits.nbytes)] * 9, files[:9])
    assert large == [[i] for i in range(9)]


def test_a_remote_scan_is_of_one_file_whatever_was_scanned_before() -> None:
    files = ["a"] * 3 + ["b"] * 2
    assert REMOTE.cut(range(5), [1000.0] * 5, files) == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize(("limits", "begun"), [(LOCAL, [0, 1]), (LOCAL.divide(2), [0])])
def test_who_opens_scans_waits_for_no_row(limits: ScanLimits, begun: list[int]) -> None:
    """Not even if there are none: the schema is that of the empty array."""
    opened: list[int] = []
    empty = arrowdl.from_arrow(pa.record_batch({"x": pa.array([], pa.int64())}))

    def open_scan(units: Any, begin: int) -> Any:
        opened.append(begin)
        return iter(())

    arrays = read_ahead([[0], [1], [2]], len, open_scan, lambda: empty, limits)
    assert next(arrays) is empty
    assert opened == begun
    assert list(arrays) == []
    assert opened == [0, 1, 2]


@pytest.mark.parametrize("options", [{}, {"filter": ds.field("x") >= 0}])
def test_the_first_batch_waits_for_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    paths = _write(tmp_path, [pa.table({"x": range(ROWS)})] * 30)
    loader = arrowdl.Loader(paths, ROWS, **options)
    asked: list[int] = []

    def count(fragments: Any) -> Any:
        asked.append(len(fragments))
        return join_fragments(fragments)

    monkeypatch.setattr("arrowdl.loader._parquet.unit_reader.join_fragments", count)
    assert len(list(loader)) == 30
    assert sorted(asked) == [1, 4, 20, 35]  # threads open them


def test_files_with_other_columns_are_joined_as_they_are_read(tmp_path: Path) -> None:
    table = _make_table()
    strict = pa.schema([field.with_nullable(False) for field in table.schema])
    paths = _write(tmp_path, [table, table.select(["l", "s", "x"]), table.cast(strict), table])
    loader = arrowdl.Loader(paths, 7)
    assert all(_find_readers(loader))
    assert _read_all(loader).equals(pa.concat_tables([table] * 4).combine_chunks())


def test_a_scanner_reads_what_differs_from_the_file(tmp_path: Path) -> None:
    table = pa.table({"x": range(ROWS), "y": range(ROWS)})
    paths = _write(tmp_path, [table, table.select(["x"])])
    assert _find_readers(arrowdl.Loader(paths, 7)) == [True, True, False, False]
    assert all(_find_readers(arrowdl.Loader(paths, 7, columns=["x"])))
    names = [str(path) for path in paths]
    cast = ds.dataset(names, schema=pa.schema({"x": pa.float64()}))
    assert not any(_find_readers(arrowdl.Loader(cast, 7)))
    assert not any(_find_readers(arrowdl.Loader(paths, 7, filter=ds.field("x") > 3)))
    buffered = ds.ParquetFileFormat(dictionary_columns=["s"])
    assert not any(_find_readers(arrowdl.Loader(ds.dataset(names, format=buffered), 7)))


def test_a_scanner_reads_dictionaries_within_structs(tmp_path: Path) -> None:
    """pyarrow.parquet cannot read several row groups of it: "not implemented for chunked"."""
    values = pa.array(["a", "b"] * ROWS).dictionary_encode()
    table = pa.table({"s": pa.StructArray.from_arrays([values], names=["d"]), "d": values})
    paths = _write(tmp_path, [table] * 3)
    loader = arrowdl.Loader(paths, 7)
    assert not any(_find_readers(loader))
    assert _read_all(loader).num_rows == 6 * ROWS
    alone = arrowdl.Loader(paths, 7, columns=["d"])
    assert all(_find_readers(alone))
    assert _read_all(alone).column("d").to_pylist() == ["a", "b"] * (3 * ROWS)


def test_directories_give_columns(tmp_path: Path) -> None:
    table = pa.table({"x": range(ROWS)})
    for key in ("a", "b"):
        (tmp_path / f"key={key}").mkdir()
        pq.write_table(table, tmp_path / f"key={key}" / "0.parquet")
    loader = arrowdl.Loader(tmp_path, 7)
    assert not any(_find_readers(loader))
    assert _read_all(loader).column("key").to_pylist()[::ROWS] == ["a", "b"]
    assert all(_find_readers(arrowdl.Loader(tmp_path, 7, columns=["x"])))


def test_an_error_comes_after_the_rows_before_it(tmp_path: Path) -> None:
    tables = [pa.table({"x": range(i * ROWS, (i + 1) * ROWS)}) for i in range(4)]
    paths = _write(tmp_path, tables)
    source: Any = arrowdl.Loader(paths, 7)._source
    files: RowGroupFiles = source.scanner.row_groups
    units = source._units_of_files.fragments
    assert all(map(files.can_read, units))
    seen: list[int] = []

    def check(paths: Any) -> None:
        if paths == [units[-1].path]:
            raise ValueError("the last file is bad")

    def read() -> None:
        for batch in files.read(units, 1000, 2**20, check, lambda done: ""):
            seen.extend(batch.column("x").to_pylist())

    with pytest.raises(ValueError, match="the last file is bad") as caught:
        read()
    assert seen == list(range(3 * ROWS))
    assert units[-1].path in "".join(caught.value.__notes__)
