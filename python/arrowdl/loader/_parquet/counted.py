"""Checks that units have the rows that were counted: pyarrow ends a short row group in silence."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from arrowdl.loader._skipped import CANNOT_READ, MisplacedRowsError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

Batch = TypeVar("Batch", bound=Sized)
NameUnit = Callable[[int], str]  # takes the position of a unit, names it for users

_BATCH_ROWS = 131_072  # of a scanner, by default
BY_FOOTER = "its footer says"
BY_LOADER = "this Loader counted"


class RowCountError(OSError):
    """A file has another number of rows than was counted."""


class _MisplacedCountError(RowCountError, MisplacedRowsError):
    """Rows of the units behind a short one have come in the place of those that it lacks."""


def check_counts(
    batches: Iterable[Batch],
    counts: Sequence[int],  # rows of each unit
    name: NameUnit,
    who: str = BY_FOOTER,  # counted the rows, for users
    *,
    # whether a batch may have rows of several units: only their sum is checked
    joins: bool = False,
    # counts a unit alone where the next rows may be of another
    recount: Recount | None = None,
) -> Iterator[Batch]:
    """Yield batches of units: no row of a unit before all rows of the units before it.

    Raises RowCountError if a unit has fewer or more rows.
    """
    ends = list(accumulate(counts))
    total = ends[-1] if ends else 0
    seen = unit = 0
    recounted = -1
    for batch in batches:
        stop = seen + len(batch)
        while unit < len(ends) and ends[unit] <= seen:
            unit += 1
        end = total if joins or unit == len(ends) else ends[unit]
        if stop > end:
            raise _refuse(counts, ends, seen, stop, name, who, recount)
        if recount is not None and recounted < unit < len(ends):
            begin = ends[unit] - counts[unit]
            if recount.suspects(batch, unit, begin < seen, stop < end):
                recounted = unit
                if (rows := recount.count(unit)) != counts[unit]:
                    raise refuse(name(unit), rows, counts[unit], who)
        seen = stop
        yield batch
        del batch
    if seen < total:
        raise _refuse(counts, ends, seen, seen, name, who, recount)


def _refuse(
    counts: Sequence[int],
    ends: Sequence[int],
    seen: int,
    stop: int,
    name: NameUnit,
    who: str,
    recount: Recount | None,
) -> RowCountError:
    """Return the error of units of which `seen` rows came, and then those up to `stop`."""
    has_more = stop > ends[-1]
    unit = len(ends) - 1 if has_more else bisect_right(ends, seen)
    rows = (stop if has_more else seen) - (ends[unit] - counts[unit])
    earlier = None if recount is None else recount.find(counts[:unit])
    if earlier is not None:
        unit, rows = earlier
    kind = RowCountError if earlier is None else _MisplacedCountError
    return refuse(name(unit), rows, counts[unit], who, kind)


def refuse(
    name: str,
    rows_read: int,
    rows: int,
    who: str = BY_FOOTER,
    kind: type[RowCountError] = RowCountError,
) -> RowCountError:
    """Return the error of a unit that has `rows_read` rows where `rows` were counted."""
    error = kind(f"{name} has {rows_read} rows, and {who} {rows}")
    error.add_note(
        f"{CANNOT_READ} {name}: write the file again, or leave it out of the Loader's paths"
    )
    return error


def check_groups(
    batches: Iterable[pa.RecordBatch],
    fragments: Sequence[ds.Fragment],
    counts: Sequence[int],  # of `list_counts`
    schema: pa.Schema,  # of the dataset
    options: Mapping[str, Any],  # of the scanner
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a scan of Parquet files, without a filter; see `check_counts`."""
    recount = Recount(fragments, schema, options)
    return check_counts(batches, counts, partial(name_group, fragments), recount=recount)


def check_rows(
    batches: Iterator[pa.RecordBatch],
    fragments: Sequence[ds.Fragment],
    schema: pa.Schema,
    options: Mapping[str, Any],
) -> Iterator[pa.RecordBatch]:
    """Check the batches of a scan as `check_groups` does, if all fragments have row groups."""
    if not all(hasattr(fragment, "row_groups") for fragment in fragments):
        return batches
    return check_groups(batches, fragments, list_counts(fragments), schema, options)


