"""What a Loader does where pyarrow's scanner would hang or crash, and without maps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from helpers.options import group
from helpers.processes import run_python

TABLE = pa.table(
    {
        "x": range(500),
        "y": np.arange(500) / 2,
        "k": pa.array([str(i % 3) for i in range(500)]).dictionary_encode(),
    }
)
X = ds.field("x")
needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux's /proc")


def write_ipc(path: Path, table: pa.Table, rows: int = 40, compression: str | None = None) -> Path:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def read(source: Any, **arguments: Any) -> dict[str, list[Any]]:
    loader = arrowdl.Loader(source, 33, framework="numpy", nulls="nan", **group(**arguments))
    columns: dict[str, list[Any]] = {}
    for batch in loader:
        for name, values in batch.items():
            columns.setdefault(name, []).extend(values.tolist())
    return columns


# ---- errors of a file system in Python

FILESYSTEM = """
import faulthandler, os, signal, sys, tempfile, threading
import arrowdl
import pyarrow as pa, pyarrow.csv, pyarrow.dataset as ds, pyarrow.feather, pyarrow.fs
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

faulthandler.dump_traceback_later(100, exit=True)
opening = None

class Filesystem(LocalFileSystem):
    def open(self, path, *args, **kwargs):
        if opening:
            opening(path)
        return super().open(path, *args, **kwargs)

filesystem = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(Filesystem()))
folder = tempfile.TemporaryDirectory()
table = pa.table({"x": range(1000), "y": range(1000)})
WRITE = {
    "parquet": lambda path: pq.write_table(table, path, row_group_size=100),
    "ipc": lambda path: pa.feather.write_feather(table, path, compression="lz4"),
    "csv": lambda path: pa.csv.write_csv(table, path),
}

def make_dataset(kind):
    paths = [f"{folder.name}/{i}.{kind}" for i in range(6)]
    for path in paths:
        WRITE[kind](path)
    return ds.dataset(paths, format=kind, filesystem=filesystem)

def end():
    sys.stdout.flush()
    folder.cleanup()
    os._exit(0)  # pyarrow's threads close files, for which they would wait for the interpreter
"""

ERRORS = """
for kind in WRITE:
    opening = None
    dataset = make_dataset(kind)
    for options in ({}, {"filter": ds.field("x") > 3, "columns": ["x"], "shuffle": True}):
        opening = None
        loader = arrowdl.Loader(dataset, 64, framework="numpy", **options)
        found = sum(len(batch["x"]) for batch in loader)
        assert found == (6000 if not options else 5976), found
        for failing in (f"3.{kind}", ""):
            def opening(path):
                if path.endswith(failing):
                    raise RuntimeError("not fork-safe")
            for _ in range(40):
                try:
                    list(loader)
                except RuntimeError as error:
                    assert str(error) == "not fork-safe", error
                    assert f".{kind}'" in error.__notes__[-1], error.__notes__
                else:
                    raise AssertionError("no error")
        failed, opening = opening, None
        fresh = make_dataset(kind)
        opening = failed
        try:
            arrowdl.Loader(fresh, 64, filter=ds.field("y") > 3)
        except RuntimeError as error:
            assert str(error) == "not fork-safe", error
            assert f"0.{kind}'" in error.__notes__[-1], error.__notes__
        else:
            raise AssertionError("no error")
end()
"""

INTERRUPTS = """
for kind in ("parquet", "ipc"):
    for where in ("count", "read"):
        opening = None
        dataset = make_dataset(kind)
        loader = arrowdl.Loader(dataset, 64, framework="numpy")
        gate = threading.Event()
        entered = []
        def opening(path):
            if not entered:
                entered.append(path)
                os.kill(os.getpid(), signal.SIGINT)
            gate.wait()
        try:
            if where == "read":
                list(loader)
            else:
                arrowdl.Loader(dataset, 64, filter=ds.field("x") > 3)
        except KeyboardInterrupt:
            print(kind, where)
        gate.set()
end()
"""


@pytest.mark.slow
def test_an_error_of_a_file_system_in_python_comes_out() -> None:
    """pyarrow's own to_reader() waits for ever, Ctrl-C included: of 300 tries, each time."""
    run_python(FILESYSTEM + ERRORS)


def test_a_wait_for_a_file_system_can_be_interrupted() -> None:
    out = run_python(FILESYSTEM + INTERRUPTS)
    assert out.splitlines() == ["parquet count", "parquet read", "ipc count", "ipc read"]


