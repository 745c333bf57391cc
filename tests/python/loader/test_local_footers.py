"""Footers of local Parquet files, which the core reads when a Loader is made."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
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

TABLE = pa.table(
    {
        "id": pa.array(range(100)),
        "x": pa.array([None if i % 7 == 0 else i / 3 for i in range(100)]),
        "s": pa.array([f"text {i % 9}" for i in range(100)]),
        "l": pa.array([[i] * (i % 4) for i in range(100)]),
        "p": pa.array([{"a": i, "b": str(i)} for i in range(100)]),
    }
)
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
    (read_footer,) = _core.read_parquet_footers([path])
    assert read_footer is not None
    assert read_footer[:5] == (
        status.st_size,
        status.st_mtime_ns,
        status.st_ino,
        tuple(group.num_rows for group in groups),
        tuple(group.total_byte_size for group in groups),
    )


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
    footers = _core.read_parquet_footers([str(tmp_path / name) for name in tables])
    schemas = [footer and footer[5] for footer in footers]
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
    assert _core.read_parquet_footers([str(tmp_path / name) for name in names]) == [None] * len(
        names
    )


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
        lambda paths: [
            None if "0002" in path else one for path, one in zip(paths, core(paths), strict=True)
        ],
    )
    assert read(str(tmp_path)) == list(range(40))
    assert read(ds.dataset(str(tmp_path))) == list(range(40))
    filter = ds.field("id") >= 15
    assert read(str(tmp_path), filter=filter) == list(range(15, 40))


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
