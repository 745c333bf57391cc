"""Which rows a rank reads in an epoch, and what is left of them: arithmetic on spans of rows.

An epoch has one order of all rows, whatever the number of ranks. Ranks take consecutive spans of
it, so that what they have read after the same number of batches is told by that number alone, and
what is left can be dealt to any other number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Span:
    """Rows `start` to `stop` of the epoch's order."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Stage:
    """A part of an epoch that was read by `world_size` ranks, `rows` rows by each that had them."""

    world_size: int
    rows: int


def count_rows(spans: Iterable[Span]) -> int:
    """Rows of all spans together."""
    return sum(len(span) for span in spans)


def slice_spans(spans: Sequence[Span], start: int, stop: int) -> list[Span]:
    """Rows `start` to `stop` of the spans put one after another."""
    found = []
    begin = 0
    for span in spans:
        first, last = max(start - begin, 0), min(stop - begin, len(span))
        if first < last:
            found.append(Span(span.start + first, span.start + last))
        begin += len(span)
    return found


def split_evenly(spans: Sequence[Span], count: int) -> list[list[Span]]:
    """The rows in `count` consecutive parts, the first ones one row longer where they must be."""
    smaller, longer = divmod(count_rows(spans), count)
    ends = [part * smaller + min(part, longer) for part in range(count + 1)]
    return [slice_spans(spans, *limits) for limits in pairwise(ends)]


def find_rest(spans: Sequence[Span], stages: Iterable[Stage]) -> list[Span]:
    """What of `spans` is left after `stages`, in order."""
    rest = list(spans)
    for stage in stages:
        parts = split_evenly(rest, stage.world_size)
        rest = [span for part in parts for span in slice_spans(part, stage.rows, count_rows(part))]
    return rest


def count_batches(rows: int, world_size: int, batch_size: int, drop_last: bool) -> int:
    """Batches of every rank, when `rows` rows are split evenly: the same for all."""
    if drop_last:
        return rows // world_size // batch_size
    longest = -(-rows // world_size)
    return -(-longest // batch_size)


def choose_part(
    spans: Sequence[Span], rank: int, world_size: int, batch_size: int, drop_last: bool
) -> list[Span]:
    """The rows of `rank`, cut or padded to the number of batches that every rank has.

    Padded with one row that another rank has as well, and only where a rank would have one batch
    less than the others.
    """
    part = split_evenly(spans, world_size)[rank]
    batches = count_batches(count_rows(spans), world_size, batch_size, drop_last)
    if drop_last:
        return slice_spans(part, 0, batches * batch_size)
    if batches > 0 and count_rows(part) <= (batches - 1) * batch_size:
        part = [*part, Span(spans[0].start, spans[0].start + 1)]
    return part
