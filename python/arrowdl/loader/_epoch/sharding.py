"""Which rows a rank reads in an epoch, and what is left of them: arithmetic on spans of rows.

An epoch has one order of all rows, whatever the number of ranks. Ranks take consecutive spans of
it, and so do the workers of a rank, so that what they have read after the same number of batches is
told by that number alone, and what is left can be dealt to any other number of ranks and workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property


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
    num_workers : int
        Of each rank: worker ``i % num_workers`` reads batch `i`.
    batch_size : int
        Rows of a batch.
    drop_last : bool
        Whether batches of fewer rows are left out.
    """

    world_size: int
    num_workers: int
    batch_size: int
    drop_last: bool


@dataclass(frozen=True)
class Stage:
    """A part of an epoch: what was left, dealt by `sharding`, until ranks had `batches` each."""

    sharding: Sharding
    batches: int


class Rest:
    """The rows of an epoch that are left after `stages`, in the order in which they are dealt next.

    What it takes to find some of them grows with those ranks and workers of each stage that had
    them, and not with all that there were.

    Parameters
    ----------
    rows : int
        Of the epoch.
    stages : iterable of Stage
    """

    def __init__(self, rows: int, stages: Iterable[Stage]) -> None:
        self._left: list[_Left] = []
        for stage in stages:
            self._left.append(_Left(rows, stage))
            rows = len(self._left[-1])
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def slice(self, start: int, stop: int) -> list[Span]:
        """Rows `start` to `stop` of what is left, in the epoch's order."""
        spans = [Span(start, stop)] if start < stop else []
        for left in reversed(self._left):
            spans = list(_join(found for span in spans for found in left.find(span)))
        return spans


class _Left:
    """What one stage left of `rows` rows."""

    def __init__(self, rows: int, stage: Stage) -> None:
        sharding = stage.sharding
        batches = count_batches(rows, sharding)
        smaller, longer = divmod(rows, sharding.world_size)
        # The parts of the ranks have one of two lengths: those with a row more come first.
        self._kinds = [
            _Parts(0, 0, longer, smaller + 1, _list_left(smaller + 1, batches, stage)),
        ]
        begin, end = len(self._kinds[0]), longer * (smaller + 1)
        others = sharding.world_size - longer
        left = _list_left(smaller, batches, stage)
        self._kinds.append(_Parts(begin, end, others, smaller, left))

    def __len__(self) -> int:
        return sum(map(len, self._kinds))

    def find(self, span: Span) -> Iterator[Span]:
        """Where rows of what is left were before."""
        for parts in self._kinds:
            yield from parts.find(span)


@dataclass(frozen=True)
class _Parts:
    """Parts of ranks that are equally long, and what is left of each.

    Attributes
    ----------
    begin : int
        Rows that are left of the parts before.
    start : int
        Rows of the parts before.
    count, length : int
        Parts, and rows of each.
    left : list of Span
        Rows of a part.
    """

    begin: int
    start: int
    count: int
    length: int
    left: list[Span]

    @cached_property
    def size(self) -> int:
        return sum(map(len, self.left))

    def __len__(self) -> int:
        return self.count * self.size

    def find(self, span: Span) -> Iterator[Span]:
        first, last = max(span.start - self.begin, 0), min(span.stop - self.begin, len(self))
        if first >= last:
            return
        for part in range(first // self.size, -(-last // self.size)):
            begin = part * self.size
            for left in self.left:
                start, stop = max(first - begin, 0), min(last - begin, len(left))
                if start < stop:
                    base = self.start + part * self.length + left.start
                    yield Span(base + start, base + stop)
                begin += len(left)


def _list_left(length: int, batches: int, stage: Stage) -> list[Span]:
    """What is left of a part of `length` rows, of each worker that has something left."""
    workers = stage.sharding.num_workers
    with_turns = range(min(workers - 1, batches))
    shares = [
        _choose_turns(length, batches, worker, stage.sharding, stage.batches)
        for worker in (*with_turns, workers - 1)
    ]
    return list(_join(share for share in shares if share.start < share.stop))


def _join(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans, as one where one follows another."""
    last: Span | None = None
    for span in spans:
        if last is not None and last.stop == span.start:
            last = Span(last.start, span.stop)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def count_batches(rows: int, sharding: Sharding) -> int:
    """Batches of every rank, when `rows` rows are split evenly: the same for all."""
    if sharding.drop_last:
        return rows // sharding.world_size // sharding.batch_size
    longest = -(-rows // sharding.world_size)
    return -(-longest // sharding.batch_size)


def count_turns(batches: int, worker: int, workers: int) -> int:
    """How many of the first `batches` batches of a rank are of `worker`."""
    return -(-(batches - worker) // workers)


@dataclass(frozen=True)
class Share:
    """What one worker of a rank has left.

    Attributes
    ----------
    rows : Span
        Of what is dealt.
    has_filler : bool
        Whether another batch comes after them, of one row that another rank has as well: this rank
        would have one batch less than the others.
    """

    rows: Span
    has_filler: bool


def choose_share(rows: int, rank: int, worker: int, sharding: Sharding, done: int) -> Share:
    """The share of a worker of `rank`, which has as many batches as every other rank.

    Parameters
    ----------
    rows : int
        That are dealt.
    rank, worker : int
    sharding : Sharding
    done : int
        Batches that the rank has given out.
    """
    smaller, longer = divmod(rows, sharding.world_size)
    start = rank * smaller + min(rank, longer)
    length = smaller + (rank < longer)
    batches = count_batches(rows, sharding)
    is_short = not sharding.drop_last and length <= (batches - 1) * sharding.batch_size
    if sharding.drop_last:
        length = batches * sharding.batch_size
    own = _choose_turns(length, batches, worker, sharding, done)
    has_last = worker == min(sharding.num_workers, batches) - 1
    turns_done = count_turns(done, worker, sharding.num_workers)
    is_left = turns_done < count_turns(batches, worker, sharding.num_workers)
    has_filler = is_short and has_last and is_left
    return Share(Span(start + own.start, start + own.stop), has_filler)


def _choose_turns(length: int, batches: int, worker: int, sharding: Sharding, done: int) -> Span:
    """What `worker` has left of its rank's `length` rows when `done` of `batches` are given out.

    Workers have consecutive shares, in whole batches, so that there are no more of them than
    without workers. Rows beyond the batches, which are left out, are with the last share.
    """
    size = sharding.batch_size
    fewer, longer = divmod(batches, sharding.num_workers)  # the first workers have a turn more
    start = (worker * fewer + min(worker, longer)) * size
    is_last = worker == sharding.num_workers - 1
    stop = length if is_last else min(length, start + (fewer + (worker < longer)) * size)
    start += count_turns(done, worker, sharding.num_workers) * size
    return Span(min(start, stop), stop)
