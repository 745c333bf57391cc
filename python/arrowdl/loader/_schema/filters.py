"""Checks what is given as `filter`, describes it, and finds the columns that it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

from arrowdl.loader._schema.expressions import Call, Node, list_fields, list_values, read_expression
from arrowdl.loader._schema.fields import find_paths, select_fields
from arrowdl.loader._skipped import OptionError, describe

if TYPE_CHECKING:
    import pyarrow as pa


# Functions of pyarrow.compute whose expressions pyarrow cannot evaluate, and what to write.
_WITHOUT_FUNCTION = {"and_": "a & b", "or_": "a | b"}


def check_filter(filter: Any, also: str = "") -> None:
    """Raise TypeError unless `filter` is None or a pyarrow expression; `also` ends the advice."""
    import pyarrow.compute as pc

    if filter is None:
        return
    if not isinstance(filter, pc.Expression):
        raise TypeError(
            f"filter={filter!r}: give a pyarrow expression, such as "
            'pyarrow.dataset.field("x") > 3; pyarrow.parquet.filters_to_expression makes one from '
            f"tuples{also}"
        )
    for name in _list_functions(read_expression(filter)):
        if name in _WITHOUT_FUNCTION:
            raise ValueError(
                f"filter={show_filter(filter)}: pyarrow cannot evaluate an expression of "
                f"pyarrow.compute.{name}(): write {_WITHOUT_FUNCTION[name]}"
            )


def _list_functions(node: Node | None) -> Iterator[str]:
    """Yield the names of the functions that an expression calls."""
    nodes = [node]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Call):
            yield node.function
            nodes.extend(node.arguments)


def show_filter(filter: Any) -> str:
    """Return a text of a filter for users."""
    try:
        return str(filter)
    except UnicodeDecodeError as error:  # pyarrow cuts long values, also inside of a character
        return bytes(error.object).decode(errors="replace")


def describe_filter(filter: Any) -> str:
    """Return a text that is the same for the same filter alone.

    pyarrow's own leaves out values in the middle of long lists, and ends of long strings.
    """
    text = show_filter(filter)
    if isinstance(filter, str) or "..." not in text:
        return text
    values = repr(list_values(filter))
    return f"{text} {hashlib.blake2b(values.encode(), digest_size=8).hexdigest()}"


def list_columns(filter: Any) -> set[str] | None:
    """List the columns that a filter needs; None if it does not say which."""
    if filter is None:
        return set()
    tree = read_expression(filter)
    return None if tree is None else {field.path[0] for field in list_fields(tree)}


def find_columns(names: Sequence[str], columns: Sequence[str] | None, filter: Any) -> set[str]:
    """Return those of `names` that a scan of `columns` with `filter` needs."""
    needed = list_columns(filter)
    if columns is None or needed is None:
        return set(names)
    return {name for name in names if name in columns or name in needed}


def add_mask(columns: Sequence[str], filter: Any, schema: pa.Schema) -> dict[str, Any]:
    """Return what a scanner takes as `columns`: these, and last whether `filter` keeps a row."""
    import pyarrow.dataset as ds

    paths = find_paths(columns, schema)
    named = {name: ds.field(*path) for name, path in zip(columns, paths, strict=True)}
    mask = "keep"
    while mask in named:
        mask += "_"
    return {**named, mask: filter}


def keep_rows(
    batches: Iterable[pa.RecordBatch], filter: Any, columns: list[str] | None
) -> Iterator[pa.RecordBatch]:
    """Yield `columns`, or all, of the rows of batches that `filter` keeps."""
    import pyarrow as pa

    for batch in batches:
        table = apply_filter(pa.table(batch), filter)
        yield from (table if columns is None else select_fields(table, columns)).to_batches()


def apply_filter(table: pa.Table, filter: Any) -> pa.Table:
    """Return the rows of a table that `filter` keeps; string and binary views are strings then."""
    import pyarrow as pa

    if filter is None:
        return table
    schema = views_to_strings(table.schema)
    whole = table if schema.equals(table.schema) else table.cast(schema)
    try:
        return _filter(whole, filter)
    except pa.ArrowException as error:
        if isinstance(error, MemoryError):
            raise
        raise OptionError(
            f"filter={show_filter(filter)} cannot be evaluated on the rows that were read "
            f"({describe(error)}): give one that holds for every row, or choose the rows in "
            "transform_arrow="
        ) from error


def _filter(table: pa.Table, filter: Any) -> pa.Table:
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        return table.filter(filter)
    except pa.ArrowNotImplementedError:  # of the filter, or of columns that are only kept
        batches: list[pa.RecordBatch] = []
    for batch in table.to_batches():
        mask = ds.dataset(batch).to_table(columns={"keep": filter}).column(0).combine_chunks()
        batches += take_true(batch, mask)
    return pa.Table.from_batches(batches, table.schema)


def take_true(rows: pa.RecordBatch, mask: pa.Array) -> Iterator[pa.RecordBatch]:
    """Yield the rows for which `mask` is true, also of types that pyarrow cannot filter."""
    import pyarrow as pa

    try:
        yield rows.filter(mask)
        return
    except pa.ArrowNotImplementedError:  # of unions, extension types of views, ...
        runs = [(is_kept, len(list(run))) for is_kept, run in groupby(mask.to_pylist())]
    ends = accumulate(count for _, count in runs)
    parts = [
        rows.slice(end - count, count)
        for (is_kept, count), end in zip(runs, ends, strict=True)
        if is_kept
    ]
    yield from pa.Table.from_batches(parts, rows.schema).combine_chunks().to_batches()


def views_to_strings(schema: pa.Schema) -> pa.Schema:
    """Return `schema` with string and binary views as strings: pyarrow filters no views."""
    import pyarrow as pa

    fields = [field.with_type(_replace_views(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def _replace_views(type: pa.DataType) -> pa.DataType:
    import pyarrow as pa
    from pyarrow import types

    def replace(field: pa.Field) -> pa.Field:
        return field.with_type(_replace_views(field.type))

    if types.is_string_view(type):
        return pa.large_string()
    if types.is_binary_view(type):
        return pa.large_binary()
    if types.is_struct(type):
        return pa.struct(list(map(replace, type)))
    if types.is_map(type):
        return pa.map_(replace(type.key_field), replace(type.item_field), type.keys_sorted)
    if types.is_list(type):
        return pa.list_(replace(type.value_field))
    if types.is_large_list(type):
        return pa.large_list(replace(type.value_field))
    if types.is_fixed_size_list(type):
        return pa.list_(replace(type.value_field), type.list_size)
    if types.is_dictionary(type):
        return pa.dictionary(type.index_type, _replace_views(type.value_type), type.ordered)
    return type
