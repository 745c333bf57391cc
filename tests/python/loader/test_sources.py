"""Loader over odd data: schemas that drift, dictionaries that differ, rows that are large."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from helpers.frames import OnlyDataFrame
from helpers.options import group
from torch.utils.data import DataLoader

TABLE = pa.table({"id": range(10)})
AB = pa.array(["a", "b"]).dictionary_encode()
BAC = pa.array(["b", "a", "c"]).dictionary_encode()


def write(path: Path, table: pa.Table) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def read(source: Any, name: str = "id", **arguments: Any) -> list[Any]:
    loader = arrowdl.Loader(source, **group(**{"batch_size": 3, **arguments}))
    return [value for batch in loader for value in batch[name].tolist()]


# ---- files that differ


@pytest.mark.parametrize("shuffle", [False, True])
def test_files_without_rows(shuffle: bool, tmp_path: Path) -> None:
    for name, rows in (("a", 0), ("b", 10), ("c", 0)):
        write(tmp_path / f"{name}.parquet", TABLE.slice(0, rows))
    assert sorted(read(tmp_path, shuffle=shuffle)) == list(range(10))
    assert read(tmp_path / "a.parquet", shuffle=shuffle) == []


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_in_another_order(suffix: str, tmp_path: Path) -> None:
    write(tmp_path / f"a{suffix}", pa.table({"id": [1, 2], "y": [1.0, 2.0]}))
    write(tmp_path / f"b{suffix}", pa.table({"y": [3.0, 4.0], "id": [3, 4]}))
    assert read(tmp_path) == [1, 2, 3, 4]
    assert read(tmp_path, "y") == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_column_that_some_files_have(first: str, suffix: str, tmp_path: Path) -> None:
    """pyarrow's dataset has the columns of the first file, and drops the others without a word."""
    second = "ab".replace(first, "")
    write(tmp_path / f"{first}{suffix}", pa.table({"id": [1, 2], "y": [1.0, 2.0]}))
    write(tmp_path / f"{second}{suffix}", pa.table({"id": [3, 4]}))
    with pytest.raises(BufferError, match=r'"y".*nulls'):
        read(tmp_path)
    assert sorted(read(tmp_path, columns=["id"])) == [1, 2, 3, 4]
    assert sorted(read(tmp_path, "y", nulls="fill")) == [0.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("types", [("float32", "float64"), ("int64", "int32"), ("int64", "string")])
def test_a_column_of_several_types(types: tuple[str, str], suffix: str, tmp_path: Path) -> None:
    """pyarrow would cast all to the first type: float64 to float32 as well."""
    for name, type in zip("ab", types, strict=True):
        write(tmp_path / f"{name}{suffix}", pa.table({"x": pa.array([1, 2]).cast(type)}))
    with pytest.raises(ValueError, match=f"b{suffix}.*has other types.*give a pyarrow dataset"):
        read(tmp_path)
    if suffix == ".parquet" and "string" not in types:
        schema = pa.schema({"x": pa.float64()})
        assert read(ds.dataset(tmp_path, schema=schema), "x") == [1.0, 2.0, 1.0, 2.0]


def test_a_column_that_is_all_null_in_a_file(tmp_path: Path) -> None:
    """Frames without a value in a column write it with the null type."""
    write(tmp_path / "a.parquet", pa.table({"x": pa.nulls(2)}))
    write(tmp_path / "b.parquet", pa.table({"x": [1.5]}))
    assert read(tmp_path, "x", nulls="fill") == [0.0, 0.0, 1.5]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_nested_field_that_some_files_have(first: str, suffix: str, tmp_path: Path) -> None:
    second = "ab".replace(first, "")
    write(tmp_path / f"{first}{suffix}", pa.table({"s": [{"x": 1}]}))
    write(tmp_path / f"{second}{suffix}", pa.table({"s": [{"x": 2, "y": 3}]}))
    with pytest.raises(BufferError, match=r'"y".*nulls'):
        read(tmp_path, "s")
    (batch,) = arrowdl.Loader(tmp_path, 3, nulls="fill")
    assert sorted(batch["s"]["y"].tolist()) == [0, 3]


def test_partition_columns_that_are_in_the_files_too(tmp_path: Path) -> None:
    for label in (0, 1):
        (tmp_path / f"label={label}").mkdir()
        table = pa.table({"id": [label], "label": pa.array([label], pa.int32())})
        write(tmp_path / f"label={label}/part.parquet", table)
    assert read(tmp_path, "label") == [0, 1]


@pytest.mark.parametrize("given", ["", "/part.parquet", "/*", "/**/*.parquet"])
@pytest.mark.parametrize("is_absolute", [False, True])
def test_directories_above_what_is_named_are_no_columns(
    is_absolute: bool, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in pyarrow.parquet.read_table(), for columns of the files that have the same name."""
    folder = tmp_path / "fold=5/extra=1/data"
    folder.mkdir(parents=True)
    write(folder / "part.parquet", pa.table({"fold": pa.array([10, 11], pa.int32())}))
    monkeypatch.chdir(tmp_path)
    path = os.path.relpath(folder) if not is_absolute else str(folder)
    (batch,) = arrowdl.Loader(path + given, 3)
    assert list(batch) == ["fold"]
    assert batch["fold"].tolist() == [10, 11]


def test_columns_of_directories_below_each_of_those_named(tmp_path: Path) -> None:
    for name in ("v=1/x/y=1", "v=1/x/y=2", "v=2/plain"):
        (tmp_path / name).mkdir(parents=True)
        y = pa.array([3] if name == "v=2/plain" else [0], pa.int32())
        write(tmp_path / name / "part.parquet", pa.table({"id": [1], "y": y}))
    x, plain = tmp_path / "v=1/x", tmp_path / "v=2/plain"
    for given in ([x, plain], [f"{x}/*", f"{plain}/*"], [x, plain / "part.parquet"]):
        batches = list(arrowdl.Loader(given, 3))
        assert [list(batch) for batch in batches] == [["id", "y"]]
        assert batches[0]["y"].tolist() == [1, 2, 3]
    assert read([plain, x], "y") == [3, 1, 2]
    assert read([x / "y=1/part.parquet", x / "y=2/part.parquet"], "y") == [1, 2]


def test_what_a_pattern_matches(tmp_path: Path) -> None:
    (tmp_path / "x=1").mkdir()
    write(tmp_path / "x=1/part.parquet", TABLE)
    (tmp_path / "_SUCCESS").touch()
    assert read(str(tmp_path / "*")) == list(range(10))
    assert read(str(tmp_path / "**/*.parquet")) == list(range(10))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no file in the directory"):
        read(tmp_path / "empty")


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("filter", [None, ds.field("id") >= 0])
def test_partition_columns_of_ipc_files(filter: Any, compression: Any, tmp_path: Path) -> None:
    """The memory-mapped files had none."""
    for y in (1, 2):
        (tmp_path / f"y={y}").mkdir()
        table = pa.table({"id": np.full(1000, y)})
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(tmp_path / f"y={y}/a.arrow", table.schema, options=options) as writer:
            writer.write_table(table)
    (batch,) = arrowdl.Loader(tmp_path, 2000, filter=filter)
    assert list(batch) == ["id", "y"]
    assert batch["y"].tolist() == [1] * 1000 + [2] * 1000
    (batch,) = arrowdl.Loader(tmp_path / "y=1", 2000, filter=filter)
    assert list(batch) == ["id"]


def test_filter_of_an_ipc_stream(tmp_path: Path) -> None:
    """What Hugging Face writes as .arrow."""
    with pa.ipc.new_stream(tmp_path / "a.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert read(tmp_path) == list(range(10))
    with pytest.raises(ValueError, match=r"a\.arrow' has the stream format.*new_file.*filter\(\)"):
        read(tmp_path, filter=ds.field("id") > 3)


def write_ids(folder: Path, **ids: int) -> None:
    """A file for each of `ids`, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, id in ids.items():
        write(folder / f"{name}.parquet", pa.table({"id": [id]}))


def test_patterns_leave_out_markers(tmp_path: Path) -> None:
    """As directories do, in those that are matched and above what is: rows came twice."""
    base = tmp_path / "_run" / ".d"
    write_ids(base, a=1, _a=2)
    write_ids(base / "_temporary/0", p=3)
    write_ids(base / ".hidden", p=4)
    write_ids(base / "sub", b=5)
    write_ids(base / "sub/_temporary", b=6)
    for given in ("", "/*", "/**", "/**/*.parquet"):
        assert sorted(read(f"{base}{given}")) == [1, 5]
    with pytest.raises(FileNotFoundError, match="no file at"):
        read(f"{base}/*/0/*.parquet")


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("_temporary/*/*.parquet", [3]),
        ("**/_temporary/**/*.parquet", [3, 6]),
        ("_*.parquet", [2]),
        (".hidden/*", [4]),
        ("s*/../a.parquet", [1]),
    ],
)
def test_markers_that_a_pattern_writes_out(pattern: str, ids: list[int], tmp_path: Path) -> None:
    write_ids(tmp_path, a=1, _a=2)
    write_ids(tmp_path / "_temporary/0", p=3)
    write_ids(tmp_path / ".hidden", p=4)
    write_ids(tmp_path / "sub", b=5)
    write_ids(tmp_path / "sub/_temporary", b=6)
    assert sorted(read(str(tmp_path / pattern))) == ids


