"""The encoded images of a column: bytes, structs {bytes, path}, or paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arrowdl.loader._column_arrays import is_string, unwrap_column

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Encoded:
    """An encoded image: one of both is there, or it is null."""

    data: Any = None  # a buffer
    path: str | None = None

    @property
    def is_null(self) -> bool:
        """Whether there is no image."""
        return self.data is None and self.path is None


def list_encoded(column: Any) -> Sequence[Encoded]:
    """List the images of a column.

    Raises TypeError if the column has no images.
    """
    import pyarrow as pa

    column = unwrap_column(column, "Image", "image")
    if pa.types.is_null(column.type):
        return [Encoded()] * len(column)
    if _is_binary(column.type):
        return [Encoded(data=buffer) for buffer in _list_buffers(column)]
    if is_string(column.type):
        return [Encoded(path=path) for path in column.to_pylist()]
    if pa.types.is_struct(column.type):
        return _list_of_struct(column)
    raise _refuse(column.type)


def _list_of_struct(column: pa.StructArray) -> Sequence[Encoded]:
    import pyarrow as pa

    types = {field.name: field.type for field in column.type}
    data, paths = types.get("bytes", pa.null()), types.get("path", pa.null())
    has_data, has_paths = _is_binary(data), is_string(paths)
    if not (has_data or has_paths) or not all(
        known or pa.types.is_null(kind) for known, kind in ((has_data, data), (has_paths, paths))
    ):
        raise _refuse(column.type)
    names = [field.name for field in column.type]
    fields = column.flatten()  # with the nulls of the structs
    nulls = [None] * len(column)
    buffers = _list_buffers(fields[names.index("bytes")]) if has_data else nulls
    files = fields[names.index("path")].to_pylist() if has_paths else nulls
    return [
        Encoded(path=path) if buffer is None else Encoded(data=buffer)
        for buffer, path in zip(buffers, files, strict=True)
    ]


def _list_buffers(column: pa.Array) -> list[Any]:
    """List the bytes of rows, without a copy; None for a null."""
    return [value.as_buffer() if value.is_valid else None for value in column]


def _is_binary(kind: pa.DataType) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(check(kind) for check in checks)


def _refuse(kind: pa.DataType) -> TypeError:
    return TypeError(
        f"arrowdl.Image cannot decode a column of {kind}: it takes binary, structs {{bytes, path}} "
        "of binary and strings, or strings that are paths or URLs"
    )
