"""One share of an epoch of `splits` sequences, whose rows are side by side in each global batch.

Each sequence is a run of consecutive rows of the epoch's order, and each global batch has as many
rows of every sequence, one sequence after the other. A rank has consecutive sequences: so the k-th
global batch is the same on any number of ranks. Worker processes take turns with whole batches:
each reads all sequences of its rank, and skips the rows of the others' batches. A transform then
gets whole batches, whatever the number of workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from arrowdl import _core
from arrowdl.loader._epoch.cut_rows import cut_rows
from arrowdl.loader._epoch.read import FindParts, Reader
from arrowdl.loader._epoch.sequences import EpochSequences
from arrowdl.loader._epoch.sharding import Sharding, Span, count_turns, locate_sequence
from arrowdl.loader._epoch.steps import Steps


def read_splits(
    sequences: EpochSequences,
    rows: int,  # of all sequences
    steps: Steps,  # that are left of the epoch
    reader: Reader,  # with `step` equal to the number of workers, and a sharding with `splits`
    *,
    reads_ahead: bool,  # whether a native thread joins the rows of the next batches
) -> tuple[_core.DeviceStream, FindParts | None]:
    """Read the remaining batches of one worker, an array for each batch.

    Returns also what counts the rows of each sequence in an array, by the index of the array and
    its rows; None for a rank of a single sequence.
    """
    sharding = reader.sharding
    turns = _Turns(rows, reader, steps)
    is_joined = copies_rows(sharding)
    streams = sequences.open(turns.list_rows())
    stream = streams[0]
    if sharding.tokens is not None:
        # rebatch() leaves no array without rows
        stream = _join(streams, turns) if turns.has_rows() else stream.rebatch(1)
    elif is_joined:
        stream = _core.interleave(streams, turns.rows, turns.skip)
    if is_joined and reads_ahead:  # several batches at a time, which costs less than one
        stream = stream.prefetch(1)
    if sharding.tokens is None:
        stream = stream.rebatch(sharding.batch_size)
    count_parts = None if sharding.splits == sharding.world_size else turns.count_parts
    if turns.filler is None:
        return stream, count_parts
    reader.valid_rows[turns.count_left()] = 0
    filler = map(sequences.copy_row, *zip(turns.filler, strict=True))  # read when it is needed
    return _core.from_arrow_stream(itertools.chain(stream, filler)), count_parts


def _join(streams: Sequence[_core.DeviceStream], turns: _Turns) -> _core.DeviceStream:
    """Join the rows of each cut of all streams to one array."""

    def join() -> Iterator[_core.DeviceArray]:
        cuts = (cut_rows(stream, turns.list_cuts()) for stream in streams)
        for turn in itertools.zip_longest(*cuts):
            parts = [part for parts in turn for part in parts or ()]
            if len(parts) > 1:
                parts = list(_core.chain(parts).rebatch(sum(map(len, parts))))
            yield parts.pop()

    return _core.from_arrow_stream(join())


def copies_rows(sharding: Sharding) -> bool:
    """Whether `read_splits` puts the rows into new memory, to join sequences or skip batches."""
    return sharding.num_workers > 1 or sharding.splits != sharding.world_size


class _Turns:
    """Which rows of its rank's sequences a worker reads."""

    def __init__(self, rows: int, reader: Reader, steps: Steps) -> None:
        sharding = reader.sharding
        assert sharding.splits is not None
        self.splits = sharding.splits
        # rows that each sequence gives to a batch
        self.rows = sharding.global_batch_size // self.splits
        # rows of each sequence between two batches of this worker
        self.skip = self.rows * (sharding.num_workers - 1)
        self._total = rows
        self._reader = reader
        self._steps = steps
        self._batches = steps.count
        self._first = self._find_turn()
        # a sequence and a row of it, for a last batch to which the rank's own sequences give none
        self.filler = self._find_filler()

    def list_rows(self) -> list[tuple[int, Span]]:
        """List the rank's sequences, and the rows of each from this worker's next batch on."""
        start = self._steps.find_row(self._first)
        end = self._steps.find_row(self._batches)
        return [
            (index, Span(start, max(start, min(end, self._count_rows(index)))))
            for index in self._list_sequences()
        ]

    def has_rows(self) -> bool:
        """Whether the rank's sequences have rows for this worker."""
        return any(span for _, span in self.list_rows())

    def list_cuts(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of each sequence in this worker's steps, and those up to its next one."""
        workers = self._reader.sharding.num_workers
        find = self._steps.find_row
        for step in range(self._first, self._batches, workers):
            yield find(step + 1) - find(step), find(step + workers) - find(step + 1)

    def count_parts(self, index: int, rows: int) -> list[int]:
        """Count the rows that each of the rank's sequences gives to an array of `rows` rows."""
        step = self._first + index * self._reader.sharding.num_workers
        start, stop = self._steps.find_row(step), self._steps.find_row(step + 1)
        return [
            max(0, min(stop, self._count_rows(sequence)) - start)
            for sequence in self._list_sequences()
        ]

    def _list_sequences(self) -> range:
        sharding = self._reader.sharding
        rank_splits = self.splits // sharding.world_size
        return range(self._reader.rank * rank_splits, (self._reader.rank + 1) * rank_splits)

    def _find_turn(self) -> int:
        """Return this worker's next step."""
        turns = self._count_turns(self._reader.position.batches)
        return turns * self._reader.sharding.num_workers + self._reader.worker

    def count_left(self) -> int:
        """Count this worker's batches before the last one of its rank."""
        return self._count_turns(self._batches - 1) - self._count_turns(
            self._reader.position.batches
        )

    def _count_turns(self, batches: int) -> int:
        return count_turns(batches, self._reader.worker, self._reader.sharding.num_workers)

    def _count_rows(self, index: int) -> int:
        return len(locate_sequence(index, self.splits, self._total))

    def _find_filler(self) -> tuple[int, int] | None:
        if self._steps.is_endless:
            return None
        last = self._batches - 1
        has_last = last % self._reader.sharding.num_workers == self._reader.worker
        if self._reader.sharding.drop_last or last < self._reader.position.batches or not has_last:
            return None
        row = self._steps.find_row(last)
        if any(row < self._count_rows(index) for index, _ in self.list_rows()):
            return None
        longest = (i for i in range(self.splits) if row < self._count_rows(i))
        return next(longest), row
