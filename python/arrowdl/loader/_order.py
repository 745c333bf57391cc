"""Which rows a rank reads in an epoch, and what is left of them: arithmetic on spans of rows.

An epoch has one order of all rows, whatever the number of ranks. Ranks take consecutive spans of
it, and so do the workers of a rank, so that what they have read after the same number of batches is
told by that number alone, and what is left can be dealt to any other number of ranks and workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise


@dataclass(frozen=True)
class Span:
    """Rows `start` to `stop` of the epoch's order."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Sharding:
    """How rows are dealt: evenly to the ranks, and batches of a rank to workers that take turns.

    Attributes
    ----------
    world_size : int
        Ranks.
    workers : int
        Of each rank: batch `i` is of worker ``i % workers``.
    batch_size : int
        Rows of a batch.
    drop_last : bool
        Whether batches of fewer rows are left out.
    """

    world_size: int
    workers: int
    batch_size: int
    drop_last: bool


@dataclass(frozen=True)
class Stage:
    """A part of an epoch: what was left, dealt by `sharding`, until ranks had `batches` each."""

    sharding: Sharding
    batches: int


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
        sharding = stage.sharding
        batches = count_batches(count_rows(rest), sharding)
        rest = [
            span
            for part in split_evenly(rest, sharding.world_size)
            for worker, share in enumerate(_deal_batches(part, batches, sharding))
            for span in drop_batches(share, stage.batches, worker, sharding)
        ]
    return rest


def count_batches(rows: int, sharding: Sharding) -> int:
    """Batches of every rank, when `rows` rows are split evenly: the same for all."""
    if sharding.drop_last:
        return rows // sharding.world_size // sharding.batch_size
    longest = -(-rows // sharding.world_size)
    return -(-longest // sharding.batch_size)


def count_turns(batches: int, worker: int, workers: int) -> int:
    """How many of the first `batches` batches of a rank are of `worker`."""
    return -(-(batches - worker) // workers)


def choose_share(spans: Sequence[Span], rank: int, worker: int, sharding: Sharding) -> list[Span]:
    """The rows of a worker of `rank`, which has as many batches as every other rank.

    Cut to that number, or padded with one row that another rank has as well, only where a rank
    would have one batch less than the others.
    """
    part = split_evenly(spans, sharding.world_size)[rank]
    batches = count_batches(count_rows(spans), sharding)
    if sharding.drop_last:
        part = slice_spans(part, 0, batches * sharding.batch_size)
    elif batches > 0 and count_rows(part) <= (batches - 1) * sharding.batch_size:
        part = [*part, Span(spans[0].start, spans[0].start + 1)]
    return _deal_batches(part, batches, sharding)[worker]


def drop_batches(
    share: Sequence[Span], batches: int, worker: int, sharding: Sharding
) -> list[Span]:
    """What `worker` has left of its share when its rank has given out `batches`."""
    turns = count_turns(batches, worker, sharding.workers)
    return slice_spans(share, turns * sharding.batch_size, count_rows(share))


def _deal_batches(part: Sequence[Span], batches: int, sharding: Sharding) -> list[list[Span]]:
    """The rows of a rank in consecutive shares, one of each worker.

    In whole batches, so that there are no more of them than without workers. Rows beyond the
    batches, which are left out, are with the last share.
    """
    turns = [count_turns(batches, worker, sharding.workers) for worker in range(sharding.workers)]
    ends = [0, *accumulate(count * sharding.batch_size for count in turns)]
    ends[-1] = max(ends[-1], count_rows(part))
    return [slice_spans(part, *limits) for limits in pairwise(ends)]
