"""Loader over versions of Delta Lake tables, written by deltalake 1.6 or by hand: it writes no
deletion vectors and no renamed columns."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables import delta as source_of_delta
from deltalake import DeltaTable, write_deltalake
from helpers.delta_log import make_deletion_vector, make_field, write_log
from helpers.random_cases import check_cases
from helpers.tables import (
    check_epochs,
    check_inspected,
    check_versions,
    make_loader,
    read_ids,
    read_rows,
    sort_rows,
)


def make_table(start: int, rows: int) -> pa.Table:
    ids = range(start, start + rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array([[None, "a b", "ü/x=%20"][i % 3] for i in ids], pa.string()),
            "x": pa.array([i / 2 for i in ids], pa.float32()),
            "pair": pa.array([{"a": i, "b": [i] * (i % 3)} for i in ids], PAIR),
        }
    )


PAIR = pa.struct({"a": pa.int64(), "b": pa.list_(pa.int64())})


def scan(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the rows by DataFusion, which knows column mapping and deletion vectors."""
    return sort_rows(pa.table(table.scan()).to_pylist())


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Versions: 0 of 60 rows, 1 with 20 appended, 2 with every fourth row deleted."""
    path = str(tmp_path / "table with spaces")
    write_deltalake(path, make_table(0, 60), partition_by=["part"])
    write_deltalake(path, make_table(60, 20), mode="append")
    DeltaTable(path).delete("id % 4 = 0")
    return path


def test_the_commands_read_its_folder(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_inspected(path, len(scan(DeltaTable(path))), "Delta table", capsys)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_is_read_as_deltalake_does(path: str, version: int) -> None:
    table = DeltaTable(path, version=version)
    expected = scan(table)
    assert len(expected) == [60, 80, 60][version]
    assert sort_rows(read_rows(table)) == expected
    assert read_rows(table) == table.to_pyarrow_table().to_pylist()
    check_epochs(table, [row["id"] for row in expected])


def test_columns_and_filters_of_partitions(path: str) -> None:
    table = DeltaTable(path)
    kept = [i for i in range(80) if i % 4]
    rows = sort_rows(read_rows(table, ["part", "pair.a", "id"]))
    assert rows == [{"part": [None, "a b", "ü/x=%20"][i % 3], "pair.a": i, "id": i} for i in kept]
    chosen = (ds.field("part") == "a b") & (ds.field("id") > 20)
    found = sort_rows(read_rows(table, ["id"], chosen))
    assert [row["id"] for row in found] == [i for i in kept if i % 3 == 1 and i > 20]
    assert len(read_rows(table, ["part"], ds.field("part").is_null())) == 20
    with pytest.raises(TypeError, match="give a pyarrow expression"):
        make_loader(table, filter="id > 3")
    with pytest.raises(ValueError, match='"y" is not one column'):
        arrowdl.Loader(table, 8, columns=["y"])


def test_a_state_belongs_to_a_version(path: str) -> None:
    check_versions(
        lambda: DeltaTable(path, version=1), lambda: DeltaTable(path), "version 1", "version 2"
    )


def test_writers_do_not_change_the_version_that_is_read(path: str) -> None:
    table = DeltaTable(path)
    loader = make_loader(table, 3)
    expected = read_ids(loader)
    batches = iter(loader)
    ids = next(batches)["id"].tolist()
    write_deltalake(table, make_table(100, 30), mode="append")
    table.optimize.compact()
    table.delete("id > 7")
    ids += [i for batch in batches for i in batch["id"].tolist()]
    assert ids == expected
    assert read_ids(loader) == expected, "the next epoch too"


def test_files_that_vacuum_removed_are_an_error(path: str) -> None:
    loader = make_loader(DeltaTable(path, version=1), 3)
    batches = iter(loader)
    next(batches)
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(FileNotFoundError, match="parquet") as caught:
        read_ids(itertools.chain(batches, loader))
    assert any("version 1. If its files were removed (vacuum" in n for n in caught.value.__notes__)
    with pytest.raises(FileNotFoundError, match="parquet") as caught:
        make_loader(DeltaTable(path, version=1))
    assert any("version 1. If its files were removed (vacuum" in n for n in caught.value.__notes__)


def test_workers_and_pickles(path: str) -> None:
    table = DeltaTable(path)
    loader = make_loader(table, 3, shuffle=True)
    table.delete("id < 50")
    assert read_ids(pickle.loads(pickle.dumps(loader))) == read_ids(loader)


def test_added_columns_are_null_in_older_files(path: str) -> None:
    new = make_table(80, 5).append_column("more", pa.array(range(5), pa.int32()))
    write_deltalake(path, new, mode="append", schema_mode="merge")
    table = DeltaTable(path)
    assert sort_rows(read_rows(table)) == scan(table)
    assert sort_rows(read_rows(DeltaTable(path, version=2))) == scan(DeltaTable(path, version=2))


@pytest.mark.parametrize("partition_by", [None, ["part"]])
def test_column_mapping(tmp_path: Path, partition_by: list[str] | None) -> None:
    """deltalake 1.6's to_pyarrow_dataset() reads nulls: it does not look at the mapping."""
    path = str(tmp_path)
    config = {"delta.columnMapping.mode": "name"}
    write_deltalake(path, make_table(0, 40), partition_by=partition_by, configuration=config)
    table = DeltaTable(path)
    rows = sort_rows(read_rows(table))
    assert rows == scan(table) == make_table(0, 40).to_pylist()
    assert table.to_pyarrow_table(columns=["id"]).to_pylist()[0] == {"id": None}
    check_epochs(table, list(range(40)))
    chosen = (ds.field("x") > 5) & (ds.field("part") == "a b")
    expected = [i for i in range(40) if i / 2 > 5 and i % 3 == 1]
    assert [row["id"] for row in sort_rows(read_rows(table, ["id"], chosen))] == expected


