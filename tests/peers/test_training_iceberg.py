"""Loader over snapshots of Iceberg tables, written by pyiceberg 0.12 with a catalog in SQLite.

pyiceberg writes no files of deletes: they are added to what it plans, and it reads them.
"""

from __future__ import annotations

import datetime
import itertools
import pickle
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
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
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

PAIR = pa.struct({"a": pa.int32(), "b": pa.list_(pa.struct({"u": pa.int64()}))})
DAY = datetime.date(2026, 1, 1)
numbers = itertools.count()


def make_table(start: int, rows: int) -> pa.Table:
    ids = range(start, start + rows)
    pairs = [None if i % 5 == 0 else {"a": i, "b": [{"u": i}] * (i % 3)} for i in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([None if i % 4 == 0 else f"text {i}" for i in ids], pa.string()),
            "x": pa.array([i / 2 for i in ids], pa.float32()),
            "pair": pa.array(pairs, PAIR),
            "map": pa.array([[(str(i), i)] for i in ids], pa.map_(pa.string(), pa.int32())),
        }
    )


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlCatalog]:
    path = tmp_path_factory.mktemp("iceberg")
    made = SqlCatalog("test", uri=f"sqlite:///{path}/catalog.db", warehouse=f"file://{path}")
    made.create_namespace("rows")
    yield made
    made.close()


@pytest.fixture
def table(catalog: SqlCatalog) -> Any:
    """Snapshots: of 50 rows, with 20 appended, with every fourth row deleted."""
    made = catalog.create_table(f"rows.t{next(numbers)}", schema=make_table(0, 1).schema)
    made.append(make_table(0, 50))
    made.append(make_table(50, 20))
    made.delete("id in (0, 4, 8, 52, 60)")
    return made


def list_snapshots(table: Any) -> list[int]:
    return [entry.snapshot_id for entry in table.history()]


def read_iceberg(scan: Any) -> list[dict[str, Any]]:
    return scan.to_arrow().to_pylist()


