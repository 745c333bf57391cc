"""Where rows come from: what a `Loader` can read, as one of two kinds of source."""

from __future__ import annotations

import glob
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arrowdl import _core

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

# Decoding more rows at once is quicker up to about here, and takes more memory.
_DECODE_ROWS = 131_072
# Tables can be cut anywhere: small units mix well, larger ones cost less to put together.
_TABLE_UNIT_ROWS = 4_096


class IndexedSource(ABC):
    """Rows in units of known length that can be read in any order: row groups, record batches.

    Attributes
    ----------
    units : list of int
        Rows of each unit.
    """

    units: list[int]

    @abstractmethod
    def read(self, units: Sequence[int]) -> _core.DeviceStream:
        """The rows of `units`, in that order."""

    @abstractmethod
    def describe(self) -> str:
        """What of the source decides on the order of its rows: for the check of states."""

    @property
    def num_rows(self) -> int:
        return sum(self.units)

    def cut_for_shuffle(self) -> IndexedSource:
        """The same rows in the units that a shuffled epoch permutes."""
        return self

    def read_rows(self, start: int, stop: int, order: Sequence[int]) -> _core.DeviceStream:
        """Rows `start` to `stop` of the units in `order`: reads only units that have some."""
        ends = list(accumulate(self.units[unit] for unit in order))
        first = next((i for i, end in enumerate(ends) if end > start), len(ends))
        last = next((i for i, end in enumerate(ends) if end >= stop), len(ends) - 1)
        begin = ends[first - 1] if first > 0 else 0
        return self.read(order[first : last + 1]).slice(start - begin, stop - start)


class StreamSource:
    """Rows that come one after another, for one pass or, where `open` can be called again, many.

    Attributes
    ----------
    open : callable
        Gives an Arrow stream, of what `epoch` it is told.
    replayable : bool
        Whether it gives the same one again.
    """

    def __init__(self, open: Callable[[int], Any], replayable: bool) -> None:
        self._open = open
        self.replayable = replayable
        self._is_spent = False

    def open(self, epoch: int) -> _core.DeviceStream:
        if self._is_spent:
            raise RuntimeError(
                "this source is an Arrow stream, good for one pass, and has been read: give a "
                "function that makes the stream, a table, a dataset or paths for several epochs"
            )
        self._is_spent = not self.replayable
        return _core.stream(self._open(epoch))


Source = IndexedSource | StreamSource


class DatasetSource(IndexedSource):
    """Row groups of Parquet files, whole files of other formats, read by pyarrow's scanner."""

    def __init__(
        self,
        dataset: ds.FileSystemDataset,
        columns: Sequence[str] | None,
        filter: ds.Expression | None,
    ) -> None:
        self._dataset = dataset
        self._columns = columns
        self._filter = filter
        self._fragments = [
            unit for fragment in dataset.get_fragments(filter) for unit in _split_fragment(fragment)
        ]
        self.units = [self._count(unit) for unit in self._fragments]

    def _count(self, fragment: ds.Fragment) -> int:
        if self._filter is None and hasattr(fragment, "row_groups"):
            return sum(group.num_rows for group in fragment.row_groups)
        return int(fragment.count_rows(filter=self._filter))

    def read(self, units: Sequence[int]) -> _core.DeviceStream:
        import pyarrow.dataset as ds

        dataset = self._dataset
        chosen = ds.FileSystemDataset(
            _join_fragments([self._fragments[unit] for unit in units]),
            dataset.schema,
            dataset.format,
            dataset.filesystem,
        )
        scanner = chosen.scanner(
            columns=None if self._columns is None else list(self._columns),
            filter=self._filter,
            batch_size=_DECODE_ROWS,
            batch_readahead=2,
            fragment_readahead=2,
        )
        return _core.stream(scanner.to_reader())

    def describe(self) -> str:
        names = [os.path.basename(fragment.path) for fragment in self._fragments]
        return f"{self._dataset.schema.to_string()} {names} {self.units} {self._filter}"


def _split_fragment(fragment: ds.Fragment) -> list[ds.Fragment]:
    if not hasattr(fragment, "row_groups"):
        return [fragment]
    return [fragment.subset(row_group_ids=[group.id]) for group in fragment.row_groups]


def _join_fragments(fragments: Sequence[ds.Fragment]) -> list[ds.Fragment]:
    """Consecutive row groups of one file as one fragment: the scanner reads them ahead."""
    joined: list[ds.Fragment] = []
    groups: list[int] = []
    for fragment in fragments:
        if not hasattr(fragment, "row_groups"):
            joined.append(fragment)
            groups = []
            continue
        new = [group.id for group in fragment.row_groups]
        if groups and joined[-1].path == fragment.path and new[0] == groups[-1] + 1:
            groups += new
            joined[-1] = fragment.subset(row_group_ids=groups)
        else:
            joined.append(fragment)
            groups = new
    return joined


