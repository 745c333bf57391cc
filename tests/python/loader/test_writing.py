"""Batches of a Loader may be written to: no crash, and no other object changes."""

from __future__ import annotations

import copy
import functools
import mmap
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arrowdl
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl import _core
from arrowdl.loader._ipc import private_maps
from arrowdl.loader._sources.base import UnitOrder
from helpers.options import group

ROWS = 530
INTEGERS = pa.array([None if i % 11 == 0 else i for i in range(ROWS)], pa.int32())
TABLE = pa.table(
    {
        "x": np.arange(ROWS, dtype=np.float64),
        "flag": [i % 3 == 0 for i in range(ROWS)],
        "null": INTEGERS,
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(range(ROWS * 4), pa.float32()), 4),
        # The first batches have no element, so that offsets of 0 are those of the next one too.
        "tokens": pa.array([list(range(i % 5)) if i > 70 else [] for i in range(ROWS)]),
        "large": pa.array([list(range(i % 3)) for i in range(ROWS)], pa.large_list(pa.int64())),
        "text": [f"{i}" * (i % 4) for i in range(ROWS)],
        "view": pa.array([f"{i:020}" for i in range(ROWS)], pa.string_view()),
        "struct": pa.array([{"a": i, "b": -i} for i in range(ROWS)]),
        "code": pa.array([f"{i % 7}" for i in range(ROWS)]).dictionary_encode(),
        "bytes": pa.array([f"{i:04}".encode() for i in range(ROWS)], pa.binary(4)),
    }
)
PLAIN = ["x", "vector", "tokens"]
OPTIONS: dict[str, Any] = {"framework": "numpy", "nulls": "mask", "ragged": "offsets"}


def leaves_of(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple):
        for part in tree:
            yield from leaves_of(part)
    elif getattr(tree, "is_nested", False):
        yield from (tree.values(), tree.offsets())
    else:
        yield tree


def overwrite(tree: Any) -> None:
    for leaf in leaves_of(tree):
        leaf[...] = 1 if str(leaf.dtype).endswith("bool") else 77


def to_lists(tree: Any) -> list[Any]:
    return [leaf.tolist() for leaf in leaves_of(tree)]


def write_ipc(path: Path, table: pa.Table = TABLE, **options: Any) -> Path:
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=100)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    table = TABLE.drop_columns(["view", "code"])
    (root / "parquet").mkdir()
    options = {"compression": "none", "use_dictionary": False}
    pq.write_table(table, root / "parquet/a.parquet", row_group_size=150, **options)
    (root / "hive/k=1").mkdir(parents=True)
    (root / "hive/k=2").mkdir()
    pq.write_table(table.slice(0, 300).select(PLAIN), root / "hive/k=1/a.parquet")
    pq.write_table(table.slice(300).select([*PLAIN, "struct"]), root / "hive/k=2/b.parquet")
    write_ipc(root / "a.arrow")
    write_ipc(root / "zstd.arrow", compression="zstd")
    (root / "two").mkdir()
    write_ipc(root / "two/a.arrow", TABLE.slice(0, 250))
    write_ipc(root / "two/b.arrow", TABLE.slice(250).drop_columns(["struct", "vector"]))
    return root


def open_mapped(root: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(root / "a.arrow"))).read_all()


SOURCES: dict[str, Callable[[Path], Any]] = {
    "ipc": lambda root: root / "a.arrow",
    "several ipc": lambda root: root / "two",
    "compressed ipc": lambda root: root / "zstd.arrow",
    "ipc dataset": lambda root: ds.dataset(root / "a.arrow", format="ipc"),
    "mapped ipc dataset": lambda root: ds.dataset(
        str(root / "a.arrow"), format="ipc", filesystem=fs.LocalFileSystem(use_mmap=True)
    ),
    "parquet": lambda root: root / "parquet",
    "mapped parquet": lambda root: ds.dataset(
        str(root / "parquet"), filesystem=fs.LocalFileSystem(use_mmap=True)
    ),
    "directories": lambda root: root / "hive",
    "table": lambda root: TABLE,
    "mapped table": open_mapped,
    "slice": lambda root: pa.concat_tables([TABLE.slice(3, 200), TABLE.slice(7, 99)]),
    "numpy": lambda root: pa.table({"x": np.arange(ROWS), "y": np.ones((ROWS,))}),
    "pandas": lambda root: TABLE.select(["x", "flag", "text"]).to_pandas(),
    "polars": lambda root: pl.from_arrow(TABLE.select([*PLAIN, "text"])),
    "duckdb": lambda root: duckdb.from_arrow(TABLE.select([*PLAIN, "text"])),
    "in-memory dataset": lambda root: ds.dataset(TABLE),
    "batches": lambda root: TABLE.to_batches(max_chunksize=100),
    "small batches": lambda root: TABLE.to_batches(max_chunksize=10),
    "gathered": lambda root: list(
        arrowdl.from_arrow_stream(TABLE.to_batches(max_chunksize=7)).rebatch(64)
    ),
    "stream": lambda root: functools.partial(make_reader, root),
}