def test_an_error_of_a_file_keeps_its_type_and_names_it(tmp_path: Path) -> None:
    for i in range(3):
        pq.write_table(TABLE, tmp_path / f"{i}.parquet", compression="snappy")
    path = tmp_path / "1.parquet"
    data = bytearray(path.read_bytes())
    data[4:1000] = bytes(996)
    loader_of_old = arrowdl.Loader(tmp_path, 10, framework="numpy")
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"1\.parquet' has changed"):
        list(loader_of_old)
    with pytest.raises(OSError, match=r"(?i)snappy|page|thrift|deserialize|header") as caught:
        list(arrowdl.Loader(tmp_path, 10, framework="numpy"))
    assert "1.parquet" in f"{caught.value} {caught.value.__notes__}"


# ---- epochs that are left in the middle

ABANDON = """
import sys, tempfile
import arrowdl
import pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq

folder, epochs = tempfile.TemporaryDirectory(), int(sys.argv[1])
files = {"ipc": [], "lz4": [], "parquet": []}
for i in range(8):
    table = pa.table({"x": range(200), "y": [float(i) for i in range(200)]})
    for kind, paths in files.items():
        paths.append(f"{folder.name}/{kind}{i}.{'parquet' if kind == 'parquet' else 'arrow'}")
        if kind == "parquet":
            pq.write_table(table, paths[-1], row_group_size=10)
            continue
        options = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "lz4" else None)
        with pa.ipc.new_file(paths[-1], table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=10)
F = ds.field("x") > 5
for kind, paths in files.items():
    for memory_map in (True, False):
        storage = arrowdl.Storage(memory_map=memory_map)
        shuffled = {"shuffle": arrowdl.Shuffle(32)}
        for what in ({"filter": F}, {"columns": ["y"], "filter": F, **shuffled}):
            loader = arrowdl.Loader(
                paths, 16, framework="numpy", storage=storage, **what
            )
            for _ in range(epochs):
                batches = iter(loader)
                next(batches)
                del batches
"""


@pytest.mark.slow
def test_epochs_that_are_left_in_the_middle_crash_nothing() -> None:
    """As pyarrow's scanner does, of files of few rows: once in some hundreds."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", ABANDON, "80"],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---- IPC files as memory, and in parts


@pytest.mark.parametrize("memory_map", [True, False])
@pytest.mark.parametrize("compression", [None, "lz4"])
def test_ipc_files_are_read_as_pyarrow_reads_them(
    compression: str | None, memory_map: bool, tmp_path: Path
) -> None:
    write_ipc(tmp_path / "a.arrow", TABLE, 40, compression)
    write_ipc(tmp_path / "b.arrow", TABLE.slice(100, 0), 40, compression)  # no rows, no batches
    write_ipc(tmp_path / "c.arrow", TABLE.slice(200, 77), 1, compression)
    dataset = ds.dataset(sorted(tmp_path.iterdir()), format="ipc")
    for filter in (None, X > 250, (X > 5) & (ds.field("k") == "1"), ds.field(0) < 40):
        for columns in (None, ["y"], ["k", "x"]):
            chosen = ["x", "y", "k"] if columns is None else columns
            wanted = dataset.to_table(columns=chosen, filter=filter)
            if "k" in chosen:
                k = wanted["k"].unify_dictionaries().combine_chunks().indices
                wanted = wanted.set_column(chosen.index("k"), "k", k)
            found = read(tmp_path, columns=columns, filter=filter, memory_map=memory_map)
            assert found == wanted.to_pydict()
            shuffled = read(
                tmp_path, columns=columns, filter=filter, memory_map=memory_map, shuffle=True
            )
            assert {name: sorted(values) for name, values in shuffled.items()} == {
                name: sorted(values) for name, values in found.items()
            }


@pytest.mark.parametrize("memory_map", [True, False])
def test_ipc_files_that_differ(memory_map: bool, tmp_path: Path) -> None:
    """Columns that some have, of directories, of a type that is cast; a name within a name."""
    for y in (1, 2):
        (tmp_path / f"year={y}").mkdir()
    write_ipc(tmp_path / "year=1/a.arrow", pa.table({"x": [1, 2, 3], "ab": [4, 5, 6]}))
    write_ipc(tmp_path / "year=2/b.arrow", pa.table({"b": [1.5, 2.5], "x": [7, 8], "a": [9, 9]}))
    options: dict[str, Any] = {"memory_map": memory_map, "columns": ["x", "year"]}
    assert read(tmp_path, **options) == {"x": [1, 2, 3, 7, 8], "year": [1, 1, 1, 2, 2]}
    assert read(tmp_path, filter=ds.field("ab") > 4, **options) == {"x": [2, 3], "year": [1, 1]}
    assert read(tmp_path, filter=ds.field("b") > 2, **options) == {"x": [8], "year": [2]}
    assert read(tmp_path, filter=ds.field("year") == 2, **options) == {"x": [7, 8], "year": [2, 2]}
    schema = pa.schema([("x", pa.float64()), ("year", pa.int32())])
    dataset = ds.dataset(tmp_path, schema=schema, format="ipc", partitioning="hive")
    assert read(dataset, filter=X > 2, memory_map=memory_map) == {
        "x": [3.0, 7.0, 8.0],
        "year": [1, 2, 2],
    }
    years = {"year": [1, 1, 1, 2, 2]}
    assert read(dataset, columns=["year"], memory_map=memory_map) == years


@pytest.mark.parametrize("memory_map", [True, False])
def test_ipc_files_below_other_datasets(memory_map: bool, tmp_path: Path) -> None:
    first = write_ipc(tmp_path / "a.arrow", TABLE.select(["x", "y"]), compression="lz4")
    second = tmp_path / "b.parquet"
    pq.write_table(TABLE.select(["x", "y"]), second)
    filtered = ds.dataset(first, format="ipc").filter(X > 7)
    rest = [value for value in range(8, 500) if value != 10]
    assert read(filtered, filter=X != 10, columns=["x"], memory_map=memory_map) == {"x": rest}
    union = ds.dataset([ds.dataset(first, format="ipc"), ds.dataset(second)])
    wanted = union.to_table(columns=["y"], filter=X > 400)["y"].to_pylist()
    assert read(union, filter=X > 400, columns=["y"], memory_map=memory_map) == {"y": wanted}


class ScannerInPython:
    """As Lance's: its scan_batches() fails at the end."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._scanner = ds.dataset(TABLE).scanner(**options)
        self.projected_schema = self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return self._scanner.to_batches()