@pytest.mark.parametrize("given", ["", "/*", "/**", "/**/*.parquet"])
def test_links_to_directories(given: str, tmp_path: Path) -> None:
    write_ids(tmp_path / "d/sub", a=1)
    write_ids(tmp_path / "elsewhere", b=2)
    (tmp_path / "d/link").symlink_to(tmp_path / "elsewhere")
    assert sorted(read(f"{tmp_path}/d{given}")) == [1, 2]
    (tmp_path / "d/sub/back").symlink_to(tmp_path / "d")
    (tmp_path / "d/sub/self").symlink_to(tmp_path / "d/sub")
    if "**" in given:  # glob itself goes round each, in all orders
        (tmp_path / "d/sub/self").unlink()
    assert sorted(read(f"{tmp_path}/d{given}")) == [1, 2]


def test_files_for_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "x.csv").touch()
    with pytest.raises(ValueError, match='format="csv"'):
        read(tmp_path / "x.csv")


def test_an_empty_list_of_files() -> None:
    """glob.glob() returns one if no file matches."""
    with pytest.raises(ValueError, match=r"is empty.*glob"):
        arrowdl.Loader([], 4)


def test_scan_options_of_a_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ids = np.arange(1000)
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({"id": ids}), path, **options)
    bytes = bytearray(path.read_bytes())
    bytes[bytes.index(ids[500:510].tobytes())] ^= 1
    path.write_bytes(bytes)
    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    format = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    with pytest.raises(OSError, match="CRC checksum verification failed"):  # pyarrow's own
        read(ds.dataset(path, format=format))
    assert len(read(path)) == 1000


