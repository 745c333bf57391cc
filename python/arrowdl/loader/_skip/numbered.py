"""Sources whose rows have numbers, and stand-ins for the rows that cannot be read."""

from __future__ import annotations

import copy
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from itertools import accumulate, chain, groupby
from operator import add
from typing import TYPE_CHECKING, Any, Protocol, cast

from arrowdl import _core
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._skipped import (
    NUMBER,
    Report,
    Skipped,
    can_skip,
    check_number_name,
    describe,
    detach,
    find_ranges,
)
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._sources.wrapped import WrappedSource

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = 2**62  # is added to the number of a row that could not be read
_PIECE_ROWS = 131_072  # that get numbers at once
_ALONE = 8  # units that are read one by one after an error, before several are read again
_SAMPLES = 16  # rows that are tried first

Place = tuple[str, int]  # path, and row of the file


@dataclass
class Faults:
    """What is known of a source before its rows are read.

    Attributes
    ----------
    lost : mapping of int to Exception
        Units that are not read, since the lengths of their rows are unknown.
    make_column : callable, optional
        Takes a field and a unit. Returns what stands in for the rows of a unit that cannot be read,
        or None for nulls.
    """

    lost: Mapping[int, Exception] = field(default_factory=dict)
    make_column: Callable[[pa.Field, int], pa.Array | None] | None = None


class Numbered(Protocol):
    """What the numbers of rows mean.

    Attributes
    ----------
    has_failures : bool
        Whether rows could not be read so far.
    """

    @property
    @abstractmethod
    def has_failures(self) -> bool: ...

    def report_missing(self, numbers: Sequence[Any]) -> Report:
        """Say why the rows with `numbers`, of `strip_missing`, could not be read."""

    def locate(self, numbers: Sequence[Any]) -> list[Place]:
        """Return where the rows with `numbers` are."""

    def sample(self) -> Iterator[_core.DeviceArray]:
        """Yield rows that can be read, each an array, from several places of the source."""


def report_failed(numbered: Numbered, numbers: Sequence[Any], error: Exception) -> Report:
    """Return the report of a batch with rows of `numbers`, for which a transform failed."""
    rows: dict[str, list[int]] = {}
    for path, row in numbered.locate(numbers):
        rows.setdefault(path, []).append(row)
    text = describe(error)
    entries = [Skipped(path, find_ranges(own), text) for path, own in rows.items()]
    return Report(len(numbers), entries, error)


def read_numbers(numbers: _core.DeviceArray) -> list[Any]:
    """Return the values of an array of int64, or of lists of these, without nulls."""
    import pyarrow as pa

    values = pa.array(numbers.to("cpu"))
    if not pa.types.is_int64(values.type):
        return list(values.to_pylist())
    return memoryview(values.buffers()[1]).cast("q")[values.offset :][: len(values)].tolist()


def is_missing(number: Any) -> bool:
    """Whether the row of a number, or a row of a list of numbers, could not be read."""
    return bool((max(number, default=0) if isinstance(number, list) else number) >= MISSING)


def strip_missing(number: Any) -> Any:
    """Return the number of a row that could not be read, or those in a list of numbers."""
    if isinstance(number, list):
        return [own - MISSING for own in number if own >= MISSING]
    return number - MISSING