def make_reader(root: Path) -> pa.RecordBatchReader:
    """Make a reader over read-only memory."""
    return open_mapped(root).to_reader()


def check_writing(make: Callable[..., arrowdl.Loader], epochs: int = 2) -> None:
    """Every batch is overwritten at once, and no other one changes, in this epoch or the next."""
    lent = make(writable=False)
    expected = [[to_lists(batch) for batch in lent] for _ in range(epochs)]
    loader = make()
    for epoch in range(epochs):
        kept = []
        for batch, values in zip(loader, expected[epoch], strict=True):
            assert to_lists(batch) == values
            overwrite(batch)
            written = to_lists(batch)
            assert all(to_lists(before) == after for before, after in kept)
            kept = [*kept[-1:], (batch, written)]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("name", SOURCES)
def test_batches_are_the_trainings_own(name: str, shuffle: bool, files: Path) -> None:
    source = SOURCES[name](files)
    before = {path: path.read_bytes() for path in files.rglob("*.*") if path.is_file()}
    rows = source.to_pylist() if isinstance(source, pa.Table) else None
    pairs = {"shuffle": shuffle, "buffer_size": 128, **OPTIONS}
    check_writing(lambda **more: arrowdl.Loader(source, 64, **group(**pairs, **more)))
    assert all(path.read_bytes() == data for path, data in before.items())
    assert rows is None or source.to_pylist() == rows


@pytest.mark.parametrize("name", ["ipc", "table", "parquet"])
@pytest.mark.parametrize(
    "options",
    [
        {"columns": PLAIN, "nulls": "raise", "ragged": "jagged"},
        {"nulls": "fill", "ragged": "padded", "framework": "torch"},
        {"columns": ["x", "struct"], "nulls": "raise", "framework": "torch"},
        {"columns": ["x", "vector", "null"], "stack": {"m": ["vector"]}},
        {"pad_last": True},
        {"rank": 1, "world_size": 3},
        {"transform": dict},
        {"prefetch": 0},
        {"device": "cpu", "framework": "torch"},
    ],
    ids=str,
)
def test_whatever_becomes_of_the_rows(name: str, options: dict[str, Any], files: Path) -> None:
    source = SOURCES[name](files)
    check_writing(
        lambda **more: arrowdl.Loader(source, 64, **group(**{**OPTIONS, **options}, **more)), 1
    )
    assert TABLE["x"].to_pylist() == list(range(ROWS))


def double(batch: dict[str, Any]) -> dict[str, Any]:
    batch["x"] *= 2
    return batch


@pytest.mark.slow
@pytest.mark.parametrize("transform", [None, double])
@pytest.mark.parametrize("name", ["ipc", "table"])
def test_in_worker_processes(name: str, transform: Any, files: Path) -> None:
    loader = arrowdl.Loader(
        SOURCES[name](files),
        64,
        columns=PLAIN,
        transform=transform,
        num_workers=1,
        **group(**{**OPTIONS, "nulls": "raise"}),
    )
    for _ in range(2):
        values = []
        for batch in loader:
            values += batch["x"].tolist()
            overwrite(batch)
        assert values == [i * (2 if transform else 1) for i in range(ROWS)]


CRASH = """
import sys
import arrowdl
for shuffle in (False, True):
    batch = next(iter(arrowdl.Loader(sys.argv[1], 64, columns=["x"], shuffle=shuffle)))
    batch["x"] /= 2
print("alive")
"""


