"""Gathers of rows by their numbers, from arrays in memory or from decoded row groups."""

from __future__ import annotations

from itertools import accumulate
from typing import Protocol

from arrowdl import _core
from arrowdl.loader._random_access.unit_cache import Arrays, UnitCache, number_arrays
from arrowdl.loader._sources.base import IndexedSource


class Rows(Protocol):
    """The rows of a source."""

    def take(
        self,
        numbers: _core.DeviceArray,  # of `read_row_numbers`
    ) -> tuple[_core.DeviceArray, bool]:
        """Return the rows with `numbers`, in that order, and whether their memory has other users.

        Raises OSError if a file has changed.
        """

    def clear(self) -> None:
        """Drop what was read."""


def open_rows(source: IndexedSource, cache_bytes: int) -> Rows:
    """Return the rows of a source; those that have to be decoded are kept up to `cache_bytes`."""
    arrays = source.find_arrays()
    return UnitRows(source, cache_bytes) if arrays is None else ArrayRows(source, arrays)


class ArrayRows:
    """Rows of arrays that are in memory, or of mapped files."""

    def __init__(self, source: IndexedSource, arrays: Arrays) -> None:
        self._source = source
        self._rows = number_arrays(arrays, accumulate(map(len, arrays[:-1]), initial=0))

    def take(self, numbers: _core.DeviceArray) -> tuple[_core.DeviceArray, bool]:
        taken = _core.take_rows(self._rows, numbers)
        self._source.check_taken(numbers)
        return taken

    def clear(self) -> None:
        return


class UnitRows:
    """Rows of units that are decoded when they are needed, and kept up to `cache_bytes`."""

    def __init__(self, source: IndexedSource, cache_bytes: int) -> None:
        self._source = source
        self._cache = UnitCache(source, cache_bytes)
        starts = list(accumulate(source.units[:-1], initial=0))
        self._starts = _core.read_row_numbers(starts, starts[-1] + 1)

    def take(self, numbers: _core.DeviceArray) -> tuple[_core.DeviceArray, bool]:
        if len(numbers) == 0:
            return _core.from_arrow(self._source.read([])), False
        groups, order = _core.group_rows(numbers, self._starts)
        rows = self._cache.find(groups)
        if rows is None:
            return self._take_each(groups, order)
        return _core.take_rows(rows, numbers)

    def _take_each(
        self, numbers: dict[int, _core.DeviceArray], order: _core.DeviceArray
    ) -> tuple[_core.DeviceArray, bool]:
        """Take the rows of one unit after another, and put them in order."""
        taken: dict[int, _core.DeviceArray] = {}

        def take(unit: int, arrays: Arrays) -> None:
            taken[unit], _ = _core.take_rows(self._cache.number({unit: arrays}), numbers[unit])

        self._cache.use_each(numbers, take)
        parts = [taken[unit] for unit in numbers]
        rows = number_arrays(parts, accumulate(map(len, parts[:-1]), initial=0))
        return _core.take_rows(rows, order)

    def clear(self) -> None:
        self._cache.clear()
