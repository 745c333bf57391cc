"""`TableVersion`: the data files of one version of a table, and how they are kept in a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.file_plan import FilePlan, PlannedTable
from arrowdl.loader._tables.fields import TableField

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table."""

    path: str  # in the file system of the table
    # values of columns that are the same in all rows and are not read from the file
    constants: Mapping[str, Any] = field(default_factory=dict)
    # values of columns if the file lacks them
    defaults: Mapping[str, Any] = field(default_factory=dict)
    deleted: pa.Array | None = None  # numbers of deleted rows: int64, ascending, without nulls
    # of the file, as its footer has it. None: the footer has to be read
    schema: pa.Schema | None = None


@dataclass(frozen=True)
class TableVersion:
    """One version of a table."""

    name: str  # for users, without secrets
    identity: str  # what decides on the rows: the table's number and the version
    fields: Sequence[TableField]
    files: Sequence[DataFile]
    filesystem: Any
    field_ids: Mapping[str, Any] | None = None  # of files without field ids, as in `set_field_ids`
    # of the file system, that errors must not have
    secrets: Sequence[str] = field(default=(), repr=False)
    place: str = ""  # see `PlannedTable`

    def make_schema(self) -> pa.Schema:
        """Return the columns of the table."""
        import pyarrow as pa

        return pa.schema([(field.name, field.type) for field in self.fields])

    def make_plan(self, files: Iterable[DataFile]) -> PlannedTable:
        """Return what a plan has of this version, with `files` of it."""
        packed = pack_files(list(files), self.make_schema())
        return PlannedTable(self.identity, self.name, self.place, packed)


def open_plan(plan: FilePlan, identity: str, name: str) -> list[DataFile]:
    """Return the files of a plan of a version."""
    plan.check_source(identity, name)
    assert plan.table is not None
    try:
        return unpack_files(plan.table.files, [file.path for file in plan.files])
    except Exception as error:  # whatever was made of it
        raise ValueError(
            f"the plan of {name} is damaged, or was changed by hand ({error}): make a new one"
        ) from None


def pack_files(
    files: Sequence[DataFile],  # with their schemas
    schema: pa.Schema,  # with the types of the columns whose values are constants and defaults
) -> bytes:
    """Return all but the paths of files, as a stream of Arrow."""
    import pyarrow as pa

    stored = [_dump_schema(file.schema) for file in files if file.schema is not None]
    columns = {
        "schema": pa.array(stored, pa.binary()).dictionary_encode(),
        "deleted": _join_lists([file.deleted for file in files]),
        **_pack_values("constants", [file.constants for file in files], schema),
        **_pack_values("defaults", [file.defaults for file in files], schema),
    }
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def unpack_files(data: bytes, paths: Sequence[str]) -> list[DataFile]:
    """Return the files at `paths`, of which `pack_files` made `data`."""
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    table.validate(full=True)
    table = table.combine_chunks()
    if table.num_rows != len(paths):
        raise ValueError(f"it has {len(paths)} files, and what is known of {table.num_rows}")
    schemas: dict[bytes, pa.Schema] = {}
    constants, scalars = (_unpack_values(column, table) for column in ("constants", "defaults"))
    defaults = [
        {name: column if column.is_valid else None for name, column in of.items()} for of in scalars
    ]
    files = []
    for i, path in enumerate(paths):
        stored, deleted = table["schema"][i].as_py(), table["deleted"][i].values
        if stored not in schemas:
            schemas[stored] = pa.ipc.read_schema(pa.py_buffer(stored))
        files.append(DataFile(path, constants[i], defaults[i], deleted, schemas[stored]))
    return files


def _dump_schema(schema: pa.Schema) -> bytes:
    import pyarrow as pa

    # Only what was read once gives the same bytes each time.
    again = pa.ipc.read_schema(schema.serialize())
    return bytes(again.serialize().to_pybytes())


def _join_lists(lists: Sequence[pa.Array | None]) -> pa.Array:
    import pyarrow as pa

    ends = list(accumulate((0 if items is None else len(items) for items in lists), initial=0))
    starts = [
        None if items is None else start for items, start in zip(lists, ends[:-1], strict=True)
    ]
    values = [items for items in lists if items is not None]
    joined = pa.concat_arrays(values) if values else pa.array([], pa.int64())
    return pa.LargeListArray.from_arrays(pa.array([*starts, ends[-1]], pa.int64()), joined)


def _pack_values(
    prefix: str, values: Sequence[Mapping[str, Any]], schema: pa.Schema
) -> dict[str, pa.Array]:
    """Return the names of the values of each file, and a column for each name."""
    import pyarrow as pa

    names = dict.fromkeys(name for row_values in values for name in row_values)
    arrays = {prefix: pa.array([list(row_values) for row_values in values], pa.list_(pa.string()))}
    for name in names:
        kind = schema.field(name).type
        scalars = [pa.scalar(row_values.get(name), kind) for row_values in values]
        arrays[f"{prefix} {name}"] = pa.array(scalars, kind)
    return arrays


def _unpack_values(prefix: str, table: pa.Table) -> list[dict[str, Any]]:
    names = table[prefix].to_pylist()
    columns = {name: table[f"{prefix} {name}"] for name in dict.fromkeys(chain(*names))}
    return [{name: columns[name][i] for name in row_names} for i, row_names in enumerate(names)]