def test_the_line_that_ended_the_process(files: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(files / "a.arrow")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


# ---- without copies


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_who_promises_not_to_write_gets_the_address() -> None:
    first, second = TABLE["x"].chunk(0).buffers()[1].address, TABLE["x"].slice(64).chunk(0)
    loader = arrowdl.Loader(TABLE, 64, columns=["x"], framework="numpy", writable=False)
    batches = [batch["x"] for batch in loader]
    assert address(batches[0]) == first
    assert address(batches[1]) == first + second.offset * 8
    assert not batches[0].flags.writeable
    assert first not in map(
        address,
        (b["x"] for b in arrowdl.Loader(TABLE, 64, columns=["x"], framework="numpy")),
    )


def find_mapping(array: Any) -> str:
    with open("/proc/self/maps") as file:
        for line in file:
            start, stop = (int(part, 16) for part in line.split()[0].split("-"))
            if start <= address(array) < stop:
                return line
    return ""


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")


@needs_proc
def test_files_are_mapped_privately_and_not_copied(files: Path) -> None:
    for columns in (["x", "code"], ["vector"], ["bytes"]):
        loader = arrowdl.Loader(files / "a.arrow", 64, columns=columns, framework="numpy")
        for _ in range(2):
            batch = next(iter(loader))
            for name in columns:
                assert "a.arrow" in find_mapping(batch[name])
                assert "rw-p" in find_mapping(batch[name])
    lent = arrowdl.Loader(files / "a.arrow", 64, columns=["x"], framework="numpy", writable=False)
    assert "r--" in find_mapping(next(iter(lent))["x"])


@needs_proc
def test_what_was_written_goes_with_its_part(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not with the epoch, at whose end the whole file would be in memory."""
    monkeypatch.setattr(private_maps, "_PART_BYTES", mmap.ALLOCATIONGRANULARITY)

    def count() -> int:
        with open("/proc/self/maps") as file:
            return sum("two/a.arrow" in line and "rw-p" in line for line in file)

    loader = arrowdl.Loader(files / "two/a.arrow", 50, columns=["x"], framework="numpy")
    counts = []
    for batch in loader:
        overwrite(batch)
        counts.append(count())
        del batch
    assert counts == [1] * 5
    del loader
    assert count() == 0


@pytest.mark.parametrize("why", ["no room", "replaced", "removed"])
def test_rows_are_copied_where_there_is_no_mapping(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_ipc(tmp_path / "a.arrow")
    source = arrowdl.Loader(path, 64, **group(**OPTIONS))._source
    if why == "removed":
        path.unlink()
    elif why == "replaced":
        other = write_ipc(tmp_path / "b.arrow", TABLE.slice(0, 100))
        other.replace(path)
    else:

        def fail(*arguments: Any, **more: Any) -> None:
            raise OSError(12, "Cannot allocate memory")

        monkeypatch.setattr(private_maps.mmap, "mmap", fail)
    private = source.for_writing()  # type: ignore[union-attr]
    for _ in range(2):
        rows = []
        for array in private.read_rows(0, ROWS, UnitOrder(private, [0])):
            x = _core.to_numpy(array.field("x"), _own=True)
            rows += x.tolist()
            x[:] = 77
        assert rows == list(range(ROWS))


def test_what_is_new_memory_anyway_is_not_copied(files: Path) -> None:
    for name in ("parquet", "compressed ipc", "ipc dataset", "mapped ipc dataset", "directories"):
        assert not arrowdl.Loader(SOURCES[name](files), 64)._source.is_shared, name
    for name in ("mapped parquet", "table", "in-memory dataset"):
        assert arrowdl.Loader(SOURCES[name](files), 64)._source.is_shared, name


def test_copies_of_a_source_and_pickles_are_mapped_anew(files: Path) -> None:
    loader = arrowdl.Loader(files / "a.arrow", 64, columns=["x"], framework="numpy")
    for other in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        batch = next(iter(other))
        overwrite(batch)
        assert next(iter(other))["x"].tolist() == list(range(64))
        assert next(iter(loader))["x"].tolist() == list(range(64))


def test_two_iterators_of_one_loader_do_not_meet(files: Path) -> None:
    loader = arrowdl.Loader(files / "a.arrow", 64, columns=["x"], framework="numpy")
    first, second = iter(loader), iter(loader)
    overwrite(next(first))
    assert next(second)["x"].tolist() == list(range(64))


# ---- relocated arrays


@pytest.mark.parametrize("rows", [slice(0, ROWS), slice(13, 400), slice(5, 5)])
def test_relocated_rows_are_the_same(rows: slice, files: Path) -> None:
    data = (files / "a.arrow").read_bytes()
    buffer = pa.py_buffer(data)
    for batch in map(_core.from_arrow, pa.ipc.open_file(buffer).read_all().to_batches()):
        part = batch[rows.start : min(rows.stop, len(batch))]
        moved = _core.relocate(part, buffer.address, _core.to_arrow_device(bytearray(data)))
        assert pa.record_batch(moved).equals(pa.record_batch(part))
        # Nothing of it lies there: copied.
        copied = _core.relocate(part, buffer.address, _core.to_arrow_device(bytearray()))
        assert pa.record_batch(copied).equals(pa.record_batch(part))
        if len(part):
            addresses = {_core.address_of(one.field("x")) for one in (part, moved, copied)}
            assert len(addresses) == 3


def test_relocated_rows_keep_both_memories() -> None:
    batch = pa.record_batch({"x": np.arange(8.0), "n": pa.array([None, *range(7)])})
    start = batch["x"].buffers()[1].address
    block = bytearray(np.arange(8.0).tobytes())
    moved = _core.relocate(batch, start, _core.to_arrow_device(block))
    np.frombuffer(block)[:] = 9.0
    del block, batch
    assert pa.record_batch(moved).to_pydict() == {"x": [9.0] * 8, "n": [None, *range(7)]}


def test_only_record_batches_are_relocated() -> None:
    block = _core.to_arrow_device(bytearray(8))
    with pytest.raises(TypeError, match="a record batch can be relocated, not int64"):
        _core.relocate(pa.array([1]), 0, block)
    nulls = pa.StructArray.from_arrays([pa.array([1])], ["a"], mask=pa.array([True]))
    with pytest.raises(TypeError, match="a record batch can be relocated"):
        _core.relocate(nulls, 0, block)
    with pytest.raises(TypeError, match="a block is an array of bytes"):
        _core.relocate(pa.record_batch({"x": [1]}), 0, pa.array([1.0]))
