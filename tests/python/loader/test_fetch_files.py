"""Files of tables, and Arrow IPC files, over a network: fetched ahead, with the right rows."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import Retries
from arrowdl.loader._sources.request import Request
from arrowdl.loader._storage import fetch_ahead, fetch_file, stragglers, unit_ranges
from arrowdl.loader._storage.access import Access
from arrowdl.loader._storage.disk_cache import DiskCache
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField
from arrowdl.loader._tables.version import DataFile, TableVersion
from helpers.counted_files import CountedFiles

ROWS, GROUP = 4_000, 500


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of a few kilobytes, as many as would be of megabytes, each read once."""
    monkeypatch.setattr(stragglers, "SHARE", 0.0)
    monkeypatch.setattr(unit_ranges, "GAP_BYTES", 100)
    for module in (unit_ranges, fetch_file):
        monkeypatch.setattr(module, "RANGE_BYTES", 4_000)
    monkeypatch.setattr(fetch_ahead, "FETCH_BYTES", 40_000)
    monkeypatch.setattr(fetch_file, "_FILE_BYTES", 24_000)


# ---- tables


def open_table(root: Path, **options: Any) -> tuple[DataFilesSource, CountedFiles]:
    """A file as the table has it, one with deleted rows, one with another name of a column."""
    noise = np.random.default_rng(0).random(ROWS)
    for number, name in enumerate(("id", "id", "number")):
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
        table = pa.table({name: ids, "x": noise, "unused": noise})
        pq.write_table(table, root / f"{number}.parquet", row_group_size=GROUP, compression="none")
    renamed = pa.schema([pa.field("number", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    table = pa.table({"number": np.arange(2 * ROWS, 3 * ROWS)}, schema=renamed)
    pq.write_table(table, root / "2.parquet", row_group_size=GROUP, compression="none")
    files = CountedFiles(root)
    version = TableVersion(
        "Table 't', version 3",
        "table 3",
        [TableField("id", pa.int64(), 1), TableField("x", pa.float64(), 2)],
        [
            DataFile("0.parquet"),
            DataFile("1.parquet", deleted=pa.array([0, 1, ROWS - 1])),
            DataFile("2.parquet"),
        ],
        fs.PyFileSystem(files),
        {"id": (1, {}), "x": (2, {})},
    )
    return DataFilesSource(version, Request(**options)), files


def expect() -> list[int]:
    deleted = {ROWS, ROWS + 1, 2 * ROWS - 1}
    return [i for i in range(3 * ROWS) if i not in deleted]


def read_ids(source: DataFilesSource) -> list[int]:
    return list(pa.table(source.read(range(len(source.units))))["id"].to_pylist())


@pytest.mark.parametrize("columns", [["id"], ["x", "id"], None])
def test_files_of_a_table_are_fetched_ahead(columns: list[str] | None, tmp_path: Path) -> None:
    source, files = open_table(tmp_path, columns=columns)
    threads = set()
    files.before = lambda path, offset, nbytes: threads.add(threading.current_thread().name)
    files.forget()
    assert source.num_rows == len(expect())
    assert read_ids(source) == expect()
    data = [read for read in files.reads if read[1] < (tmp_path / read[0]).stat().st_size - 2**16]
    assert len(set(data)) == len(data), "each range once"
    assert threads == {"arrowdl-fetch"}
    assert source.scanner.fetching is not None
    assert not source.scanner.fetching.held._held, "all was released"


def test_filters_and_counts_of_a_table(tmp_path: Path) -> None:
    keeps = (ds.field("id") > 3_990) & (ds.field("id") < 8_005)
    source, _ = open_table(tmp_path, columns=["id"], filter=keeps)
    assert source.num_rows == len([i for i in expect() if 3_990 < i < 8_005])
    assert read_ids(source) == [i for i in expect() if 3_990 < i < 8_005]


def test_errors_of_a_table_name_the_version_and_the_range(tmp_path: Path) -> None:
    once = Access(retries=Retries(tries=1))
    source, files = open_table(tmp_path, columns=["id"], storage=once)

    def fail(path: str, offset: int, nbytes: int) -> None:
        if path == "1.parquet":
            raise ConnectionResetError("the store went away")

    files.before = fail
    with pytest.raises(OSError, match="the store went away") as caught:
        list(source.read(range(len(source.units))))
    notes = "".join(caught.value.__notes__)
    assert "Table 't', version 3" in notes
    assert "of '1.parquet'" in notes


def test_a_file_of_a_table_that_changes_is_an_error(tmp_path: Path) -> None:
    source, files = open_table(tmp_path, columns=["id"])
    (files.root / "1.parquet").write_bytes((files.root / "0.parquet").read_bytes())
    with pytest.raises(OSError, match=r"'1\.parquet' has changed"):
        read_ids(source)


def test_the_second_epoch_of_a_table_comes_from_the_cache(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    kept = DiskCache(tmp_path / "cache", 10**7)
    source, files = open_table(tmp_path / "store", columns=["id"], storage=Access(cache=kept))
    assert read_ids(source) == expect()
    files.forget()
    assert read_ids(source) == expect()
    assert not files.reads


# ---- Arrow IPC


def write_ipc(path: Path, start: int, batches: int = 40) -> None:
    noise = np.random.default_rng(start).random(100)
    schema = pa.schema({"id": pa.int64(), "x": pa.float64()})
    with pa.ipc.new_file(path, schema) as writer:
        for i in range(batches):
            begin = start + i * 100
            writer.write_batch(
                pa.record_batch([pa.array(range(begin, begin + 100)), noise], schema=schema)
            )


@pytest.mark.parametrize("batches", [0, 1, 2, 5, 100])
def test_ipc_files_are_fetched_ahead(batches: int, tmp_path: Path) -> None:
    for number in range(3):
        write_ipc(tmp_path / f"{number}.arrow", number * batches * 100, batches)
    write_ipc(tmp_path / "3.arrow", 3 * batches * 100, 1)
    files = CountedFiles(tmp_path)
    names = [f"{number}.arrow" for number in range(4)]
    loader = arrowdl.Loader(
        names, 64, framework="numpy", storage=arrowdl.Storage(filesystem=fs.PyFileSystem(files))
    )
    expected = list(range(3 * batches * 100 + 100))
    threads = set()
    files.before = lambda path, offset, nbytes: threads.add(threading.current_thread().name)
    for _ in range(2):
        files.forget()
        batches_read = list(loader)
        assert [i for batch in batches_read for i in batch["id"].tolist()] == expected
        sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
        body = [read for read in files.reads if read[1] + read[2] < sizes[read[0]] - 2**16]
        assert len(set(body)) == len(body), "each range once"
        assert max((nbytes for *_, nbytes in body), default=0) <= 4_000
    if batches == 100:
        assert "arrowdl-fetch" in threads


def test_few_columns_of_ipc_files_are_read_as_they_are(tmp_path: Path) -> None:
    write_ipc(tmp_path / "a.arrow", 0, 100)
    files = CountedFiles(tmp_path)
    filesystem = fs.PyFileSystem(files)
    loader = arrowdl.Loader(
        "a.arrow",
        64,
        framework="numpy",
        storage=arrowdl.Storage(filesystem=filesystem),
        columns=["id"],
    )
    files.forget()
    assert [i for batch in loader for i in batch["id"].tolist()] == list(range(10_000))
    size = (tmp_path / "a.arrow").stat().st_size
    assert sum(nbytes for *_, nbytes in files.reads) < 0.8 * size


def test_memory_of_an_ipc_file_is_bounded(tmp_path: Path) -> None:
    """Bytes that have been asked for are at most a bound before those that are used."""
    write_ipc(tmp_path / "a.arrow", 0, 100)
    files = CountedFiles(tmp_path)
    filesystem = fs.PyFileSystem(files)
    size = (tmp_path / "a.arrow").stat().st_size
    whole = (tmp_path / "a.arrow").read_bytes()
    with fetch_file.open_fetched(filesystem, "a.arrow") as file:
        position = 0
        while position < size:
            data = file.read(min(1_700, size - position))
            assert data == whole[position : position + 1_700]
            asked = max(offset + nbytes for _, offset, nbytes in list(files.reads))
            position += len(data)
            assert asked <= position + 24_000 + 8_000
    assert sum(nbytes for *_, nbytes in files.reads) == size
