"""Gathers of rows by their numbers, from arrays in memory or from decoded row groups."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from itertools import accumulate
from typing import Any, Protocol
from weakref import WeakSet

from arrowdl import _core
from arrowdl._lifecycle import in_forked_child
from arrowdl.loader._skipped import RowsError
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.cut_units import cut_units

Arrays = list[_core.DeviceArray]
Loading = Future[Arrays | None]  # None: the thread that reads the unit has failed


class UnitCache:
    """The units of a source that were used last: row groups, or whole files.

    Threads may use it at once. They read different units at the same time, and each unit once.
    """

    def __init__(
        self,
        source: IndexedSource,
        # bytes of the units that are kept. One unit is kept whatever its size, unless this is 0
        limit: int,
    ) -> None:
        self._source = source
        self._limit = limit
        self._starts = [0, *accumulate(source.units)]
        self._units: OrderedDict[int, Arrays] = OrderedDict()  # the one that was used last is last
        self._nbytes = 0
        self._rows: object = None  # of all units, made when they are needed
        self._loading: dict[int, Loading] = {}
        self._lock = threading.Lock()
        _caches.add(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the units that are kept."""
        return self._nbytes

    def find(self, units: Collection[int]) -> object:
        """Return the rows of `units` and of others for `_core.take_rows`; None unless all of
        `units` are kept."""
        with self._lock:
            if any(unit not in self._units for unit in units):
                return None
            for unit in units:
                self._units.move_to_end(unit)
            if self._rows is None:
                self._rows = self.number(self._units)
            return self._rows

    def number(self, units: Mapping[int, Arrays]) -> object:
        """Return the rows of the arrays of `units`, with their numbers in the source."""
        arrays, starts = [], []
        for unit in sorted(units):
            start = self._starts[unit]
            for array in units[unit]:
                arrays.append(array)
                starts.append(start)
                start += len(array)
        return number_arrays(arrays, starts)

    def use_each(self, units: Iterable[int], use: Callable[[int, Arrays], None]) -> None:
        """Call `use` with each of `units` and its arrays, in any order.

        Units that are not kept are read, and no more are held than the cache keeps, except for what
        the source reads ahead.
        """
        waiting = list(units)
        while waiting:
            to_read: dict[int, Loading] = {}
            try:
                cached, others = self._claim(waiting, to_read)
                # First what this thread has to read: another one may wait for it.
                if to_read:
                    self._read(to_read, use)
            finally:
                for unit, future in to_read.items():
                    if not future.done():
                        self._finish(unit, future, None)
            for unit, arrays in cached:
                use(unit, arrays)
            waiting = []
            for unit, future in others:
                read = future.result()
                if read is None:
                    waiting.append(unit)
                else:
                    use(unit, read)

    def clear(self) -> None:
        """Drop all units."""
        with self._lock:
            dropped = self._units, self._rows
            self._units, self._rows, self._nbytes = OrderedDict(), None, 0
        del dropped

    def _claim(
        self, units: Sequence[int], to_read: dict[int, Loading]
    ) -> tuple[list[tuple[int, Arrays]], list[tuple[int, Loading]]]:
        """Return the cached units, and those that other threads read; add the rest to `to_read`."""
        cached, others = [], []
        with self._lock:
            for unit in units:
                if unit in self._units:
                    self._units.move_to_end(unit)
                    cached.append((unit, self._units[unit]))
                elif unit in self._loading:
                    others.append((unit, self._loading[unit]))
                else:
                    to_read[unit] = self._loading[unit] = Future()
        return cached, others

    def _read(self, to_read: Mapping[int, Loading], use: Callable[[int, Arrays], None]) -> None:
        source = self._source
        with closing(source.read(list(to_read))) as stream:
            read = cut_units(stream, [source.units[unit] for unit in to_read])
            for (unit, future), arrays in zip(to_read.items(), read, strict=True):
                if failed := source.find_failed(unit):
                    raise RowsError(failed)
                self._finish(unit, future, arrays)
                use(unit, arrays)
                del arrays

    def _finish(self, unit: int, future: Loading, arrays: Arrays | None) -> None:
        dropped = []  # released without the lock
        with self._lock:
            del self._loading[unit]
            if arrays is not None:
                dropped = self._keep(unit, arrays)
        future.set_result(arrays)
        del dropped

    def _keep(self, unit: int, arrays: Arrays) -> list[object]:
        """Keep a unit, and return what is dropped for it."""
        dropped: list[object] = [self._rows]
        self._units[unit] = arrays
        self._nbytes += _measure(arrays)
        self._rows = None
        least = 1 if self._limit else 0
        while self._nbytes > self._limit and len(self._units) > least:
            _, oldest = self._units.popitem(last=False)
            self._nbytes -= _measure(oldest)
            dropped.append(oldest)
        return dropped

    def _renew(self) -> None:
        """Forget, in a forked child, what other threads of the parent were doing."""
        self._lock = threading.Lock()
        self._loading = {}
        self._rows = None
        self._nbytes = sum(map(_measure, self._units.values()))


