"""What a `Loader` was given, and which kind of source reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._sources.base import Source, StreamSource, TableSource
from arrowdl.loader._sources.dataset import DECODE_ROWS, Scan, open_dataset
from arrowdl.loader._sources.paths import expand_paths, open_paths
from arrowdl.loader._sources.scans import Query

if TYPE_CHECKING:
    import pyarrow as pa


def open_source(
    source: Any, columns: Sequence[str] | None, filter: Any, memory_map: bool = True
) -> Source:
    """What `source` is, for a `Loader`.

    Parameters
    ----------
    source : object
        As of `Loader`.
    columns : sequence of str, optional
        What to read, in that order.
    filter : pyarrow.dataset.Expression, optional
        Rows to read; for files and datasets.
    memory_map : bool
        Whether local IPC files are mapped.

    Raises
    ------
    TypeError
        Nothing that can be read.
    ValueError
        A filter for a source that takes none.
    """
    names = None if columns is None else _read_names(columns)
    found = _open_files(source, names, filter, memory_map)
    if found is None and filter is not None:
        raise ValueError(
            f"filter= works on files and pyarrow datasets, not on {type(source).__name__}: filter "
            "the rows in the source itself"
        )
    if found is None:
        found = _open_unfiltered(source, names)
    if found is None:
        raise TypeError(
            f"a Loader cannot read {type(source).__name__}: give paths, a pyarrow dataset, a table "
            "or frame, an object with __arrow_c_stream__, an iterator of record batches, or a "
            "function that makes one of the last three; tensors by arrowdl.to_arrow_device()"
        )
    return found


def _read_names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, (str, Set)) or not isinstance(columns, Iterable):
        raise TypeError(
            f"columns={columns!r}: give a list of names, their order is that of columns"
        )
    names = list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns={names!r}: {name!r} is no name")
        if names.count(name) > 1:
            raise ValueError(f'columns={names!r}: "{name}" is there twice')
    return names


def _open_files(
    source: Any, columns: list[str] | None, filter: Any, memory_map: bool
) -> Source | None:
    paths = expand_paths(source)
    if paths is not None:
        return open_paths(paths, columns, filter, memory_map)
    if _is_of(source, "pyarrow._dataset", "Dataset"):
        return open_dataset(source, columns, filter, memory_map)
    return None


def _open_unfiltered(source: Any, columns: list[str] | None) -> Source | None:
    if (table := _find_table(source)) is not None:
        return TableSource(table, columns)
    for find in (_find_huggingface, _find_duckdb, _find_lance, _find_factory, _find_stream):
        if (opener := find(source)) is not None:
            is_replayable = not (isinstance(opener, _Given) and opener.is_for_one_pass)
            if isinstance(opener, _Lance):
                opener.columns = columns
            chosen = opener if columns is None else _Selected(opener, columns)
            return StreamSource(chosen, is_replayable)
    if hasattr(source, "__dataframe__"):  # the interchange protocol, for what has nothing better
        table = _find_batch(_core.from_arrow(source))
        return None if table is None else TableSource(table, columns)
    return None


def _is_of(obj: Any, module: str, *names: str) -> bool:
    """Whether a class of `obj` is one of `names` in `module` or below it; imports nothing."""
    return any(
        kind.__name__ in names and f"{kind.__module__}.".startswith(f"{module}.")
        for kind in type(obj).__mro__
    )


# ---- memory -------------------------------------------------------------------------------------


def _find_table(source: Any) -> pa.Table | None:
    if _is_of(source, "pyarrow.lib", "Table", "RecordBatch"):
        return _to_table(source)
    if _is_of(source, "polars", "LazyFrame"):
        source = source.collect()
    if _is_of(source, "polars", "DataFrame"):
        return _to_table(source)
    if _is_of(source, "pandas", "DataFrame"):
        return _drop_unnamed_index(_to_table(source))
    if _is_of(source, "datasets", "Dataset"):
        _require_no_transform(source)
        if source._indices is None:
            return source.data.table.select(source.format["columns"])
    if isinstance(source, _core.DeviceArray):
        return _find_batch(source)
    return None


def _require_no_transform(dataset: Any) -> None:
    if dataset.format["type"] == "custom":
        raise ValueError(
            "the Hugging Face dataset has a transform (set_transform), which a Loader does not "
            "call: it reads the columns. Take it off, dataset.with_format(None), and give the "
            "Loader a transform= of whole batches"
        )


def _to_table(source: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    return source if isinstance(source, pa.Table) else pa.table(source)


def _find_batch(array: _core.DeviceArray) -> pa.Table | None:
    import pyarrow as pa

    if array.schema.format != "+s" or not _core.is_host_readable(array.device):
        return None
    return _to_table(pa.record_batch(array))


def _drop_unnamed_index(table: pa.Table) -> pa.Table:
    """What a split or a filter leaves on a frame: row numbers, and no column of the user's."""
    names = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
    return table.drop_columns(names) if names else table


