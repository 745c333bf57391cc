"""Footers of local Parquet files, which the core reads when a Loader is made."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl import _core
from arrowdl.loader._files.find_local import list_ends
from arrowdl.loader._parquet.planned import PlannedGroups

TABLE = pa.table(
    {
        "id": pa.array(range(100)),
        "x": pa.array([None if i % 7 == 0 else i / 3 for i in range(100)]),
        "s": pa.array([f"text {i % 9}" for i in range(100)]),
        "l": pa.array([[i] * (i % 4) for i in range(100)]),
        "p": pa.array([{"a": i, "b": str(i)} for i in range(100)]),
    }
)
SCHEMA = pa.schema({"id": pa.int64(), "x": pa.float64(), "more": pa.int64()})
IN_OPEN = 0x20  # of inotify


def write_small_groups(path: str, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=7)


def write_newest(path: str, table: pa.Table) -> None:
    pq.write_table(
        table,
        path,
        version="2.6",
        data_page_version="2.0",
        write_page_index=True,
        compression="zstd",
    )


def write_bare(path: str, table: pa.Table) -> None:
    pq.write_table(table, path, store_schema=False, write_statistics=False, use_dictionary=False)


def write_polars(path: str, table: pa.Table) -> None:
    pl.from_arrow(table).write_parquet(path, row_group_size=30)


def write_duckdb(path: str, table: pa.Table) -> None:
    duckdb.from_arrow(table).write_parquet(path)


def write_pandas(path: str, table: pa.Table) -> None:
    pd.DataFrame({"id": range(len(table))}).to_parquet(path)


WRITERS = [
    pq.write_table,
    write_small_groups,
    write_newest,
    write_bare,
    write_polars,
    write_duckdb,
    write_pandas,
]


def write(folder: Path, files: int = 4, **options: Any) -> list[Path]:
    """Write files of 10 rows, with the ids from 0."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{i:04d}.parquet" for i in range(files)]
    for i, path in enumerate(paths):
        table = pa.table({"id": range(10 * i, 10 * i + 10), "x": [float(i)] * 10})
        pq.write_table(table, path, **options)
    return paths


def damage(content: bytes) -> bytes:
    """Return a file whose footer begins with bytes that Thrift refuses."""
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content[:begin] + b"\xff" * 20 + content[begin + 20 :]


def read(source: Any, **options: Any) -> list[int]:
    loader = arrowdl.Loader(source, 10, columns=["id"], **options)
    return [number for batch in loader for number in batch["id"].tolist()]


@pytest.mark.parametrize("writer", WRITERS)
def test_the_core_reads_what_pyarrow_reads(
    tmp_path: Path, writer: Callable[[Any, str], None]
) -> None:
    path = str(tmp_path / "a.parquet")
    if writer is pq.write_table:
        pq.write_table(TABLE, path)
    else:
        writer(path, TABLE)
    footer = pq.read_metadata(path)
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    status = os.stat(path)
    *columns, schemas = _core.read_parquet_footers([path])
    assert [list(array("q", column)) for column in columns] == [
        [status.st_size, status.st_mtime_ns, status.st_ino],
        [len(groups)],
        [group.num_rows for group in groups],
        [group.total_byte_size for group in groups],
    ]
    assert len(schemas) == 1
    assert schemas[0]


def test_files_with_equal_columns_have_equal_bytes(tmp_path: Path) -> None:
    tables = {
        "a": TABLE,
        "b": TABLE.slice(50),
        "renamed": TABLE.rename_columns(["id", "y", "s", "l", "p"]),
        "typed": TABLE.set_column(0, "id", TABLE["id"].cast("uint64")),
        "required": TABLE.cast(TABLE.schema.set(0, pa.field("id", pa.int64(), nullable=False))),
        "large": TABLE.set_column(2, "s", TABLE["s"].cast(pa.large_string())),  # Arrow's alone
        "zone": TABLE.append_column("t", pa.array([0] * 100, pa.timestamp("us"))),
        "zoned": TABLE.append_column("t", pa.array([0] * 100, pa.timestamp("us", "UTC"))),
    }
    for name, table in tables.items():
        pq.write_table(table, tmp_path / name)
    *_, schemas = _core.read_parquet_footers([str(tmp_path / name) for name in tables])
    assert schemas[0] == schemas[1]
    assert len(set(schemas)) == len(tables) - 1