class NumberedSource(WrappedSource):
    """Rows of another source with their numbers; a unit that cannot be read is missing as a whole.

    Parameters
    ----------
    source : IndexedSource
    first : int
        Number of its first row.
    faults : Faults, optional

    Attributes
    ----------
    failures : dict of int to Exception
        Of the units that could not be read so far.
    """

    def __init__(self, source: IndexedSource, first: int, faults: Faults | None = None) -> None:
        super().__init__(source)
        self._first = first
        self._starts = [0, *accumulate(source.units)]
        self._faults = faults or Faults()
        self.failures: dict[int, Exception] = dict(self._faults.lost)
        self._missing: _core.DeviceArray | None = None

    def _adopt(self, source: IndexedSource) -> None:
        super()._adopt(source)
        self.is_decoded = False  # rows that stand in for missing ones share memory

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
        return _core.from_arrow_stream(_number_spans(stream, self._first, spans))

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
        return _number(arrays, self._first + self._starts[unit])

    def _stand_in(self, unit: int) -> Iterator[_core.DeviceArray]:
        """Yield as many rows as the unit has, which are dropped before anybody reads them."""
        number, left = MISSING + self._first + self._starts[unit], self.units[unit]
        if self._faults.make_column is not None:
            yield from _number([self._make_missing(left, unit)], number)
            return
        if self._missing is None:
            self._missing = self._make_missing(min(_PIECE_ROWS, max(self.units)), unit)
        rows = len(self._missing)
        pieces = (self._missing[: min(rows, left - start)] for start in range(0, left, rows))
        yield from _number(pieces, number)

    def _make_missing(self, rows: int, unit: int) -> _core.DeviceArray:
        import pyarrow as pa

        schema, make = self._find_schema(), self._faults.make_column
        columns = []
        for own in schema:
            made = None if make is None else make(own, unit)
            columns.append(self._make_nulls(own, rows) if made is None else made)
        return _core.from_arrow(pa.RecordBatch.from_arrays(columns, schema=schema))

    def _make_nulls(self, field: pa.Field, rows: int) -> pa.Array:
        import pyarrow as pa

        if not pa.types.is_dictionary(field.type):
            return pa.nulls(rows, field.type)
        values = self._source.find_vocabulary(field.name)
        if values is None:
            return pa.nulls(rows, field.type)
        return pa.DictionaryArray.from_arrays(pa.nulls(rows, field.type.index_type), values)

    def _make_empty(self, stream: _core.DeviceStream | None) -> _core.DeviceArray:
        import pyarrow as pa

        schema = self._find_schema() if stream is None else pa.schema(stream.schema)
        return _add_numbers(_core.from_arrow(make_empty(schema)), 0)

    def _find_schema(self) -> pa.Schema:
        import pyarrow as pa

        with closing(self._source.read([])) as stream:
            return pa.schema(stream.schema)

    @property
    def has_failures(self) -> bool:
        return bool(self.failures)

    def report_missing(self, numbers: Sequence[int]) -> Report:
        units = dict.fromkeys(
            bisect_right(self._starts, number - self._first) - 1 for number in numbers
        )
        entries = [self.describe_unit(unit) for unit in units]
        return Report(len(numbers), entries, self.failures[list(units)[-1]])

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
        for row in dict.fromkeys(i * self.num_rows // _SAMPLES for i in range(_SAMPLES)):
            unit = bisect_right(self._starts, row) - 1
            wanted.setdefault(unit, []).append(row - self._starts[unit])
        # Of many units that cannot be read, others may be good.
        others = {unit: [0] for unit, rows in enumerate(self.units) if rows and unit not in wanted}
        for unit, rows in (*wanted.items(), *others.items()):
            if unit not in self.failures:
                yield from self._copy_rows(unit, rows)

    def _copy_rows(self, unit: int, rows: Sequence[int]) -> list[_core.DeviceArray]:
        """Return copies of rows of a unit, ascending; none if it cannot be read."""
        found: list[_core.DeviceArray] = []
        begin = 0
        with closing(self.read([unit])) as stream:
            for array in stream:
                own = [row - begin for row in rows if begin <= row < begin + len(array)]
                found += [copy.deepcopy(array[row : row + 1]) for row in own]
                begin += len(array)
                if len(found) == len(rows):
                    break
        return [] if unit in self.failures else found


class NumberedStream(StreamSource):
    """Rows of a stream with their numbers, from 0 in each epoch. Its errors are raised.

    Parameters
    ----------
    source : StreamSource
    """

    has_failures = False

    def __init__(self, source: StreamSource) -> None:
        self.__dict__.update(source.__dict__)
        self._inner = source

    def open(self, epoch: int) -> _core.DeviceStream:
        stream = self._inner.open(epoch)
        return _core.from_arrow_stream(_number_spans(stream, 0, [(0, MISSING)]))

    def report_missing(self, numbers: Sequence[int]) -> Report:
        raise AssertionError("no row of a stream is missing")

    def locate(self, numbers: Sequence[int]) -> list[Place]:
        return [("", number) for number in numbers]

    def sample(self) -> Iterator[_core.DeviceArray]:
        if self.is_replayable:
            with closing(self.open(0)) as stream:
                yield from map(copy.deepcopy, stream.slice(0, _SAMPLES).rebatch(1))


def number_mixture(
    mixture: MixedSource, faults: Sequence[Faults] = ()
) -> tuple[MixedSource, NumberedMixture]:
    """Return the rows of a mixture with their numbers as the column `NUMBER`.

    Parameters
    ----------
    mixture : MixedSource
    faults : sequence of Faults, optional
        Of each of its sources.
    """
    faults = faults or [Faults() for _ in mixture.members]
    firsts = list(accumulate((member.source.num_rows for member in mixture.members), initial=0))
    made = mixture.with_members(
        [
            replace(member, source=NumberedSource(member.source, first, own))
            for member, first, own in zip(mixture.members, firsts, faults, strict=False)
        ]
    )
    return made, NumberedMixture(made, firsts)


class NumberedMixture:
    """What the numbers of a mixture's rows mean: those of one source after those of another.

    Parameters
    ----------
    mixture : MixedSource
        Of `NumberedSource`.
    firsts : list of int
        Number of the first row of each source, and the end.
    """

    def __init__(self, mixture: MixedSource, firsts: list[int]) -> None:
        self._mixture = mixture
        self._firsts = firsts

    @property
    def _sources(self) -> list[NumberedSource]:
        return [cast("NumberedSource", member.source) for member in self._mixture.members]

    @property
    def has_failures(self) -> bool:
        return any(source.has_failures for source in self._sources)

    def report_missing(self, numbers: Sequence[int]) -> Report:
        own: dict[int, list[int]] = {}
        for number in numbers:
            own.setdefault(self._find(number), []).append(number)
        reports = [self._sources[i].report_missing(found) for i, found in own.items()]
        return reduce(add, reports)

    def locate(self, numbers: Sequence[int]) -> list[Place]:
        places = []
        for number in numbers:
            i = self._find(number)
            ((path, row),) = self._sources[i].locate([number])
            places.append((path or self._mixture.members[i].name, row))
        return places

    def _find(self, number: int) -> int:
        return bisect_right(self._firsts, number) - 1

    def sample(self) -> Iterator[_core.DeviceArray]:
        for i, source in enumerate(self._sources):
            for row in source.sample():
                yield from (own for own in self._mixture.adapt(_core.chain([row]), i) if len(own))


def _number_spans(
    stream: _core.DeviceStream, first: int, spans: Iterable[tuple[int, int]]
) -> Iterator[_core.DeviceArray]:
    """Number the rows of a stream, those of each span from its first row on."""
    import pyarrow as pa

    found = next(stream, None)
    if found is None:
        yield _add_numbers(_core.from_arrow(make_empty(pa.schema(stream.schema))), 0)
        return
    yield _add_numbers(found[:0], 0)
    waiting = iter(spans)
    number = left = 0
    arrays = chain([found], stream)
    del found
    for array in arrays:
        while len(array):
            if not left:
                number, left = next(waiting)
            rows = min(len(array), left)
            yield from _number([array[:rows]], first + number)
            array = array[rows:]
            number, left = number + rows, left - rows


def _number(arrays: Iterable[_core.DeviceArray], number: int) -> Iterator[_core.DeviceArray]:
    for array in arrays:
        for start in range(0, len(array), _PIECE_ROWS):
            piece = array[start : start + _PIECE_ROWS]
            yield _add_numbers(piece, number)
            number += len(piece)


def _add_numbers(array: _core.DeviceArray, number: int) -> _core.DeviceArray:
    column = _make_numbers(number, len(array))
    if not _core.is_host_readable(array.device):
        column = column.to(array.device)
    names = array.field_names
    check_number_name(names)
    return _core.make_struct([*names, NUMBER], [*map(array.field, range(len(names))), column])


def _make_numbers(number: int, rows: int) -> _core.DeviceArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    return _core.from_arrow(pc.add(_count_up()[:rows], pa.scalar(number, pa.int64())))


@cache
def _count_up() -> pa.Array:
    import pyarrow as pa

    return pa.array(range(_PIECE_ROWS), pa.int64())


def _cut(
    stream: Iterator[_core.DeviceArray], counts: Iterable[int]
) -> Iterator[list[_core.DeviceArray]]:
    """Cut the arrays of `stream` into units of `counts` rows, each whole.

    Raises
    ------
    OSError
        The stream ends before.
    """
    rest: _core.DeviceArray | None = None
    for count in counts:
        arrays: list[_core.DeviceArray] = []
        while count:
            if rest is None or not len(rest):
                if (rest := next(stream, None)) is None:
                    raise _refuse()
                continue
            arrays.append(rest[:count])
            rest = rest[len(arrays[-1]) :]
            count -= len(arrays[-1])
        yield arrays


def _refuse() -> OSError:
    return OSError("the file has another number of rows than its footer said")
