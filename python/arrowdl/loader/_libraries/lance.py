"""`LanceSource`: one version of a Lance dataset, read by ranges of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._libraries.ranges import RangeSource
from arrowdl.loader._parquet.counted import BY_LOADER, check_counts
from arrowdl.loader._parquet.scan_limits import BATCH_BYTES, SCAN_BYTES
from arrowdl.loader._parquet.scan_stream import Scan
from arrowdl.loader._parquet.scans import Query
from arrowdl.loader._schema.bounds import find_bounds
from arrowdl.loader._schema.fields import choose_columns, find_paths, select_stream
from arrowdl.loader._schema.filters import (
    check_filter,
    describe_filter,
    find_columns,
    keep_rows,
    views_to_strings,
)
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._sources.forked import make_home
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads
from arrowdl.loader._tables.snapshots import naming_snapshot, remove_secrets

if TYPE_CHECKING:
    import pyarrow as pa

# Lance reads a range of rows at nearly the speed of a whole fragment.
_UNIT_ROWS = 8_192


class _Part(NamedTuple):
    """Rows of a fragment, without deleted ones."""

    fragment: int
    start: int
    rows: int


class LanceSource(RangeSource):
    """Rows of a Lance dataset at one version; deleted rows are left out.

    A unit is a range of rows of a fragment. With a filter it is a fragment.
    """

    decodes_units = True

    def __init__(self, dataset: Any, columns: list[str] | None, filter: Any) -> None:
        self.dataset = dataset
        self.home = make_home("Lance dataset", "Lance", True)
        self._schema: pa.Schema = dataset.schema
        self._columns = choose_columns(columns, self._schema)
        if columns is not None:
            find_paths(columns, self._schema)
        self._filter = filter
        self._is_sql = isinstance(filter, str)
        self._pushed = filter if self._is_sql else _choose_pushed(dataset, filter)
        fragments = dataset.get_fragments()
        self._row_bytes = max(map(_measure_row, fragments), default=1.0)
        # As many rows of each fragment, whatever the columns: they decide on the order.
        rows = max(1, min(_UNIT_ROWS, int(BATCH_BYTES / self._row_bytes)))
        counts = map_in_threads(self._count, fragments, FILES_AT_ONCE)
        ids = [fragment.fragment_id for fragment in fragments]
        self._fragments = list(zip(ids, counts, map(_name_files, fragments), strict=True))
        self.parts = [
            _Part(fragment, start, min(step, count - start))
            for fragment, count, _ in self._fragments
            for step in [rows if filter is None else max(1, count)]
            for start in range(0, count, step)
        ]
        self.units = [part.rows for part in self.parts]

    def _count(self, fragment: Any) -> int:
        if self._filter is None or self._is_sql:
            return int(fragment.count_rows(self._filter))
        needed = find_columns(self._schema.names, [], self._filter)
        columns = [name for name in self._schema.names if name in needed]
        batches = fragment.scanner(columns=columns, filter=self._pushed).to_batches()
        return sum(batch.num_rows for batch in keep_rows(batches, self._filter, None))

    @property
    def column_names(self) -> list[str]:
        return list(self._schema.names if self._columns is None else self._columns)

    @property
    def files(self) -> LanceFiles:
        return LanceFiles(self)

    def count_fragments(self) -> int:
        """Count the fragments, also those without rows."""
        return len(self._fragments)

    @property
    def name(self) -> str:
        """The dataset and its version, for states and errors."""
        return f"Lance dataset {remove_secrets(self.dataset.uri)!r}, version {self.version}"

    @property
    def version(self) -> int:
        """The version that is read."""
        return int(self.dataset.version)

    def describe(self) -> str:
        # Names of data files are unique. The path is left out: the dataset may be moved.
        return f"lance {self.version} {self._fragments} {describe_filter(self._filter)}"

    def _make_empty(self) -> pa.RecordBatch:
        return make_empty(self._project())

    def _project(self) -> pa.Schema:
        import pyarrow as pa

        if self._columns is None:
            return self._schema
        paths = find_paths(self._columns, self._schema)
        return pa.schema(
            [
                _find_field(self._schema, path).with_name(name)
                for name, path in zip(self._columns, paths, strict=True)
            ]
        )

    def _read_units(self, units: Sequence[int], ahead: int) -> Iterator[_core.DeviceArray]:
        # One part after another; the next ones are opened before one has ended.
        waiting = deque(_join([self.parts[unit] for unit in units]))
        opened: deque[tuple[_Part, _core.DeviceStream]] = deque()
        with naming_snapshot(self.name):
            while waiting or opened:
                while waiting and len(opened) < ahead and self._has_room(opened):
                    part = waiting.popleft()
                    opened.append((part, self._open(part, ahead)))
                part, stream = opened[0]
                yield from check_counts(
                    stream, [part.rows], partial(self._name_part, part), BY_LOADER
                )
                del stream
                opened.popleft()

    def _has_room(self, opened: Iterable[tuple[_Part, _core.DeviceStream]]) -> bool:
        return sum(part.rows for part, _ in opened) * self._row_bytes <= SCAN_BYTES

    def _name_part(self, part: _Part, position: int) -> str:
        path = f"{remove_secrets(self.dataset.uri)} (fragment {part.fragment})"
        return f"{path!r}, rows {part.start} to {part.start + part.rows - 1},"

    def _open(self, part: _Part, ahead: int) -> _core.DeviceStream:
        columns = self._columns
        if columns is not None:  # the scanner reads whole columns
            columns = list(dict.fromkeys(p[0] for p in find_paths(columns, self._schema)))
            if not self._is_sql:
                needed = find_columns(self._schema.names, columns, self._filter)
                columns += [name for name in self._schema.names if name in needed - set(columns)]
        fragment = self.dataset.get_fragment(part.fragment)
        if fragment is None:
            raise ValueError(f"the dataset has no fragment {part.fragment}")
        whole = {} if self._filter is not None else {"offset": part.start, "limit": part.rows}
        scanner = fragment.scanner(
            columns=columns,
            filter=self._pushed,
            batch_size=max(1, min(_UNIT_ROWS, int(BATCH_BYTES / self._row_bytes))),
            batch_readahead=max(1, 4 // ahead),
            io_buffer_size=SCAN_BYTES,
            **whole,
        )
        reader = scanner.to_reader()
        batches: Iterable[pa.RecordBatch] = reader
        if self._filter is not None and not self._is_sql:
            rows = keep_rows(reader, self._filter, None)
            batches = chain([make_empty(views_to_strings(reader.schema))], rows)
        is_encoded = self.vocabulary.concerns(reader.schema)
        stream = _core.from_arrow_stream(map(self._encode, batches) if is_encoded else batches)
        if self._columns is not None:
            stream = select_stream(stream, self._columns)
        return stream.prefetch(1)


class LanceFiles(SourceFiles):
    """The fragments of a Lance dataset, which stand for its files."""

    def __init__(self, source: LanceSource) -> None:
        super().__init__(source.refuse_plan())
        self._source = source
        self._starts = list(accumulate(source.units, initial=0))

    @property
    def snapshot(self) -> str:
        return self._source.name

    def count(self) -> int:
        return self._source.count_fragments()

    def count_unfiltered(self) -> int:
        return int(self._source.dataset.count_rows())

    def locate_row(self, row: int) -> tuple[str, int]:
        unit = bisect_right(self._starts, row) - 1
        part = self._source.parts[unit]
        path = f"{remove_secrets(self._source.dataset.uri)} (fragment {part.fragment})"
        return path, part.start + row - self._starts[unit]


def _choose_pushed(dataset: Any, filter: Any) -> Any:
    """Return the filter that Lance applies: it orders NaN and zeros in another way than Arrow."""
    import pyarrow as pa

    # None if Lance cannot take it, beside columns of types that Substrait lacks, for example.

    plain = [field for field in dataset.schema if not pa.types.is_struct(field.type)]
    bounds = find_bounds(filter, pa.schema(plain))
    try:
        dataset.scanner(columns=[], filter=bounds, with_row_id=True).explain_plan()
    except Exception:
        return None
    return bounds


def _join(parts: Sequence[_Part]) -> list[_Part]:
    """Join ranges that follow each other in a fragment."""
    joined: list[_Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last and last.fragment == part.fragment and last.start + last.rows == part.start:
            joined[-1] = last._replace(rows=last.rows + part.rows)
        else:
            joined.append(part)
    return joined


def _find_field(schema: Any, path: Sequence[str]) -> pa.Field:
    field = schema.field(path[0])
    for name in path[1:]:
        field = field.type.field(name)
    return field


def _measure_row(fragment: Any) -> float:
    """Estimate the bytes of a row of a fragment by the size of its files."""
    nbytes = sum(file.file_size_bytes or 0 for file in fragment.metadata.files)
    return float(max(1.0, nbytes / max(1, fragment.physical_rows)))


def _name_files(fragment: Any) -> list[str]:
    names = [file.path for file in fragment.metadata.files]
    deleted = fragment.deletion_file()
    return names if deleted is None else [*names, deleted]


def refuse_lance_plan(dataset: Any) -> None:
    """Raise ValueError: a plan would have nothing that the dataset has not."""
    raise ValueError(
        "Storage.plan has nothing to share of a Lance dataset, whose manifest has its files and "
        "their rows: open it on each rank at the same version"
    )


def open_lance(dataset: Any, request: Request) -> Source:
    """Open a ``lance.LanceDataset`` at the version that it has now."""
    columns, filter = request.columns, request.filter
    if not isinstance(filter, str):
        check_filter(filter, '; Lance takes a SQL string too, "x > 3"')
    if dataset._default_scan_options:  # a scanner of the whole dataset knows them
        query = Query(dataset.schema, choose_columns(columns, dataset.schema), filter)
        home = make_home("Lance dataset", "Lance", True)
        return StreamSource(Scan(dataset, query), True, query.column_names, home=home)
    rebuild, arguments = dataset.__reduce__()  # a write moves the user's object on
    return LanceSource(rebuild(*arguments), columns, filter)
