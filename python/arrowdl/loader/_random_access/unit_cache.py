"""`UnitCache`: decoded row groups in memory, up to a number of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from itertools import accumulate
from weakref import WeakSet

from arrowdl import _core
from arrowdl._lifecycle import in_forked_child
from arrowdl.loader._sources.base import IndexedSource

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
            read = _cut(stream, [source.units[unit] for unit in to_read])
            for (unit, future), arrays in zip(to_read.items(), read, strict=True):
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


def _cut(stream: Iterator[_core.DeviceArray], counts: Iterable[int]) -> Iterator[Arrays]:
    """Cut the arrays of `stream` into parts of `counts` rows, or raise OSError."""
    remaining: _core.DeviceArray | None = None
    for count in counts:
        arrays: Arrays = []
        missing = count
        while missing:
            if remaining is None or len(remaining) == 0:
                if (remaining := next(stream, None)) is None:
                    raise _refuse()
                continue
            arrays.append(remaining[:missing])
            remaining = remaining[len(arrays[-1]) :]
            missing -= len(arrays[-1])
        yield arrays
    if (remaining is not None and len(remaining)) or any(len(array) for array in stream):
        raise _refuse()


def _refuse() -> OSError:
    return OSError(
        "a file has another number of rows than when this Loader was made: make a new Loader"
    )


_caches: WeakSet[UnitCache] = WeakSet()


def _after_fork_in_child() -> None:
    for cache in list(_caches):
        cache._renew()


in_forked_child(_after_fork_in_child)
