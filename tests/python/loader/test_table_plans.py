"""Plans of a table's version and of pyarrow datasets; the real tables are in tests/peers."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import FilePlan, Retries
from arrowdl.loader._reader import EpochReader
from arrowdl.loader._sources.request import Request
from arrowdl.loader._storage.access import Access
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField
from arrowdl.loader._tables.version import DataFile, TableVersion, open_plan
from helpers.options import group
from helpers.stores import PARQUET, ROWS, MemoryStore, dump

QUICK = Retries(tries=2, first_wait=0.0)
ALL = list(range(3 * ROWS))


def write(table: pa.Table, rows: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows)
    return sink.getvalue()


@pytest.fixture
def store() -> MemoryStore:
    """Two files: of the first, rows are deleted; the second has an older type and no "x"."""
    new = pa.table({"id": pa.array(range(20)), "x": [i / 2 for i in range(20)]})
    old = pa.table({"id": pa.array(range(20, 25), pa.int32())})
    return MemoryStore(
        {"t/new": write(new, 8), "t/old": write(old, 5), "t/none": write(old[:0], 1)}
    )


def list_version(files: list[DataFile], store: MemoryStore) -> TableVersion:
    columns = [
        TableField("id", pa.int64(), "id"),
        TableField("x", pa.float64(), "x"),
        TableField("part", pa.string(), "part"),
    ]
    return TableVersion("table t, version 3", "t 3", columns, files, store.open())


@pytest.fixture
def version(store: MemoryStore) -> TableVersion:
    files = [
        DataFile("t/none"),
        DataFile("t/new", {"part": "p"}, {"x": None}, deleted=pa.array([0, 7, 8, 19])),
        DataFile("t/old", {"part": None}, {"x": 0.5}, deleted=pa.array([1, 2, 3])[2:]),
    ]
    return list_version(files, store)


KEPT = [i for i in range(20) if i not in (0, 7, 8, 19)]
TABLE = [{"id": i, "x": i / 2, "part": "p"} for i in KEPT] + [
    {"id": i, "x": 0.5, "part": None} for i in (20, 21, 22, 24)
]


def read(source: DataFilesSource) -> list[dict[str, Any]]:
    return pa.table(source.read(range(len(source.units)))).to_pylist()  # type: ignore[no-any-return]


def open_version(version: TableVersion, plan: FilePlan, **options: Any) -> DataFilesSource:
    """Open a version by a plan, as another rank does: from the plan's files."""
    files = open_plan(plan, version.identity, version.name)
    listed = dataclasses.replace(version, files=files)
    filter = options.get("filter")
    access = Access(retries=QUICK)
    return DataFilesSource(
        listed, Request(options.get("columns"), filter, storage=access, plan=plan)
    )


def test_a_table_is_opened_without_a_request(
    version: TableVersion, store: MemoryStore, tmp_path: Path
) -> None:
    first = DataFilesSource(version, Request())
    plan = first.files.make_plan()
    assert "of table t, version 3, 20 rows" in repr(plan)
    plan.save(tmp_path / "plan.json")
    assert FilePlan.load(tmp_path / "plan.json") == plan
    for given in (plan, FilePlan.load(tmp_path / "plan.json"), pickle.loads(pickle.dumps(plan))):
        store.requests.clear()
        source = open_version(version, given)
        assert not store.requests
        assert source.describe() == first.describe()
        assert source.files.make_plan() == plan
        assert read(source) == read(first) == TABLE
        assert read(pickle.loads(pickle.dumps(source))) == TABLE
        assert read(source.select("id")) == [{"id": row["id"]} for row in TABLE]  # type: ignore[arg-type]


def test_filters_of_a_planned_table(version: TableVersion, store: MemoryStore) -> None:
    whole = DataFilesSource(version, Request()).files.make_plan()
    for keeps in (ds.field("id") > 5, ds.field("part") == "p", ds.field("part").is_null()):
        first = DataFilesSource(version, Request(filter=keeps))
        plan, expected = first.files.make_plan(), read(first)
        assert 0 < len(expected) < len(TABLE)
        store.requests.clear()
        source = open_version(version, plan, filter=keeps)
        assert not store.requests
        assert read(source) == expected
        counted = open_version(version, whole, filter=keeps)
        assert read(counted) == expected
        assert counted.describe() == first.describe(), "its states are those of others"
        with pytest.raises(ValueError, match="give the filter of the plan"):
            open_version(version, plan)
    with pytest.raises(ValueError, match=r"the types of \['x'\] were not compared"):
        open_version(
            version, DataFilesSource(version, Request(["id"])).files.make_plan(), columns=["x"]
        )


