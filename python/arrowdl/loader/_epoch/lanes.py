"""`Lanes`: parts of the source that are read side by side, some rows of each in turn.

A shuffle that cannot hold all rows mixes the rows of its buffer. Row groups are decoded from their
start, and the rows of one are alike if the data is sorted: so the buffer gets rows of several, from
all parts of the source. With `n` lanes, each of which has an n-th of the source, the variance of
the means of batches is at most that of a permutation and ``1 / n**3`` of that of the rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from arrowdl import _core
from arrowdl.loader._epoch.cut_rows import cut_rows
from arrowdl.loader._epoch.sharding import Span, locate_sequence
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.row_bytes import LANES

_CUT_LANES = 8  # which may cut a unit, that each of them decodes from its start
_FEW_UNITS = 4  # of a lane
_UNITS_OF_HOP = 8  # of a lane: each hop cuts a unit, which is decoded twice
_LEAST_ROWS = 16  # of a turn: each takes some microseconds

Lane = list[Span]  # of the rows of an order, which are read one after the other


class Arrangement(NamedTuple):
    """The order in which rows are read, before they are shuffled."""

    order: UnitOrder
    sequences: Sequence[Sequence[Lane]]  # the lanes of each sequence


def arrange_units(
    source: IndexedSource,
    seed: int,
    sequences: int,  # which are read side by side, and may be of several ranks
    max_lanes: int = LANES,  # lanes of all sequences together, unless these are more
) -> Arrangement:
    """Cut the units with rows into lanes, so that these are in different parts of the source.

    The source is cut into strata of consecutive rows, of which each lane reads one. The lanes of
    one sequence have whole units, unless one of these is most of a lane. Several sequences have
    equally many rows, to one: there, two lanes may have parts of a unit, and of many units they go
    from stratum to stratum, so that each sequence comes through the source. The units of a stratum
    are in random order. If they are few, each lane begins after another share of a unit: otherwise
    they would all come to the ends of units, and to the last rows of sorted ones, at the same time.
    """
    units = [unit for unit, rows in enumerate(source.units) if rows > 0]
    if not units:
        return Arrangement(UnitOrder(source, []), [[] for _ in range(sequences)])
    keys = _core.permute(len(units), seed)
    is_large = max(source.units) * min(max_lanes, _CUT_LANES) > source.num_rows
    if sequences == 1 and not is_large:
        order, sequence = _cut_whole_units(source, units, keys, min(max_lanes, len(units)))
        sequence_lanes = [sequence]
    else:
        if sequences == 1 or len(units) <= _FEW_UNITS:
            max_lanes = min(max_lanes, _CUT_LANES)
        order, sequence_lanes = _cut_evenly(
            source, units, keys, sequences, -(-max_lanes // sequences)
        )
    count = sum(map(len, sequence_lanes))
    if len(units) < _FEW_UNITS * count:
        step, phase = source.num_rows / max(len(units), count), seed / 2**64
        shares = iter([(phase + i / count) % 1 for i in range(count)])
        sequence_lanes = [
            [_rotate(lane, int(step * next(shares))) for lane in lanes] for lanes in sequence_lanes
        ]
    return Arrangement(order, sequence_lanes)


def _cut_whole_units(
    source: IndexedSource, units: Sequence[int], keys: Sequence[int], lanes: int
) -> tuple[UnitOrder, list[Lane]]:
    """Cut units into lanes of about as many rows, and permute those of each."""
    key = dict(zip(units, keys, strict=False))
    strata = [sorted(stratum, key=key.__getitem__) for stratum in _cut_units(source, units, lanes)]
    order = UnitOrder(source, [unit for stratum in strata for unit in stratum])
    ends = [0, *(order.ends[i - 1] for i in accumulate(map(len, strata)) if i)]
    return order, [[Span(start, stop)] for start, stop in pairwise(ends)]


def _cut_units(source: IndexedSource, units: Sequence[int], parts: int) -> Iterator[Sequence[int]]:
    """Cut units into runs, each of a unit or more, where rows are cut evenly or nearby."""
    ends = [0, *accumulate(source.units[unit] for unit in units)]
    cuts = [0]
    for part in range(1, parts):
        row = ends[-1] * part / parts
        i = bisect_left(ends, row)
        nearest = i if ends[i] - row <= row - ends[i - 1] else i - 1
        cuts.append(min(max(nearest, cuts[-1] + 1), len(units) - parts + part))
    for start, stop in pairwise([*cuts, len(units)]):
        yield units[start:stop]


def _cut_evenly(
    source: IndexedSource,
    units: Sequence[int],
    keys: Sequence[int],
    sequences: int,
    lanes_each: int,
) -> tuple[UnitOrder, list[list[Lane]]]:
    """Cut units into `lanes_each` lanes for each sequence, which are far from each other."""
    total, count = sum(source.units), sequences * lanes_each
    lengths = [
        len(locate_sequence(lane, lanes_each, len(locate_sequence(i, sequences, total))))
        for lane in range(lanes_each)
        for i in range(sequences)
    ]
    hops = max(1, min(count, len(units) // (_UNITS_OF_HOP * count)))
    first = keys[0] % count
    # Stratum `i` has a part of each lane that comes to it.
    visits = [[((i - first - hop) % count, hop) for hop in range(hops)] for i in range(count)]
    sizes = [
        [len(locate_sequence(hop, hops, lengths[lane])) for lane, hop in visit] for visit in visits
    ]
    ends = list(accumulate(map(sum, sizes)))
    order, strata = _permute_strata(source, units, keys, ends)
    parts: dict[tuple[int, int], Lane] = {}
    for visit, rows, spans in zip(visits, sizes, strata, strict=True):
        parts.update(zip(visit, _cut_spans(spans, rows), strict=True))
    lanes = [[span for hop in range(hops) for span in parts[index, hop]] for index in range(count)]
    return order, [[_join(lane) for lane in lanes[i::sequences]] for i in range(sequences)]


def _permute_strata(
    source: IndexedSource, units: Sequence[int], keys: Sequence[int], ends: Sequence[int]
) -> tuple[UnitOrder, list[list[Span]]]:
    """Permute units, or their parts, in each stratum; return the order, and the rows of each."""
    parts: list[list[tuple[int, int, Span]]] = [[] for _ in ends]  # key, unit, rows of the unit
    begin = number = 0
    for unit, key in zip(units, keys, strict=True):
        stop = begin + source.units[unit]
        start = begin
        while start < stop:
            while ends[number] <= start:
                number += 1
            end = min(stop, ends[number])
            parts[number].append((key, unit, Span(start - begin, end - begin)))
            start = end
        begin = stop
    strata = [sorted(stratum) for stratum in parts]
    order = UnitOrder(
        source, list(dict.fromkeys(unit for stratum in strata for _, unit, _ in stratum))
    )
    starts = dict(zip(order.units, [0, *order.ends], strict=False))
    return order, [
        [Span(starts[unit] + rows.start, starts[unit] + rows.stop) for _, unit, rows in stratum]
        for stratum in strata
    ]


def _cut_spans(spans: Sequence[Span], sizes: Sequence[int]) -> Iterator[Lane]:
    """Cut spans into parts of these sizes, one after the other."""
    begin = 0
    for size in sizes:
        yield list(_find_spans(spans, begin, begin + size))
        begin += size


def _find_spans(spans: Sequence[Span], start: int, stop: int) -> Iterator[Span]:
    """Yield rows `start` to `stop` of spans, counted through all of them."""
    begin = 0
    for span in spans:
        first, last = max(start - begin, 0), min(stop - begin, len(span))
        if first < last:
            yield Span(span.start + first, span.start + last)
        begin += len(span)


def _join(spans: Sequence[Span]) -> Lane:
    """Join spans that follow each other."""
    joined: Lane = []
    for span in spans:
        if joined and joined[-1].stop == span.start:
            joined[-1] = Span(joined[-1].start, span.stop)
        else:
            joined.append(span)
    return joined


def _rotate(lane: Lane, rows: int) -> Lane:
    """Begin a lane after its first `rows`, and end it with these."""
    total = sum(map(len, lane))
    rows = min(rows, total)
    return _join([*_find_spans(lane, rows, total), *_find_spans(lane, 0, rows)])


class Lanes:
    """The rows of lanes in turn."""

    def __init__(
        self,
        source: IndexedSource,
        order: UnitOrder,
        lanes: Sequence[Lane],
        # of all lanes in turn, after which the first one is next again: each gives its share
        rows: int,
    ) -> None:
        self._source = source
        self._order = order
        self._lanes = [lane for lane in lanes if lane]
        self._sizes = [sum(map(len, lane)) for lane in self._lanes]
        self._total = sum(self._sizes)
        self._turn = max(rows, _LEAST_ROWS * len(self._lanes))

    def read(self, start: int, stop: int, readers: int = 1) -> _core.DeviceStream:
        """Read rows `start` to `stop`; `readers` as in `IndexedSource.read`."""
        if start >= stop:
            return self._source.read([])
        if len(self._lanes) == 1:
            return self._read_lane(0, start, stop, readers)
        spans = list(zip(self._count(start), self._count(stop), strict=True))
        # A few lanes of large row groups read no more ahead, each, than many of small ones.
        readers *= max(LANES, len(self._lanes))
        empty = self._source.read([])
        # All begin to read before the first rows are taken.
        streams = [
            self._read_lane(lane, *span, readers) if span[0] < span[1] else None
            for lane, span in enumerate(spans)
        ]
        arrays = self._interleave(streams, spans, start)
        return _core.read_arrays(arrays, empty.schema, empty.device_type)

    def _read_lane(self, lane: int, start: int, stop: int, readers: int) -> _core.DeviceStream:
        spans = list(_find_spans(self._lanes[lane], start, stop))
        first = self._source.read_rows(*_bounds(spans[0]), self._order, readers)
        if len(spans) == 1:
            return first
        schema, device_type = first.schema, first.device_type
        arrays = self._read_spans(first, spans[1:], readers)
        del first
        return _core.read_arrays(arrays, schema, device_type)

    def _read_spans(
        self, stream: _core.DeviceStream, later: Sequence[Span], readers: int
    ) -> Iterator[_core.DeviceArray]:
        """Yield rows of a stream, and of later spans, each read when the one before has ended."""
        yield from stream
        del stream
        for span in later:
            yield from self._source.read_rows(*_bounds(span), self._order, readers)

    def _interleave(
        self,
        streams: list[_core.DeviceStream | None],
        spans: Sequence[tuple[int, int]],
        start: int,
    ) -> Iterator[_core.DeviceArray]:
        left = [
            cut_rows(stream, self._list_cuts(lane, *span, start))
            for lane, (stream, span) in enumerate(zip(streams, spans, strict=True))
            if stream is not None
        ]
        streams.clear()
        while left:
            for cut in list(left):
                arrays = next(cut, None)
                if arrays is None:
                    left.remove(cut)
                    continue
                while arrays:
                    yield arrays.pop(0)

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


def _bounds(span: Span) -> tuple[int, int]:
    return span.start, span.stop
