"""The two kinds of source: `IndexedSource`, read in any order, and `StreamSource`."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from arrowdl import _core
from arrowdl.loader._sources.dictionaries import Dictionaries, check_dictionaries, has_dictionaries


class UnitOrder:
    """The units of a source in the order of an epoch.

    Attributes
    ----------
    units : sequence of int
        Indices of the units, in order.
    ends : list of int
        Rows up to the end of each unit, in order.
    """

    def __init__(self, source: IndexedSource, units: Sequence[int]) -> None:
        self.units = units
        self.ends = list(accumulate(source.units[unit] for unit in units))

    def find(self, row: int) -> int:
        """Return the position in the order of the unit that has `row`."""
        return bisect_right(self.ends, row)


class IndexedSource(ABC):
    """Rows in units of known length that can be read in any order: row groups, record batches.

    Attributes
    ----------
    units : list of int
        Rows of each unit.
    is_shared : bool
        Whether the memory of the rows may have another user, or be read again in another epoch.
        Rows that stay in order are copied then, if batches are writable.
    """

    units: list[int]
    is_shared = True

    @property
    @abstractmethod
    def column_names(self) -> list[str] | None:
        """The columns of the rows, in order; None if unknown."""

    @abstractmethod
    def read(self, units: Sequence[int]) -> _core.DeviceStream:
        """Read the rows of `units`, in that order."""

    @abstractmethod
    def describe(self) -> str:
        """Describe what decides on the order of the rows, for the check of states."""

    def find_nulls(self, column: str) -> str:
        """Return a sentence that names a file with nulls in `column`; empty if none is known."""
        return ""

    def check_unchanged(self) -> None:
        """Raise OSError if a file has changed; called before each epoch."""
        return

    def check_read(self) -> None:
        """Raise OSError if a file changed while it was read; called after each epoch."""
        return

    @property
    def num_rows(self) -> int:
        """Rows of all units."""
        return sum(self.units)

    def cut_for_shuffle(self) -> IndexedSource:
        """Return the same rows in the units that a shuffle permutes."""
        return self

    def for_writing(self) -> IndexedSource:
        """Return the same rows for writable batches, in private memory if that costs no copy."""
        return self

    def read_rows(self, start: int, stop: int, order: UnitOrder) -> _core.DeviceStream:
        """Read rows `start` to `stop` of the units in `order`, and no units without such rows."""
        first = order.find(start)
        last = bisect_left(order.ends, stop)
        begin = order.ends[first - 1] if first > 0 else 0
        return self.read(order.units[first : last + 1]).slice(start - begin, stop - start)


class StreamSource:
    """Rows of an Arrow stream.

    Parameters
    ----------
    open : callable
        Takes the epoch, and returns an Arrow stream.
    is_replayable : bool
        Whether `open` can be called again, and returns the same rows.
    column_names : list of str, optional
        The columns of the rows, in order; None if unknown.

    Attributes
    ----------
    is_shared : bool
        As in `IndexedSource`.
    """

    is_shared = True

    def __init__(
        self,
        open: Callable[[int], Any],
        is_replayable: bool,
        column_names: list[str] | None = None,
    ) -> None:
        self._open = open
        self.column_names = column_names
        self.is_replayable = is_replayable
        self._is_spent = False
        self._dictionaries = Dictionaries()

    def find_nulls(self, column: str) -> str:
        """As in `IndexedSource`."""
        return ""

    def open(self, epoch: int) -> _core.DeviceStream:
        """Open the stream of an epoch.

        Raises
        ------
        RuntimeError
            The stream has been read, and cannot be opened again.
        """
        if self._is_spent:
            raise RuntimeError(
                "this source is an Arrow stream, which is good for one pass, and has been read: "
                "for several epochs give a function that makes the stream, a table, a dataset or "
                "paths"
            )
        self._is_spent = not self.is_replayable
        stream = _core.from_arrow_stream(self._open(epoch))
        if has_dictionaries(stream.schema):
            stream = check_dictionaries(stream, self._dictionaries)
        return stream


def check_columns(columns: Sequence[str], names: Sequence[str]) -> None:
    """Raise ValueError unless each of `columns` is exactly one of `names`."""
    for name in columns:
        if names.count(name) != 1:
            raise ValueError(
                f'columns: "{name}" is not one column of the source, which has {names}'
            )


def fingerprint(source: IndexedSource) -> str:
    """Return 16 hexadecimal digits, which differ if the order of the rows differs."""
    return hashlib.blake2b(source.describe().encode(), digest_size=8).hexdigest()


Source = IndexedSource | StreamSource
