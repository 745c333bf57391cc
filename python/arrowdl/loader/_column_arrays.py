"""Columns as functions of one column get them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def unwrap_column(
    column: Any,
    name: str,  # of the value object that is called, such as "Image"
    example: str,  # name of a column for it
) -> pa.Array:
    """Return a column as one array, without a dictionary or an extension type.

    Raises TypeError if it is not a column.
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        raise TypeError(
            f"arrowdl.{name} takes a column, and got a {type(column).__name__}: give "
            f'transform_arrow={{"{example}": arrowdl.{name}(...)}}, with the name of the column'
        )
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if isinstance(column, pa.DictionaryArray):
        column = _widen_views(column).dictionary_decode()
    return column


def _widen_views(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Replace a dictionary of views, which pyarrow cannot decode."""
    import pyarrow as pa

    large = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if (kind := large.get(column.type.value_type)) is None:
        return column
    return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(kind))


def is_string(kind: pa.DataType) -> bool:
    """Whether rows are strings, in any of Arrow's layouts."""
    import pyarrow as pa

    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)
