"""Checks that units have the rows that were counted: pyarrow ends a short row group in silence."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from arrowdl.loader._skipped import CANNOT_READ

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


def check_counts(
    batches: Iterable[Batch],
    counts: Sequence[int],  # rows of each unit
    name: NameUnit,
    who: str = BY_FOOTER,  # counted the rows, for users
    *,
    # whether a batch may have rows of several units: only their sum is checked
    joins: bool = False,
    batch_rows: int = 0,  # rows of a batch that is not the last one of its unit, as a rule
    # takes the position of a unit, and counts its rows alone: the next rows may be of another
    recount: Callable[[int], int] | None = None,
) -> Iterator[Batch]:
    """Yield batches of units: no row of a unit before all rows of the units before it.

    Raises RowCountError if a unit has fewer or more rows.
    """
    ends = list(accumulate(counts))
    total = ends[-1] if ends else 0
    given = unit = 0
    recounted = -1
    for batch in batches:
        stop = given + len(batch)
        while unit < len(ends) and ends[unit] <= given:
            unit += 1
        end = total if joins or unit == len(ends) else ends[unit]
        if stop > end:
            raise _refuse(counts, ends, given, stop, name, who)
        if recount is not None and len(batch) < batch_rows and stop < end and unit > recounted:
            recounted = unit
            if (found := recount(unit)) != counts[unit]:
                raise refuse(name(unit), found, counts[unit], who)
        given = stop
        yield batch
        del batch
    if given < total:
        raise _refuse(counts, ends, given, given, name, who)


def _refuse(
    counts: Sequence[int], ends: Sequence[int], given: int, stop: int, name: NameUnit, who: str
) -> RowCountError:
    """Return the error of units of which `given` rows came, and then those up to `stop`."""
    has_more = stop > ends[-1]
    unit = len(ends) - 1 if has_more else bisect_right(ends, given)
    found = (stop if has_more else given) - (ends[unit] - counts[unit])
    return refuse(name(unit), found, counts[unit], who)


def refuse(name: str, found: int, rows: int, who: str = BY_FOOTER) -> RowCountError:
    """Return the error of a unit that has `found` rows where `rows` were counted."""
    error = RowCountError(f"{name} has {found} rows, and {who} {rows}")
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
    return check_counts(
        batches,
        counts,
        partial(name_group, fragments),
        batch_rows=options.get("batch_size", _BATCH_ROWS),
        recount=partial(_count_alone, fragments, schema, options),
    )


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


def _count_alone(
    fragments: Sequence[ds.Fragment], schema: pa.Schema, options: Mapping[str, Any], position: int
) -> int:
    fragment, group = _list_groups(fragments)[position]
    alone = fragment.subset(row_group_ids=[group])
    chosen = {name: own for name, own in options.items() if name != "fragment_readahead"}
    return sum(own.record_batch.num_rows for own in alone.scanner(schema, **chosen).scan_batches())


def _list_groups(fragments: Iterable[ds.Fragment]) -> list[tuple[ds.Fragment, int | None]]:
    """List the row groups of fragments; None for a file without."""
    return [
        (fragment, group)
        for fragment in fragments
        for group in [own.id for own in getattr(fragment, "row_groups", ())] or [None]
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
    flat = _find_flat(metadata.schema)
    counts = []
    for number in groups:
        group = metadata.row_group(number)
        values = 0 if flat is None else group.column(flat).num_values
        if values > group.num_rows:
            raise refuse(f"{name}, row group {number}", values, group.num_rows)
        counts.append(group.num_rows)
    return counts


def _find_flat(schema: Any) -> int | None:
    """Return the first column that has as many values as rows; None if all are lists."""
    leaves = map(schema.column, range(len(schema)))
    return next((i for i, leaf in enumerate(leaves) if not leaf.max_repetition_level), None)