# ---- streams: classes rather than closures, for processes that get a Loader by pickle ------------

Opener = Callable[[int], Any]


@dataclass
class _Selected:
    open: Opener
    columns: list[str]

    def __call__(self, epoch: int) -> Any:
        return _core.from_arrow_stream(self.open(epoch)).select(self.columns)


@dataclass
class _HuggingFace:
    dataset: Any

    def __call__(self, epoch: int) -> Iterator[pa.Table]:
        if _is_of(self.dataset, "datasets", "IterableDataset"):
            dataset = self.dataset.with_format("arrow")
            dataset.set_epoch(epoch)
        else:
            dataset = self.dataset.with_format("arrow", columns=self.dataset.format["columns"])
        tables: Iterable[pa.Table] = dataset.iter(batch_size=DECODE_ROWS)
        return (batch for table in tables for batch in _to_table(table).to_batches())


@dataclass
class _DuckDB:
    relation: Any

    def __call__(self, epoch: int) -> Any:
        return self.relation.to_arrow_reader(DECODE_ROWS)


@dataclass
class _Lance:
    dataset: Any
    columns: list[str] | None = None

    def __call__(self, epoch: int) -> Any:
        return self.dataset.scanner(columns=self.columns, batch_size=8192).to_reader()


@dataclass
class _Factory:
    make: Callable[[], Any]

    def __call__(self, epoch: int) -> Any:
        made = self.make()
        if _is_of(made, "polars", "LazyFrame"):
            return made.collect()
        if _is_of(made, "pyarrow._dataset", "Dataset"):
            return Scan(made, Query(made.schema, None, None))(epoch)
        return made


@dataclass
class _Given:
    source: Any
    is_for_one_pass: bool

    def __call__(self, epoch: int) -> Any:
        return self.source


def _find_huggingface(source: Any) -> Opener | None:
    return (
        _HuggingFace(source) if _is_of(source, "datasets", "Dataset", "IterableDataset") else None
    )


def _find_duckdb(source: Any) -> Opener | None:
    modules = ("_duckdb", "duckdb")
    is_relation = any(_is_of(source, module, "DuckDBPyRelation") for module in modules)
    return _DuckDB(source) if is_relation else None


def _find_lance(source: Any) -> Opener | None:
    return _Lance(source) if _is_of(source, "lance", "LanceDataset") else None


def _find_factory(source: Any) -> Opener | None:
    return _Factory(source) if callable(source) else None


def _find_stream(source: Any) -> Opener | None:
    """Iterators are read once; what makes a new stream at each request can be read again."""
    is_iterator = hasattr(source, "__next__") or isinstance(source, _core.DeviceStream)
    has_protocol = any(
        hasattr(source, f"__arrow_c_{kind}__")
        for kind in ("device_stream", "stream", "device_array", "array")
    )
    is_capsule = type(source).__name__ == "PyCapsule"
    if not (is_iterator or has_protocol or is_capsule or isinstance(source, (list, tuple))):
        return None
    return _Given(source, is_iterator or is_capsule)
