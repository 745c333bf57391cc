"""`Tally`: counts, logs and bounds the rows that ``Loader(on_error="skip")`` leaves out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from arrowdl.loader._skipped import MissingRows, Skipped, renew
from arrowdl.loader._sources.base import Source, count_member_rows
from arrowdl.loader._stats import Stats

_MOST_ENTRIES = 1_000  # entries of `Stats.skipped`
# Without `Skip.max_rows`: one of this many rows, and rows of a stream.
_SHARE = 10
_MOST_OF_STREAMS = 10_000


def name_entry(stats: Stats, entry: Skipped) -> None:
    """Log an entry, and add it to `stats`."""
    logging.getLogger("arrowdl.loader").warning("skipped %s", entry)
    add_entry(stats, entry)


def add_entry(stats: Stats, entry: Skipped) -> None:
    """Add an entry to `stats`, unless there are many."""
    if len(stats.skipped) < _MOST_ENTRIES:
        stats.skipped = (*stats.skipped, entry)


class Tally:
    """Counts the rows that are skipped in an epoch, or in a pass of one without end."""

    def __init__(
        self,
        stats: Stats,  # the counters, which go on counting
        find_most: Callable[[], int],  # returns how many rows may be skipped
        find_pass: Callable[[], int],  # returns the number of the pass; 0 in an epoch with an end
        world_size: int,
        # takes the number of a pass and rows that were skipped now. Returns those of all ranks in
        # this pass so far, or None if they are not known
        share: Callable[[int, int], int | None] | None = None,
    ) -> None:
        self._stats = stats
        self._find_most = find_most
        self._find_pass = find_pass
        self._world_size = world_size
        self._share = share
        self._most: int | None = None
        self._pass = 0
        self._rows = 0
        self._entries: set[Skipped] = set()

    def add(self, report: MissingRows) -> None:
        """Count what a batch lacks, and log what is new."""
        if (number := self._find_pass()) != self._pass:
            self._pass, self._rows = number, 0
        self._stats.skipped_rows += report.rows
        self._rows += report.rows
        for entry in report.entries:
            if entry not in self._entries:
                self._entries.add(entry)
                name_entry(self._stats, entry)
        total = None if self._share is None else self._share(number, report.rows)
        if self._most is None:
            self._most = self._find_most()
        if max(self._rows, total or 0) > self._most:
            raise renew(report.error, self._describe(total))

    def _describe(self, total: int | None) -> str:
        when = f"pass {self._pass} over the sources" if self._pass else "this epoch"
        where = "on this rank"
        if total is not None and total > self._rows:
            where += f" and {total - self._rows} on others"
        elif total is None and self._world_size > 1:
            where += (
                f" (each of the {self._world_size} ranks counts alone: they have no process group "
                "of torch.distributed)"
            )
        return (
            f'Loader(on_error="skip") has skipped {self._rows} rows in {when} {where} '
            f"({len(self._entries)} errors), and this is the last error: Skip.max_rows="
            f"{self._most} allows no more. stats().skipped names the rows"
        )


def check_left_out(
    # files and row groups whose rows are unknown: each counts as the mean of the others
    left_out: Sequence[Skipped],
    source: Source,  # the rest
    most: int | None,  # of `Skip.max_rows`
) -> None:
    """Raise OSError if too much of a source cannot be opened."""
    sources = [member for _, member in source.list_members()]
    total = sum(member.num_rows for member in sources)
    units = sum(len(member.units) for member in sources)
    groups = sum(entry.row_group is not None for entry in left_out)
    files = len(left_out) - groups
    rows = -(-groups * total // max(1, units))
    rows += -(-files * total // max(1, sum(member.files.count() for member in sources)))
    limit = (total + rows) // _SHARE if most is None else most
    if rows > limit:
        raise OSError(
            f"{files} files and {groups} row groups cannot be opened, about {rows} rows, and "
            f"Skip.max_rows={limit} allows no more. The last is {left_out[-1]}"
        )


def check_lost(
    lost: Sequence[Skipped],
    source: Source,  # all documents
    most: int | None,  # of `Skip.max_rows`
) -> None:
    """Raise OSError if too many documents are in no block, since their lengths cannot be read."""
    rows = sum(stop - start for entry in lost for start, stop in entry.ranges)
    limit = find_most(count_member_rows(source)) if most is None else most
    if rows > limit:
        raise OSError(
            f"the lengths of {rows} rows cannot be read, and Skip.max_rows={limit} allows no "
            f"more. The last are {lost[-1]}"
        )


def find_most(rows: int | None) -> int:
    """Return the default of `Skip.max_rows` for a number of rows; None for a stream's."""
    return _MOST_OF_STREAMS if rows is None else rows // _SHARE