def test_footers_are_read_once(version: TableVersion, store: MemoryStore) -> None:
    """Also if the source is pickled for workers, or its footers are sent to other ranks."""
    first = DataFilesSource(version, Request(storage=Access(retries=QUICK)))
    plan, footers = first.files.make_plan(), first.files.footers.list_footers()
    for source in (pickle.loads(pickle.dumps(first)), open_version(version, plan)):
        if source.files.footers.list_footers() != footers:
            source.files.footers.add_footers(footers)
        handler = source.scanner.dataset.filesystem.handler
        while not isinstance(handler, MemoryStore):  # pickled, it is a store of its own
            below = getattr(handler, "inner", None)
            handler = handler.stores[0].filesystem.handler if below is None else below.handler
        handler.requests.clear()
        assert read(source) == TABLE
        assert handler.count("list") == 0
        assert handler.count("read") <= 4, "one for each row group"


def test_a_plan_of_something_else(version: TableVersion, store: MemoryStore) -> None:
    plan = DataFilesSource(version, Request()).files.make_plan()
    with pytest.raises(
        ValueError, match=r"plan is of table t, version 3, .* is table t, version 4"
    ):
        open_plan(plan, "t 4", "table t, version 4")
    with pytest.raises(ValueError, match=r"plan is of table t, version 3, .* is paths or URLs"):
        arrowdl.Loader("t/new", 4, storage=arrowdl.Storage(filesystem=store.open(), plan=plan))
    paths = arrowdl.Loader(
        ["t/new"], 4, storage=arrowdl.Storage(filesystem=store.open()), columns=["id"]
    ).plan()
    with pytest.raises(ValueError, match="plan is of paths or URLs, and the source is a table"):
        open_plan(paths, "t 3", "a table")


def test_a_file_of_a_table_that_changed_since(version: TableVersion, store: MemoryStore) -> None:
    plan = DataFilesSource(version, Request()).files.make_plan()
    store.times["t/old"] = 99
    source = open_version(version, plan)
    with pytest.raises(OSError, match="'t/old' has changed since"):
        read(source)


def test_a_local_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(6)}), tmp_path / "a", row_group_size=2)
    fields = [TableField("id", pa.int64(), "id")]
    files = [DataFile(str(tmp_path / "a"), deleted=pa.array([3]))]
    version = TableVersion("t", "t 1", fields, files, fs.LocalFileSystem())
    plan = DataFilesSource(version, Request()).files.make_plan()
    assert [row["id"] for row in read(open_version(version, plan))] == [0, 1, 2, 4, 5]
    pq.write_table(pa.table({"id": range(7)}), tmp_path / "a")
    with pytest.raises(OSError, match="a' has changed since the plan was made"):
        open_version(version, plan)