def test_other_files_are_left_to_pyarrow(tmp_path: Path) -> None:
    (path,) = write(tmp_path, 1)
    whole = path.read_bytes()
    end = len(whole)
    others = {
        "empty": b"",
        "short": b"PAR1",
        "text": b"no Parquet file at all",
        "cut": whole[:-1],
        "encrypted": whole[:-4] + b"PARE",
        "too long": whole[:-8] + struct.pack("<I", end) + b"PAR1",
        "damaged": damage(whole),
    }
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    names = [*others, "pipe", "missing", "."]
    stamps, groups, *rest = _core.read_parquet_footers([str(tmp_path / name) for name in names])
    assert list(array("q", stamps)) == [-1, 0, 0] * len(names)
    assert list(array("q", groups)) == [0] * len(names)
    assert rest == [b"", b"", [b""] * len(names)]


@pytest.mark.parametrize("make", [str, ds.dataset])
def test_each_file_is_opened_once_before_the_first_batch(
    tmp_path: Path, make: Callable[[str], Any]
) -> None:
    write(tmp_path, 40)
    source = make(str(tmp_path))
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(watch, os.fsencode(tmp_path), IN_OPEN) > 0
    loader = arrowdl.Loader(source, 10, prefetch=0)
    opened = Counter(list_opened(watch))
    os.close(watch)
    # pyarrow looks at the first one, and at the largest.
    assert sum(opened.values()) <= 40 + 3
    assert min(opened[f"{i:04d}.parquet"] for i in range(40)) == 1
    assert [batch["id"][0].item() for batch in loader] == list(range(0, 400, 10))


def write_uneven(folder: Path) -> None:
    """Write files of several row groups, without any, and with another column."""
    paths = write(folder, 6)
    for i, size in ((1, 3), (4, 4)):
        pq.write_table(pq.read_table(paths[i]), paths[i], row_group_size=size)
    for i in (2, 5):
        with pq.ParquetWriter(paths[i], pa.schema({"id": pa.int64(), "x": pa.float64()})):
            pass
    pq.write_table(pa.table({"id": range(30, 40), "more": range(10)}), paths[3])


@pytest.mark.parametrize("shuffle", [False, True, arrowdl.Shuffle(buffer_size=7)])
def test_rows_and_states_are_those_of_fragments_that_pyarrow_has_listed(
    tmp_path: Path, shuffle: Any
) -> None:
    write_uneven(tmp_path)
    options: dict[str, Any] = {"shuffle": shuffle, "nulls": "fill"}
    ours = arrowdl.Loader(str(tmp_path), 4, **options)
    plan = arrowdl.Storage(plan=ours.plan())
    planned = arrowdl.Loader(str(tmp_path), 4, storage=plan, **options)
    theirs = arrowdl.Loader(ds.dataset(str(tmp_path), schema=SCHEMA), 4, **options)
    batches = list(zip(ours, theirs, planned, strict=True))
    assert len(batches) == 10
    for batch, *others in batches:
        for name in ("id", "x", "more"):
            assert all(batch[name].equal(other[name]) for other in others)
    for other in (theirs, planned):
        assert other.state_dict() == ours.state_dict()
    with pytest.raises(BufferError, match=r"this column.*\.parquet'|\.parquet' lacks this column"):
        list(arrowdl.Loader(str(tmp_path), 4, shuffle=shuffle))


def test_a_footer_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many scans read row groups of the file, in each epoch; until the file is another."""
    table = pa.table({"id": range(200)})
    path = tmp_path / "0.parquet"
    pq.write_table(table, path, row_group_size=2)
    loader = arrowdl.Loader(str(path), 10, shuffle=arrowdl.Shuffle(buffer_size=20))
    decoded: list[str] = []
    open_file = pq.ParquetFile

    def count(source: Any, **options: Any) -> pq.ParquetFile:
        decoded.extend(["footer"] if options.get("metadata") is None else [])
        return open_file(source, **options)

    monkeypatch.setattr(pq, "ParquetFile", count)
    for _ in range(2):
        assert sorted(i for batch in loader for i in batch["id"].tolist()) == list(range(200))
    assert len(decoded) <= 4, "threads that begin at the same time decode it once each"
    decoded.clear()
    os.utime(path, ns=(1, 1))
    with pytest.raises(OSError, match="changed"):
        list(loader)


def test_row_groups_are_joined_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joining them one by one takes a second for a file of a thousand."""
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({"id": range(100)}), path, row_group_size=1)
    loader = arrowdl.Loader(str(path), 10)
    joined: list[int] = []
    subset = PlannedGroups.subset

    def count(units: PlannedGroups, row_group_ids: list[int]) -> PlannedGroups:
        joined.append(len(row_group_ids))
        return subset(units, row_group_ids)

    monkeypatch.setattr(PlannedGroups, "subset", count)
    assert [i for batch in loader for i in batch["id"].tolist()] == list(range(100))
    assert sum(joined) <= 100, joined


