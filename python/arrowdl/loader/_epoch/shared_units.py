"""`SharedUnits`: units that several sequences of this process read, each decoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arrowdl import _core
from arrowdl.loader._epoch.sharding import Span
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
        self._kept: dict[int, tuple[_core.DeviceArray, int, int]] = {}
        self._first = self._count = self._rows = 0

    def open(self) -> None:
        """Start to read; `read` needs no call of this before."""
        if self._stream is None:
            units = [self._order.units[place] for place in self._begins]
            self._stream = self._source.read(units)

    def read(self, span: Span) -> Iterator[_core.DeviceArray]:
        """Yield the rows of one of the spans; each span is read once."""
        own = self._locate(span)
        row, number = own.start, self._first
        while row < own.stop:
            if number == self._count and not self._read_next():
                return
            kept = self._kept.get(number)
            if kept is not None and kept[1] + len(kept[0]) > row and kept[1] < own.stop:
                array, begin, readers = kept
                if readers == 1:
                    del self._kept[number]
                else:
                    self._kept[number] = (array, begin, readers - 1)
                del kept
                end = min(own.stop, begin + len(array))
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
            self._kept[self._count] = (array, rows.start, readers)
        self._count += 1
        self._rows = rows.stop
        while self._first < self._count and self._first not in self._kept:
            self._first += 1
        return True

    def _locate(self, span: Span) -> Span:
        """Return where a span of the epoch's order is among the rows of these units."""
        place = self._order.find(span.start)
        start = self._order.ends[place] - self._source.units[self._order.units[place]]
        shift = self._begins[place] - start
        return Span(span.start + shift, span.stop + shift)
