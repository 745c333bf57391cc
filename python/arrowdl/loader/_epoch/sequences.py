"""`EpochSequences`: the rows of an epoch in `splits` sequences, each a stream.

`Sequences` has those of a source. If rows are not shuffled, a row group that two sequences share
comes last in both: a process with both decodes it once. If the shuffle buffer holds all rows,
sequences are parts of one permutation. Otherwise each has lanes of its own.
"""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from arrowdl import _core
from arrowdl.loader._epoch.lanes import Lanes
from arrowdl.loader._epoch.read import EpochRows, Order
from arrowdl.loader._epoch.sharding import Span, locate_sequence
from arrowdl.loader._sources.base import IndexedSource, UnitOrder


class SharedUnits:
    """Rows of units that are read once, and kept until each reader has had its own."""

    def __init__(
        self,
        source: IndexedSource,
        order: UnitOrder,
        # all rows that `read` will be asked for, in the epoch's order; those that are needed first
        # come first. Each span is within a unit
        spans: Sequence[Span],
    ) -> None:
        self._source = source
        self._order = order
        # The first row of each unit among those of these units, by the unit's place in the order.
        self._begins: dict[int, int] = {}
        begin = 0
        for place in dict.fromkeys(order.find(span.start) for span in spans):
            self._begins[place] = begin
            begin += source.units[order.units[place]]
        self._spans = [self._locate(span) for span in spans]
        self._stream: _core.DeviceStream | None = None
        # Each array, its first row among those of these units, and the spans left that it is for.
        self._shared_arrays: dict[int, tuple[_core.DeviceArray, int, int]] = {}
        self._first = self._count = self._rows = 0

    def open(self) -> None:
        """Start to read; `read` needs no call of this before."""
        if self._stream is None:
            units = [self._order.units[place] for place in self._begins]
            self._stream = self._source.read(units)

    def read(self, span: Span) -> Iterator[_core.DeviceArray]:
        """Yield the rows of one of the spans; each span is read once."""
        local = self._locate(span)
        row, number = local.start, self._first
        while row < local.stop:
            if number == self._count and not self._read_next():
                return
            shared_array = self._shared_arrays.get(number)
            if (
                shared_array is not None
                and shared_array[1] + len(shared_array[0]) > row
                and shared_array[1] < local.stop
            ):
                array, begin, readers = shared_array
                if readers == 1:
                    del self._shared_arrays[number]
                else:
                    self._shared_arrays[number] = (array, begin, readers - 1)
                del shared_array
                end = min(local.stop, begin + len(array))
                yield array[row - begin : end - begin]
                del array
                row = end
            number += 1

    def _read_next(self) -> bool:
        """Read one more array; return False at the end."""
        self.open()
        assert self._stream is not None
        array = next(self._stream, None)
        if array is None:
            return False
        rows = Span(self._rows, self._rows + len(array))
        readers = sum(span.start < rows.stop and rows.start < span.stop for span in self._spans)
        if readers and rows:
            self._shared_arrays[self._count] = (array, rows.start, readers)
        self._count += 1
        self._rows = rows.stop
        while self._first < self._count and self._first not in self._shared_arrays:
            self._first += 1
        return True

    def _locate(self, span: Span) -> Span:
        """Return where a span of the epoch's order is among the rows of these units."""
        place = self._order.find(span.start)
        start = self._order.ends[place] - self._source.units[self._order.units[place]]
        shift = self._begins[place] - start
        return Span(span.start + shift, span.stop + shift)


class _Part(NamedTuple):
    """Rows of a sequence."""

    sequence: int
    rows: Span
    # of consecutive units, with these rows; None within a unit that another sequence may share
    run: Span | None


