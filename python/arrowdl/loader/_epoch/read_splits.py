"""One share of an epoch of `splits` sequences, whose rows are side by side in each global batch.

Each sequence is a run of consecutive rows of the epoch's order, and each global batch has as many
rows of every sequence, one sequence after the other. A rank has consecutive sequences: so the k-th
global batch is the same on any number of ranks. Worker processes take turns with whole batches:
each reads all sequences of its rank, and skips the rows of the others' batches. A transform then
gets whole batches, whatever the number of workers.

A row group that two sequences share comes last in both: a process with both decodes it once.
"""

from __future__ import annotations

import copy
import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from arrowdl import _core
from arrowdl.loader._epoch.read import Order, Reader
from arrowdl.loader._epoch.sharding import Sharding, Span, count_batches, count_rest, count_turns
from arrowdl.loader._epoch.shared_units import SharedUnits
from arrowdl.loader._sources.base import IndexedSource


class _Part(NamedTuple):
    """Rows of a sequence: of whole units, or within a unit that another sequence may share."""

    rows: Span
    is_whole: bool


def read_splits(
    source: IndexedSource, order: Order, reader: Reader, *, reads_ahead: bool
) -> _core.DeviceStream:
    """Read the remaining batches of one worker, an array for each batch.

    Parameters
    ----------
    source : IndexedSource
    order : Order
    reader : Reader
        With `step` equal to the number of workers, and a sharding with `splits`.
    reads_ahead : bool
        Whether a native thread joins the rows of the next batches.

    Raises
    ------
    OSError
        A file has changed since the source was opened.
    """
    source.check_unchanged()
    turns = _Turns(source, reader)
    epoch = _Epoch(source, order, reader.position.epoch, turns.splits)
    streams = epoch.open(turns.list_rows(), reader.sharding)
    stream = streams[0]
    if copies_rows(reader.sharding):
        stream = _core.interleave(streams, turns.rows, turns.skip)
        if reads_ahead:  # several batches at a time, which costs less than one
            stream = stream.prefetch(1)
    batch_size = reader.sharding.batch_size
    if turns.filler is None:
        return stream.rebatch(batch_size)
    reader.valid_rows[turns.count_left()] = 0
    filler = map(epoch.copy_row, *zip(turns.filler, strict=True))  # read when it is needed
    return _core.from_arrow_stream(itertools.chain(stream.rebatch(batch_size), filler))


def copies_rows(sharding: Sharding) -> bool:
    """Whether `read_splits` puts the rows into new memory, to join sequences or skip batches."""
    return sharding.num_workers > 1 or sharding.splits != sharding.world_size


def _list_shared(sequences: Sequence[Sequence[_Part]]) -> list[Span]:
    """List the rows that are read last in each sequence, in the order in which they are needed."""
    found = []
    for parts in sequences:
        begin = 0
        for part in parts:
            if not part.is_whole:
                found.append((begin, part.rows))
            begin += len(part.rows)
    return [rows for _, rows in sorted(found, key=lambda item: item[0])]


class _Turns:
    """Which rows of its rank's sequences a worker reads.

    Attributes
    ----------
    splits : int
    rows : int
        Rows that each sequence gives to a batch.
    skip : int
        Rows of each sequence between two batches of this worker.
    filler : (int, int) or None
        A sequence and a row of it, for a last batch to which the rank's own sequences give none.
    """

    def __init__(self, source: IndexedSource, reader: Reader) -> None:
        sharding, position = reader.sharding, reader.position
        assert sharding.splits is not None
        self.splits = sharding.splits
        self.rows = sharding.global_batch_size // self.splits
        self.skip = self.rows * (sharding.num_workers - 1)
        self._total = source.num_rows
        self._reader = reader
        self._done = sum(
            stage.batches * stage.sharding.global_batch_size // self.splits
            for stage in position.stages
        )
        left = count_rest(self._total, position.stages)
        self._batches = count_batches(left, sharding)
        self.filler = self._find_filler()

    def list_rows(self) -> list[tuple[int, Span]]:
        """List the rank's sequences, and the rows of each from this worker's next batch on."""
        sharding = self._reader.sharding
        own = self.splits // sharding.world_size
        first = self._reader.rank * own
        turn = self._count_turns(self._reader.position.batches) * sharding.num_workers
        start = self._done + (turn + self._reader.worker) * self.rows
        end = self._done + self._batches * self.rows
        return [
            (index, Span(start, max(start, min(end, self._count_rows(index)))))
            for index in range(first, first + own)
        ]

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
        last = self._batches - 1
        has_last = last % self._reader.sharding.num_workers == self._reader.worker
        if self._reader.sharding.drop_last or last < self._reader.position.batches or not has_last:
            return None
        row = self._done + last * self.rows
        if any(row < self._count_rows(index) for index, _ in self.list_rows()):
            return None
        longest = (i for i in range(self.splits) if row < self._count_rows(i))
        return next(longest), row


