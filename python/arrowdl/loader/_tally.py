"""`Tally`: counts, logs and bounds the rows that ``Loader(on_error="skip")`` leaves out."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from arrowdl.loader._skipped import Report, Skipped, renew
from arrowdl.loader._sources.base import IndexedSource, Source
from arrowdl.loader._sources.mixture import ENDLESS, MixedSource
from arrowdl.loader._stats import Stats

_MOST_KEPT = 1_000  # entries of `Stats.skipped`
# Without `max_skipped_rows`: one of so many rows, and rows of a stream.
_SHARE = 10
_MOST_OF_STREAMS = 10_000


def name_entry(stats: Stats, entry: Skipped) -> None:
    """Log an entry, and add it to `stats`."""
    logging.getLogger("arrowdl.loader").warning("skipped %s", entry)
    if len(stats.skipped) < _MOST_KEPT:
        stats.skipped = (*stats.skipped, entry)


class Tally:
    """Counts the rows that are skipped in an epoch.

    Parameters
    ----------
    stats : Stats
        The counters, which go on counting.
    most : int
        Rows that may be skipped.
    period : int, optional
        Rows after which they are counted anew, of an epoch without end.
    """

    def __init__(self, stats: Stats, most: int, period: int | None = None) -> None:
        self._stats = stats
        self._most = most
        self._period = period
        self._begin = stats.rows + stats.skipped_rows
        self._rows = 0
        self._known: set[Skipped] = set()

    def add(self, report: Report) -> None:
        """Count what a batch lacks, and log what is new.

        Raises
        ------
        Exception
            That of `report`: too many rows were skipped.
        """
        stats = self._stats
        read = stats.rows + stats.skipped_rows
        if self._period is not None and read - self._begin >= self._period:
            self._begin, self._rows = read, 0
        stats.skipped_rows += report.rows
        self._rows += report.rows
        for entry in report.entries:
            if entry not in self._known:
                self._known.add(entry)
                name_entry(stats, entry)
        if self._rows > self._most:
            raise renew(
                report.error,
                f'Loader(on_error="skip") has skipped {self._rows} rows in this epoch on this rank '
                f"({len(self._known)} errors), and this is the last error: max_skipped_rows="
                f"{self._most} allows no more. stats().skipped names the rows",
            )


def check_left_out(left_out: Sequence[Skipped], source: Source, most: int | None) -> None:
    """Raise OSError if too much of a source cannot be opened.

    Parameters
    ----------
    left_out : sequence of Skipped
        Files and row groups whose rows are unknown: each counts as the mean of the others.
    source : Source
        The rest.
    most : int, optional
        Of `max_skipped_rows`.
    """
    sources = _list_sources(source)
    total = sum(own.num_rows for own in sources)
    units = sum(len(own.units) for own in sources)
    groups = sum(entry.row_group is not None for entry in left_out)
    files = len(left_out) - groups
    rows = -(-groups * total // max(1, units))
    rows += -(-files * total // max(1, sum(own.count_files() for own in sources)))
    limit = (total + rows) // _SHARE if most is None else most
    if rows > limit:
        raise OSError(
            f"{files} files and {groups} row groups cannot be opened, about {rows} rows, and "
            f"max_skipped_rows={limit} allows no more. The last is {left_out[-1]}"
        )


def check_lost(lost: Sequence[Skipped], source: Source, most: int | None) -> None:
    """Raise OSError if too many documents are in no block, since their lengths cannot be read.

    Parameters
    ----------
    lost : sequence of Skipped
    source : Source
        All documents.
    most : int, optional
        Of `max_skipped_rows`.
    """
    rows = sum(stop - start for entry in lost for start, stop in entry.ranges)
    limit = find_most(source) if most is None else most
    if rows > limit:
        raise OSError(
            f"the lengths of {rows} rows cannot be read, and max_skipped_rows={limit} allows no "
            f"more. The last are {lost[-1]}"
        )


def find_most(source: Source) -> int:
    """Return the default of `max_skipped_rows`."""
    sources = _list_sources(source)
    rows = sum(own.num_rows for own in sources)
    return rows // _SHARE if sources and rows < ENDLESS else _MOST_OF_STREAMS


def find_period(source: Source, most: int, world_size: int) -> int | None:
    """Return after how many rows of a rank skipped rows are counted anew; None: not in an epoch.

    A mixture without end has read as many rows as its sources have; of its blocks, whose number
    nothing says, so many that `most` is the default share of them.
    """
    if isinstance(source, MixedSource):
        rows = sum(member.source.num_rows for member in source.members)
        return max(1, rows // world_size) if source.is_endless else None
    is_endless = isinstance(source, IndexedSource) and source.num_rows >= ENDLESS
    return _SHARE * max(1, most) if is_endless else None


def _list_sources(source: Source) -> list[IndexedSource]:
    """List the sources of a mixture, or `source` itself; none if it is a stream."""
    if isinstance(source, MixedSource):
        return [member.source for member in source.members]
    return [source] if isinstance(source, IndexedSource) else []
