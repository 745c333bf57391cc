"""INT96 timestamps of Parquet files: read as microseconds, and never wrapped nor cut in silence."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField
from arrowdl.loader._tables.version import DataFile, TableVersion
from helpers.counted_files import CountedFiles
from helpers.options import group

# Spark's usual sentinels among times of our days.
TIMES = [
    datetime.datetime(9999, 12, 31),
    datetime.datetime(2024, 5, 6, 7, 8, 9, 123456),
    datetime.datetime(1, 1, 1),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
]
MICROSECONDS = pa.array(TIMES, pa.timestamp("us")).cast(pa.int64()).to_pylist()
OF_NANOSECONDS = ds.ParquetFileFormat()
OF_MICROSECONDS = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")


def write(path: Path, times: pa.Array, **options: Any) -> str:
    table = pa.table({"id": range(len(times)), "t": times})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, **options)
    assert pq.ParquetFile(path).schema.column(1).physical_type == "INT96"
    return str(path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "t.parquet", pa.array(TIMES, pa.timestamp("us")), row_group_size=3)


@pytest.fixture
def fine(tmp_path: Path) -> str:
    """A file whose second row group has nanoseconds."""
    times = pa.array([1_000, None, 2_000, 3_001, 4_000], pa.timestamp("ns"))
    return write(tmp_path / "fine.parquet", times, row_group_size=3)


def read(source: Any, **options: Any) -> list[int]:
    batches = list(arrowdl.Loader(source, 2, framework="numpy", **group(**options)))
    return [time for batch in batches for time in batch["t"].tolist()]


@pytest.mark.parametrize("decoder", ["pyarrow", "polars"])
@pytest.mark.parametrize("filter", [None, pc.field("id") >= 0])
def test_times_of_all_years_are_read_as_microseconds(path: str, decoder: Any, filter: Any) -> None:
    assert read(path, decoder=decoder, filter=filter) == MICROSECONDS
    assert read([path, path], decoder=decoder, filter=filter) == 2 * MICROSECONDS
    assert read(path, columns=["t"], filter=filter, num_workers=1) == MICROSECONDS


def test_filters_compare_the_real_times(path: str) -> None:
    later = pc.field("t") > pa.scalar(datetime.datetime(3000, 1, 1))
    assert read(path, filter=later) == MICROSECONDS[:1]
    assert read(path, filter=pc.field("t") < pa.scalar(datetime.datetime(1000, 1, 1))) == [
        MICROSECONDS[2]
    ]


def test_plans_and_map_datasets(path: str) -> None:
    loader = arrowdl.Loader(path, 2, framework="numpy")
    rows = loader.map_dataset()
    assert [int(rows[i]["t"]) for i in range(len(rows))] == MICROSECONDS
    assert read(path, plan=loader.plan()) == MICROSECONDS


def test_file_objects(path: str) -> None:
    data = Path(path).read_bytes()
    assert read(io.BytesIO(data)) == MICROSECONDS
    assert read([io.BytesIO(data), io.BytesIO(data)]) == 2 * MICROSECONDS


def test_datasets_that_read_microseconds(path: str) -> None:
    dataset = ds.dataset(path, format=OF_MICROSECONDS)
    for decoder in ("pyarrow", "polars"):
        assert read(dataset, decoder=decoder) == MICROSECONDS
    assert read(dataset, filter=pc.field("id") >= 0) == MICROSECONDS
    assert read(dataset.filter(pc.field("id") >= 0)) == MICROSECONDS


OTHERS: list[Callable[[ds.Dataset], Any]] = [
    lambda dataset: dataset,
    lambda dataset: dataset.filter(pc.field("id") >= 0),
    lambda dataset: ds.dataset([dataset, dataset]),
]


@pytest.mark.parametrize("change", OTHERS)
def test_datasets_that_read_nanoseconds_say_what_these_cannot_hold(path: str, change: Any) -> None:
    dataset = change(ds.dataset(path))
    with pytest.raises(ValueError, match=r'"t".*1677 to 2262.*coerce_int96_timestamp_unit="us"'):
        read(dataset)
    with pytest.raises(ValueError, match='"t" of row group 0 of'):
        read(ds.dataset(path), filter=pc.field("t") > pa.scalar(datetime.datetime(2025, 1, 1)))
    ids = [batch["id"].tolist() for batch in arrowdl.Loader(dataset, 4, columns=["id"])]
    assert ids[0] == [0, 1, 2, 3], "a column that is not read does not matter"


@pytest.mark.parametrize("decoder", ["pyarrow", "polars"])
def test_datasets_that_read_nanoseconds_keep_them(fine: str, decoder: Any) -> None:
    values = read(ds.dataset(fine), nulls="fill", decoder=decoder)
    assert values == [1_000, 0, 2_000, 3_001, 4_000]


@pytest.mark.parametrize("decoder", ["pyarrow", "polars"])
@pytest.mark.parametrize("filter", [None, pc.field("id") >= 0])
def test_nanoseconds_are_not_cut(fine: str, decoder: Any, filter: Any) -> None:
    message = r'"t" of row group 1 of .*nanoseconds.*coerce_int96_timestamp_unit="ns"'
    with pytest.raises(ValueError, match=message):
        read(fine, nulls="fill", decoder=decoder, filter=filter)
    with pytest.raises(ValueError, match=message):
        read(fine, nulls="fill", decoder=decoder, on_error="skip", max_skipped_rows=5)
    with pytest.raises(ValueError, match=message):
        arrowdl.Loader(fine, 1, nulls="fill").map_dataset()[3]
    with pytest.raises(ValueError, match=r'"t" of .*BytesIO'):
        read(io.BytesIO(Path(fine).read_bytes()), nulls="fill")


@pytest.mark.parametrize("filter", [None, pc.field("id") >= 0])
def test_files_over_a_network(path: str, fine: str, tmp_path: Path, filter: Any) -> None:
    files = fs.PyFileSystem(CountedFiles(tmp_path))
    assert read("t.parquet", filesystem=files, filter=filter) == MICROSECONDS
    with pytest.raises(ValueError, match=r'"t" of row group 1 of .*nanoseconds'):
        read("fine.parquet", filesystem=files, filter=filter, nulls="fill")
    dataset = ds.dataset("t.parquet", filesystem=files)
    with pytest.raises(ValueError, match=r'"t" of row group 0 of .*1677 to 2262'):
        read(dataset, filter=filter)


def test_times_within_lists_and_structs(tmp_path: Path) -> None:
    times = pa.array(TIMES, pa.timestamp("us"))
    nested = pa.StructArray.from_arrays([pa.FixedSizeListArray.from_arrays(times, 2)], ["l"])
    path = str(tmp_path / "nested.parquet")
    pq.write_table(pa.table({"s": nested}), path, use_deprecated_int96_timestamps=True)
    (batch,) = arrowdl.Loader(path, 2, framework="numpy")
    assert batch["s"]["l"].reshape(-1).tolist() == MICROSECONDS
    with pytest.raises(ValueError, match='"s" of row group 0'):
        list(arrowdl.Loader(ds.dataset(path), 2, framework="numpy"))


def test_files_of_tables(path: str, fine: str, tmp_path: Path) -> None:
    columns = [TableField("id", pa.int64(), "id"), TableField("t", pa.timestamp("us"), "t")]

    def open_file(path: str, **options: Any) -> pa.Table:
        files = [DataFile(path, **options)]
        version = TableVersion("table t", "t", columns, files, fs.LocalFileSystem(), None)
        source = DataFilesSource(version, Request())
        return pa.table(source.read(range(len(source.units))))

    assert open_file(path)["t"].cast(pa.int64()).to_pylist() == MICROSECONDS
    deleted = open_file(path, deleted=pa.array([1]))
    assert deleted["t"].cast(pa.int64()).to_pylist() == [MICROSECONDS[0], *MICROSECONDS[2:]]
    with pytest.raises(OSError, match=r'OptionError: "t" of row group 1 of .*nanoseconds'):
        open_file(fine)


MIXED = [("ns", None), ("ms", None), ("us", "UTC"), ("ns", "UTC")]


@pytest.fixture(params=MIXED, ids=str)
def mixed(request: pytest.FixtureRequest, path: str, tmp_path: Path) -> tuple[list[str], pa.Schema]:
    """A file of INT64 timestamps and one of INT96, and the schema that both are read as."""
    unit, zone = request.param
    times = pa.array([1714979289123], pa.timestamp("ms"))
    table = pa.table(
        {"id": [9], "t": times.cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))}
    )
    other = str(tmp_path / "int64.parquet")
    pq.write_table(table, other)
    return [other, path], pa.schema({"id": pa.int64(), "t": pa.timestamp("us", zone)})


@pytest.mark.parametrize("order", [1, -1])
def test_files_that_mix_int96_with_other_times(
    mixed: tuple[list[str], pa.Schema], order: int
) -> None:
    paths, schema = mixed
    objects = [io.BytesIO(Path(path).read_bytes()) for path in paths]
    for sources, name in ((paths, "t.parquet"), (objects, "BytesIO")):
        message = rf'"t" is timestamp.*{name}.* has it as INT96.*coerce_int96_timestamp_unit="us"'
        with pytest.raises(ValueError, match=message):
            read(sources[::order])
        assert len(list(arrowdl.Loader(sources[::order], 5, columns=["id"]))) == 1
    dataset = ds.dataset(paths[::order], schema=schema, format=OF_MICROSECONDS)
    both = [[1714979289123000], MICROSECONDS]
    assert read(dataset) == [time for times in both[::order] for time in times]


@pytest.mark.parametrize("order", [1, -1])
def test_datasets_that_mix_int96_with_other_times_name_it(
    mixed: tuple[list[str], pa.Schema], order: int
) -> None:
    dataset = ds.dataset(mixed[0][::order])
    message = r'"t" of row group 0 of .*t\.parquet.* INT96 timestamps outside 1677 to 2262'
    for options in ({}, {"filter": pc.field("id") >= 0}, {"decoder": "polars"}):
        with pytest.raises(ValueError, match=message):
            read(dataset, **options)