class WholeRows:
    """All rows of an epoch in their order, read once for the sequences that are opened together."""

    def __init__(self, rows: EpochRows, total: int, readers: int) -> None:
        self._open = partial(rows.read, Span(0, total), readers)
        self._arrays: list[_core.DeviceArray] | None = None

    def read(self, span: Span, empty: _core.DeviceStream) -> _core.DeviceStream:
        """Return the rows of a span; `empty` has their type."""
        return _core.read_arrays(self._cut(span), empty.schema, empty.device_type)

    def _cut(self, span: Span) -> Iterator[_core.DeviceArray]:
        if self._arrays is None:
            self._arrays = list(self._open())
        end = 0
        for array in self._arrays:
            begin, end = end, end + len(array)
            start, stop = max(span.start, begin), min(span.stop, end)
            if start < stop:
                yield array[start - begin : stop - begin]


class EpochSequences(ABC):
    """The sequences of an epoch, each a stream of rows."""

    def open(
        self,
        wanted: Sequence[tuple[int, Span]],  # index of each sequence, and its rows to read
    ) -> list[_core.DeviceStream]:
        """Open a stream for each sequence that has rows to read, or one without rows."""
        wanted = [(index, span) for index, span in wanted if span]
        return self._open(wanted) if wanted else [self._open_none()]

    def copy_row(self, index: int, row: int) -> _core.DeviceArray:
        """Return a copy of one row of a sequence."""
        ((array,),) = (stream.rebatch(1) for stream in self.open([(index, Span(row, row + 1))]))
        return copy.deepcopy(array)

    @abstractmethod
    def _open(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        """Open a stream for each sequence; all have rows to read, and there is one or more."""

    @abstractmethod
    def _open_none(self) -> _core.DeviceStream:
        """Return a stream without rows."""


class OpenSequences(Protocol):
    """Opens the sequences of an epoch of a source."""

    def __call__(
        self, source: IndexedSource, epoch: int, splits: int, *, shares_units: bool
    ) -> EpochSequences: ...


class Sequences(EpochSequences):
    """The sequences of an epoch of a source."""

    def __init__(
        self,
        source: IndexedSource,
        order: Order,
        epoch: int,
        splits: int,  # number of sequences
        *,
        # whether sequences that are opened together read a unit that they share once
        shares_units: bool,
        # streams that this process reads side by side: by default those that are opened together
        readers: int | None = None,
    ) -> None:
        self._shares_units = shares_units
        self._readers = readers
        self._source = source
        self._rows = source.num_rows
        self._order = order
        self._epoch = epoch
        self._splits = splits
        self._units, self._lanes = order.arrange(source, epoch, splits)
        self._is_whole = order.holds(source)
        # The sequences share the buffer: a batch is drawn from as many rows on any number of ranks.
        size = order.buffer_size
        self._window = None if size is None else -(-size // splits)

    def _open_none(self) -> _core.DeviceStream:
        return self._source.read_rows(0, 0, self._units)

    def _open(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        if self._is_whole:
            return self._open_whole(wanted)
        if self._window is not None:
            return self._open_shuffled(wanted, self._window)
        parts = [list(self._find(index, span)) for index, span in wanted]
        shared = None
        if self._shares_units:
            shared = SharedUnits(self._source, self._units, _list_shared(parts))
        readers = self._readers or len(parts)
        return [self._read_parts(parts_of_sequence, shared, readers) for parts_of_sequence in parts]

    def _open_shuffled(
        self, wanted: Sequence[tuple[int, Span]], window: int
    ) -> list[_core.DeviceStream]:
        """Open sequences whose windows of `window` rows are permuted."""
        readers = self._readers or len(wanted)
        streams = []
        for index, span in wanted:
            lanes = Lanes(self._source, self._units, self._lanes[index], window)
            first, last = span.start // window, -(-span.stop // window)
            length = len(locate_sequence(index, self._splits, self._rows))
            stream = lanes.read(first * window, min(length, last * window), readers)
            seed = self._order.make_seed(self._epoch, f"rows {index}")
            stream = stream.shuffle(window, seed, first_window=first)
            streams.append(stream.slice(span.start - first * window, len(span)))
        return streams

    def _open_whole(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        """Open sequences of rows that are permuted as a whole."""
        rows, readers = EpochRows(self._source, self._order, self._epoch), self._readers or 1
        starts = [locate_sequence(index, self._splits, self._rows).start for index, _ in wanted]
        spans = [
            Span(start + wanted_span.start, start + wanted_span.stop)
            for start, (_, wanted_span) in zip(starts, wanted, strict=True)
        ]
        if len(spans) == 1:
            return [rows.read(spans[0], readers)]
        whole, empty = WholeRows(rows, self._rows, readers), self._source.read([])
        return [whole.read(span, empty) for span in spans]

    def _read_parts(
        self, parts: Sequence[_Part], shared: SharedUnits | None, readers: int
    ) -> _core.DeviceStream:
        if len(parts) == 1 and (parts[0].run is not None or shared is None):
            return self._read_run(parts[0], readers)
        return _core.from_arrow_stream(
            itertools.chain.from_iterable(self._read_part(part, shared, readers) for part in parts)
        )

    def _read_part(
        self, part: _Part, shared: SharedUnits | None, readers: int
    ) -> Iterator[_core.DeviceArray]:
        if shared is not None and part.run is None:
            yield from shared.read(part.rows)
            return
        left = len(part.rows)
        for array in self._read_run(part, readers):
            left -= len(array)
            taken = 0
            if shared is not None and not left:
                taken = len(array) // 4
                if taken:
                    yield array[:taken]
                shared.open()  # before it is needed, and not before others have their first rows
            yield array[taken:]
            del array

    def _read_run(self, part: _Part, readers: int) -> _core.DeviceStream:
        rows = part.rows
        return self._source.read_rows(rows.start, rows.stop, self._units, readers)

    def _find(self, index: int, span: Span) -> Iterator[_Part]:
        """Find rows `span` of a sequence in the epoch's order."""
        begin = 0
        for part in self._cut(index):
            rows = part.rows
            start, stop = max(span.start - begin, 0), min(span.stop - begin, len(rows))
            if start < stop:
                yield _Part(index, Span(rows.start + start, rows.start + stop), part.run)
            begin += len(rows)

    def _cut(self, index: int) -> list[_Part]:
        """Cut a sequence into its parts, in the order in which they are read."""
        rows = locate_sequence(index, self._splits, self._rows)
        if not rows or not self._source.decodes_units:
            return [_Part(index, rows, rows)]
        ends = self._units.ends
        first, last = self._units.find(rows.start), bisect_left(ends, rows.stop)
        begin = ends[first - 1] if first else 0
        start = rows.start if rows.start == begin else ends[first]
        stop = rows.stop if rows.stop == ends[last] else (ends[last - 1] if last else 0)
        if start > stop:  # within a unit
            return [_Part(index, rows, None)]
        whole = Span(start, stop)
        parts = [
            _Part(index, whole, whole),
            _Part(index, Span(rows.start, start), None),
            _Part(index, Span(stop, rows.stop), None),
        ]
        return [part for part in parts if part.rows]


def _list_shared(sequences: Sequence[Sequence[_Part]]) -> list[Span]:
    """List the rows that are read last in each sequence, in the order in which they are needed."""
    parts_of_sequence = []
    for parts in sequences:
        begin = 0
        for part in parts:
            if part.run is None:
                parts_of_sequence.append((begin, part.rows))
            begin += len(part.rows)
    return [rows for _, rows in sorted(parts_of_sequence, key=lambda item: item[0])]


def open_sequences(
    order: Order, source: IndexedSource, epoch: int, splits: int, *, shares_units: bool
) -> EpochSequences:
    """Open the sequences of an epoch of a source in an order; see `OpenSequences`."""
    return Sequences(source, order, epoch, splits, shares_units=shares_units)
