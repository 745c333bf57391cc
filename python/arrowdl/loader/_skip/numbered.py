"""`NumberedSource`: rows with their numbers, and stand-ins for those that cannot be read."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate, groupby

from arrowdl import _core
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._skip.number_column import add_numbers, number_rows, number_spans
from arrowdl.loader._skip.numbers import MISSING, SAMPLES, Place
from arrowdl.loader._skip.stand_ins import Faults, StandIns, find_schema
from arrowdl.loader._skipped import MissingRows, Skipped, can_skip, describe, detach
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.wrapped import WrappedSource

_ALONE = 8  # units that are read one by one after an error, before several are read again


class NumberedSource(WrappedSource):
    """Rows of another source with their numbers, without units that cannot be read."""

    def __init__(
        self,
        source: IndexedSource,
        first: int,  # number of its first row
        faults: Faults | None = None,
    ) -> None:
        self._faults = faults or Faults()
        super().__init__(source)
        self._first = first
        self._starts = [0, *accumulate(source.units)]
        # of the units that could not be read so far
        self.failures: dict[int, Exception] = dict(self._faults.lost)

    def _adopt(self, source: IndexedSource) -> None:
        super()._adopt(source)
        self.is_decoded = False  # rows that stand in for missing ones share memory
        self._stand_ins = StandIns(source, self._faults.make_column)

    def check_unchanged(self) -> None:
        if not self.decodes_units:  # otherwise each file is checked when it is read
            self._source.check_unchanged()

    def check_read(self) -> None:
        if not self.decodes_units:
            self._source.check_read()

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        if not self.decodes_units:
            spans = [(self._starts[unit], self.units[unit]) for unit in units]
            return self._number_all(self._source.read(units, readers), spans)
        if not self._faults.lost.keys().isdisjoint(units):
            return _core.from_arrow_stream(self._read_around(units, readers))
        try:
            stream = self._source.read(units, readers)
        except Exception as error:
            if not can_skip(error):
                raise
            stream = None  # each unit is read alone
        return _core.from_arrow_stream(self._read_units(list(units), readers, stream))

    def read_rows(
        self, start: int, stop: int, order: UnitOrder, readers: int = 1
    ) -> _core.DeviceStream:
        if self.decodes_units:
            return IndexedSource.read_rows(self, start, stop, order, readers)  # unit by unit
        spans, begin = [], 0
        for unit, end in zip(order.units, order.ends, strict=True):
            first, last = max(start, begin), min(stop, end)
            if first < last:
                spans.append((self._starts[unit] + first - begin, last - first))
            begin = end
        return self._number_all(self._source.read_rows(start, stop, order, readers), spans)

    def _number_all(
        self, stream: _core.DeviceStream, spans: Iterable[tuple[int, int]]
    ) -> _core.DeviceStream:
        """Number the rows of `spans`, each a first row and a number of rows."""
        return _core.from_arrow_stream(number_spans(stream, self._first, spans))

    def _read_around(self, units: Sequence[int], readers: int) -> Iterator[_core.DeviceArray]:
        """Read `units`, of which some are lost."""
        yield self._make_empty(None)
        for is_lost, group in groupby(units, self._faults.lost.__contains__):
            if not is_lost:
                yield from self.read(list(group), readers)
            else:
                for unit in group:
                    yield from self._stand_in(unit)

    def _read_units(
        self, units: list[int], readers: int, stream: _core.DeviceStream | None
    ) -> Iterator[_core.DeviceArray]:
        # Before the first rows: the other readers start while this one waits.
        yield self._make_empty(stream)
        done = 0
        while done < len(units):
            try:
                if stream is None:
                    stream = self._source.read(units[done:], readers)
                with closing(stream):
                    for arrays in _cut(stream, [self.units[unit] for unit in units[done:]]):
                        yield from self._number_unit(units[done], arrays)
                        del arrays
                        done += 1
                return
            except Exception as error:
                if not can_skip(error):
                    raise
            stream = None
            for unit in units[done : done + _ALONE]:
                yield from self._read_alone(unit, readers)
                done += 1
                if unit in self.failures:
                    break

    def _read_alone(self, unit: int, readers: int) -> Iterator[_core.DeviceArray]:
        rows = self.units[unit]
        try:
            with closing(self._source.read([unit], readers)) as stream:
                arrays = list(stream)
            if sum(map(len, arrays)) != rows:
                raise _refuse()
        except Exception as error:
            if not can_skip(error):
                raise
            self.failures[unit] = detach(error)
            yield from self._stand_in(unit)
            return
        yield from self._number_unit(unit, arrays)

    def _number_unit(
        self, unit: int, arrays: Iterable[_core.DeviceArray]
    ) -> Iterator[_core.DeviceArray]:
        return number_rows(arrays, self._first + self._starts[unit])

    def _stand_in(self, unit: int) -> Iterator[_core.DeviceArray]:
        return number_rows(self._stand_ins.make(unit), MISSING + self._first + self._starts[unit])

    def _make_empty(self, stream: _core.DeviceStream | None) -> _core.DeviceArray:
        import pyarrow as pa

        schema = find_schema(self._source) if stream is None else pa.schema(stream.schema)
        return add_numbers(_core.from_arrow(make_empty(schema)), 0)

    @property
    def has_failures(self) -> bool:
        return bool(self.failures)

    def report_missing(self, numbers: Sequence[int]) -> MissingRows:
        units = dict.fromkeys(
            bisect_right(self._starts, number - self._first) - 1 for number in numbers
        )
        entries = [self.describe_unit(unit) for unit in units]
        return MissingRows(len(numbers), entries, self.failures[list(units)[-1]])

    def describe_unit(self, unit: int) -> Skipped:
        """Name a unit that could not be read."""
        files = self._source.files
        path, row = files.locate_row(self._starts[unit])
        rows = ((row, row + self.units[unit]),)
        return Skipped(path, rows, describe(self.failures[unit]), files.find_group(unit))

    def locate(self, numbers: Sequence[int]) -> list[Place]:
        files = self._source.files
        return [files.locate_row(number - self._first) for number in numbers]

    def sample(self) -> Iterator[_core.DeviceArray]:
        wanted: dict[int, list[int]] = {}
        for row in dict.fromkeys(i * self.num_rows // SAMPLES for i in range(SAMPLES)):
            unit = bisect_right(self._starts, row) - 1
            wanted.setdefault(unit, []).append(row - self._starts[unit])
        # If many units cannot be read, others may be good.
        others = {unit: [0] for unit, rows in enumerate(self.units) if rows and unit not in wanted}
        for unit, rows in (*wanted.items(), *others.items()):
            if unit not in self.failures:
                yield from self._copy_rows(unit, rows)

    def _copy_rows(self, unit: int, rows: Sequence[int]) -> list[_core.DeviceArray]:
        """Return copies of rows of a unit, ascending; none if it cannot be read."""
        copies: list[_core.DeviceArray] = []
        begin = 0
        with closing(self.read([unit])) as stream:
            for array in stream:
                indices = [row - begin for row in rows if begin <= row < begin + len(array)]
                copies += [copy.deepcopy(array[row : row + 1]) for row in indices]
                begin += len(array)
                if len(copies) == len(rows):
                    break
        return [] if unit in self.failures else copies


def _cut(
    stream: Iterator[_core.DeviceArray], counts: Iterable[int]
) -> Iterator[list[_core.DeviceArray]]:
    """Cut the arrays of `stream` into whole units of `counts` rows, or raise OSError at its end."""
    remaining: _core.DeviceArray | None = None
    for count in counts:
        arrays: list[_core.DeviceArray] = []
        while count:
            if remaining is None or not len(remaining):
                if (remaining := next(stream, None)) is None:
                    raise _refuse()
                continue
            arrays.append(remaining[:count])
            remaining = remaining[len(arrays[-1]) :]
            count -= len(arrays[-1])
        yield arrays


def _refuse() -> OSError:
    return OSError("the file has another number of rows than its footer said")
