"""Files of a table version: other names and types than the table, deleted rows, constants.

The real formats are in tests/peers.
"""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import random
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._reader import EpochReader
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField
from arrowdl.loader._tables.snapshots import remove_secrets
from arrowdl.loader._tables.version import DataFile, TableVersion
from helpers.random_cases import check_cases

Row = dict[str, Any]


def with_id(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(number)})


def read(source: DataFilesSource) -> list[Row]:
    rows = pa.table(source.read(range(len(source.units)))).to_pylist()
    assert len(rows) == source.num_rows
    return rows


def make_reader(source: DataFilesSource) -> Any:
    """Return a Loader over a source."""
    loader = arrowdl.Loader(pa.table({"id": [1]}), 3, framework="numpy")
    EpochReader.__init__(loader, source, loader._options)
    return loader


@pytest.fixture
def version(tmp_path: Path) -> TableVersion:
    """Two files: of the first, rows are deleted; the second has older names and types."""
    table = pa.table({"id": pa.array(range(20)), "x": [i / 2 for i in range(20)]})
    pq.write_table(table, tmp_path / "new.parquet", row_group_size=8)
    fields = [with_id(pa.field("x", pa.int32()), 1), with_id(pa.field("id", pa.string()), 3)]
    old = pa.table([pa.array(range(20, 25), pa.int32()), ["a"] * 5], pa.schema(fields))
    pq.write_table(old, tmp_path / "old.parquet")
    new, old_path = (str(tmp_path / f"{name}.parquet") for name in ("new", "old"))
    columns = [
        TableField("id", pa.int64(), 1),
        TableField("x", pa.float64(), 2),
        TableField("part", pa.string(), 4),
    ]
    files = [
        DataFile(new, {"part": "p"}, deleted=pa.array([0, 7, 8, 19])),
        DataFile(old_path, {"part": None}, {"x": 0.5}),
    ]
    ids = {"id": (1, {}), "x": (2, {})}
    return TableVersion("table t, version 3", "t 3", columns, files, fs.LocalFileSystem(), ids)


KEPT = [i for i in range(20) if i not in (0, 7, 8, 19)]
ROWS = [{"id": i, "x": i / 2, "part": "p"} for i in KEPT] + [
    {"id": i, "x": 0.5, "part": None} for i in range(20, 25)
]


def test_rows(version: TableVersion) -> None:
    source = DataFilesSource(version, Request())
    assert source.units == [6, 7, 3, 5]
    assert read(source) == ROWS
    chosen = DataFilesSource(
        version, Request(["part", "id"], (ds.field("id") > 5) & (ds.field("x") < 5))
    )
    expected = [row for row in ROWS if row["id"] > 5 and row["x"] < 5]
    assert read(chosen) == [{"part": row["part"], "id": row["id"]} for row in expected]
    (null,) = {
        row["x"]
        for row in read(DataFilesSource(version, Request(["x"], ds.field("part").is_null())))
    }
    assert null == 0.5
    assert read(pickle.loads(pickle.dumps(source))) == ROWS
    assert read(source.select("id")) == [{"id": row["id"]} for row in ROWS]  # type: ignore[arg-type]


def test_a_state_names_the_version(version: TableVersion) -> None:
    loader = make_reader(DataFilesSource(version, Request(["id"])))
    assert next(iter(loader))["id"].tolist() == KEPT[:3]
    state = loader.state_dict()
    assert state["snapshot"] == "table t, version 3"
    again = make_reader(DataFilesSource(version, Request(["id"])))
    again.load_state_dict(state)
    ids = [i for batch in again for i in batch["id"].tolist()]
    assert ids == [*KEPT[3:], *range(20, 25)]
    newer = dataclasses.replace(version, name="table t, version 4", identity="t 4")
    other = make_reader(DataFilesSource(newer, Request(["id"])))
    with pytest.raises(ValueError, match=r"the state is of table t, version 3, .* version 4"):
        other.load_state_dict(state)
    with pytest.raises(ValueError, match=r"version 3, .* reads a source without versions"):
        arrowdl.Loader(pa.table({"id": [1]}), 3).load_state_dict(state)


def test_a_removed_file_is_an_error(version: TableVersion) -> None:
    loader = make_reader(DataFilesSource(version, Request(["id"])))
    Path(version.files[1].path).unlink()
    with pytest.raises(FileNotFoundError, match=r"old.parquet' was removed") as caught:
        list(loader)
    assert "while arrowdl.Loader read table t, version 3" in caught.value.__notes__[0]


def test_a_required_column_is_not_null(version: TableVersion) -> None:
    fields = [*version.fields, TableField("more", pa.int64(), 9, is_required=True)]
    changed = dataclasses.replace(version, fields=fields)
    with pytest.raises(OSError, match='"more" is required'):
        read(DataFilesSource(changed, Request()))