def load(source: Any, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(
        source, 16, columns=["id"], framework="numpy", **group(retries=QUICK, **options)
    )


def rows_of(loader: arrowdl.Loader) -> list[int]:
    return [i for batch in loader for i in batch["id"].tolist()]


def name_hive(store: MemoryStore) -> ds.Dataset:
    return ds.dataset("b", filesystem=store.open(), partitioning="hive")


def name_by_folders(store: MemoryStore) -> ds.Dataset:
    """Its partitions are not those that paths alone would have."""
    files = [path for path in store.files if path.startswith("b/")]
    parts = ds.partitioning(pa.schema([("folder", pa.string())]))
    return ds.dataset(files, filesystem=store.open(), partitioning=parts, partition_base_dir="b")


@pytest.mark.parametrize("make", [name_hive, name_by_folders])
def test_a_dataset_is_opened_without_a_request(
    make: Callable[[MemoryStore], ds.Dataset], tmp_path: Path
) -> None:
    store = MemoryStore(PARQUET)
    first = load(make(store))
    plan = first.plan()
    plan.save(tmp_path / "plan.json")
    (part,) = {*make(store).schema.names} - {"id", "noise"}
    for given in (plan, tmp_path / "plan.json"):
        dataset = make(store)
        store.requests.clear()
        loader = load(dataset, plan=given)
        assert not store.requests
        assert loader.plan() == plan
        assert loader.state_dict() == first.state_dict()
        assert rows_of(loader) == ALL
        keeps = ds.field(part).isin(_list_values(dataset, part)[1:2])
        chosen = load(make(store), plan=given, filter=keeps)
        assert chosen.state_dict() == load(make(store), filter=keeps).state_dict()
        assert rows_of(chosen) == ALL[40:80]


def _list_values(dataset: ds.Dataset, part: str) -> list[Any]:
    keys = [ds.get_partition_keys(own.partition_expression) for own in dataset.get_fragments()]
    return [own[part] for own in keys]


def test_a_plan_of_another_dataset() -> None:
    """Its files alone do not tell: neither their partitions nor the row groups that are chosen."""
    store = MemoryStore(PARQUET)
    plan = load(name_hive(store)).plan()
    other = "the plan is of a pyarrow dataset of 3 files .*, and the source is "
    with pytest.raises(ValueError, match=f"{other}a pyarrow dataset of 3 files"):
        load(name_by_folders(store), plan=plan)
    with pytest.raises(ValueError, match=f"{other}paths or URLs"):
        load("b", filesystem=store.open(), plan=plan)
    store.files["b/k=9/9.parquet"] = dump(999)
    with pytest.raises(ValueError, match=f"{other}a pyarrow dataset of 4 files"):
        load(name_hive(store), plan=plan)
    whole = name_hive(store)
    parts = [own.subset(row_group_ids=[1]) for own in whole.get_fragments()]
    cut = ds.FileSystemDataset(parts, whole.schema, whole.format, whole.filesystem)
    with pytest.raises(ValueError, match="and the source is a pyarrow dataset of 4 files"):
        load(cut, plan=load(whole).plan())
    plan = load(cut).plan()
    assert rows_of(load(cut, plan=plan)) == [i for i in [*ALL, *range(999, 1039)] if _is_second(i)]


def _is_second(row: int) -> bool:
    """Whether a row is in the second row group of its file."""
    return (row - 999 if row >= 999 else row % ROWS) // 10 == 1


def test_a_local_file_of_a_dataset_that_changed_since(tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(pa.table({"id": [i]}), tmp_path / f"{i}.parquet")
    plan = load(ds.dataset(tmp_path)).plan()
    assert rows_of(load(ds.dataset(tmp_path), plan=plan)) == [0, 1]
    pq.write_table(pa.table({"id": [9]}), tmp_path / "1.parquet")
    with pytest.raises(OSError, match=r"1\.parquet' has changed since the plan was made"):
        load(ds.dataset(tmp_path), plan=plan)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(ValueError, match="the plan is of a pyarrow dataset of 2 files"):
        load(ds.dataset(tmp_path), plan=plan)


@pytest.mark.parametrize("plan", ["share", "a plan"])
def test_datasets_without_a_plan(plan: str, tmp_path: Path) -> None:
    given: Any = plan
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("id\n1\n")
    if plan != "share":
        load(tmp_path / "a.parquet").plan().save(given := tmp_path / "plan.json")
    parquet = ds.dataset(tmp_path / "a.parquet")
    for source, message in (
        (ds.dataset(tmp_path / "a.csv", format="csv"), "a dataset of csv files has no plan"),
        (ds.dataset([parquet, parquet]), "not on one of several datasets"),
        (ds.dataset(pa.table({"id": [1]})), "of fragments in memory"),
        (parquet.filter(ds.field("id") > 0), "with scan options"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            load(source, plan=given)
    with pytest.raises(TypeError, match="a dataset of csv files has no plan"):
        load(ds.dataset(tmp_path / "a.csv", format="csv")).plan()


def test_a_state_goes_on_by_the_plan(version: TableVersion) -> None:
    def make(source: DataFilesSource) -> Any:
        loader = arrowdl.Loader(pa.table({"id": [1]}), 3, framework="numpy")
        EpochReader.__init__(loader, source, loader._options)
        return loader

    first = make(DataFilesSource(version, Request(["id"])))
    assert next(iter(first))["id"].tolist() == KEPT[:3]
    state = json.loads(json.dumps(first.state_dict()))
    assert state["snapshot"] == "table t, version 3"
    plan = DataFilesSource(version, Request()).files.make_plan()
    again = make(open_version(version, plan, columns=["id"]))
    again.load_state_dict(state)
    assert rows_of(again) == [row["id"] for row in TABLE[3:]]