class DatasetInPython(ds.Dataset):  # type: ignore[misc]
    """As Lance's: pyarrow's class without a C++ dataset, so that its own methods would crash."""

    schema = TABLE.schema

    def __init__(self) -> None:
        pass

    def scanner(self, **options: Any) -> ScannerInPython:
        return ScannerInPython(options)


def test_a_dataset_in_python_is_asked_for_its_batches_alone() -> None:
    assert read(DatasetInPython(), columns=["x"], filter=X > 496) == {"x": [497, 498, 499]}


def test_ipc_files_of_another_file_system(tmp_path: Path) -> None:
    write_ipc(tmp_path / "a.arrow", TABLE)
    other = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    dataset = ds.dataset("a.arrow", filesystem=other, format="ipc")
    assert read(dataset, columns=["x"], filter=X > 490) == {"x": list(range(491, 500))}


@pytest.mark.parametrize("rows", [40, 200_000])
def test_rows_of_a_scan_may_be_written_to(rows: int, tmp_path: Path) -> None:
    """They may lie in the file as it is mapped, or be read: the file stays as it is."""
    (tmp_path / "year=1").mkdir()
    path = write_ipc(tmp_path / "year=1/a.arrow", pa.table({"x": range(rows)}), rows)
    loader = arrowdl.Loader(tmp_path, rows, framework="torch", columns=["x"])
    for _ in range(2):
        (batch,) = loader
        assert batch["x"].tolist() == list(range(rows))
        batch["x"].zero_()
    assert pa.ipc.open_file(path).read_all()["x"].to_pylist() == list(range(rows))


@needs_proc
def test_small_files_take_no_file_descriptors(tmp_path: Path) -> None:
    for i in range(50):
        (tmp_path / f"year={i}").mkdir()
        write_ipc(tmp_path / f"year={i}/a.arrow", TABLE.select(["x"]), 500)
    before = len(list(Path("/proc/self/fd").iterdir()))
    loader = arrowdl.Loader(tmp_path, 10, framework="numpy", columns=["x"])
    batches = list(loader)
    assert len(batches) == 50 * 50
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 10


@needs_proc
@pytest.mark.parametrize("compression", [None, "lz4"])
def test_files_are_not_mapped_where_that_is_not_wanted(
    compression: str | None, tmp_path: Path
) -> None:
    path = write_ipc(tmp_path / "a.arrow", TABLE, compression=compression)
    is_mapped = {}
    for memory_map in (True, False):
        batches = iter(
            arrowdl.Loader(
                path, 10, framework="numpy", storage=arrowdl.Storage(memory_map=memory_map)
            )
        )
        next(batches)
        is_mapped[memory_map] = str(path) in Path("/proc/self/maps").read_text()
        del batches
    assert is_mapped[False] is False
    if compression is None:
        assert is_mapped[True]


def test_an_ipc_stream_has_to_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert read(path, columns=["x"]) == {"x": list(range(500))}
    with pytest.raises(ValueError, match=r"stream format.*Storage.memory_map=False"):
        arrowdl.Loader(path, 10, storage=arrowdl.Storage(memory_map=False))
