"""The encoded files of a column: bytes, structs {bytes, path}, or paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arrowdl.loader._column_arrays import is_string, unwrap_column

if TYPE_CHECKING:
    import pyarrow as pa


def list_encoded(
    column: Any,
    name: str,  # of the value object that is called, such as "Image"
    noun: str,  # what a file is, such as "image"
) -> Sequence[Any]:
    """List the files of a column: a buffer or a path each, or None for a null.

    Raises TypeError if the column has no files.
    """
    import pyarrow as pa

    column = unwrap_column(column, name, noun)
    if pa.types.is_null(column.type):
        return [None] * len(column)
    if _is_binary(column.type):
        return _list_buffers(column)
    if is_string(column.type):
        return list(column.to_pylist())
    if pa.types.is_struct(column.type):
        rows = _list_of_struct(column)
        if rows is not None:
            return rows
    raise TypeError(
        f"arrowdl.{name} cannot decode a column of {column.type}: it takes binary, structs "
        "{bytes, path} of binary and strings, or strings that are paths or URLs"
    )


def _list_of_struct(column: pa.StructArray) -> Sequence[Any] | None:
    """List the files of structs; None if their fields are others."""
    import pyarrow as pa

    types = {field.name: field.type for field in column.type}
    data, paths = types.get("bytes", pa.null()), types.get("path", pa.null())
    has_data, has_paths = _is_binary(data), is_string(paths)
    if not (has_data or has_paths) or not all(
        has or pa.types.is_null(kind) for has, kind in ((has_data, data), (has_paths, paths))
    ):
        return None
    names = [field.name for field in column.type]
    fields = column.flatten()  # with the nulls of the structs
    nulls = [None] * len(column)
    buffers = _list_buffers(fields[names.index("bytes")]) if has_data else nulls
    files = fields[names.index("path")].to_pylist() if has_paths else nulls
    pairs = zip(buffers, files, strict=True)
    return [path if buffer is None else buffer for buffer, path in pairs]


def _list_buffers(column: pa.Array) -> list[Any]:
    """List the bytes of rows, without a copy; None for a null."""
    return [value.as_buffer() if value.is_valid else None for value in column]


def _is_binary(kind: pa.DataType) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(check(kind) for check in checks)
