"""Opens objects of other libraries as tables or streams; recognises them without an import.

Openers of streams are partial functions, not closures, so that worker processes get them by pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl._libraries import annotate, is_of, refuse_objects
from arrowdl.loader._parquet.scan_limits import DECODE_ROWS
from arrowdl.loader._parquet.scan_stream import Scan
from arrowdl.loader._parquet.scans import Query
from arrowdl.loader._schema.fields import select_stream
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._sources.forked import find_home
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._sources.table import DeviceSource, TableSource

if TYPE_CHECKING:
    import pyarrow as pa


# The classes whose objects are tables, by module.
_TABLES = {
    "pyarrow.lib": ("Table", "RecordBatch"),
    "polars": ("DataFrame", "LazyFrame"),
    "pandas": ("DataFrame",),
}


def is_table(source: Any) -> bool:
    """Whether an object is a table, frame or struct array, or a list of such batches."""
    if isinstance(source, (list, tuple)):
        return _join(source) is not None
    if isinstance(source, _core.DeviceArray):
        return find_batch(source) is not None
    return any(is_of(source, module, *names) for module, names in _TABLES.items())


def open_table(source: Any, request: Request) -> TableSource:
    """Open the rows of a table or frame, which is in memory, or is computed now.

    Columns of a frame that are not read are left out first: they may have a type that Arrow lacks.
    """
    return TableSource(_to_rows(_project(source, request.columns)), request.columns)


def _to_rows(source: Any) -> pa.Table:
    rows: pa.Table | None
    if isinstance(source, (list, tuple)):
        rows = _join(source)
    elif isinstance(source, _core.DeviceArray):
        rows = find_batch(source)
    else:
        rows = _to_table(source.collect() if is_of(source, "polars", "LazyFrame") else source)
    assert rows is not None
    return rows


def _project(source: Any, columns: Sequence[str] | None) -> Any:
    """Return a frame with the columns that `columns`, or the paths in it, begin with."""
    if columns is None:
        return source
    is_polars = is_of(source, "polars", "DataFrame", "LazyFrame")
    if not is_polars and not is_of(source, "pandas", "DataFrame"):
        return source
    names = list(source.collect_schema().names() if is_polars else source.columns)
    wanted = [any(_begins(name, column) for column in columns) for name in names]
    missing = [c for c in columns if not any(_begins(name, c) for name in names)]
    if not is_polars:  # an index may have a name that is missing
        return source if missing else source.loc[:, wanted]
    if missing:
        raise ValueError(
            f'columns: "{missing[0]}" is not one column of the source, which has {names}'
        )
    return source.select([name for name, is_read in zip(names, wanted, strict=True) if is_read])


def _begins(name: Any, path: str) -> bool:
    """Whether `path` names a column, or a field in it."""
    return f"{path}.".startswith(f"{name}.")


def _join(parts: Sequence[Any]) -> pa.Table | None:
    """Return tables and record batches of one schema as a table; None for other items."""
    tables = [_find_part(part) for part in parts]
    present = [table for table in tables if table is not None]
    if not present or len(present) < len(tables):
        return None
    import pyarrow as pa

    schema = present[0].schema
    if not all(table.schema.equals(schema, check_metadata=True) for table in present):
        return None
    return pa.concat_tables(present)


def _find_part(part: Any) -> pa.Table | None:
    """Return pyarrow's tables and record batches, and those that arrowdl has in host memory."""
    if is_of(part, "pyarrow.lib", "Table", "RecordBatch"):
        return _to_table(part)
    return find_batch(part) if isinstance(part, _core.DeviceArray) else None