def test_the_commands_read_its_folder(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = table.location().removeprefix("file://")
    check_inspected(folder, 65, "Iceberg table", capsys)


def test_each_snapshot_is_read_as_pyiceberg_does(table: Any) -> None:
    found = [table.scan(snapshot_id=number) for number in list_snapshots(table)]
    for scan in [*found, table]:
        expected = read_iceberg(scan.scan() if scan is table else scan)
        assert read_rows(scan) == expected
        check_epochs(scan, [row["id"] for row in expected])
    assert len(read_rows(table)) == 65


def test_columns_and_filters(table: Any) -> None:
    rows = read_rows(table, ["pair.a", "id"], (ds.field("id") > 45) & (ds.field("x") < 30))
    kept = [i for i in range(46, 60) if i != 52]
    assert sort_rows(rows) == [{"pair.a": None if i % 5 == 0 else i, "id": i} for i in kept]
    for options in (
        {"row_filter": "text is null and id > 10", "selected_fields": ("id", "pair.b")},
        {"row_filter": "id in (1, 2, 3) or text = 'text 9'", "selected_fields": ("text", "id")},
        {"row_filter": "x >= 20.0 and not text is null"},
    ):
        scan = table.scan(**options)
        expected = read_iceberg(scan)
        assert expected
        assert read_rows(scan) == expected
        more = read_rows(scan, ["id"], ds.field("id") > 5)
        assert more == [{"id": row["id"]} for row in expected if row["id"] > 5]
    with pytest.raises(ValueError, match='"x" is not one column'):
        read_rows(table.scan(selected_fields=("id",)), ["x"])
    with pytest.raises(ValueError, match=r"limit=3.*to_arrow_batch_reader"):
        make_loader(table.scan(limit=3))


def test_a_state_belongs_to_a_snapshot(table: Any) -> None:
    one, *_, other = list_snapshots(table)
    check_versions(
        lambda: table.scan(snapshot_id=one), lambda: table, f"snapshot {one}", f"snapshot {other}"
    )


def test_writers_do_not_change_the_snapshot_that_is_read(table: Any) -> None:
    loader = make_loader(table, 3)
    expected = read_ids(loader)
    batches = iter(loader)
    ids = next(batches)["id"].tolist()
    table.append(make_table(100, 30))
    table.delete("id > 7")
    ids += [i for batch in batches for i in batch["id"].tolist()]
    assert ids == expected
    assert read_ids(loader) == expected, "the next epoch too"


def test_removed_files_are_an_error(table: Any) -> None:
    loader = make_loader(table.scan(snapshot_id=list_snapshots(table)[0]), 3, shuffle=True)
    file = next(iter(table.scan(snapshot_id=list_snapshots(table)[0]).plan_files())).file
    Path(file.file_path.removeprefix("file://")).unlink()
    with pytest.raises(FileNotFoundError, match="parquet") as caught:
        read_ids(loader)
    assert any("expired snapshots" in note for note in caught.value.__notes__)


def test_pickles_and_rows_by_number(table: Any) -> None:
    loader = make_loader(table, 3, shuffle=True)
    table.delete("id < 50")
    assert read_ids(pickle.loads(pickle.dumps(loader))) == read_ids(loader)
    rows = make_loader(table).map_dataset()
    assert sorted(int(rows[i]["id"]) for i in range(len(rows))) == [
        i for i in range(50, 70) if i not in (52, 60)
    ]


def test_a_table_without_snapshot_has_no_rows(catalog: SqlCatalog) -> None:
    made = catalog.create_table(f"rows.t{next(numbers)}", schema=make_table(0, 1).schema)
    assert read_rows(made) == []
    assert read_ids(make_loader(made)) == []


def test_schema_evolution(table: Any) -> None:
    """A name that is used again is another column; fields of structs are renamed and added."""
    with table.update_schema() as update:
        update.rename_column("text", "old")
        update.add_column("more", DoubleType())
        update.update_column("x", DoubleType())
        update.update_column("pair.a", LongType())
        update.rename_column("pair.b", "c")
        update.add_column(("pair", "b", "w"), StringType())
        update.move_first("map")
    with table.update_schema() as update:
        update.add_column("text", FloatType())
        update.add_column(("pair", "b"), IntegerType())
    first = list_snapshots(table)[0]
    rows = read_rows(table)
    for row, before in zip(rows, read_rows(table.scan(snapshot_id=first)), strict=False):
        assert row["text"] is row["more"] is None
        if row["id"] == before["id"]:
            assert row["old"] == before["text"]
    expected = []
    for i in (i for i in range(70) if i not in (0, 4, 8, 52, 60)):
        (own,) = make_table(i, 1).to_pylist()
        pair = own["pair"] and {
            "a": i,
            "c": [{"u": i, "w": None}] * (i % 3),
            "b": None,
        }
        more = {"more": None, "text": None, "old": own["text"], "pair": pair}
        expected.append({"id": i, "x": i / 2, "map": own["map"], **more})
    assert sort_rows(rows) == expected
    assert next(iter(rows[0])) == "map"
    found = read_rows(table, ["id", "pair.b"], ds.field("old") == "text 9")
    assert found == [{"id": 9, "pair.b": None}]
    table.append(pa.table({"id": [200], "text": pa.array([1.5], pa.float32())}))
    assert read_rows(table, ["id"], ds.field("text") > 1) == [{"id": 200}]
    with table.update_schema() as update:
        update.delete_column("x")
    assert "x" not in read_rows(table)[0]
    check_epochs(table, [row["id"] for row in expected] + [200])


def test_a_name_that_is_used_again_is_another_column(catalog: SqlCatalog) -> None:
    rows = make_table(0, 20).select(["id", "text", "x"])
    table = catalog.create_table(f"rows.t{next(numbers)}", schema=rows.schema)
    table.append(rows)
    with table.update_schema() as update:
        update.delete_column("text")
    with table.update_schema() as update:
        update.add_column("text", StringType())
    expected = [{"id": i, "x": i / 2, "text": None} for i in range(20)]
    assert read_rows(table) == expected == read_iceberg(table.scan())
    assert read_rows(table, ["id"], ds.field("text") == "text 9") == []
    with table.update_schema() as update:
        update.rename_column("x", "y")
    with table.update_schema() as update:
        update.rename_column("id", "x")
        update.rename_column("y", "id")
    assert read_rows(table, ["x", "id"]) == [{"x": i, "id": i / 2} for i in range(20)]


def test_files_without_field_ids(table: Any, tmp_path: Path) -> None:
    """They are read by the names that the table's name mapping has."""
    path = tmp_path / "added.parquet"
    pq.write_table(make_table(300, 10), path)
    table.add_files([f"file://{path}"])
    with table.update_schema() as update:
        update.rename_column("text", "renamed")
        update.rename_column("pair.b", "c")
    rows = [row for row in read_rows(table) if row["id"] >= 300]
    own = make_table(300, 10).to_pylist()
    assert [row["renamed"] for row in rows] == [row["text"] for row in own]
    assert [row["pair"] and row["pair"]["c"] for row in rows] == [
        row["pair"] and row["pair"]["b"] for row in own
    ]
    assert [row["map"] for row in rows] == [row["map"] for row in own]


@pytest.fixture
def partitioned(catalog: SqlCatalog) -> Any:
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "part", StringType(), required=False),
        NestedField(3, "day", DateType(), required=False),
    )
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "part"),
        PartitionField(3, 1001, IdentityTransform(), "day"),
    )
    made = catalog.create_table(f"rows.t{next(numbers)}", schema=schema, partition_spec=spec)
    parts = [None if i % 3 == 0 else f"ü/{i % 3}" for i in range(20)]
    days = [DAY + datetime.timedelta(i % 2) for i in range(20)]
    made.append(pa.table({"id": range(20), "part": pa.array(parts, pa.string()), "day": days}))
    return made


