"""Columns by their names, and fields of structs by their paths: ``"image.bytes"``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._schema.vocabulary import make_empty

if TYPE_CHECKING:
    import pyarrow as pa

Path = tuple[str, ...]


def find_paths(columns: Sequence[str], schema: Any) -> list[Path]:
    """Return the path of each of `columns`: the names of a column and of fields in it.

    A column whose own name has the dots comes before a field.
    """
    return [_find_path(name, schema) for name in columns]


def _find_path(column: str, schema: Any) -> Path:
    paths = [(column,)] if column in schema.names else list(_find_fields(column, schema))
    count = schema.names.count(column) if column in schema.names else len(paths)
    if count != 1:
        raise ValueError(
            f'columns: "{column}" is not one column of the source, which has {schema.names}'
            + _describe_parent(column, schema)
        )
    return paths[0]


def _find_fields(path: str, fields: Any) -> Iterator[Path]:
    """Yield the paths of names that are joined to `path` by dots."""
    import pyarrow as pa

    for field in fields:
        if field.name == path:
            yield (field.name,)
        elif path.startswith(f"{field.name}.") and pa.types.is_struct(field.type):
            for inner in _find_fields(path[len(field.name) + 1 :], field.type):
                yield (field.name, *inner)


def _describe_parent(column: str, schema: Any) -> str:
    """Say which fields the struct has that a path begins with."""
    import pyarrow as pa

    name = column.partition(".")[0]
    if name == column or schema.names.count(name) != 1:
        return ""
    field = schema.field(name)
    if not pa.types.is_struct(field.type):
        return f'; "{name}" is {field.type}, which has no fields'
    return f'; the fields of "{name}" are {[child.name for child in field.type]}'


def choose_columns(columns: list[str] | None, schema: pa.Schema) -> list[str] | None:
    """Return the columns that are read: without pandas' unnamed index if None are chosen."""
    return _core.list_columns(schema) if columns is None else columns


def forget_pandas(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the metadata of pandas: each of its fields is a column."""
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key != b"pandas"}
    return schema.with_metadata(metadata or None)


def has_column(column: str, schema: Any) -> bool:
    """Whether `schema` has a column of this name, or a field of this path."""
    return column in schema.names or any(True for _ in _find_fields(column, schema))


def select_fields(table: pa.Table, columns: list[str]) -> pa.Table:
    """Return the columns and fields of a table; a field is null where its struct is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = find_paths(columns, table.schema)
    if all(len(path) == 1 for path in paths):
        selected = table.select(columns)
        if b"pandas" not in (table.schema.metadata or {}) or not columns:  # it may have rows
            return selected
        return selected.replace_schema_metadata(forget_pandas(selected.schema).metadata)
    arrays = [
        table.column(path[0])
        if len(path) == 1
        else pc.struct_field(table.column(path[0]), list(path[1:]))
        for path in paths
    ]
    return pa.table(arrays, names=columns)


def select_stream(stream: _core.DeviceStream, columns: list[str]) -> _core.DeviceStream:
    """Return a stream of columns and fields."""
    import pyarrow as pa

    if set(columns) <= {field.name for field in stream.schema.children}:
        return stream.select(columns)
    schema = pa.schema(stream.schema)
    paths = find_paths(columns, schema)
    empty = _core.from_arrow(make_empty(schema))

    def select() -> Iterator[_core.DeviceArray]:
        if _core.is_host_readable((stream.device_type, 0)):
            yield _select(empty, columns, paths)  # for a stream without arrays
        for array in stream:
            yield _select(array, columns, paths)

    return _core.from_arrow_stream(select())


def _select(
    array: _core.DeviceArray, columns: list[str], paths: Sequence[Path]
) -> _core.DeviceArray:
    fields = []
    for path in paths:
        field = array
        for name in path:
            field = field.field(name)
        fields.append(field)
    return _core.make_struct(columns, fields)