def number_arrays(arrays: Arrays, starts: Iterable[int]) -> object:
    """Return the rows of arrays for `_core.take_rows`; row 0 of each has the number in `starts`."""
    numbers = list(starts)
    return _core.number_rows(arrays, _core.read_row_numbers(numbers, max(numbers) + 1))


def _measure(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays)


_caches: WeakSet[UnitCache] = WeakSet()


def _after_fork_in_child() -> None:
    for cache in list(_caches):
        cache._renew()


in_forked_child(_after_fork_in_child)


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


# What stays as it is in each item.
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def split_rows(
    batch: Any,  # of tensors whose first dimension is the rows, in mappings, tuples and lists
    rows: int,
) -> list[Any]:
    """Return the rows of a batch, each a tree like the batch, without the dimension of rows.

    A row of a ragged pair (values, offsets) is the values of the row.
    """
    if isinstance(batch, Mapping):
        parts = [split_rows(value, rows) for value in batch.values()]
        return [dict(zip(batch, values, strict=True)) for values in _transpose(parts, rows)]
    if isinstance(batch, (tuple, list)):
        if _is_ragged(batch, rows):
            return _split_ragged(batch, rows)
        parts = [split_rows(value, rows) for value in batch]
        make: Any = type(batch)
        make = getattr(make, "_make", make)  # of a namedtuple
        return [make(values) for values in _transpose(parts, rows)]
    if isinstance(batch, _PLAIN):
        return [batch] * rows
    if getattr(batch, "is_nested", False):  # torch's nested tensors may have no shape
        return list(batch.unbind())
    shape: Any = getattr(batch, "shape", ())
    if len(shape) == 0 or shape[0] != rows:
        shown = f"shape {tuple(shape)}" if hasattr(batch, "shape") else type(batch).__name__
        raise ValueError(
            "an item is a row of each tensor of the batch, and transform= returned "
            f"{shown} for {rows} rows: read whole batches, dataset[[0, 5, 7]]; in a DataLoader by "
            "batch_size=None and a BatchSampler as its sampler"
        )
    return list(batch.unbind() if hasattr(batch, "unbind") else batch)


def _transpose(parts: list[list[Any]], rows: int) -> list[Any]:
    return list(zip(*parts, strict=True)) if parts else [()] * rows


def _is_ragged(batch: Any, rows: int) -> bool:
    """Whether a tuple is (values, offsets) or (values, offsets, shapes): there is one offset more
    than rows."""
    return len(batch) in (2, 3) and tuple(getattr(batch[1], "shape", ())) == (rows + 1,)


def _split_ragged(batch: Any, rows: int) -> list[Any]:
    values, offsets, *shapes = batch
    ends = offsets.tolist()
    items = [_slice(values, ends[i], ends[i + 1], ends[-1]) for i in range(rows)]
    if not shapes:
        return items
    return [item.reshape(shape) for item, shape in zip(items, shapes[0].tolist(), strict=True)]


def _slice(values: Any, start: int, stop: int, rows: int) -> Any:
    """Return rows `start` to `stop` of a tree of `rows` rows."""
    if isinstance(values, Mapping):
        return {name: _slice(value, start, stop, rows) for name, value in values.items()}
    if not isinstance(values, tuple):
        return values[start:stop]
    if not _is_ragged(values, rows):
        return tuple(_slice(value, start, stop, rows) for value in values)
    inner, offsets, *shapes = values
    begin, end = int(offsets[start]), int(offsets[stop])
    sliced = _slice(inner, begin, end, int(offsets[-1]))
    return (sliced, offsets[start : stop + 1] - begin, *(shape[start:stop] for shape in shapes))
