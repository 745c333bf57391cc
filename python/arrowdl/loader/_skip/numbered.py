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
from arrowdl.loader._skip.numbers import MISSING, SAMPLES, Place, report_failed
from arrowdl.loader._skip.stand_ins import Faults, StandIns, find_schema
from arrowdl.loader._skipped import MissingRows, Skipped, can_skip, describe, detach
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.cut_units import cut_units, refuse_rows
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
        self.failed: dict[int, Exception] = {}  # of rows alone, by their numbers
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
            spans = (span for unit in units for span in self._cut(unit, 0, self.units[unit]))
            rows = self._source.read(units, readers)
            return _core.from_arrow_stream(number_spans(rows, self._first, spans))
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
        begins = [0, *order.ends[:-1]]
        spans = (
            span
            for unit, begin, end in zip(order.units, begins, order.ends, strict=True)
            for span in self._cut(unit, max(start, begin) - begin, min(stop, end) - begin)
        )
        stream = self._source.read_rows(start, stop, order, readers)
        return _core.from_arrow_stream(number_spans(stream, self._first, spans))

    def _cut(self, unit: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Cut rows of a unit into spans, each a first number and rows, by whether they failed."""
        failed, first = self._source.find_failed(unit), self._starts[unit]
        if not failed and start < stop:
            yield first + start, stop - start
        elif failed:
            for is_failed, group in groupby(range(start, stop), failed.__contains__):
                rows = list(group)
                if is_failed:
                    self.failed |= {self._first + first + row: failed[row] for row in rows}
                yield MISSING * is_failed + first + rows[0], len(rows)

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
                    for arrays in cut_units(stream, [self.units[unit] for unit in units[done:]]):
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
                raise refuse_rows()
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
        row = 0
        for array in arrays:
            for number, rows in self._cut(unit, row, row + len(array)):
                yield from number_rows([array[:rows]], self._first + number)
                array, row = array[rows:], row + rows

    def _stand_in(self, unit: int) -> Iterator[_core.DeviceArray]:
        return number_rows(self._stand_ins.make(unit), MISSING + self._first + self._starts[unit])

    def _make_empty(self, stream: _core.DeviceStream | None) -> _core.DeviceArray:
        import pyarrow as pa

        schema = find_schema(self._source) if stream is None else pa.schema(stream.schema)
        return add_numbers(_core.from_arrow(make_empty(schema)), 0)

    @property
    def has_failures(self) -> bool:
        return bool(self.failed or self.failures)

    def report_missing(self, numbers: Sequence[int]) -> MissingRows:
        units = dict.fromkeys(
            bisect_right(self._starts, i - self._first) - 1 for i in numbers if i not in self.failed
        )
        reports = [
            MissingRows(0, [self.describe_unit(unit)], self.failures[unit]) for unit in units
        ]
        reports += [report_failed(self, [i], self.failed[i]) for i in numbers if i in self.failed]
        entries = [entry for report in reports for entry in report.entries]
        return MissingRows(len(numbers), entries, reports[-1].error)

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
                failed, end = self._source.find_failed(unit), begin + len(array)
                indices = [row - begin for row in rows if begin <= row < end and row not in failed]
                copies += [copy.deepcopy(array[row : row + 1]) for row in indices]
                begin += len(array)
                if len(copies) == len(rows):
                    break
        return [] if unit in self.failures else copies
