"""The rows of the shuffle buffer: as many as fit, and what to say if these are not all rows."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

from arrowdl.loader._options.options import Options
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.row_bytes import (
    BUFFER_BYTES,
    BUFFER_TEXT,
    LANES,
    count_buffer_rows,
    count_lanes,
)

_log = logging.getLogger("arrowdl.loader")


def settle_buffer(source: Source, options: Options) -> Options:
    """Return the options with the rows that ``Shuffle("auto")`` means, or that a number becomes.

    For a stream, the number is known when it is read.
    """
    buffers = options.shuffle or options.sizes.bucket_by is not None
    if options.buffer_size != "auto" or not buffers:
        return _widen(source, options)
    row_bytes = source.estimate_row_bytes()
    if row_bytes is None:
        return options
    rows = count_buffer_rows(row_bytes)
    if rows < (source.num_rows or 0) and not source.schedule:
        held = source.measure_held()
        rows = count_buffer_rows(row_bytes, count_lanes(held, 0) * held.unit)
    return options.with_buffer(rows)


def _widen(source: Source, options: Options) -> Options:
    """Return the options with all rows, if they fit and lanes would be in all units at any time."""
    # There, lanes decode each unit several times, and each rank most of all units.
    sizes, members = options.sizes, source.list_members()
    # The windows of Buckets are as long as the buffer.
    if not options.shuffle or sizes.bucket_by is not None or source.schedule or not members:
        return options
    ((_, member),) = members
    are_few = sum(rows > 0 for rows in member.units) * (sizes.splits or 1) <= LANES
    if are_few and 0 < member.measure_held().row * member.num_rows <= BUFFER_BYTES:
        return replace(options, buffer_size=max(options.buffer_rows, member.num_rows))
    return options


class Mixing(NamedTuple):
    """A shuffle buffer that does not hold all rows of a source."""

    name: str  # of the source in a mixture
    buffer_rows: int
    rows: int
    parts: int  # row groups or blocks whose rows the buffer mixes
    units: int  # of all row groups or blocks


def find_mixing(source: Source, options: Options) -> Mixing | None:
    """Return how a shuffle mixes its largest source; None if each buffer holds all rows."""
    buffers = source.list_buffers(options.count_shuffled_rows(source.num_rows or 0))
    small = [buffer for buffer in buffers if buffer[2] < buffer[1].num_rows]
    if not small:
        return None
    name, largest, size = max(small, key=lambda buffer: buffer[1].num_rows)
    rows, units = largest.num_rows, sum(count > 0 for count in largest.units)
    return Mixing(name, size, rows, min(units, max(LANES, size * units // rows)), units)


def log_buffer(source: Source, options: Options, *, is_auto: bool) -> None:
    """Log if the shuffle buffer has fewer rows than the source, or one of a mixture.

    It is a warning if the size is the default, and rows of few row groups are mixed.
    """
    mixing = find_mixing(source, options) if options.shuffle else None
    if mixing is None:
        return
    level = logging.WARNING if is_auto and mixing.units < LANES else logging.INFO
    fits = f" (what fits into {BUFFER_TEXT})" if is_auto else ""
    _log.log(
        level,
        "the shuffle buffer has %d%s of %d rows%s, and mixes rows of %d of %d row groups or blocks "
        "at a time: shuffle=Shuffle(%d) mixes all, a number between these more, with memory for "
        "as many rows",
        mixing.buffer_rows,
        fits,
        mixing.rows,
        f' of "{mixing.name}"' if mixing.name else "",
        mixing.parts,
        mixing.units,
        mixing.rows * len(source.list_members()),
    )