@pytest.mark.parametrize("lacks", [False, True])
def test_identity_partitions(partitioned: Any, lacks: bool) -> None:
    """Their values are in the files, or in the manifest only, as after a migration from Hive."""
    scan = partitioned.scan()
    expected = read_iceberg(scan)
    for task in scan.plan_files() if lacks else ():
        path = task.file.file_path.removeprefix("file://")
        pq.write_table(pq.ParquetFile(path).read(["id"]), path)
    assert read_rows(partitioned) == expected == read_iceberg(scan)
    rows = read_rows(partitioned, ["id"], (ds.field("part") == "ü/1") & (ds.field("day") == DAY))
    assert sort_rows(rows) == [{"id": i} for i in (4, 10, 16)]
    check_epochs(partitioned, list(range(20)))


def delete_rows(
    monkeypatch: pytest.MonkeyPatch, make: Any, content: DataFileContent, kind: FileFormat
) -> None:
    """Add the file of deletes that `make` writes for a data file to each plan."""
    plan = DataScan.plan_files

    def plan_files(scan: Any) -> list[FileScanTask]:
        tasks = []
        for i, task in enumerate(plan(scan)):
            file = DataFile.from_args(
                content=content, file_path=make(i, task.file), file_format=kind, partition={}
            )
            tasks.append(FileScanTask(task.file, {file}, task.residual))
        return tasks

    monkeypatch.setattr(DataScan, "plan_files", plan_files)


def write_positions(path: Path, i: int, file: Any) -> str:
    rows = [row for row in range(file.record_count) if (row + i) % 3 == 0 or row < 12]
    name = path / f"{i}-deletes.parquet"
    others = pa.table({"file_path": ["file:///another"] * 3, "pos": [1, 2, 5]})
    own = pa.table({"file_path": [file.file_path] * len(rows), "pos": rows[::-1]})
    pq.write_table(pa.concat_tables([own, others, own.slice(1)]), name)
    return f"file://{name}"


def test_positional_deletes(table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = len(read_rows(table))
    delete_rows(
        monkeypatch,
        lambda i, file: write_positions(tmp_path, i, file),
        DataFileContent.POSITION_DELETES,
        FileFormat.PARQUET,
    )
    expected = read_iceberg(table.scan())
    assert 0 < len(expected) < everything / 2 + 10
    assert read_rows(table) == expected
    check_epochs(table, [row["id"] for row in expected])
    filtered = table.scan(row_filter="id > 30")
    assert read_rows(filtered) == read_iceberg(filtered)
    with table.update_schema() as update:
        update.rename_column("text", "renamed")
    assert read_rows(table) == read_iceberg(table.scan())


def write_puffin(path: Path, i: int, file: Any) -> str:
    """Write a deletion vector, as the Puffin specification says."""
    import json
    import struct
    import zlib

    from pyroaring import BitMap

    rows = [row for row in range(file.record_count) if (row + i) % 3 == 0]
    vector = struct.pack("<qi", 1, 0) + BitMap(rows).serialize()
    body = b"\xd1\xd3\x39\x64" + vector
    blob = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    about = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(blob),
        "properties": {"referenced-data-file": file.file_path, "cardinality": str(len(rows))},
    }
    footer = json.dumps({"blobs": [about]}).encode()
    name = path / f"{i}.puffin"
    tail = struct.pack("<i", len(footer)) + b"\0" * 4 + b"PFA1"
    name.write_bytes(b"PFA1" + blob + b"PFA1" + footer + tail)
    return f"file://{name}"