def locate_sequence(index: int, splits: int, rows: int) -> Span:
    """Return the rows of sequence `index`: lengths differ by a row, those of all ranks too."""
    return Span(index * rows // splits, (index + 1) * rows // splits)


class _Epoch:
    """The sequences of an epoch."""

    def __init__(self, source: IndexedSource, order: Order, epoch: int, splits: int) -> None:
        self._source = source
        self._rows = source.num_rows
        self._order = order
        self._epoch = epoch
        self._splits = splits
        self._units = order.order_units(source, epoch)
        # The sequences share the buffer: a batch is drawn from as many rows on any number of ranks.
        size = order.buffer_size
        self._window = None if size is None else -(-size // splits)

    def open(
        self, wanted: Sequence[tuple[int, Span]], sharding: Sharding
    ) -> list[_core.DeviceStream]:
        """Open a stream for each sequence that has rows to read, or one without rows.

        Parameters
        ----------
        wanted : sequence of (int, Span)
            Index of each sequence, and its rows to read.
        sharding : Sharding
        """
        wanted = [(index, span) for index, span in wanted if span]
        if not wanted:
            return [self._source.read_rows(0, 0, self._units)]
        parts = [list(self._find(index, self._widen(index, span))) for index, span in wanted]
        shared = None
        if copies_rows(sharding):  # else the source decides whose memory the rows are in
            shared = SharedUnits(self._source, self._units, _list_shared(parts))
        return [
            self._shuffle(index, span, self._read_parts(found, shared, len(parts)))
            for (index, span), found in zip(wanted, parts, strict=True)
        ]

    def copy_row(self, index: int, row: int) -> _core.DeviceArray:
        """Return a copy of one row of a sequence."""
        span = Span(row, row + 1)
        found = list(self._find(index, self._widen(index, span)))
        (array,) = self._shuffle(index, span, self._read_parts(found, None, 1)).rebatch(1)
        return copy.deepcopy(array)

    def _widen(self, index: int, span: Span) -> Span:
        """Return the rows of the sequence's shuffle windows that have rows of `span`."""
        size = self._window
        if size is None:
            return span
        length = len(locate_sequence(index, self._splits, self._rows))
        return Span(span.start // size * size, min(length, -(-span.stop // size) * size))

    def _shuffle(self, index: int, span: Span, stream: _core.DeviceStream) -> _core.DeviceStream:
        """Shuffle the rows of the windows of `_widen`, and keep those of `span`."""
        size = self._window
        if size is None:
            return stream
        first = span.start // size
        seed = self._order.make_seed(self._epoch, f"rows {index}")
        stream = stream.shuffle(size, seed, first_window=first)
        return stream.slice(span.start - first * size, len(span))

    def _read_parts(
        self, parts: Sequence[_Part], shared: SharedUnits | None, readers: int
    ) -> _core.DeviceStream:
        if len(parts) == 1 and (parts[0].is_whole or shared is None):
            rows = parts[0].rows
            return self._source.read_rows(rows.start, rows.stop, self._units, readers)
        return _core.from_arrow_stream(
            itertools.chain.from_iterable(self._read_part(part, shared, readers) for part in parts)
        )

    def _read_part(
        self, part: _Part, shared: SharedUnits | None, readers: int
    ) -> Iterator[_core.DeviceArray]:
        rows = part.rows
        if shared is not None and not part.is_whole:
            yield from shared.read(rows)
            return
        left = len(rows)
        for array in self._source.read_rows(rows.start, rows.stop, self._units, readers):
            left -= len(array)
            taken = 0
            if shared is not None and not left:
                taken = len(array) // 4
                if taken:
                    yield array[:taken]
                shared.open()  # before it is needed, and not before others have their first rows
            yield array[taken:]
            del array

    def _find(self, index: int, span: Span) -> Iterator[_Part]:
        """Find rows `span` of a sequence in the epoch's order."""
        begin = 0
        for part in self._cut(locate_sequence(index, self._splits, self._rows)):
            rows = part.rows
            start, stop = max(span.start - begin, 0), min(span.stop - begin, len(rows))
            if start < stop:
                yield _Part(Span(rows.start + start, rows.start + stop), part.is_whole)
            begin += len(rows)

    def _cut(self, rows: Span) -> list[_Part]:
        """Cut a sequence into its parts, in the order in which they are read."""
        if not self._source.decodes_units or not rows:
            return [_Part(rows, True)]
        ends = self._units.ends
        first, last = self._units.find(rows.start), bisect_left(ends, rows.stop)
        begin = ends[first - 1] if first else 0
        start = rows.start if rows.start == begin else ends[first]
        stop = rows.stop if rows.stop == ends[last] else (ends[last - 1] if last else 0)
        if start > stop:  # within a unit
            return [_Part(rows, False)]
        parts = [
            _Part(Span(start, stop), True),
            _Part(Span(rows.start, start), False),
            _Part(Span(stop, rows.stop), False),
        ]
        return [part for part in parts if part.rows]