class TableSource(IndexedSource):
    """A table in memory, or one over memory-mapped files, which another process maps again."""

    _is_cut = False

    def __init__(
        self,
        table: pa.Table,
        columns: Sequence[str] | None,
        paths: Sequence[str] | None = None,
    ) -> None:
        self._origin = None if paths is None else (list(paths), columns)
        self._schema = table.schema
        self._table = table if columns is None else _select(table, columns)
        self._batches = [batch for batch in self._table.to_batches() if batch.num_rows > 0]
        self.units = [batch.num_rows for batch in self._batches]

    def read(self, units: Sequence[int]) -> _core.DeviceStream:
        import pyarrow as pa

        batches = [self._batches[unit] for unit in units]
        return _core.stream(pa.Table.from_batches(batches, self._table.schema))

    def cut_for_shuffle(self) -> IndexedSource:
        cut = TableSource(self._table.slice(0, 0), None)
        cut._origin = self._origin
        cut._is_cut = True
        cut._schema = self._schema
        cut._batches = [
            batch.slice(start, _TABLE_UNIT_ROWS)
            for batch in self._batches
            for start in range(0, batch.num_rows, _TABLE_UNIT_ROWS)
        ]
        cut.units = [batch.num_rows for batch in cut._batches]
        return cut

    def __reduce__(self) -> Any:
        if self._origin is None:
            return super().__reduce__()
        return _reopen_mapped, (*self._origin, self._is_cut)

    def describe(self) -> str:
        return f"{self._schema.to_string()} {self.units}"


def _reopen_mapped(paths: list[str], columns: list[str] | None, is_cut: bool) -> IndexedSource:
    table = _map_files(paths)
    if table is None:
        raise ValueError(f"{paths} have been compressed since the Loader was made")
    source = TableSource(table, columns, paths)
    return source.cut_for_shuffle() if is_cut else source


