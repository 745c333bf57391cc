"""Where rows come from: what a `Loader` can read, as one of two kinds of source."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._sources.dictionaries import Dictionaries, check_dictionaries, has_dictionaries

if TYPE_CHECKING:
    import pyarrow as pa

# Tables can be cut anywhere: small units mix well, larger ones cost less to put together.
_TABLE_UNIT_ROWS = 4_096


class UnitOrder:
    """The units of a source in the order of an epoch.

    Attributes
    ----------
    units : sequence of int
    ends : list of int
        Rows up to the end of each.
    """

    def __init__(self, source: IndexedSource, units: Sequence[int]) -> None:
        self.units = units
        self.ends = list(accumulate(source.units[unit] for unit in units))

    def find(self, row: int) -> int:
        """Which one in the order has the row."""
        return bisect_right(self.ends, row)


class IndexedSource(ABC):
    """Rows in units of known length that can be read in any order: row groups, record batches.

    Attributes
    ----------
    units : list of int
        Rows of each unit.
    is_shared : bool
        Whether somebody else may see the memory of the rows, or see it in another epoch: whoever
        writes to rows in their order copies them before.
    """

    units: list[int]
    is_shared = True

    @abstractmethod
    def read(self, units: Sequence[int]) -> _core.DeviceStream:
        """The rows of `units`, in that order."""

    @abstractmethod
    def describe(self) -> str:
        """What of the source decides on the order of its rows: for the check of states."""

    def check_unchanged(self) -> None:
        """Raise OSError where files that the units are of have changed: before each epoch."""
        return

    def check_read(self) -> None:
        """Raise OSError where files that are read until an epoch ends have changed: after each."""
        return

    @property
    def num_rows(self) -> int:
        return sum(self.units)

    def cut_for_shuffle(self) -> IndexedSource:
        """The same rows in the units that a shuffled epoch permutes."""
        return self

    def for_writing(self) -> IndexedSource:
        """The same rows for an epoch that writes to them, lent by nobody where that is free."""
        return self

    def read_rows(self, start: int, stop: int, order: UnitOrder) -> _core.DeviceStream:
        """Rows `start` to `stop` of the units in `order`: reads only units that have some."""
        first = order.find(start)
        last = bisect_left(order.ends, stop)
        begin = order.ends[first - 1] if first > 0 else 0
        return self.read(order.units[first : last + 1]).slice(start - begin, stop - start)


class StreamSource:
    """Rows that come one after another, for one pass or, where `open` can be called again, many.

    Attributes
    ----------
    open : callable
        Gives an Arrow stream, of what `epoch` it is told.
    is_replayable : bool
        Whether it gives the same one again.
    is_shared : bool
        As of `IndexedSource`.
    """

    is_shared = True

    def __init__(self, open: Callable[[int], Any], is_replayable: bool) -> None:
        self._open = open
        self.is_replayable = is_replayable
        self._is_spent = False
        self._dictionaries = Dictionaries()

    def open(self, epoch: int) -> _core.DeviceStream:
        if self._is_spent:
            raise RuntimeError(
                "this source is an Arrow stream, good for one pass, and has been read: give a "
                "function that makes the stream, a table, a dataset or paths for several epochs"
            )
        self._is_spent = not self.is_replayable
        stream = _core.from_arrow_stream(self._open(epoch))
        if has_dictionaries(stream.schema):
            stream = check_dictionaries(stream, self._dictionaries)
        return stream


class TableSource(IndexedSource):
    """A table in memory, or one over memory-mapped files."""

    def __init__(self, table: pa.Table, columns: list[str] | None) -> None:
        self._schema = table.schema
        selected = table if columns is None else _select(table, columns)
        self._table = _unify_dictionaries(selected)
        self._dictionaries = Dictionaries()
        self._arrays: list[_core.DeviceArray] = []  # the chunks, once they are asked for
        self._set_units(max(1, table.num_rows))

    def _set_units(self, rows: int) -> None:
        """Cut the rows, whatever the chunks: they may be of the threads that made the table."""
        self._unit_rows = rows
        total = self._table.num_rows
        self.units = [min(rows, total - start) for start in range(0, total, rows)]

    def read(self, units: Sequence[int]) -> _core.DeviceStream:
        self._load()
        starts = [unit * self._unit_rows for unit in units]
        parts = [
            self._arrays[i][rows]
            for start, unit in zip(starts, units, strict=True)
            for i, rows in self._find_slices(start, start + self.units[unit])
        ]
        return self._check(_core.chain(parts or [self._arrays[0][:0]]))

    def _load(self) -> None:
        if not self._arrays:
            batches = self._table.to_batches() or [self._table.slice(0, 0)]
            self._arrays = [_core.from_arrow(batch) for batch in batches]

    def _check(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        if has_dictionaries(stream.schema):
            self._dictionaries.check(_core.from_arrow(self._table.slice(0, 1)))
            stream = check_dictionaries(stream, self._dictionaries)
        return stream

    def _find_slices(self, start: int, stop: int) -> Iterator[tuple[int, slice]]:
        """The chunks that have rows `start` to `stop`, by number, and which of theirs these are."""
        ends = self._ends
        for i in range(bisect_right(ends, start), len(ends)):
            begin = ends[i] - len(self._arrays[i])
            if begin >= stop:
                break
            yield i, slice(max(start - begin, 0), stop - begin)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self._arrays)))

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_ends"} | {
            "_arrays": []
        }

    def cut_for_shuffle(self) -> TableSource:
        cut = copy(self)
        cut._set_units(_TABLE_UNIT_ROWS)
        return cut

    def describe(self) -> str:
        return f"{self._schema.to_string()} {self.num_rows}"


def _unify_dictionaries(table: pa.Table) -> pa.Table:
    """One dictionary for all chunks: copies the codes where there are several."""
    import pyarrow as pa

    try:
        return table.unify_dictionaries()
    except pa.ArrowNotImplementedError:  # of nested values, which are compared then
        return table


def _select(table: pa.Table, columns: list[str]) -> pa.Table:
    check_columns(columns, table.column_names)
    return table.select(columns)


def check_columns(columns: Sequence[str], names: Sequence[str]) -> None:
    """Raise ValueError unless each of `columns` is one of `names`, and the only one."""
    for name in columns:
        if names.count(name) != 1:
            raise ValueError(
                f'columns: "{name}" is not one column of the source; there are {names}'
            )


def fingerprint(source: IndexedSource) -> str:
    """16 hexadecimal digits that differ between sources whose rows have different orders."""
    return hashlib.blake2b(source.describe().encode(), digest_size=8).hexdigest()


Source = IndexedSource | StreamSource