def test_files_that_go_or_change(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", TABLE)
    loader = arrowdl.Loader(tmp_path, 3)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
        list(loader)


# ---- filters: len() and the ranks go by the rows that the scan gives


def check_filter(source: Any, dataset: ds.Dataset, filter: ds.Expression) -> None:
    wanted = dataset.to_table().filter(filter)["id"].to_pylist()
    found = []
    for rank in range(3):
        ranks = {"rank": rank, "world_size": 3}
        loader = arrowdl.Loader(source, 2, filter=filter, columns=["id"], **group(**ranks))
        batches = list(loader)
        assert len(loader) == len(batches)
        found += [value for batch in batches for value in batch["id"].tolist()]
    assert set(found) == set(wanted)
    assert read(source, filter=filter, columns=["id"]) == wanted


def test_filter_of_partition_columns(tmp_path: Path) -> None:
    for y in (1, 2):
        (tmp_path / f"y={y}").mkdir()
        ids = pa.table({"id": range(10 * y, 10 * y + 7)})
        pq.write_table(ids, tmp_path / f"y={y}/a.parquet", row_group_size=3)
    dataset = ds.dataset(tmp_path, partitioning="hive")
    y, id = ds.field("y"), ds.field("id")
    for filter in (y == 2, (y == 1) & (id > 12), (y == 1) | (id > 22), y == 3):
        check_filter(tmp_path, dataset, filter)
        check_filter(dataset, dataset, filter)


def test_filter_of_a_column_that_some_files_have(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", TABLE)
    write(tmp_path / "b.parquet", pa.table({"id": range(20, 27), "z": range(7)}))
    schema = pa.schema({"id": pa.int64(), "z": pa.int64()})
    for filter in (ds.field("z") > 2, ds.field("z").is_null()):
        check_filter(tmp_path, ds.dataset(tmp_path, schema=schema), filter)


@pytest.mark.parametrize("value", [0.1, 0.3])
def test_filter_of_a_column_that_the_dataset_casts(value: float, tmp_path: Path) -> None:
    """The statistics of the files are of the values before the cast."""
    x = [0.1, 0.3, 0.1, 0.2, 0.1, 0.1, 0.3]
    pq.write_table(pa.table({"id": range(7), "x": x}), tmp_path / "a.parquet", row_group_size=3)
    dataset = ds.dataset(tmp_path, schema=pa.schema({"id": pa.int64(), "x": pa.float32()}))
    field = ds.field("x")
    for limit in (pa.scalar(value, pa.float32()), pa.scalar(value, pa.float64())):
        for filter in (field == limit, field < limit, field <= limit, field >= limit):
            check_filter(dataset, dataset, filter)


def test_filter_of_a_column_with_nan(tmp_path: Path) -> None:
    """The statistics of Parquet leave NaN out: by them all rows are wanted."""
    pq.write_table(pa.table({"id": [0, 1], "x": [float("nan"), 1.0]}), tmp_path / "a.parquet")
    check_filter(tmp_path, ds.dataset(tmp_path), ds.field("x") > 0)


# ---- dictionaries: a code means the same in every batch


def test_dictionaries_of_a_table_are_unified() -> None:
    table = pa.table({"id": range(5), "k": pa.chunked_array([AB, BAC])})
    struct = pa.StructArray.from_arrays
    nested = pa.chunked_array([struct([AB], ["k"]), struct([BAC], ["k"])])
    for size in (1, 2, 3, 5):
        assert read(table, "k", batch_size=size) == [0, 1, 1, 0, 2]
        batches = arrowdl.Loader(pa.table({"s": nested}), size)
        assert [code for batch in batches for code in batch["s"]["k"].tolist()] == [0, 1, 1, 0, 2]
        batches = arrowdl.Loader(table, size, shuffle=True)
        rows = {i: k for b in batches for i, k in zip(b["id"].tolist(), b["k"].tolist(), strict=1)}
        assert [rows[i] for i in range(5)] == [0, 1, 1, 0, 2]


@pytest.mark.parametrize("rank", [0, 1])
def test_dictionaries_of_streams_that_change_are_refused(rank: int) -> None:
    """On each rank, also where it reads one of the dictionaries alone."""
    tables = [pa.table({"k": AB}), pa.table({"k": BAC.slice(0, 2)})]
    batches = [batch for table in tables for batch in table.to_batches()]
    loader = arrowdl.Loader(iter(batches), 1, ranks=arrowdl.Ranks(rank, 2))
    with pytest.raises(ValueError, match=r'the dictionary of "k" changes .*would mean'):
        list(loader)


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("make", [pa.Table.to_batches, lambda table: [table]])
def test_a_list_of_batches_is_a_table(kind: Any, make: Any) -> None:
    tables = [pa.table({"id": [0, 1], "k": AB}), pa.table({"id": [2, 3, 4], "k": BAC})]
    source = kind(part for table in tables for part in make(table))
    assert read(source, "k", batch_size=2) == [0, 1, 1, 0, 2]
    loader = arrowdl.Loader(
        source, ranks=arrowdl.Ranks(global_batch_size=2, splits=2), shuffle=True
    )
    assert len(loader) == 3
    assert sorted(row for batch in loader for row in batch["id"].tolist()) == [0, 1, 2, 3, 4]
    assert loader.map_dataset()[[4, 0]]["k"].tolist() == [2, 0]


def test_a_list_of_batches_of_several_schemas_is_refused() -> None:
    source = [pa.record_batch({"x": [1]}), pa.record_batch({"x": [1.5]})]
    with pytest.raises(ValueError, match=r"int64|double|float64"):
        list(arrowdl.Loader(source, 1))


def test_dictionaries_that_are_the_same_are_read(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(50)]
    codes = [*range(50), *reversed(range(50))]
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)
    for name in "ab":
        pq.write_table(pa.table({"k": column}), tmp_path / f"{name}.parquet", row_group_size=7)
    assert read(tmp_path, "k") == codes * 2
    assert sorted(read(tmp_path, "k", shuffle=True, buffer_size=9)) == sorted(codes * 2)
    batches = pa.table({"k": column}).to_batches(max_chunksize=9)
    assert read(batches, "k") == read(lambda: iter(batches), "k") == codes


# ---- types


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([Decimal("1.5"), None]), "decimal128.*dtype="),
        (pa.nulls(2), "null has no values: cast it"),
        (pa.array([None, 1.0]), "nulls="),
        (pa.array(["a", None]), "null rows"),
        (pa.array([[[1]], [[2, 3]]]), "one ragged dimension"),
    ],
)
def test_columns_without_a_tensor(column: pa.Array, message: str, shuffle: bool) -> None:
    with pytest.raises(BufferError, match=message):
        list(arrowdl.Loader(pa.table({"x": column}), 2, shuffle=shuffle))


