"""Gathers of rows by their numbers, from arrays in memory or from decoded row groups."""

from __future__ import annotations

from itertools import accumulate
from typing import Protocol

from arrowdl import _core
from arrowdl.loader._random_access.unit_cache import Arrays, UnitCache
from arrowdl.loader._sources.base import IndexedSource


class Rows(Protocol):
    """The rows of a source."""

    def take(self, numbers: _core.DeviceArray) -> tuple[_core.DeviceArray, bool]:
        """Return the rows with `numbers`, in that order, and whether their memory has other users.

        Parameters
        ----------
        numbers : DeviceArray
            Of `read_row_numbers`.

        Raises
        ------
        OSError
            A file has changed.
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
        starts = [0, *accumulate(map(len, arrays[:-1]))]
        self._rows = _core.ChunkedRows(arrays, starts)

    def take(self, numbers: _core.DeviceArray) -> tuple[_core.DeviceArray, bool]:
        taken = self._rows.take(numbers)
        self._source.check_taken(numbers)
        return taken

    def clear(self) -> None:
        return


class UnitRows:
    """Rows of units that are decoded when they are needed, and kept up to `cache_bytes`."""

    def __init__(self, source: IndexedSource, cache_bytes: int) -> None:
        self._source = source
        self._cache = UnitCache(source, cache_bytes)
        self._starts = [0, *accumulate(source.units[:-1])]

    def take(self, numbers: _core.DeviceArray) -> tuple[_core.DeviceArray, bool]:
        if len(numbers) == 0:
            return _core.from_arrow(self._source.read([])), False
        groups, order = _core.group_rows(numbers, self._starts)
        rows = self._cache.find([unit for unit, _ in groups])
        return self._take_each(dict(groups), order) if rows is None else rows.take(numbers)

    def _take_each(
        self, numbers: dict[int, _core.DeviceArray], order: _core.DeviceArray
    ) -> tuple[_core.DeviceArray, bool]:
        """Take the rows of one unit after another, and put them in order."""
        taken: dict[int, _core.DeviceArray] = {}

        def take(unit: int, arrays: Arrays) -> None:
            taken[unit], _ = self._cache.number_rows({unit: arrays}).take(numbers[unit])

        self._cache.use_each(numbers, take)
        parts = [taken[unit] for unit in numbers]
        starts = [0, *accumulate(map(len, parts[:-1]))]
        return _core.ChunkedRows(parts, starts).take(order)

    def clear(self) -> None:
        self._cache.clear()