class Recount:
    """Counts the row groups of a scan again if its batches look as if a row group was short.

    A scanner decodes a whole row group, and cuts it into batches: only the last one has fewer rows,
    and only the first one begins where its arrays do. The arguments are those of `check_groups`.
    """

    def __init__(
        self, fragments: Sequence[ds.Fragment], schema: pa.Schema, options: Mapping[str, Any]
    ) -> None:
        self._fragments = fragments
        self._schema = schema
        self._options = options
        self._batch_rows = options.get("batch_size", _BATCH_ROWS)
        self._uncast: dict[int, list[str]] = {}  # by fragment

    @cached_property
    def _groups(self) -> list[tuple[ds.Fragment, int | None]]:
        return _list_groups(self._fragments)

    def suspects(self, batch: Any, position: int, has_begun: bool, goes_on: bool) -> bool:
        """Whether a batch may be the last one of a row group, or the first one of the next."""
        # By the rows before it, the batch belongs to row group number `position`, which has other
        # rows before the batch (`has_begun`) and after it (`goes_on`).
        if goes_on and len(batch) < self._batch_rows:
            return True
        return has_begun and self._begins_arrays(batch, position)

    def _begins_arrays(self, batch: pa.RecordBatch, position: int) -> bool:
        fragment, _ = self._groups[position]
        if id(fragment) not in self._uncast:
            self._uncast[id(fragment)] = self._list_uncast(fragment)
        names = self._uncast[id(fragment)]
        return bool(names) and all(batch.column(name).offset == 0 for name in names)

    def _list_uncast(self, fragment: ds.Fragment) -> list[str]:
        """List the columns that are slices of what was decoded: others begin in each batch."""
        stored, columns = fragment.physical_schema, self._options.get("columns")
        return [
            name
            for name in (self._schema.names if columns is None else columns)
            if _is_plain(name, columns)
            and stored.names.count(name) == self._schema.names.count(name) == 1
            and stored.field(name).type == self._schema.field(name).type
        ]

    def count(self, position: int) -> int:
        """Count the rows of the row group at a position."""
        fragment, group = self._groups[position]
        alone = fragment.subset(row_group_ids=[group])
        chosen = {
            name: value for name, value in self._options.items() if name != "fragment_readahead"
        }
        batches = alone.scanner(self._schema, **chosen).scan_batches()
        return sum(batch.record_batch.num_rows for batch in batches)

    def find(self, counts: Sequence[int]) -> tuple[int, int] | None:
        """Return the first position, and its rows, that has not the rows of `counts`."""
        with suppress(Exception):  # the error that is being raised says more
            for position, rows in enumerate(counts):
                if (rows_now := self.count(position)) != rows:
                    return position, rows_now
        return None


def _is_plain(name: str, columns: Any) -> bool:
    """Whether a column of a scan is that of the file, and not computed."""
    import pyarrow.dataset as ds

    return not isinstance(columns, Mapping) or columns[name].equals(ds.field(name))


def _list_groups(fragments: Iterable[ds.Fragment]) -> list[tuple[ds.Fragment, int | None]]:
    """List the row groups of fragments; None for a file without."""
    return [
        (fragment, group)
        for fragment in fragments
        for group in [group_info.id for group_info in getattr(fragment, "row_groups", ())] or [None]
    ]


def name_group(fragments: Iterable[ds.Fragment], position: int) -> str:
    """Name the row group at a position in fragments, or the file if it has none."""
    fragment, group = _list_groups(fragments)[position]
    return repr(fragment.path) if group is None else f"{fragment.path!r}, row group {group}"


def list_counts(fragments: Iterable[ds.Fragment]) -> list[int]:
    """List the rows that the footers of Parquet files say, of each row group of fragments.

    Raises RowCountError if a column has more values than its row group has rows: a scan would drop
    them.
    """
    return [
        rows
        for fragment in fragments
        for rows in count_groups(
            fragment.metadata, [group.id for group in fragment.row_groups], repr(fragment.path)
        )
    ]


def count_groups(metadata: pq.FileMetaData, groups: Iterable[int], name: str) -> list[int]:
    """List the rows of row groups of a file; see `list_counts`."""
    flat = _list_flat(metadata.schema)
    counts = []
    for number in groups:
        group = metadata.row_group(number)
        values = max((group.column(i).num_values for i in flat), default=0)
        if values > group.num_rows:
            raise refuse(f"{name}, row group {number}", values, group.num_rows)
        counts.append(group.num_rows)
    return counts


def _list_flat(schema: Any) -> list[int]:
    """List the columns that have as many values as rows: those that are not within lists."""
    return [i for i in range(len(schema)) if not schema.column(i).max_repetition_level]
