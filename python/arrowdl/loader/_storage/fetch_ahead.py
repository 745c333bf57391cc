"""`FetchAhead`: ranges of files are read ahead of their use, many at a time and bounded in bytes.

pyarrow reads ahead the row groups of one scan, in few large requests, and waits for each file that
it opens: over a network that leaves most of the bandwidth unused. Who knows the order in which row
groups are needed can ask for all of it early, and decode from memory.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as fs

from arrowdl.loader._storage.handlers import ReadingHandler, check_unchanged, find_handler
from arrowdl.loader._storage.readers import Reader, Stamp, join_bytes

# Ranges that are nearer are read as one: bytes that arrive within some milliseconds, of the tens
# that a request waits for its answer.
GAP_BYTES = 2**20
# Of a request: some times what arrives while one waits for its answer, at 100 MB/s. Larger ones
# would be hardly faster, and the first rows later.
RANGE_BYTES = 2**22
# Requests at a time. They begin with few, so that these have the whole line, and each answer allows
# one more: the first rows are there early.
REQUESTS_AT_ONCE = 32
_FIRST_REQUESTS = 4
# Under way or arrived, and not decoded yet: ten times what a line of 200 MB/s with a latency of
# 50 ms has under way, and as much as one of 2 GB/s.
FETCH_BYTES = 2**27
# Open files of the file system below.
_MOST_OPEN = 128
_EXIT_SECONDS = 1.0


class Range(NamedTuple):
    """`nbytes` bytes of a file from `offset`."""

    offset: int
    nbytes: int


class UnitRanges(NamedTuple):
    """What is read of the file at `path` for one unit."""

    path: str
    ranges: Sequence[Range]


def join_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Join ranges that are near to each other, and cut those that are large.

    A range is cut between two of the given ones where possible, so that each of these is in one.
    """
    joined: list[Range] = []
    for offset, nbytes in sorted(ranges):
        if nbytes <= 0:
            continue
        if joined:
            begin, before = joined[-1]
            end = max(begin + before, offset + nbytes)
            if offset - begin - before <= GAP_BYTES and end - begin <= RANGE_BYTES:
                joined[-1] = Range(begin, end - begin)
                continue
            offset, nbytes = max(offset, begin + before), end - max(offset, begin + before)
        parts = -(-nbytes // RANGE_BYTES)
        cuts = [offset + nbytes * part // parts for part in range(parts + 1)]
        joined += [Range(begin, end - begin) for begin, end in pairwise(cuts)]
    return joined


class HeldRanges:
    """Bytes of files, in memory until they are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, list[tuple[Range, pa.Buffer]]] = {}  # ascending

    def add(self, path: str, part: Range, data: pa.Buffer) -> None:
        with self._lock:
            held = self._held.setdefault(path, [])
            held.insert(bisect_right(held, part, key=lambda item: item[0]), (part, data))

    def drop(self, path: str, part: Range, data: pa.Buffer) -> None:
        with self._lock:
            held = self._held[path]
            for index, (found, own) in enumerate(held):
                if found == part and own is data:
                    del held[index]
                    break
            if not held:
                del self._held[path]

    def find(self, path: str, offset: int, nbytes: int) -> pa.Buffer | None:
        """Return bytes of a file; None if not all are held."""
        parts = []
        position, end = offset, offset + nbytes
        with self._lock:
            for (begin, length), data in self._held.get(path, ()):
                if begin > position:
                    break
                if begin + length > position:
                    stop = min(end, begin + length)
                    parts.append(data.slice(position - begin, stop - position))
                    position = stop
                    if position == end:
                        break
        if position < end or not parts:
            return None
        return parts[0] if len(parts) == 1 else join_bytes(parts)


def fetch_ahead(filesystem: fs.FileSystem) -> fs.FileSystem:
    """Return a file system whose files are read from memory where a `FetchAhead` has been."""
    return fs.PyFileSystem(FetchHandler(filesystem))


class FetchHandler(ReadingHandler):
    """Reads what is held, and the rest from the file system below."""

    def __init__(self, inner: fs.FileSystem) -> None:
        super().__init__(inner)
        self._forget()

    def _forget(self) -> None:
        self.held = HeldRanges()
        self._lock = threading.Lock()
        self._stamps: dict[str, Stamp] = {}
        self._idle: OrderedDict[tuple[str, int], Reader] = OrderedDict()
        self._opened = 0
        # A file in Python is read by one thread at a time.
        handler = find_handler(_find_lowest(self.inner))
        self._is_serial = handler is None and isinstance(_find_lowest(self.inner), fs.PyFileSystem)

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self.inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FetchHandler) and self.inner == other.inner

    __hash__ = ReadingHandler.__hash__

    def open_reader(self, path: str) -> Reader:
        if path not in self._stamps:
            with _Borrowed(self, path) as reader:
                self._stamps[path] = reader.stamp()
        return _HeldReader(self, path, self._stamps[path])

    def read_below(self, path: str, nbytes: int, offset: int) -> Any:
        """Read from the file system below; safe in several threads at a time."""
        with _Borrowed(self, path) as reader:
            return reader.read_at(nbytes, offset)

    def borrow(self, path: str) -> tuple[Reader, int]:
        """Return an open file that is read by nobody else, unless that does not matter."""
        with self._lock:
            key = next((key for key in reversed(self._idle) if key[0] == path), None)
            if key is not None:
                reader = self._idle[key]
                if self._is_serial:
                    del self._idle[key]
                else:
                    self._idle.move_to_end(key)
                return reader, key[1]
            self._opened += 1
            number = self._opened
        return super().open_reader(path), number

    def give_back(self, key: tuple[str, int], reader: Reader | None) -> None:
        """Keep a file open for the next one that reads it; None for one that failed."""
        with self._lock:
            if reader is None:
                self._idle.pop(key, None)
                return
            self._idle[key] = reader
            dropped = []
            while len(self._idle) > _MOST_OPEN:
                dropped.append(self._idle.popitem(last=False)[1])
        if self._is_serial:  # others may be in use, and are closed when nobody has them
            for reader in dropped:
                reader.close()


class _Borrowed:
    """``with`` an open file of the file system below; one that failed is not used again."""

    def __init__(self, handler: FetchHandler, path: str) -> None:
        self._handler = handler
        self._path = path

    def __enter__(self) -> Reader:
        self._reader, self._number = self._handler.borrow(self._path)
        return self._reader

    def __exit__(self, kind: Any, *_: Any) -> None:
        key = self._path, self._number
        self._handler.give_back(key, self._reader if kind is None else None)


def _find_lowest(filesystem: fs.FileSystem) -> fs.FileSystem:
    handler = find_handler(filesystem)
    if handler is None or hasattr(handler, "filesystem"):
        return filesystem
    return _find_lowest(handler.inner)


class _HeldReader:
    def __init__(self, handler: FetchHandler, path: str, stamp: Stamp) -> None:
        self._handler = handler
        self._path = path
        self._stamp = stamp

    def stamp(self) -> Stamp:
        return self._stamp

    def read_at(self, nbytes: int, offset: int) -> Any:
        held = self._handler.held.find(self._path, offset, nbytes) if nbytes else b""
        return self._handler.read_below(self._path, nbytes, offset) if held is None else held

    def close(self) -> None:
        """Files below stay open for others."""


@dataclass
class _Unit:
    """Ranges under way, and what has arrived."""

    path: str = ""
    missing: int = 0
    arrived: list[tuple[Range, Any]] = field(default_factory=list)
    is_complete: bool = False
    error: BaseException | None = None
    is_released: bool = False


class FetchAhead:
    """Reads the ranges of units in their order, ahead of who waits for them.

    Parameters
    ----------
    handler : FetchHandler
        Holds what has arrived.
    count : int
        Units.
    list_ranges : callable
        Takes the index of a unit; returns its `UnitRanges`. It may ask the store (for a footer),
        and is called in several threads at a time.
    nbytes : int
        Bytes that are under way or held at most, unless the units that are waited for have more.
    threads : int
        Requests at a time.
    """

    def __init__(
        self,
        handler: FetchHandler,
        count: int,
        list_ranges: Callable[[int], UnitRanges],
        nbytes: int = FETCH_BYTES,
        threads: int = REQUESTS_AT_ONCE,
    ) -> None:
        self._handler = handler
        self._count = count
        self._list_ranges = list_ranges
        self._most = nbytes
        self._most_threads = threads
        lock = threading.Lock()
        self._arrival = threading.Condition(lock)  # or the end of a thread
        self._room = threading.Condition(lock)
        self._window = min(_FIRST_REQUESTS, threads)
        self._units: dict[int, _Unit] = {}  # begun, and not released
        self._next = 0  # the unit whose ranges come next
        self._listed: set[int] = set()  # units whose ranges are being found
        self._pending: list[tuple[int, Range, _Unit]] = []  # a heap: in the order of units
        self._bytes = 0
        self._threads = self._idle = 0
        self._is_closed = False
        self._released: set[int] = set()
        self._front = 0  # the first unit that is not released
        self._wanted = 0  # units that are waited for have room, however large they are
        _OPEN.add(self)

    def start(self) -> None:
        """Send the first requests."""
        with self._room:
            self._start_thread()

    def wait(self, first: int, stop: int) -> None:
        """Wait until units `first` to `stop` have arrived.

        Raises
        ------
        Exception
            Of a request, with a note of the file and the range. `close` ends the wait.
        """
        with self._arrival:
            if stop > self._wanted:
                self._wanted = stop
                self._room.notify_all()
            for index in range(first, stop):
                while not self._has_arrived(index):
                    self._arrival.wait()
                if self._is_closed:
                    raise OSError("reading was given up")
                if (error := self._units[index].error) is not None:
                    raise error

    def _has_arrived(self, index: int) -> bool:
        unit = self._units.get(index)
        is_done = unit is not None and (unit.is_complete or unit.error is not None)
        return is_done or self._is_closed

    def release(self, first: int, stop: int) -> None:
        """Drop units `first` to `stop`, which were decoded or are not needed."""
        with self._room:
            for index in range(first, stop):
                self._released.add(index)
                if (unit := self._units.pop(index, None)) is not None:
                    self._drop(unit)
            while self._front in self._released:
                self._released.discard(self._front)
                self._front += 1
            self._room.notify_all()

    def _drop(self, unit: _Unit) -> None:
        unit.is_released = True
        for part, data in unit.arrived:
            self._handler.held.drop(unit.path, part, data)
            self._bytes -= part.nbytes
        unit.arrived.clear()

    def close(self) -> None:
        """Drop everything; requests under way are the last. Waits for nothing."""
        with self._room:
            self._is_closed = True
            self._pending.clear()
            for unit in self._units.values():
                self._drop(unit)
            self._units.clear()
            self._room.notify_all()
            self._arrival.notify_all()

    def join(self, seconds: float) -> bool:
        """Wait for the threads of a closed one; return whether they have ended."""
        with self._arrival:
            return self._arrival.wait_for(lambda: self._threads == 0, seconds)

    def _start_thread(self) -> None:
        if self._threads >= self._window or self._idle or self._is_closed:
            return
        if self._next == self._count and not self._pending:
            return
        self._threads += 1
        try:
            threading.Thread(target=self._work, name="arrowdl-fetch", daemon=True).start()
        except RuntimeError:  # the system has no room for it
            self._threads -= 1
            if not self._threads:
                raise

    def _work(self) -> None:
        try:
            while (task := self._take()) is not None:
                task()
                del task
        finally:
            with self._arrival:
                self._threads -= 1
                self._arrival.notify_all()

    def _take(self) -> Callable[[], None] | None:
        """Wait for room; return what to do next, or None at the end."""
        with self._room:
            while not self._is_closed:
                if (task := self._find_task()) is not None:
                    self._start_thread()
                    return task
                if not self._pending and not self._listed and self._next == self._count:
                    break
                self._idle += 1
                try:
                    self._room.wait()
                finally:
                    self._idle -= 1
            return None

    def _find_task(self) -> Callable[[], None] | None:
        """Return the next request that has room; ranges are read in the order of the units."""
        first = min(self._listed, default=self._count)
        if self._pending and self._pending[0][0] < first:
            index, part, unit = self._pending[0]
            if not self._has_room(index, part):
                return None
            heappop(self._pending)
            self._bytes += part.nbytes
            return partial(self._fetch, unit, part)
        stop = min(self._count, first + 2 * self._most_threads)
        while self._next < stop and self._has_room(self._next, Range(0, 1)):
            index = self._next
            self._next += 1
            if index >= self._front and index not in self._released:
                unit = self._units[index] = _Unit()
                self._listed.add(index)
                return partial(self._list, index, unit)
        return None

    def _has_room(self, index: int, part: Range) -> bool:
        return self._bytes + part.nbytes <= self._most or index < self._wanted

    def _list(self, index: int, unit: _Unit) -> None:
        parts: Sequence[Range] = ()
        error = None
        try:
            unit.path, parts = self._list_ranges(index)
        except Exception as found:
            error = found
        with self._room:
            self._listed.discard(index)
            unit.error, unit.missing, unit.is_complete = error, len(parts), not parts
            if not unit.is_released:
                for part in parts:
                    heappush(self._pending, (index, part, unit))
            self._room.notify_all()
            self._arrival.notify_all()

    def _fetch(self, unit: _Unit, part: Range) -> None:
        data = error = None
        try:
            if not unit.is_released and unit.error is None:
                data = self._handler.read_below(unit.path, part.nbytes, part.offset)
                if len(data) != part.nbytes:
                    raise EOFError(f"{len(data)} bytes arrived, of {part.nbytes}")
                if not isinstance(data, pa.Buffer):
                    data = join_bytes([data])
        except Exception as found:
            begin, end = part.offset, part.offset + part.nbytes
            found.add_note(f"while arrowdl.Loader read bytes {begin} to {end} of {unit.path!r}")
            data, error = None, found
        if self._add(unit, part, data, error):
            self._check(unit)

    def _add(
        self, unit: _Unit, part: Range, data: pa.Buffer | None, error: Exception | None
    ) -> bool:
        """Keep what has arrived; return whether the unit is to be checked."""
        with self._arrival:
            self._window = min(self._window + 1, self._most_threads)
            unit.missing -= 1
            if data is None or unit.is_released:
                unit.error = unit.error or error
                self._bytes -= part.nbytes
                self._room.notify_all()
                self._arrival.notify_all()
                return False
            self._handler.held.add(unit.path, part, data)
            unit.arrived.append((part, data))
            return unit.missing == 0 and unit.error is None

    def _check(self, unit: _Unit) -> None:
        """Check the file after the last range was read: all were of the version that is known."""
        error = None
        try:
            check_unchanged(self._handler.inner, unit.path)
        except Exception as found:
            found.add_note(f"while arrowdl.Loader asked whether {unit.path!r} has changed")
            error = found
        with self._arrival:
            unit.error = error
            unit.is_complete = True
            self._arrival.notify_all()


_OPEN: weakref.WeakSet[FetchAhead] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End the threads before the interpreter does."""
    found = list(_OPEN)
    for ahead in found:
        ahead.close()
    for ahead in found:
        ahead.join(_EXIT_SECONDS)