def test_opening_files_makes_no_objects_for_each(tmp_path: Path) -> None:
    """Python would look at all objects of the process when there are as many more."""
    (first,) = write(tmp_path, 1)
    for i in range(1, 2_000):
        os.link(first, tmp_path / f"{i:04d}.parquet")
    next(iter(arrowdl.Loader(str(first), 10)))
    gc.collect()
    before = len(gc.get_objects())
    loader = arrowdl.Loader(str(tmp_path), 10)
    assert len(gc.get_objects()) - before < 1_000
    assert len(loader) == 2_000


@pytest.mark.parametrize(
    "names",
    [
        ["a.parquet", "b.parquet", "c.PARQUET", "long name.csv"],
        ["data", "x.data", "part-0000", "part-0001"],
        ["folder.d/name", "folder.d/.parquet", "f/...parquet", ".parquet", "a.parquet"],
        ["a.a suffix of many characters", "b.a suffix of many characters", "any characters"],
    ],
)
def test_the_ends_of_paths_have_all_suffixes(names: list[str]) -> None:
    paths = [os.path.join("/data", name) for name in names]
    found = [os.path.splitext(path)[1] for path in list_ends(paths)]
    assert list(dict.fromkeys(found)) == list(
        dict.fromkeys(os.path.splitext(path)[1] for path in paths)
    )


def list_opened(watch: int) -> list[str]:
    """Read the names of what was opened, from an inotify descriptor."""
    names, data = [], b""
    try:
        while True:
            data += os.read(watch, 2**16)
    except BlockingIOError:
        pass
    while data:
        length = struct.unpack_from("iIII", data)[3]
        names.append(os.fsdecode(data[16 : 16 + length].rstrip(b"\0")))
        data = data[16 + length :]
    return names


MEMORY = """
import resource, sys
import arrowdl, pyarrow.dataset, pyarrow.parquet, torch

def measure():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

next(iter(arrowdl.Loader(sys.argv[2], 100)))
before = measure()
loader = arrowdl.Loader(sys.argv[1], 100, shuffle=sys.argv[3] == "shuffled")
next(iter(loader))
opened = measure()
assert sum(1 for _ in loader) == len(loader)
print(opened - before, measure() - before)
"""


@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_memory_for_many_files(tmp_path: Path, order: str) -> None:
    """pyarrow's form of each footer takes half a megabyte here: a gigabyte for all files."""
    table = pa.table({f"column {i}": pa.array([1.0]) for i in range(200)})
    first = tmp_path / "first.parquet"
    pq.write_table(table, first)
    folder = tmp_path / "files"
    folder.mkdir()
    for i in range(2_000):
        os.link(first, folder / f"{i:05d}.parquet")
    command = [sys.executable, "-c", MEMORY, str(folder), str(first), order]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    opened, at_end = map(int, done.stdout.split())
    assert opened < 200_000  # kB
    assert at_end < 250_000


def test_a_damaged_footer_is_found_when_the_loader_is_made(tmp_path: Path) -> None:
    paths = write(tmp_path)
    paths[2].write_bytes(damage(paths[2].read_bytes()))
    with pytest.raises(OSError, match=r"0002\.parquet"):
        arrowdl.Loader(str(tmp_path), 10)
    assert read(str(tmp_path), on_error=arrowdl.Skip(max_rows=20)) == [*range(20), *range(30, 40)]


def test_a_schema_that_pyarrow_cannot_read_is_named(tmp_path: Path) -> None:
    paths = write(tmp_path)
    content = paths[2].read_bytes()
    place = content.rindex(b"ARROW:schema") + 20
    paths[2].write_bytes(content[:place] + b"\0" + content[place + 1 :])
    with pytest.raises(ValueError, match="base64") as caught:
        arrowdl.Loader(str(tmp_path), 10)
    assert "0002.parquet" in "".join(caught.value.__notes__)
    assert read(str(tmp_path), on_error=arrowdl.Skip(max_rows=20)) == [*range(20), *range(30, 40)]


def test_a_footer_that_the_core_cannot_read_is_read_by_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    core = _core.read_parquet_footers
    monkeypatch.setattr(
        _core,
        "read_parquet_footers",
        lambda paths: core([path + ("?" if "0002" in path else "") for path in paths]),
    )
    assert read(str(tmp_path)) == list(range(40))
    assert read(ds.dataset(str(tmp_path))) == list(range(40))
    filter = ds.field("id") >= 15
    assert read(str(tmp_path), filter=filter) == list(range(15, 40))


