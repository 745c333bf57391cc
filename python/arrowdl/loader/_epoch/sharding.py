"""Which rows each rank and worker reads in an epoch, and which are left: arithmetic on spans.

An epoch has one order of all rows, whatever the number of ranks. Each rank takes a consecutive span
of it, and each worker of a rank a consecutive span of that. So the number of batches alone says
what was read, and the remaining rows can be divided among any other number of ranks and workers.

With `Sharding.splits` the order is divided into that many sequences instead: see `splits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True)
class Span:
    """Rows `start` (included) to `stop` (excluded) in the epoch's order."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Sharding:
    """How rows are divided: evenly among the ranks, whose workers take turns with whole batches."""

    world_size: int  # number of ranks
    num_workers: int  # of each rank: worker ``i % num_workers`` reads batch `i`
    batch_size: int  # rows of a batch
    drop_last: bool  # whether batches of fewer rows are dropped
    # sequences that each global batch takes its rows from: a multiple of the number of ranks, and a
    # divisor of the global batch
    splits: int | None = None
    # budget of all ranks in a step. `batch_size` is 0 then, and a `StepPlan` has the rows of each
    # step
    tokens: int | None = None

    @property
    def global_batch_size(self) -> int:
        """Rows that all ranks together read in a step."""
        return self.world_size * self.batch_size

    @property
    def meaning(self) -> Sharding:
        """What decides on the rows of each step: with `splits`, neither ranks nor workers do."""
        if self.splits is None:
            return self
        return replace(
            self, world_size=1, num_workers=1, batch_size=self.global_batch_size, drop_last=False
        )


@dataclass(frozen=True)
class Stage:
    """A part of an epoch: each rank read `batches` batches of what was left, by `sharding`."""

    sharding: Sharding
    batches: int


class Rest:
    """The rows of an epoch that are left after `stages`, in the order in which they are read next.

    The time to find rows grows with the ranks and workers that had these rows, not with all ranks
    and workers.
    """

    def __init__(
        self,
        rows: int,  # rows of the epoch
        stages: Iterable[Stage],
    ) -> None:
        self._left: list[_Left] = []
        for stage in stages:
            self._left.append(_Left(rows, stage))
            rows = len(self._left[-1])
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def slice(self, start: int, stop: int) -> list[Span]:
        """Return where rows `start` to `stop` of what is left are in the epoch's order."""
        spans = [Span(start, stop)] if start < stop else []
        for left in reversed(self._left):
            spans = list(_join(span_part for span in spans for span_part in left.find(span)))
        return spans


def count_left(rows: int, stage: Stage) -> int:
    """Count the rows that `stage` leaves of `rows`."""
    if stage.sharding.splits is not None:
        return max(0, rows - stage.batches * stage.sharding.global_batch_size)
    return len(_Left(rows, stage))


def count_rest(rows: int, stages: Iterable[Stage]) -> int:
    """Count the rows that `stages` leave of `rows`."""
    for stage in stages:
        rows = count_left(rows, stage)
    return rows


class _Left:
    """The rows that one stage leaves of `rows` rows."""

    def __init__(self, rows: int, stage: Stage) -> None:
        sharding = stage.sharding
        batches = count_batches(rows, sharding)
        smaller, longer = divmod(rows, sharding.world_size)
        # The ranks' parts have two lengths; the parts with one row more come first.
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
        """Return where a span of the remaining rows was before the stage."""
        for parts in self._kinds:
            yield from parts.find(span)


@dataclass(frozen=True)
class _Parts:
    """Parts of ranks that have the same length, and what is left of each."""

    begin: int  # rows left of all earlier parts
    start: int  # rows of all earlier parts
    count: int  # number of parts, and rows of each
    length: int
    left: list[Span]  # what is left of each part, counted from its start

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
    """List what the workers leave of a part of `length` rows."""
    workers = stage.sharding.num_workers
    with_turns = range(min(workers - 1, batches))
    shares = [
        _choose_turns(length, batches, worker, stage.sharding, stage.batches)
        for worker in (*with_turns, workers - 1)
    ]
    return list(_join(share for share in shares if share.start < share.stop))


def _join(spans: Iterable[Span]) -> Iterator[Span]:
    """Merge spans that follow each other without a gap."""
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


def locate_sequence(index: int, splits: int, rows: int) -> Span:
    """Return the rows of sequence `index`: lengths differ by a row, those of all ranks too."""
    return Span(index * rows // splits, (index + 1) * rows // splits)


def count_batches(rows: int, sharding: Sharding) -> int:
    """Count the batches of each rank of `rows` rows: the same number for all ranks."""
    if sharding.splits is not None:
        size = sharding.global_batch_size
        return rows // size if sharding.drop_last else -(-rows // size)
    if sharding.drop_last:
        return rows // sharding.world_size // sharding.batch_size
    longest = -(-rows // sharding.world_size)
    return -(-longest // sharding.batch_size)


def count_turns(batches: int, worker: int, workers: int) -> int:
    """Count the batches of `worker` among the first `batches` batches of a rank."""
    return -(-(batches - worker) // workers)


@dataclass(frozen=True)
class Share:
    """What one worker of a rank has left to read."""

    rows: Span  # among the rows that are divided
    # whether a batch with one row of another rank follows, without which this rank would have one
    # batch less than the others
    has_filler: bool


def choose_share(
    rows: int,  # rows to divide
    rank: int,
    worker: int,
    sharding: Sharding,
    done: int,  # batches that the rank has returned
) -> Share:
    """Return the share of one worker of `rank`, which has as many batches as every other rank."""
    smaller, longer = divmod(rows, sharding.world_size)
    start = rank * smaller + min(rank, longer)
    length = smaller + (rank < longer)
    batches = count_batches(rows, sharding)
    is_short = not sharding.drop_last and length <= (batches - 1) * sharding.batch_size
    if sharding.drop_last:
        length = batches * sharding.batch_size
    turns = _choose_turns(length, batches, worker, sharding, done)
    has_last = worker == min(sharding.num_workers, batches) - 1
    turns_done = count_turns(done, worker, sharding.num_workers)
    is_left = turns_done < count_turns(batches, worker, sharding.num_workers)
    has_filler = is_short and has_last and is_left
    return Share(Span(start + turns.start, start + turns.stop), has_filler)


def _choose_turns(length: int, batches: int, worker: int, sharding: Sharding, done: int) -> Span:
    """Return what `worker` has left of its rank's `length` rows after `done` of `batches`."""
    # Workers have consecutive shares of whole batches, so that there are as many batches as without
    # workers. Dropped rows at the end belong to the last share.
    size = sharding.batch_size
    fewer, longer = divmod(batches, sharding.num_workers)  # the first workers have a turn more
    start = (worker * fewer + min(worker, longer)) * size
    is_last = worker == sharding.num_workers - 1
    stop = length if is_last else min(length, start + (fewer + (worker < longer)) * size)
    start += count_turns(done, worker, sharding.num_workers) * size
    return Span(min(start, stop), stop)