def test_no_columns() -> None:
    assert list(arrowdl.Loader(TABLE, 4, columns=[])) == [{}, {}, {}]


@pytest.mark.parametrize("options", [{}, {"pad_last": True}, {"on_error": "skip"}])
def test_columns_of_one_name(options: dict[str, Any]) -> None:
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    for source in (twice, twice.to_reader):
        with pytest.raises(ValueError, match='several fields are named "a", and a dict holds'):
            list(arrowdl.Loader(source, 1, **group(**options)))


def test_an_unnamed_pandas_index_is_no_column() -> None:
    """A split or a filter of a frame leaves the old row numbers as an index."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    (batch,) = arrowdl.Loader(frame[frame["x"] != 2.0], 5)
    assert list(batch) == ["x"]
    (batch,) = arrowdl.Loader(frame.set_index(pd.Index([7, 5, 6], name="key")), 5)
    assert list(batch) == ["x", "key"]


def test_one_column_as_batches_of_one_tensor() -> None:
    for column in (pa.chunked_array([[1, 2], [3]]), arrowdl.to_arrow_device(torch.arange(1, 4))):
        assert [batch.tolist() for batch in arrowdl.Loader(column, 2)] == [[1, 2], [3]]


# ---- memory

OF_LARGE_ROWS = """
import sys, time
import arrowdl, pyarrow as pa
loader = arrowdl.Loader(sys.argv[1], 8, framework="numpy",
                        shuffle=sys.argv[2] == "True" and arrowdl.Shuffle(32))