def test_an_epoch_compares_all_files_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 30)
    loader = arrowdl.Loader(str(tmp_path), 10)
    calls: list[int] = []
    compare = _core.list_changed_files

    def count(paths: list[str], stamps: bytes) -> list[str]:
        calls.append(len(paths))
        return compare(paths, stamps)

    monkeypatch.setattr(_core, "list_changed_files", count)
    next(iter(loader))
    assert calls == [30]


def test_changed_files_are_listed_by_their_stamps(tmp_path: Path) -> None:
    paths = list(map(str, write(tmp_path, 4)))
    stamps, *_ = _core.read_parquet_footers(paths)
    assert _core.list_changed_files(paths, stamps) == []
    os.utime(paths[1], ns=(1, 1))
    os.remove(paths[2])
    assert _core.list_changed_files(paths, stamps) == paths[1:3]
    with pytest.raises(ValueError, match="three 64-bit integers for each path"):
        _core.list_changed_files(paths, stamps[:-8])


@pytest.mark.parametrize("make", [str, ds.dataset])
def test_a_file_that_is_written_again_is_refused(
    tmp_path: Path, make: Callable[[str], Any]
) -> None:
    paths = write(tmp_path)
    loader = arrowdl.Loader(make(str(tmp_path)), 10)
    status = paths[3].stat()
    pq.write_table(pa.table({"id": range(30, 50), "x": [3.0] * 20}), paths[3])
    os.utime(paths[3], ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(OSError, match=r"0003\.parquet.* has changed"):
        list(loader)


def test_other_row_groups_than_when_the_loader_was_made_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without inodes and exact times may hide that a file was written again."""
    paths = write(tmp_path)
    loader = arrowdl.Loader(str(tmp_path), 10)
    pq.write_table(pa.table({"id": range(30, 40), "x": [3.0] * 10}), paths[3], row_group_size=5)
    monkeypatch.setattr("arrowdl.loader._files.stamps.FileStamps.check", lambda *args, **kw: None)
    with pytest.raises(OSError, match=r"since the Loader was made: its footer has other row"):
        list(loader)


def test_a_file_without_row_groups_has_no_rows(tmp_path: Path) -> None:
    paths = write(tmp_path)
    with pq.ParquetWriter(paths[1], pa.schema({"id": pa.int64(), "x": pa.float64()})):
        pass
    assert read(str(tmp_path)) == [*range(10), *range(20, 40)]


def test_columns_that_some_files_lack(tmp_path: Path) -> None:
    paths = write(tmp_path)
    pq.write_table(pa.table({"id": range(20, 30), "more": range(10)}), paths[2])
    loader = arrowdl.Loader(str(tmp_path), 10, nulls="fill")
    batches = list(loader)
    assert set(batches[0]) == {"id", "x", "more"}
    assert batches[0]["more"].tolist() == [0] * 10
    assert batches[2]["more"].tolist() == list(range(10))


def test_a_dataset_of_some_row_groups(tmp_path: Path) -> None:
    (path,) = write(tmp_path, 1, row_group_size=2)
    fragment = next(iter(ds.dataset(str(path)).get_fragments())).subset(row_group_ids=[1, 3])
    schema, format = fragment.physical_schema, fragment.format
    dataset = ds.FileSystemDataset([fragment], schema, format, fragment.filesystem)
    assert read(dataset) == [2, 3, 6, 7]


@pytest.mark.skipif(sys.platform == "win32", reason="no time tells that the file was written")
def test_a_file_that_is_written_again_with_its_size_and_time_has_its_own_footer(
    tmp_path: Path,
) -> None:
    path, options = tmp_path / "a.parquet", {"use_dictionary": False, "write_statistics": False}

    def write(first: int, second: int) -> bytes:
        data = {"a": pa.array([b"x" * first] * 40), "b": pa.array([b"y" * second] * 40)}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(data), sink, row_group_size=20, compression="none", **options)
        return sink.getvalue().to_pybytes()

    path.write_bytes(write(10, 20))
    loader: Any = arrowdl.Loader([path], 16)
    assert len(pa.table(loader._source.read([0, 1]))) == 40
    status = path.stat()
    with open(path, "r+b") as file:  # the same inode
        file.write(write(20, 10))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    table = pa.table(loader._source.read([0, 1]))
    assert table.to_pylist() == [{"a": b"x" * 20, "b": b"y" * 10}] * 40
