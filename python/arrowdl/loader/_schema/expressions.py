"""pyarrow's expressions as trees, by the form in which pyarrow pickles them.

It is an Arrow file: its metadata has the tree from the root on, and its columns have the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from arrowdl import _core

if TYPE_CHECKING:
    import pyarrow as pa

Entries: TypeAlias = list[tuple[bytes, bytes]]


class Field(NamedTuple):
    """A column, or a field of structs: its names from the outside in."""

    path: tuple[str, ...]


class Literal(NamedTuple):
    """A value."""

    value: pa.Scalar


class Call(NamedTuple):
    """A function of pyarrow, with the fields of its options."""

    function: str
    arguments: tuple[Node, ...]
    options: Mapping[str, pa.Scalar]


Node: TypeAlias = Field | Literal | Call


class _Pickled(NamedTuple):
    """What pyarrow pickles of an expression, and the function that reads it."""

    entries: Entries
    values: pa.Table
    load: Callable[[pa.Buffer], Any]


def read_expression(expression: Any) -> Node | None:
    """Return the tree of an expression; None if pyarrow cannot pickle it or this cannot read it."""
    pickled = _pickle(expression)
    return None if pickled is None else _read_tree(pickled)


def list_values(expression: Any) -> list[tuple[str, Any]] | None:
    """Return type and value of each literal and option; None as of `read_expression`."""
    pickled = _pickle(expression)
    if pickled is None:
        return None
    return [(str(column.type), column.to_pylist()) for column in pickled.values.columns]


def split_conjunction(expression: Any) -> list[Any]:
    """Return the expressions that are joined by `&`; only `expression` if there are no others."""
    pickled = _pickle(expression)
    if pickled is None or _read_tree(pickled) is None:
        return [expression]
    parts = list(_list_parts(pickled.entries))
    return [expression] if len(parts) == 1 else [_load(pickled, part) for part in parts]


def _list_parts(entries: Entries) -> Iterator[Entries]:
    start = 0
    while start < len(entries):
        kind, name = entries[start]
        if kind == b"end" or (kind, name) == (b"call", b"and_kleene"):
            start += 1
            continue
        stop = _find_stop(entries, start)
        yield entries[start:stop]
        start = stop


def _find_stop(entries: Entries, start: int) -> int:
    """Return the number of the entry after a field, a literal or a call."""
    kind, value = entries[start]
    if kind == b"nested_field_ref":
        return start + 1 + int(value)
    depth = 0
    for i in range(start, len(entries)):
        depth += {b"call": 1, b"end": -1}.get(entries[i][0], 0)
        if depth == 0:
            return i + 1
    return len(entries)


def _pickle(expression: Any) -> _Pickled | None:
    import pyarrow as pa

    try:
        load, (data,) = expression.__reduce__()
        with pa.ipc.open_file(data) as file:
            return _Pickled(_core.list_metadata(file.schema), file.read_all(), load)
    except (pa.ArrowException, TypeError, ValueError):
        return None


def _load(pickled: _Pickled, entries: Entries) -> Any:
    """Return the expression of some entries."""
    import pyarrow as pa

    columns = [pa.chunked_array([[None]])]  # a batch without columns would have no rows
    numbered = []
    for kind, value in entries:
        if kind in (b"literal", b"options"):
            numbered.append((kind, str(len(columns)).encode()))
            columns.append(pickled.values.column(int(value)))
        else:
            numbered.append((kind, value))
    fields = [pa.field("", column.type) for column in columns]
    schema = pa.schema(fields, pa.KeyValueMetadata(numbered))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return pickled.load(sink.getvalue())


def _read_tree(pickled: _Pickled) -> Node | None:
    entries = iter(pickled.entries)
    calls: list[tuple[str, list[Node], dict[str, pa.Scalar]]] = [("", [], {})]
    for kind, value in entries:
        _, arguments, options = calls[-1]
        if kind == b"field_ref":
            arguments.append(Field((value.decode(),)))
        elif kind == b"nested_field_ref":
            arguments.append(Field(tuple(next(entries)[1].decode() for _ in range(int(value)))))
        elif kind == b"literal":
            arguments.append(Literal(pickled.values.column(int(value))[0]))
        elif kind == b"options":
            options.update(pickled.values.column(int(value))[0].items())
        elif kind == b"call":
            calls.append((value.decode(), [], {}))
        elif kind == b"end" and len(calls) > 1:
            function, arguments, options = calls.pop()
            calls[-1][1].append(Call(function, tuple(arguments), options))
        else:
            return None
    ((_, tree, _), *open_calls) = calls
    return tree[0] if len(tree) == 1 and not open_calls else None


def list_fields(node: Node) -> list[Field]:
    """List the columns and fields that a tree names."""
    names, left = [], [node]
    while left:
        one = left.pop()
        if isinstance(one, Call):
            left += reversed(one.arguments)
        elif isinstance(one, Field):
            names.append(one)
    return names


def combine(parts: Sequence[Any]) -> Any:
    """Return the expression that joins `parts` by `&`; None without any."""
    joined = None
    for part in parts:
        joined = part if joined is None else joined & part
    return joined
