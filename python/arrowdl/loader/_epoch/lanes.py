"""`Lanes`: units that are read side by side, some rows of each in turn.

A shuffle that cannot hold all rows mixes the rows of its buffer. Row groups are decoded from their
start, and the rows of one are alike if the data is sorted: so the buffer gets rows of several, from
all parts of the source.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from arrowdl import _core
from arrowdl.loader._epoch.cut_rows import cut_rows
from arrowdl.loader._sources.base import IndexedSource, UnitOrder

LANES = 8  # of all sequences together, unless these are more
_FEW_UNITS = 4  # of a lane
_LEAST_ROWS = 16  # of a turn: each takes some microseconds


class Arrangement(NamedTuple):
    """The order in which units are read.

    Attributes
    ----------
    order : UnitOrder
    lanes : int
        Parts of each sequence that are read side by side.
    phase : float, optional
        Where each sequence begins in its first unit, as a share of it, if it has few units.
    """

    order: UnitOrder
    lanes: int = 1
    phase: float | None = None


def arrange_units(source: IndexedSource, seed: int, sequences: int) -> Arrangement:
    """Permute the units with rows, so that lanes are in different parts of the source at a time.

    The source is cut into as many strata as there are lanes, of consecutive units. Each lane has
    the units of one, in random order. Of several sequences, which may be of several ranks, it goes
    from stratum to stratum, so that each rank comes through the whole source. In the order, the
    units of one lane come after those of another.

    Parameters
    ----------
    source : IndexedSource
    seed : int
    sequences : int
        Runs of the order that are read side by side.
    """
    units = [unit for unit, rows in enumerate(source.units) if rows > 0]
    lanes = max(1, LANES // sequences)
    strata = max(1, min(len(units), sequences * lanes))
    rounds = -(-len(units) // strata)
    places = _core.permute(strata * rounds, seed)
    drawn = _draw(units, strata, places)
    first = places[0] // rounds if places else 0
    has_few = len(units) < _FEW_UNITS * sequences * lanes
    step = 0 if sequences == 1 or has_few else 1
    found = []
    for place in (lane * sequences + i for i in range(sequences) for lane in range(lanes)):
        if place < strata:  # the lanes of a sequence are far from each other
            found += [drawn[(first + place + step * i) % strata][i] for i in range(rounds)]
    phase = seed / 2**64 if has_few else None
    order = UnitOrder(source, [unit for unit in found if unit is not None])
    return Arrangement(order, lanes, phase)


def _draw(units: Sequence[int], strata: int, places: Sequence[int]) -> list[list[int | None]]:
    """Permute the units of each stratum; one that has fewer than others gets None once."""
    starts = [i * len(units) // strata for i in range(strata + 1)]
    drawn: list[list[int | None]] = [[] for _ in range(strata)]
    for place in places:
        stratum, i = divmod(place, len(places) // strata)
        unit = starts[stratum] + i
        drawn[stratum].append(units[unit] if unit < starts[stratum + 1] else None)
    return drawn


class Lanes:
    """The rows of consecutive units of an order, in an order of their own.

    Parameters
    ----------
    source : IndexedSource
    units : sequence of int
        Which are cut into lanes of about as many rows.
    lanes : int
        At most; one reads the units one after another.
    rows : int
        Of all lanes in turn, after which the first one is next again: each gives its share.
    phase : float, optional
        Each lane begins within its first unit, the first lane after this share of it, and ends with
        the rows before. Otherwise lanes of few units come to the ends of these at the same time.
    """

    def __init__(
        self,
        source: IndexedSource,
        units: Sequence[int],
        lanes: int,
        rows: int,
        phase: float | None = None,
    ) -> None:
        self._source = source
        self._lanes = [UnitOrder(source, own) for own in _cut_units(source, units, lanes)]
        self._sizes = [lane.ends[-1] if lane.ends else 0 for lane in self._lanes]
        self._total = sum(self._sizes)
        self._turn = max(rows, _LEAST_ROWS * len(self._lanes))
        self._shifts = [
            int(lane.ends[0] * ((phase + i / len(self._lanes)) % 1))
            if phase is not None and lane.ends
            else 0
            for i, lane in enumerate(self._lanes)
        ]

    def read(self, start: int, stop: int, readers: int = 1) -> _core.DeviceStream:
        """Read rows `start` to `stop`; `readers` as in `IndexedSource.read`."""
        if start >= stop:
            return self._source.read([])
        if len(self._lanes) == 1:
            return self._read_lane(0, start, stop, readers)
        spans = list(zip(self._count(start), self._count(stop), strict=True))
        readers *= sum(first < last for first, last in spans)
        empty = self._source.read([])
        # All begin to read before the first rows are taken.
        streams = [
            self._read_lane(lane, *span, readers) if span[0] < span[1] else None
            for lane, span in enumerate(spans)
        ]
        arrays = self._interleave(streams, spans, start)
        return _core.read_arrays(arrays, empty.schema, empty.device_type)

    def _read_lane(self, lane: int, start: int, stop: int, readers: int) -> _core.DeviceStream:
        order, size = self._lanes[lane], self._sizes[lane]
        start, stop = start + self._shifts[lane], stop + self._shifts[lane]
        if start >= size > 0:
            start, stop = start - size, stop - size
        first = self._source.read_rows(start, min(stop, size), order, readers)
        if stop <= size:
            return first
        arrays = chain(first, _open_later(self._source, stop - size, order, readers))
        return _core.read_arrays(arrays, first.schema, first.device_type)

    def _interleave(
        self,
        streams: Sequence[_core.DeviceStream | None],
        spans: Sequence[tuple[int, int]],
        start: int,
    ) -> Iterator[_core.DeviceArray]:
        cuts = [
            cut_rows(stream, self._list_cuts(lane, *span, start))
            for lane, (stream, span) in enumerate(zip(streams, spans, strict=True))
            if stream is not None
        ]
        del streams
        left = list(cuts)
        while left:
            for cut in list(left):
                arrays = next(cut, None)
                if arrays is None:
                    left.remove(cut)
                    continue
                yield from arrays
                del arrays

    def _list_cuts(self, lane: int, first: int, last: int, start: int) -> Iterator[tuple[int, int]]:
        """Yield how many rows a lane gives in each turn, of its rows `first` to `last`."""
        turn = self._find_turn(start)
        while first < last:
            turn += 1
            end = min(last, self._find_end(lane, turn))
            yield max(0, end - first), 0
            first = max(first, end)

    def _find_end(self, lane: int, turns: int) -> int:
        """Return the rows of a lane in the first `turns` turns."""
        rows = min(turns * self._turn, self._total)
        return self._sizes[lane] * rows // self._total

    def _find_turn(self, row: int) -> int:
        """Return the turn that has a row; of the end, the number of turns."""
        turn = row // self._turn
        while row < self._total and self._count_before(turn + 1) <= row:
            turn += 1
        return turn

    def _count_before(self, turn: int) -> int:
        return sum(self._find_end(lane, turn) for lane in range(len(self._lanes)))

    def _count(self, row: int) -> list[int]:
        """Count the rows of each lane before a row."""
        if row >= self._total:
            return list(self._sizes)
        turn = self._find_turn(row)
        left = row - self._count_before(turn)
        counts = []
        for lane in range(len(self._lanes)):
            begin = self._find_end(lane, turn)
            taken = min(left, self._find_end(lane, turn + 1) - begin)
            counts.append(begin + taken)
            left -= taken
        return counts


def _open_later(
    source: IndexedSource, stop: int, order: UnitOrder, readers: int
) -> Iterator[_core.DeviceArray]:
    """Yield the first rows of an order, which are not read before the first one is needed."""
    yield from source.read_rows(0, stop, order, readers)


def _cut_units(source: IndexedSource, units: Sequence[int], lanes: int) -> list[Sequence[int]]:
    """Cut units into runs of about as many rows, each of a unit or more."""
    lanes = min(lanes, len(units))
    if lanes <= 1:
        return [units]
    ends = list(accumulate(source.units[unit] for unit in units))
    cuts = [0]
    for lane in range(1, lanes):
        near = bisect_left(ends, ends[-1] * lane // lanes) + 1
        cuts.append(min(max(near, cuts[-1] + 1), len(units) - lanes + lane))
    return [units[start:stop] for start, stop in pairwise([*cuts, len(units)])]