def _select(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        if table.column_names.count(name) != 1:
            raise ValueError(
                f'columns: "{name}" is not one column of the source; there are {table.column_names}'
            )
    return table.select(list(columns))


def fingerprint(source: IndexedSource) -> str:
    """16 hexadecimal digits that differ between sources whose rows have different orders."""
    return hashlib.blake2b(source.describe().encode(), digest_size=8).hexdigest()


def open_source(source: Any, columns: Sequence[str] | None, filter: Any) -> Source:
    """What `source` is, for a `Loader`.

    Parameters
    ----------
    source : object
        As of `Loader`.
    columns : sequence of str, optional
        What to read, in that order.
    filter : pyarrow.dataset.Expression, optional
        Rows to read; for files and datasets.

    Raises
    ------
    TypeError
        Nothing that can be read.
    ValueError
        A filter for a source that takes none.
    """
    found = _open_files(source, columns, filter)
    if found is None and filter is not None:
        raise ValueError(
            f"filter= works on files and pyarrow datasets, not on {type(source).__name__}: filter "
            "the rows in the source itself"
        )
    if found is None:
        found = _open_unfiltered(source, columns)
    if found is None:
        raise TypeError(
            f"a Loader cannot read {type(source).__name__}: give paths, a pyarrow dataset, a table "
            "or frame, an object with __arrow_c_stream__, an iterator of record batches, or a "
            "function that makes one of the last three"
        )
    return found


def _open_files(source: Any, columns: Sequence[str] | None, filter: Any) -> Source | None:
    paths = _expand_paths(source)
    if paths is not None:
        return _open_paths(paths, columns, filter)
    if _is_of(source, "pyarrow._dataset", "Dataset"):
        return _open_dataset(source, columns, filter)
    return None


def _open_unfiltered(source: Any, columns: Sequence[str] | None) -> Source | None:
    if (table := _find_table(source)) is not None:
        return TableSource(table, columns)
    for find in (_find_huggingface, _find_duckdb, _find_lance, _find_factory, _find_stream):
        if (stream := find(source)) is not None:
            return _select_columns(*stream, columns)
    return None


def _select_columns(
    open: Callable[[int], Any], replayable: bool, columns: Sequence[str] | None
) -> StreamSource:
    if columns is None:
        return StreamSource(open, replayable)
    return StreamSource(partial(_open_selected, open, list(columns)), replayable)


def _open_selected(open: Callable[[int], Any], names: list[str], epoch: int) -> _core.DeviceStream:
    return _core.stream(open(epoch)).select(names)


def _is_of(obj: Any, module: str, *names: str) -> bool:
    """Whether a class of `obj` is one of `names` in `module` or below it; imports nothing."""
    return any(
        kind.__name__ in names and f"{kind.__module__}.".startswith(f"{module}.")
        for kind in type(obj).__mro__
    )


# ---- files --------------------------------------------------------------------------------------

_IPC_SUFFIXES = {".arrow", ".ipc", ".feather"}


def _expand_paths(source: Any) -> list[str] | None:
    """The files that `source` names: a path, a glob, a directory, or several of these."""
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if not isinstance(source, (list, tuple)) or not source:
        return None
    if not all(isinstance(path, (str, os.PathLike)) for path in source):
        return None
    return [file for path in source for file in _expand_path(os.fspath(path))]


def _expand_path(path: str) -> list[str]:
    if os.path.isdir(path):
        files = [str(file) for file in Path(path).rglob("*") if file.is_file()]
        files = [file for file in files if not _is_hidden(os.path.relpath(file, path))]
    else:
        files = [path] if os.path.exists(path) else glob.glob(path, recursive=True)
    if not files:
        raise FileNotFoundError(f"no file at {path!r}, and none that it matches as a pattern")
    return sorted(files)


def _is_hidden(path: str) -> bool:
    """By the convention of Spark and others: markers and metadata beside the data."""
    return any(part.startswith(("_", ".")) for part in Path(path).parts)


def _open_paths(paths: list[str], columns: Sequence[str] | None, filter: Any) -> Source:
    import pyarrow.dataset as ds

    kinds = {"ipc" if Path(path).suffix in _IPC_SUFFIXES else "parquet" for path in paths}
    if len(kinds) > 1:
        raise ValueError(
            "some of the files are Parquet and some Arrow IPC, by their names: make a Loader of "
            "each"
        )
    if kinds == {"ipc"} and filter is None and (table := _map_files(paths)) is not None:
        return TableSource(table, columns, [os.path.abspath(path) for path in paths])
    dataset = ds.dataset(paths, format=kinds.pop(), partitioning="hive")
    return _open_dataset(dataset, columns, filter)


def _map_files(paths: list[str]) -> pa.Table | None:
    """The memory-mapped rows of IPC files, or None where they are compressed."""
    import pyarrow as pa

    tables = []
    for path in paths:
        mapped = pa.memory_map(path)
        try:
            reader = pa.ipc.open_file(mapped)
            if reader.num_record_batches and not _lies_in(reader.get_batch(0), mapped):
                return None
        except pa.ArrowInvalid:
            reader = pa.ipc.open_stream(mapped)
        tables.append(reader.read_all())
    return pa.concat_tables(tables)


def _lies_in(batch: pa.RecordBatch, mapped: pa.MemoryMappedFile) -> bool:
    mapped.seek(0)
    whole = mapped.read_buffer()
    return all(
        whole.address <= buffer.address < whole.address + whole.size
        for column in batch.columns
        for buffer in column.buffers()
        if buffer is not None and buffer.size > 0
    )


def _open_dataset(dataset: Any, columns: Sequence[str] | None, filter: Any) -> Source:
    if columns is not None:
        for name in columns:
            if dataset.schema.names.count(name) != 1:
                raise ValueError(
                    f'columns: "{name}" is not one column of the source; there are '
                    f"{dataset.schema.names}"
                )
    if hasattr(dataset, "filesystem") and not dataset._scan_options:
        return DatasetSource(dataset, columns, filter)

    names = None if columns is None else list(columns)
    return StreamSource(partial(_scan_dataset, dataset, names, filter), replayable=True)


def _scan_dataset(dataset: Any, columns: list[str] | None, filter: Any, epoch: int) -> Any:
    return dataset.scanner(columns=columns, filter=filter, batch_size=_DECODE_ROWS).to_reader()


# ---- memory -------------------------------------------------------------------------------------


def _find_table(source: Any) -> pa.Table | None:
    if _is_of(source, "pyarrow.lib", "Table", "RecordBatch"):
        return _to_table(source)
    if _is_of(source, "polars", "LazyFrame"):
        source = source.collect()
    if _is_of(source, "polars", "DataFrame") or _is_of(source, "pandas", "DataFrame"):
        return _to_table(source)
    if _is_of(source, "datasets", "Dataset") and source._indices is None:
        return source.data.table
    if isinstance(source, _core.DeviceArray):
        import pyarrow as pa

        return _to_table(pa.record_batch(source))
    return None


def _to_table(source: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    return source if isinstance(source, pa.Table) else pa.table(source)


# ---- streams ------------------------------------------------------------------------------------

Opener = tuple[Callable[[int], Any], bool]


def _find_huggingface(source: Any) -> Opener | None:
    if not _is_of(source, "datasets", "Dataset", "IterableDataset"):
        return None
    return partial(_open_huggingface, source), True


def _open_huggingface(source: Any, epoch: int) -> Iterator[pa.RecordBatch]:
    if hasattr(source, "set_epoch"):
        source.set_epoch(epoch)
    tables: Iterable[pa.Table] = source.with_format("arrow").iter(batch_size=_DECODE_ROWS)
    return (batch for table in tables for batch in _to_table(table).to_batches())


def _find_duckdb(source: Any) -> Opener | None:
    if not _is_of(source, "_duckdb", "DuckDBPyRelation") and not _is_of(
        source, "duckdb", "DuckDBPyRelation"
    ):
        return None
    return lambda epoch: source.to_arrow_reader(_DECODE_ROWS), True


def _find_lance(source: Any) -> Opener | None:
    if not _is_of(source, "lance", "LanceDataset"):
        return None
    return partial(_open_lance, source), True


def _open_lance(source: Any, epoch: int) -> Any:
    return source.scanner(batch_size=8192).to_reader()


def _find_factory(source: Any) -> Opener | None:
    return (partial(_call, source), True) if callable(source) else None


def _call(function: Callable[[], Any], epoch: int) -> Any:
    return function()


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
    return partial(_give, source), not (is_iterator or is_capsule)


def _give(source: Any, epoch: int) -> Any:
    return source