batches = iter(loader)
next(batches)
held, before = pa.total_allocated_bytes(), -1
while held != before:  # a training that waits: what is read ahead comes to an end
    time.sleep(0.3)
    held, before = pa.total_allocated_bytes(), held
assert sum(len(batch["id"]) for batch in batches) == 12_000 - 8
print(pa.default_memory_pool().max_memory())
"""


@pytest.mark.parametrize("shuffle", [pytest.param(False, marks=pytest.mark.slow), True])
def test_memory_does_not_grow_with_the_file(shuffle: bool, tmp_path: Path) -> None:
    """pyarrow's scanner reads up to a gigabyte ahead of a training that is slow."""
    path = tmp_path / "large.parquet"
    rows, width = 40, 65_536
    schema = pa.schema({"id": pa.int64(), "x": pa.binary(width)})
    bytes = pa.py_buffer(np.random.default_rng(7).bytes(rows * width))
    column = pa.Array.from_buffers(schema.field("x").type, rows, [None, bytes])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, 12_000, rows):
            ids = pa.array(range(start, start + rows), pa.int64())
            writer.write_table(pa.table([ids, column], schema=schema))
    done = subprocess.run(
        [sys.executable, "-c", OF_LARGE_ROWS, path, str(shuffle)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < os.path.getsize(path) / 2
    path.unlink()


def test_epochs_leave_nothing_behind(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": range(50_000)}), tmp_path / "a.parquet", row_group_size=5_000)
    loader = arrowdl.Loader(tmp_path, 1_000, shuffle=arrowdl.Shuffle(10_000))
    list(loader)
    held = pa.total_allocated_bytes()
    for _ in range(50):
        assert sum(len(batch["x"]) for batch in loader) == 50_000
    assert pa.total_allocated_bytes() <= held + 2**20


def test_a_frame_of_the_interchange_protocol_alone() -> None:
    frame = OnlyDataFrame(pa.table({"x": [1, 2, 3], "y": [1.5, 2.5, 3.5]}))
    loader = arrowdl.Loader(frame, 2, columns=["y"])
    for _ in range(2):
        assert [batch["y"].tolist() for batch in loader] == [[1.5, 2.5], [3.5]]


@pytest.mark.parametrize("columns", [None, ["a"], ["b"]])
@pytest.mark.parametrize("name", ["1.parquet", "2.parquet", "1.arrow", "2.arrow"])
def test_two_columns_of_one_name(name: str, columns: list[str] | None, tmp_path: Path) -> None:
    """pyarrow says "Can't unify schema with duplicate field names", and neither which nor where."""
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"])
    once = pa.table({"a": [1], "b": [2]})
    suffix = Path(name).suffix
    for i in (1, 2):
        table = twice if name.startswith(str(i)) else once
        path = tmp_path / f"{i}{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
    sources: list[Any] = [tmp_path, str(tmp_path / f"*{suffix}"), sorted(tmp_path.iterdir())]
    for source in [*sources, tmp_path / name]:
        if columns == ["b"]:  # which needs neither
            batches = list(arrowdl.Loader(source, 1, columns=columns, framework="numpy"))
            assert [batch["b"].tolist() for batch in batches] == [[2]] * len(batches)
            continue
        with pytest.raises(ValueError, match=f'{name}\' has 2 columns named "a"'):
            arrowdl.Loader(source, 1, columns=columns)


def test_without_a_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only the workers of a DataLoader need one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    dataset = arrowdl.Loader(pa.table({"a": [1, 2]}), 1).torch_dataset()
    assert [batch["a"].item() for batch in dataset] == [1, 2]
    assert [batch["a"].item() for batch in DataLoader(dataset, batch_size=None)] == [1, 2]
    with pytest.raises(RuntimeError, match=r"agree on the epoch .* set TMPDIR"):
        dataset._iterations.join("start", 7, 0, 0, False)


def test_lists_of_arrays_in_host_memory_are_tables() -> None:
    """Rows of lists of arrowdl and of pyarrow can be counted, mixed and read in any order."""
    table = pa.table({"id": range(40), "tokens": [[i] * (i % 4) for i in range(40)]})
    batches = table.to_batches(max_chunksize=7)
    arrays = [arrowdl.from_arrow(batch) for batch in batches]
    options: dict[str, Any] = {"framework": "numpy", "ragged": "offsets", "splits": 2}
    for source in (arrays, tuple(arrays), [batches[0], *arrays[1:]]):
        loader = arrowdl.Loader(source, **group(global_batch_size=8, **options))
        assert len(loader) == 5
        assert (
            loader.state_dict()["source"]
            == (
                arrowdl.Loader(table, **group(global_batch_size=8, **options)).state_dict()[
                    "source"
                ]
            )
        )
        for steps in (
            {"global_batch_size": 8, "bucket_by": "tokens"},
            {"global_batch_tokens": 20, "token_column": "tokens"},
        ):
            planned = arrowdl.Loader(source, **group(**options, **steps))
            assert sorted(i for batch in planned for i in batch["id"].tolist()) == list(range(40))
        mixed = arrowdl.Loader.mix(
            {"a": source, "b": table},
            weights={"a": 1, "b": 1},
            **group(global_batch_size=8, **options),
        )
        assert sum(mixed.valid_rows for _ in mixed) == 80
    others = [arrays[0], arrowdl.from_arrow(table.select(["id"]).to_batches()[0])]
    with pytest.raises((ValueError, pa.ArrowInvalid)):
        list(arrowdl.Loader(others, 8))
