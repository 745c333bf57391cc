"""Opens a version of a Delta Lake table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from arrowdl.loader._schema.fields import find_paths
from arrowdl.loader._schema.filters import check_filter
from arrowdl.loader._sources.request import Request
from arrowdl.loader._storage.secrets import find_secrets
from arrowdl.loader._storage.steps_up import has_step_up
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField, list_children
from arrowdl.loader._tables.snapshots import remove_secrets
from arrowdl.loader._tables.version import DataFile, TableVersion, open_plan

if TYPE_CHECKING:
    import pyarrow as pa

    from arrowdl.loader._storage.access import Access

# What a reader has to know, of the protocol's table features. Variants are refused by their type.
_READ_FEATURES = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
}
_MOST_READER_VERSION = 3


def open_delta(table: Any, request: Request) -> DataFilesSource:
    """Open a ``deltalake.DeltaTable`` at the version that it has now."""
    plan, columns = request.plan, request.columns
    check_filter(request.filter)
    _check_features(table)
    fields = _leave_out(_read_fields(table), columns)
    location = remove_secrets(table.table_uri.removeprefix("file://"))
    number, version = table.metadata().id, table.version()
    secrets = find_secrets(table._storage_options or {})
    filesystem, root = _choose_filesystem(table, secrets, request.storage)
    name = f"Delta table {location!r} ({number}), version {version}"
    identity = f"delta {number} {version}"
    listed = _list_files(table, fields, root) if plan is None else open_plan(plan, identity, name)
    opened = TableVersion(name, identity, fields, listed, filesystem, secrets=secrets)
    if columns is not None:
        find_paths(columns, opened.make_schema())
    return DataFilesSource(opened, request)


def _check_features(table: Any) -> None:
    protocol = table.protocol()
    unknown = sorted(set(protocol.reader_features or ()) - _READ_FEATURES)
    if protocol.min_reader_version > _MOST_READER_VERSION and not unknown:
        unknown = [f"reader version {protocol.min_reader_version}"]
    if unknown:
        raise ValueError(
            f"the Delta table needs {', '.join(unknown)} to be read, which a Loader does not know: "
            "give a function that makes a stream, lambda: table.scan(), or write the rows to "
            "Parquet files"
        )


class _Tensors(NamedTuple):
    """A column of arrow.fixed_shape_tensor, which Delta stores as lists of any length."""

    name: str


def _leave_out(
    fields: Sequence[TableField | _Tensors], columns: list[str] | None
) -> list[TableField]:
    """Return the fields that have a type, where `columns` reads no others."""
    for field in fields:
        if isinstance(field, TableField):
            continue
        name = field.name
        if columns is None or any(f"{column}.".startswith(f"{name}.") for column in columns):
            raise ValueError(
                f'the column "{name}" of the Delta table has tensors (arrow.fixed_shape_tensor), '
                "which Delta stores as lists of any length, and no reader knows their shape: read "
                "the other columns, with columns=, or write the tensors as lists, "
                'arrowdl.to_arrow_device(tensors, layout="list")'
            )
    return [field for field in fields if isinstance(field, TableField)]


def _read_type(field: Any) -> pa.DataType | None:
    """Return the type of a field of arro3; None for tensors whose storage is not their own."""
    import pyarrow as pa

    try:
        return pa.field(field).type
    except pa.ArrowInvalid:
        if dict(field.metadata).get(b"ARROW:extension:name") != b"arrow.fixed_shape_tensor":
            raise
        return None


def _read_fields(table: Any) -> list[TableField | _Tensors]:
    types = [_read_type(field) for field in table.schema().to_arrow()]
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode not in ("none", "name", "id"):
        raise ValueError(f"the Delta table has the column mapping {mode!r}: expected name or id")
    described = json.loads(table.schema().to_json())["fields"]
    return [
        _Tensors(field["name"]) if type is None else _read_field(field, type, mode, field["name"])
        for field, type in zip(described, types, strict=True)
    ]


def _read_field(field: Mapping[str, Any], type: pa.DataType, mode: str, path: str) -> TableField:
    metadata = field.get("metadata", {})
    key: int | str = field["name"]
    if mode == "name":
        key = metadata["delta.columnMapping.physicalName"]
    elif mode == "id":
        key = int(metadata["delta.columnMapping.id"])
    return TableField(field["name"], type, key, _read_children(field["type"], type, mode, path))


def _read_children(kind: Any, type: pa.DataType, mode: str, path: str) -> tuple[TableField, ...]:
    if isinstance(kind, str):
        if kind == "variant":
            raise ValueError(
                f'the column "{path}" of the Delta table is a variant, which has no tensors: read '
                "the others with columns= of a function, lambda: table.scan(columns=[...])"
            )
        return ()
    children = list_children(type)
    if kind["type"] == "struct":
        return tuple(
            _read_field(field, children[i].type, mode, f"{path}.{field['name']}")
            for i, field in enumerate(kind["fields"])
        )
    # Items have no names or numbers of their own.
    names = ("elementType",) if kind["type"] == "array" else ("keyType", "valueType")
    return tuple(
        TableField(
            children[i].name,
            children[i].type,
            children[i].name,
            _read_children(kind[name], children[i].type, mode, path),
        )
        for i, name in enumerate(names)
    )


def _choose_filesystem(table: Any, secrets: Sequence[str], access: Access) -> tuple[Any, str]:
    """Return the file system of a table, and the path of the table in it."""
    import pyarrow.fs as fs

    url = urlsplit(table.table_uri)
    if url.scheme in ("", "file"):
        path = unquote(url.path) if url.scheme else table.table_uri
        return fs.LocalFileSystem(), f"{path.rstrip('/')}/"
    from arrowdl.loader._settings.retries import Retries
    from arrowdl.loader._storage.retry_calls import call_with_retries
    from arrowdl.loader._storage.secrets import Secrets
    from arrowdl.loader._storage.table_stores import open_table_store

    what = f"opening the store of {remove_secrets(table.table_uri)!r}"
    retries = access.retries or Retries()
    make = partial(open_table_store, table.table_uri, table._storage_options or {})
    filesystem = call_with_retries(retries, what, partial(Secrets(secrets).guard, make))
    if filesystem is not None:
        return filesystem, ""
    from deltalake.fs import DeltaStorageHandler

    handler = DeltaStorageHandler(table.table_uri, table._storage_options)
    return fs.PyFileSystem(handler), ""


def _list_files(table: Any, fields: Sequence[TableField], root: str) -> list[DataFile]:
    import pyarrow as pa

    actions = pa.table(table.get_add_actions())
    deleted = _read_deletion_vectors(table, root)
    constants = _read_partitions(table, actions, fields)
    files = []
    for path, values in zip(actions.column("path").to_pylist(), constants, strict=True):
        path = root + _read_path(path)
        files.append(DataFile(path, values, deleted=deleted.pop(path, None)))
    if deleted:
        raise ValueError(f"deletion vectors of files that are not in the table: {sorted(deleted)}")
    return files


def _read_path(path: str) -> str:
    """Return a path of the log, below the table."""
    decoded = unquote(path)
    if "://" in path or decoded.startswith(("/", "\\")):
        raise ValueError(
            f"the Delta table is a shallow clone, whose files are those of another table "
            f"({remove_secrets(path)!r}): give a function that makes a stream, "
            "lambda: table.scan()"
        )
    if has_step_up(decoded):
        raise ValueError(
            f"the log of the Delta table has {path!r}, which is not below its folder: who wrote it "
            "can name any file that this process may read. If that is meant, write the rows to "
            "another table"
        )
    return decoded


def _read_partitions(
    table: Any, actions: pa.Table, fields: Sequence[TableField]
) -> list[dict[str, Any]]:
    """Read the values of the partition columns, of each file."""
    names = table.metadata().partition_columns
    if not names:
        return [{} for _ in range(actions.num_rows)]
    import pyarrow.compute as pc

    column = actions.column("partition").combine_chunks()
    names_in_log = [field.name for field in column.type]
    fields_by_name = {field.name: field for field in fields}
    values = {}
    for name in names:
        # With column mapping, the log has the names of files.
        stored = name if name in names_in_log else fields_by_name[name].key
        values[name] = pc.struct_field(column, [names_in_log.index(stored)]).cast(
            fields_by_name[name].type
        )
    return [{name: values[name][i] for name in names} for i in range(actions.num_rows)]


def _read_deletion_vectors(table: Any, root: str) -> dict[str, pa.Array]:
    """Read the numbers of deleted rows, by the path of the file."""
    features = table.protocol().reader_features or ()
    if "deletionVectors" not in features:
        return {}
    import pyarrow as pa
    import pyarrow.compute as pc

    base = "file://" if root else f"{table.table_uri.rstrip('/')}/"
    deleted = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for path, mask in zip(*batch.columns, strict=True):
            file_path = unquote(path.as_py().removeprefix(base))
            deleted[file_path] = pc.indices_nonzero(pc.invert(mask.values)).cast(pa.int64())
    return deleted