def _to_table(source: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return source
    refuse_objects(source)
    try:
        return pa.table(source)
    except Exception as error:
        annotate(error, "pyarrow.table", source)
        raise


def find_batch(array: _core.DeviceArray) -> pa.Table | None:
    """Return the rows of a struct array that the host can read, or None for another array."""
    import pyarrow as pa

    if array.schema.format != "+s" or not _core.is_host_readable(array.device):
        return None
    return _to_table(pa.record_batch(array))


def is_on_device(source: Any) -> bool:
    """Whether an object is record batches of arrowdl, one or a list, that the host cannot read."""
    arrays = [source] if isinstance(source, _core.DeviceArray) else source
    if not isinstance(arrays, (list, tuple)) or not arrays:
        return False
    return all(map(_is_batch_on_device, arrays))


def _is_batch_on_device(array: Any) -> bool:
    is_batch = isinstance(array, _core.DeviceArray) and array.schema.format == "+s"
    return is_batch and not _core.is_host_readable(array.device)


def open_on_device(source: Any, request: Request) -> DeviceSource:
    """Open record batches in the memory of a device."""
    arrays = [source] if isinstance(source, _core.DeviceArray) else list(source)
    return DeviceSource(arrays, request.columns)


Opener = Callable[[int], Any]  # opens the Arrow stream of an epoch


def _select(open: Opener, columns: list[str], epoch: int) -> _core.DeviceStream:
    return select_stream(_core.from_arrow_stream(open(epoch)), columns)


def _read_huggingface(dataset: Any, epoch: int) -> Iterator[pa.RecordBatch]:
    dataset = dataset.with_format("arrow")
    dataset.set_epoch(epoch)
    tables: Iterable[pa.Table] = dataset.iter(batch_size=DECODE_ROWS)
    return (batch for table in tables for batch in _to_table(table).to_batches())


def _read_duckdb(relation: Any, epoch: int) -> Any:
    return relation.to_arrow_reader(DECODE_ROWS)


def _read_function(make: Callable[[], Any], columns: list[str] | None, epoch: int) -> Any:
    source = _project(make(), columns)
    if is_of(source, "polars", "LazyFrame"):
        return source.collect()
    if is_of(source, "pyarrow._dataset", "Dataset"):
        return Scan(source, Query(source.schema, None, None))(epoch)
    connected = _read_connected(source, is_own=True)
    return source if connected is None else connected


def _read_source(source: Any, epoch: int) -> Any:
    connected = _read_connected(source, is_own=False)
    return source if connected is None else connected


def _read_connected(source: Any, *, is_own: bool) -> Iterator[pa.RecordBatch] | None:
    """Return the batches of a cursor or a Flight stream; None for another object."""
    if is_of(source, "adbc_driver_manager", "Cursor"):
        return read_cursor(source, is_own=is_own)
    if is_of(source, "pyarrow._flight", "FlightStreamReader"):
        return read_flight(source)
    return None


def is_stream(source: Any) -> bool:
    """Whether an object gives record batches in order, once or for each epoch."""
    return _find_opener(source, None) is not None


def open_stream(source: Any, request: Request) -> StreamSource:
    """Open an object as a stream."""
    columns = request.columns
    opener = _find_opener(source, columns)
    assert opener is not None
    open, is_replayable = opener
    is_in_memory = isinstance(source, (list, tuple))
    home = None if is_in_memory else find_home(source)
    chosen = open if columns is None else partial(_select, open, columns)
    return StreamSource(chosen, is_replayable, columns, is_in_memory, home)


def _find_opener(source: Any, columns: list[str] | None) -> tuple[Opener, bool] | None:
    """Return what opens a stream, and whether it can be called again; None for other objects."""
    if is_of(source, "datasets", "IterableDataset"):
        return partial(_read_huggingface, source), True
    if any(is_of(source, module, "DuckDBPyRelation") for module in ("_duckdb", "duckdb")):
        return partial(_read_duckdb, source), True
    if is_of(source, "sqlite3", "Connection", "Cursor"):  # they are callable, or yield tuples
        return None
    if callable(source):
        return partial(_read_function, source, columns), True
    return _find_stream(source)


def _find_stream(source: Any) -> tuple[Opener, bool] | None:
    """Iterators are read once; an object that makes a stream on request is read again."""
    is_iterator = (
        hasattr(source, "__next__")
        or isinstance(source, _core.DeviceStream)
        or is_of(source, "adbc_driver_manager", "ArrowArrayStreamHandle")
        or is_of(source, "pyarrow._flight", "FlightStreamReader")
    )
    is_capsule = type(source).__name__ == "PyCapsule"
    is_list = isinstance(source, (list, tuple)) and all(map(_is_arrow, source))
    if not (is_iterator or is_capsule or is_list or _is_arrow(source)):
        return None
    return partial(_read_source, source), not (is_iterator or is_capsule)


def _is_arrow(source: Any) -> bool:
    if is_of(source, "dask.dataframe", "DataFrame"):  # its __dataframe__ has no chunks
        return False
    kinds = ("arrow_c_device_stream", "arrow_c_stream", "arrow_c_device_array", "arrow_c_array")
    return any(hasattr(source, f"__{kind}__") for kind in (*kinds, "dataframe"))


def read_cursor(
    cursor: Any,
    *,
    is_own: bool,  # whether to close the cursor, too, at the end, or when the epoch is left
) -> Iterator[pa.RecordBatch]:
    """Yield the result of a cursor's last query; first a batch without rows, for the schema."""
    try:
        with cursor.fetch_record_batch() as reader:
            yield make_empty(reader.schema)
            yield from reader
    finally:
        if is_own:
            cursor.close()


def read_flight(stream: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Flight stream; first one without rows, for the schema.

    The call is cancelled when the epoch is left, so that the server stops sending.
    """
    is_done = False
    try:
        yield make_empty(stream.schema)
        for chunk in stream:
            if chunk.data is not None:  # otherwise metadata alone
                yield chunk.data
            del chunk
        is_done = True
    finally:
        if not is_done:
            stream.cancel()
