"""`EpochSequences`: the rows of an epoch in `splits` sequences, each a stream.

Of a source they are `Sequences`. A row group that two of these share comes last in both: a process
with both decodes it once.
"""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from arrowdl import _core
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sharding import Span
from arrowdl.loader._epoch.shared_units import SharedUnits
from arrowdl.loader._sources.base import IndexedSource


class _Part(NamedTuple):
    """Rows of a sequence: of whole units, or within a unit that another sequence may share."""

    rows: Span
    is_whole: bool


def locate_sequence(index: int, splits: int, rows: int) -> Span:
    """Return the rows of sequence `index`: lengths differ by a row, those of all ranks too."""
    return Span(index * rows // splits, (index + 1) * rows // splits)


class EpochSequences(ABC):
    """The sequences of an epoch, each a stream of rows."""

    def open(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        """Open a stream for each sequence that has rows to read, or one without rows.

        Parameters
        ----------
        wanted : sequence of (int, Span)
            Index of each sequence, and its rows to read.
        """
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


class Sequences(EpochSequences):
    """The sequences of an epoch of a source.

    Parameters
    ----------
    source : IndexedSource
    order : Order
    epoch : int
    splits : int
        Number of sequences.
    shares_units : bool
        Whether sequences that are opened together read a unit that they share once.
    readers : int, optional
        Streams that this process reads side by side: by default those that are opened together.
    """

    def __init__(
        self,
        source: IndexedSource,
        order: Order,
        epoch: int,
        splits: int,
        *,
        shares_units: bool,
        readers: int | None = None,
    ) -> None:
        self._shares_units = shares_units
        self._readers = readers
        self._source = source
        self._rows = source.num_rows
        self._order = order
        self._epoch = epoch
        self._splits = splits
        self._units = order.order_units(source, epoch)
        # The sequences share the buffer: a batch is drawn from as many rows on any number of ranks.
        size = order.buffer_size
        self._window = None if size is None else -(-size // splits)

    def _open_none(self) -> _core.DeviceStream:
        return self._source.read_rows(0, 0, self._units)

    def _open(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        parts = [list(self._find(index, self._widen(index, span))) for index, span in wanted]
        shared = None
        if self._shares_units:
            shared = SharedUnits(self._source, self._units, _list_shared(parts))
        readers = self._readers or len(parts)
        return [
            self._shuffle(index, span, self._read_parts(found, shared, readers))
            for (index, span), found in zip(wanted, parts, strict=True)
        ]

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