def with_id(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(number)})


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_columns(tmp_path: Path, mode: str) -> None:
    """`id` and `x` have swapped names since the file was written; fields of structs, too, within
    lists and maps."""
    inner, in_list, in_map = (
        pa.struct(
            [with_id(pa.field("u", pa.int64()), i), with_id(pa.field("v", pa.int64()), i + 1)]
        )
        for i in (10, 20, 30)
    )
    ids = range(30)
    values = [None if i % 7 == 0 else {"u": i, "v": -i} for i in ids]
    lists = [None if i % 5 == 0 else [values[i]] * (i % 3) for i in ids]
    maps = [None if i % 4 == 0 else [(str(i), values[i])] for i in ids]
    schema = pa.schema(
        [
            with_id(pa.field("x", pa.int64()), 1),
            with_id(pa.field("id", pa.int32()), 2),
            with_id(pa.field("old", inner), 3),
            with_id(pa.field("lists", pa.list_(pa.field("element", in_list))), 7),
            with_id(pa.field("maps", pa.map_(pa.string(), in_map)), 8),
        ]
    )
    columns = [list(ids), [i * 10 for i in ids], values, lists, maps]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(rows, tmp_path / "f.parquet", row_group_size=8)
    pair, in_lists, in_maps = (
        {
            "type": "struct",
            "fields": [make_field("v", "long", "u", i), make_field("w", "long", "v", i + 1)],
        }
        for i in (10, 20, 30)
    )
    fields = [
        make_field("id", "long", "x", 1),
        make_field("x", "integer", "id", 2),
        make_field("new", pair, "old", 3),
        make_field("none", "string", "none", 9),
        make_field(
            "lists", {"type": "array", "elementType": in_lists, "containsNull": True}, "lists", 7
        ),
        make_field(
            "maps",
            {"type": "map", "keyType": "string", "valueType": in_maps, "valueContainsNull": True},
            "maps",
            8,
        ),
    ]
    config = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "31"}
    adds = [{"path": "f.parquet"}]
    table = write_log(tmp_path, fields, adds, features=["columnMapping"], configuration=config)
    renamed = [None if v is None else {"v": v["u"], "w": v["v"]} for v in values]
    expected = [
        {
            "id": i,
            "x": i * 10,
            "new": renamed[i],
            "none": None,
            "lists": None if i % 5 == 0 else [renamed[i]] * (i % 3),
            "maps": None if i % 4 == 0 else [(str(i), renamed[i])],
        }
        for i in ids
    ]
    assert read_rows(table) == expected
    assert read_rows(table, ["new.w", "id"]) == [
        {"new.w": None if i % 7 == 0 else -i, "id": i} for i in ids
    ]
    found = read_rows(table, ["id"], (ds.field("id") > 3) & (ds.field("x") < 80))
    assert found == [{"id": i} for i in range(4, 8)]
    check_epochs(table, list(ids))


def write_deleted(path: Path, rows: int, deleted: list[list[int]]) -> DeltaTable:
    adds: list[Any] = []
    for i, own in enumerate(deleted):
        pq.write_table(
            pa.table({"id": range(i * rows, (i + 1) * rows), "x": [0.5] * rows}),
            path / f"{i}.parquet",
            row_group_size=10,
        )
        stats = json.dumps({"numRecords": rows})
        vector = {"deletionVector": make_deletion_vector(own)} if own else {}
        adds.append({"path": f"{i}.parquet", "stats": stats, **vector})
    fields = [make_field("id", "long"), make_field("x", "double")]
    return write_log(path, fields, adds, features=["deletionVectors"])