def test_locations_have_no_secrets() -> None:
    assert remove_secrets("s3://key:secret@bucket/t?token=x#y") == "s3://bucket/t"
    assert remove_secrets("/data/a@b?c") == "/data/a@b?c"


# ---- random structures: each field of the table is found by its number in a file's structure


class Structures:
    """A type of a file and what a newer table makes of it, with a value in both."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.numbers = itertools.count(1)

    def make(self, depth: int) -> tuple[pa.DataType, pa.DataType, tuple[TableField, ...], Any]:
        """Return a type, the table's type, its fields, and a function that makes two values."""
        kind = self.random.choice(
            ["int", "float", "text", "struct", "list", "map"][: 6 if depth else 3]
        )
        if kind == "struct":
            return self._make_struct(depth)
        if kind in ("list", "map"):
            return self._make_list(depth, kind == "map")
        old, new = {
            "int": (pa.int32(), self.random.choice([pa.int32(), pa.int64()])),
            "float": (pa.float32(), self.random.choice([pa.float32(), pa.float64()])),
            "text": (pa.string(), pa.string()),
        }[kind]
        values = {"int": [None, 1, 2], "float": [None, 0.5], "text": [None, "", "a"]}[kind]

        def make_value() -> tuple[Any, Any]:
            value = self.random.choice(values)
            return value, value

        return old, new, (), make_value

    def _make_struct(self, depth: int) -> Any:
        parts = [
            (next(self.numbers), self.make(depth - 1)) for _ in range(self.random.randrange(1, 4))
        ]
        stored = pa.struct([with_id(pa.field(f"f{n}", part[0]), n) for n, part in parts])
        kept = [own for own in parts if self.random.randrange(4)]
        self.random.shuffle(kept)
        fields = [
            TableField(self.random.choice([f"f{n}", f"renamed{n}"]), part[1], n, part[2])
            for n, part in kept
        ]
        if not kept or self.random.randrange(3) == 0:
            fields.append(TableField("added", pa.int64(), next(self.numbers)))
        type = pa.struct([(field.name, field.type) for field in fields])

        def make_value() -> tuple[Any, Any]:
            if self.random.randrange(4) == 0:
                return None, None
            values = {n: part[3]() for n, part in parts}
            new = {f.name: values[f.key][1] if f.key in values else None for f in fields}
            return {f"f{n}": values[n][0] for n, _ in parts}, new

        return stored, type, tuple(fields), make_value

    def _make_list(self, depth: int, is_map: bool) -> Any:
        number = next(self.numbers)
        old, new, children, make_item = self.make(depth - 1)
        field = TableField("value" if is_map else "element", new, number, children)
        stored = with_id(pa.field(field.name, old), number)
        key = TableField("key", pa.string(), next(self.numbers))
        types = [pa.map_(pa.string(), stored), pa.map_(pa.string(), new)]
        if not is_map:
            make = self.random.choice([pa.list_, pa.large_list])
            types = [make(stored), make(pa.field("element", new))]

        def make_value() -> tuple[Any, Any]:
            if self.random.randrange(4) == 0:
                return None, None
            items = [make_item() for _ in range(self.random.randrange(3))]
            if is_map:
                return tuple(
                    [(str(i), item[side]) for i, item in enumerate(items)] for side in (0, 1)
                )
            return [item[0] for item in items], [item[1] for item in items]

        return types[0], types[1], (key, field) if is_map else (field,), make_value


def check_structures(random: random.Random, path: str) -> None:
    structures = Structures(random)
    old, new, children, make_value = structures.make(3)
    values = [make_value() for _ in range(random.randrange(1, 40))]
    number = next(structures.numbers)
    schema = pa.schema([with_id(pa.field("column", old), number)])
    table = pa.Table.from_arrays([pa.array([value for value, _ in values], old)], schema=schema)
    pq.write_table(table, path, row_group_size=random.randrange(1, 20))
    deleted = sorted(random.sample(range(len(values)), random.randrange(len(values))))
    file = DataFile(path, deleted=pa.array(deleted, pa.int64()) if random.randrange(2) else None)
    fields = [TableField(random.choice(["column", "renamed"]), new, number, children)]
    made = TableVersion("t", "t", fields, [file], fs.LocalFileSystem())
    expected = [
        {fields[0].name: value}
        for i, (_, value) in enumerate(values)
        if file.deleted is None or i not in deleted
    ]
    assert read(DataFilesSource(made, Request())) == expected


def test_random_structures(tmp_path: Path) -> None:
    check_cases(lambda random: check_structures(random, str(tmp_path / "rows.parquet")), 40)
