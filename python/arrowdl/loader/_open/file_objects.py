"""Open file objects: the file that they are, or their bytes as a table."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.footers import check_footer
from arrowdl.loader._open.paths import open_paths
from arrowdl.loader._parquet.counted import count_groups, refuse
from arrowdl.loader._parquet.int96 import UNIT, check_digits, explain_int96, list_int96
from arrowdl.loader._parquet.scans import naming_files
from arrowdl.loader._schema.filters import apply_filter, check_filter, find_columns
from arrowdl.loader._schema.unify import (
    check_names,
    choose_read,
    join_tables,
    unify_schemas,
)
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.table import TableSource

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_PARQUET, _IPC_FILE, _IPC_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"


def list_file_objects(source: Any) -> list[Any] | None:
    """Return the file objects of `source`, one or a list of them; None for another object."""
    objects = list(source) if isinstance(source, (list, tuple)) else [source]
    is_files = bool(objects) and all(
        callable(getattr(obj, "read", None)) and callable(getattr(obj, "seek", None))
        for obj in objects
    )
    return objects if is_files else None


def open_file_objects(source: Any, request: Request) -> Source:
    """Open one or several file objects: by their names, or as a table of their bytes."""
    objects = list_file_objects(source) or []
    if (paths := find_paths(objects)) is not None:
        return open_paths(paths, request)
    table = read_tables(objects, request.columns, request.filter, request.dtype)
    return TableSource(table, request.columns)


def find_paths(objects: Sequence[Any]) -> list[str] | None:
    """Return the paths of file objects; None if one of them is not the file of its name."""
    paths = [_find_path(obj) for obj in objects]
    return None if None in paths else [path for path in paths if path is not None]


def _find_path(obj: Any) -> str | None:
    name = getattr(obj, "name", None)
    if not isinstance(name, (str, os.PathLike)):
        return None
    try:
        if obj.writable():
            obj.flush()
        is_same = os.path.samestat(os.fstat(obj.fileno()), os.stat(name))
    except (AttributeError, OSError):  # io.UnsupportedOperation is an OSError
        return None
    return os.fspath(name) if is_same else None


def read_tables(
    objects: Sequence[Any], columns: list[str] | None, filter: Any, dtype: Any = None
) -> pa.Table:
    """Read whole file objects, of Parquet or Arrow IPC by their first bytes, into one table.

    The table has all of `columns`, and may have more. Raises TypeError if a file object is in text
    mode, and ValueError if its bytes are neither Parquet nor Arrow IPC.
    """

    check_filter(filter)
    tables = []
    for obj in objects:
        with naming_files([repr(obj)]):
            tables.append(_read_table(obj, columns, filter))
    schemas = [(repr(obj), table.schema) for obj, table in zip(objects, tables, strict=True)]
    explain = partial(explain_int96, _read_footers(objects))
    unified = unify_schemas(schemas, choose_read(columns, filter), explain, dtype)
    table = join_tables(zip(map(repr, objects), tables, strict=True), unified)
    return apply_filter(table, filter)


def _read_footers(objects: Sequence[Any]) -> Iterator[tuple[str, pq.ParquetSchema]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for obj in objects:
        data = _read_bytes(obj)
        if bytes(data[: len(_PARQUET)]) == _PARQUET:
            yield repr(obj), pq.ParquetFile(pa.BufferReader(data)).schema


def _read_table(obj: Any, columns: list[str] | None, filter: Any) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = _read_bytes(obj)
    start = bytes(data[: len(_IPC_FILE)])
    file = pa.BufferReader(data)
    if start.startswith(_PARQUET):
        reader = pq.ParquetFile(file, coerce_int96_timestamp_unit=UNIT)
        check_footer(repr(obj), file)
        is_read = choose_read(columns, filter)
        names = check_names(repr(obj), reader.schema_arrow, is_read).names
        needed = find_columns(names, columns, filter)
        is_known = columns is not None and set(columns) <= set(names)
        table = reader.read([name for name in names if name in needed] if is_known else None)
        if int96 := list_int96(reader.schema, table.column_names):
            nanos = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="ns")
            check_digits(repr(obj), table.select(int96), nanos.read(int96))
        rows = sum(count_groups(reader.metadata, range(reader.num_row_groups), repr(obj)))
        if table.num_rows != rows:
            raise refuse(repr(obj), table.num_rows, rows)
    elif start == _IPC_FILE:
        table = pa.ipc.open_file(file).read_all()
    elif start.startswith(_IPC_STREAM):
        table = pa.ipc.open_stream(file).read_all()
    else:
        raise ValueError(
            f"{obj!r} has neither Parquet nor Arrow IPC: it starts with {start!r}. Other formats "
            "can be read into a table, pyarrow.csv.read_csv(file)"
        )
    return table


def _read_bytes(obj: Any) -> pa.Buffer:
    import pyarrow as pa

    if getattr(obj, "seekable", bool)():
        obj.seek(0)
    if isinstance(obj, io.TextIOBase):
        raise TypeError(f'{obj!r} is in text mode: open it with mode "rb"')
    return pa.py_buffer(obj.read())