def test_deletion_vectors(table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delete_rows(
        monkeypatch,
        lambda i, file: write_puffin(tmp_path, i, file),
        DataFileContent.POSITION_DELETES,
        FileFormat.PUFFIN,
    )
    expected = read_iceberg(table.scan())
    assert 0 < len(expected) < 50
    assert read_rows(table) == expected


def test_what_cannot_be_read_is_refused(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        delete_rows(
            patch, lambda i, file: "x", DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET
        )
        with pytest.raises(ValueError, match=r"has equality deletes.*rewrite_data_files"):
            make_loader(table)
    with monkeypatch.context() as patch:
        delete_rows(patch, lambda i, file: "x", DataFileContent.POSITION_DELETES, FileFormat.ORC)
        with pytest.raises(ValueError, match="positional deletes in ORC files"):
            make_loader(table)

    def plan_files(scan: Any) -> Any:
        raise ValueError("PyIceberg does not yet support equality deletes: https://")

    with monkeypatch.context() as patch:
        patch.setattr(DataScan, "plan_files", plan_files)
        with pytest.raises(ValueError, match=r"has equality deletes.*rewrite_data_files"):
            make_loader(table)
    task = next(iter(table.scan().plan_files()))
    orc = SimpleNamespace(file=SimpleNamespace(file_format=FileFormat.ORC), delete_files=())
    with monkeypatch.context() as patch:
        patch.setattr(DataScan, "plan_files", lambda scan: [task, orc])
        with pytest.raises(ValueError, match=r"has ORC files.*to_arrow_batch_reader"):
            make_loader(table)


def test_an_incremental_scan_is_refused(table: Any) -> None:
    first = table.history()[0].snapshot_id
    scan = table.incremental_append_scan(from_snapshot_id_exclusive=first)
    with pytest.raises(TypeError, match=r"lambda: scan\.to_arrow_batch_reader"):
        make_loader(scan)


def test_a_function_that_scans_is_read_each_epoch(table: Any) -> None:
    scan = table.scan(selected_fields=("id",))
    loader = make_loader(lambda: scan.to_arrow_batch_reader())
    for _ in range(2):
        assert len(read_ids(loader)) == 65


def change(table: Any, random: random.Random, start: int) -> int:
    """Make the next snapshot of a table; return the first id that it does not have."""
    kind = random.choice(["append", "delete", "overwrite", "upsert", "add", "rename", "widen"])
    rows = random.randrange(1, 20)
    names = {field.name for field in table.schema().fields}
    new = make_table(start, rows)
    new = new.select([name for name in new.column_names if name in names])
    if kind == "append":
        table.append(new)
    elif kind == "delete":
        table.delete(f"id > {random.randrange(start)} and id < {random.randrange(start + 1)}")
        return start
    elif kind == "overwrite":
        table.overwrite(new, overwrite_filter=f"id < {random.randrange(start + 1)}")
    elif kind == "upsert" and len(names) == len(new.column_names):
        table.upsert(new, ["id"])
    else:
        with table.update_schema() as update:
            if kind == "rename" and "text" in names:
                update.rename_column("text", f"text {start}")
            elif kind == "widen":
                update.update_column("x", DoubleType())
                update.update_column("pair.a", LongType())
            else:
                update.add_column(f"more {random.randrange(10**9)}", IntegerType())
        return start
    return start + rows


def check_random_snapshots(random: random.Random, catalog: SqlCatalog) -> None:
    made = catalog.create_table(f"rows.t{next(numbers)}", schema=make_table(0, 1).schema)
    start = random.randrange(1, 40)
    made.append(make_table(0, start))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deletes that match nothing
        for _ in range(random.randrange(1, 5)):
            start = change(made, random, start)
    chosen = made.scan(snapshot_id=random.choice(list_snapshots(made)))
    for source, scan in ((made, made.scan()), (chosen, chosen)):
        expected = read_iceberg(scan)
        assert read_rows(source) == expected
        ranks = [make_loader(source, 4, shuffle=True, rank=r, world_size=2) for r in range(2)]
        ids = [i for loader in ranks for i in read_ids(loader)]
        assert sorted(ids) == sorted(row["id"] for row in expected)


def test_random_snapshots(catalog: SqlCatalog) -> None:
    check_cases(lambda random: check_random_snapshots(random, catalog), 5)