def test_deletion_vectors(tmp_path: Path) -> None:
    deleted = [[0, 3, 4, 9, 10, 24], [], list(range(10, 20)), list(range(25))]
    table = write_deleted(tmp_path, 25, deleted)
    expected = [i for i in range(100) if i % 25 not in deleted[i // 25]]
    assert [row["id"] for row in scan(table)] == expected
    assert sorted(row["id"] for row in read_rows(table)) == expected
    check_epochs(table, expected)
    found = read_rows(table, ["x"], ds.field("id") < 30)
    assert found == [{"x": 0.5}] * len([i for i in expected if i < 30])
    assert len(make_loader(table, 10)) == -(-len(expected) // 10)
    rows = make_loader(table).map_dataset()
    assert sorted(int(rows[i]["id"]) for i in range(len(rows))) == expected


def test_rows_that_cannot_be_read(tmp_path: Path) -> None:
    """An error names the file and the version; on_error="skip" leaves its row group out."""
    table = write_deleted(tmp_path, 25, [[0], [3], []])
    path = tmp_path / "1.parquet"
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    with pytest.raises((OSError, RuntimeError)) as caught:
        read_ids(make_loader(table))
    notes = "".join(caught.value.__notes__)
    assert '1.parquet\', row group 0, column "id"' in notes
    assert "version 0. If its files" in notes
    loader = make_loader(table, on_error="skip", max_skipped_rows=20)
    ids = read_ids(loader)
    assert sorted(ids) == [i for i in range(75) if i != 0 and not 25 <= i < 35]


def test_widened_types(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": pa.array(range(9), pa.int32()), "x": pa.array([1.5] * 9, pa.float32())}),
        tmp_path / "a.parquet",
    )
    pq.write_table(
        pa.table({"id": pa.array([2**40]), "x": pa.array([0.1])}), tmp_path / "b.parquet"
    )
    fields = [make_field("id", "long"), make_field("x", "double")]
    adds = [{"path": "a.parquet"}, {"path": "b.parquet"}]
    table = write_log(tmp_path, fields, adds, features=["typeWidening"])
    expected = [{"id": i, "x": 1.5} for i in range(9)] + [{"id": 2**40, "x": 0.1}]
    assert sort_rows(read_rows(table)) == expected
    assert read_rows(table, ["id"], ds.field("id") > 2**35) == [{"id": 2**40}]


def test_tables_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    table = write_log(
        tmp_path, [make_field("id", "long")], [{"path": "a.parquet"}], features=["columnMapping"]
    )
    found = table.protocol()

    class Newer:
        def __getattr__(self, name: str) -> Any:
            return getattr(table, name)

        def protocol(self) -> Any:
            return found._replace(reader_features=["columnMapping", "clustering9"])

    with pytest.raises(ValueError, match=r"needs clustering9 .*table.scan\(\)"):
        source_of_delta.open_delta(Newer(), Request())


def test_clones_and_variants_are_refused(tmp_path: Path) -> None:
    other, own = tmp_path / "other", tmp_path / "own"
    for folder in (other, own):
        folder.mkdir()
        pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    table = write_log(own, [make_field("id", "long")], [{"path": "a.parquet"}], features=[])
    (log,) = (own / "_delta_log").iterdir()
    log.write_text(log.read_text().replace('"a.parquet"', f'"file://{other}/a.parquet"'))
    with pytest.raises(ValueError, match=r"shallow clone.*table\.scan\(\)"):
        source_of_delta.open_delta(DeltaTable(str(own)), Request())
    assert read_rows(table) == [{"id": 1}]
    with pytest.raises(ValueError, match='"data" of the Delta table is a variant'):
        source_of_delta._read_children("variant", pa.binary(), "none", "data")


def test_columns_beside_tensors_are_read(tmp_path: Path) -> None:
    """Delta keeps the label of arrow.fixed_shape_tensor for lists of any length: deltalake 1.6 and
    pyarrow read no column of such a table."""
    path = str(tmp_path / "tensors")
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12.0).reshape(3, 2, 2))
    write_deltalake(path, pa.table({"id": [1, 2, 3], "image": tensors}))
    table = DeltaTable(path)
    for options in ({}, {"shuffle": True}, {"filter": ds.field("id") > 0}, {"num_workers": 1}):
        assert sorted(read_ids(make_loader(table, **options))) == [1, 2, 3]
    for columns in (None, ["image"], ["id", "image"]):
        with pytest.raises(ValueError, match=r'the column "image" of .*layout="list"'):
            arrowdl.Loader(table, 2, columns=columns)
    lists = arrowdl.to_arrow_device({"id": np.arange(3), "image": np.ones((3, 4))}, layout="list")
    write_deltalake(f"{path} as lists", pa.table(lists))
    batch = next(iter(arrowdl.Loader(DeltaTable(f"{path} as lists"), 3)))
    assert batch["image"].values().tolist() == [1.0] * 12


def test_other_file_systems(path: str) -> None:
    """The file system of deltalake, which object stores need, over the same files."""
    from deltalake.fs import DeltaStorageHandler

    table = DeltaTable(path)
    remote = fs.PyFileSystem(DeltaStorageHandler(table.table_uri))
    local = source_of_delta._choose_filesystem
    try:
        source_of_delta._choose_filesystem = lambda *given: (remote, "")
        rows = read_rows(table)
        loader = make_loader(table, 5)
    finally:
        source_of_delta._choose_filesystem = local
    assert rows == read_rows(table)
    assert read_ids(pickle.loads(pickle.dumps(loader))) == read_ids(loader)


def test_a_function_that_scans_is_read_each_epoch(path: str) -> None:
    table = DeltaTable(path)
    loader = make_loader(lambda: table.scan(columns=["id"]))
    for _ in range(2):
        assert sorted(read_ids(loader)) == [i for i in range(80) if i % 4]


def change(table: DeltaTable, random: random.Random, start: int) -> int:
    """Make the next version of a table; return the first id that it does not have."""
    kind = random.choice(["append", "delete", "update", "merge", "schema", "compact"])
    every = random.randrange(2, 9)
    if kind == "append":
        rows = random.randrange(1, 30)
        write_deltalake(table, make_table(start, rows), mode="append", schema_mode="merge")
        return start + rows
    if kind == "delete":
        table.delete(f"id % {every} = 1")
    elif kind == "update":
        table.update({"x": "x + 1"}, predicate=f"id % {every} = 0")
    elif kind == "merge":
        new = make_table(start - 4, 8)
        merge = table.merge(new, "s.id = t.id", source_alias="s", target_alias="t")
        columns = {name: f"s.{name}" for name in ("id", "part", "x", "pair")}
        merge.when_matched_update({"x": "s.x * 2"}).when_not_matched_insert(columns).execute()
        return start + 4
    elif kind == "schema":
        new = make_table(start, 3).append_column(f"more{random.randrange(3)}", pa.array([1, 2, 3]))
        write_deltalake(table, new, mode="append", schema_mode="merge")
        return start + 3
    else:
        table.optimize.compact()
    return start


def check_random_versions(random: random.Random, path: str) -> None:
    start = random.randrange(1, 50)
    config = {"delta.columnMapping.mode": "name"} if random.randrange(4) == 0 else {}
    parts = random.choice([None, ["part"]])
    write_deltalake(path, make_table(0, start), partition_by=parts, configuration=config)
    for _ in range(random.randrange(1, 6)):
        try:
            start = change(DeltaTable(path), random, start)
        except Exception:
            if not config:  # deltalake 1.6 does not write each change with column mapping
                raise
    newest = DeltaTable(path).version()
    for version in {newest, random.randrange(newest + 1)}:
        table = DeltaTable(path, version=version)
        expected = scan(table)
        assert sort_rows(read_rows(table)) == expected
        ranks = [make_loader(table, 4, shuffle=True, rank=r, world_size=2) for r in range(2)]
        ids = [i for loader in ranks for i in read_ids(loader)]
        assert sorted(ids) == [row["id"] for row in expected]


def test_random_versions(tmp_path: Path) -> None:
    paths = (str(tmp_path / str(i)) for i in range(10**9))
    check_cases(lambda random: check_random_versions(random, next(paths)), 6)


def test_random_deletion_vectors(tmp_path: Path) -> None:
    paths = (tmp_path / str(i) for i in range(10**9))

    def check(random: random.Random) -> None:
        path = next(paths)
        path.mkdir()
        rows = random.randrange(1, 60)
        deleted = [
            sorted(random.sample(range(rows), random.randrange(rows + 1)))
            for _ in range(random.randrange(1, 4))
        ]
        table = write_deleted(path, rows, deleted)
        expected = [i for i in range(rows * len(deleted)) if i % rows not in deleted[i // rows]]
        assert sorted(row["id"] for row in read_rows(table)) == expected

    check_cases(check, 6)


@pytest.mark.parametrize(
    "stored",
    ["../x.parquet", "%2E%2E/x.parquet", "..%2Fx.parquet", "a/../../x.parquet", "{}/x.parquet"],
)
def test_files_that_are_not_below_the_table_are_refused(tmp_path: Path, stored: str) -> None:
    """deltalake's scan() takes some of these, its other readers none."""
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    stored = stored.format(tmp_path)
    log = tmp_path / "t" / "_delta_log"
    write_log(tmp_path / "t", [make_field("id", "long")], [], features=["timestampNtz"])
    add = {"path": stored, "partitionValues": {}, "size": 1, "modificationTime": 0}
    entry = json.dumps({"add": {**add, "dataChange": True}})
    (log / f"{1:020}.json").write_text(entry)
    with pytest.raises(ValueError, match=r"is not below its folder|is a shallow clone"):
        make_loader(DeltaTable(str(tmp_path / "t")))
