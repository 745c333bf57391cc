"""`FetchAhead`: ranges of files are read ahead of their use, many at a time and bounded in bytes.

pyarrow reads ahead the row groups of one scan, in few large requests, and waits for each file that
it opens: over a network that leaves most of the bandwidth unused. Who knows the order in which row
groups are needed can ask for all of it early, and decode from memory.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any

import pyarrow as pa

from arrowdl._lifecycle import at_exit
from arrowdl.loader._storage.fetch_handler import FetchHandler
from arrowdl.loader._storage.handlers import check_unchanged
from arrowdl.loader._storage.held_ranges import Range
from arrowdl.loader._storage.readers import join_bytes
from arrowdl.loader._storage.retry_calls import end_waits_with
from arrowdl.loader._storage.stragglers import Stragglers
from arrowdl.loader._storage.unit_ranges import UnitRanges

# Requests at a time. They begin with few, so that these have the whole line, and each answer allows
# one more: the first rows are there early.
REQUESTS_AT_ONCE = 32
_FIRST_REQUESTS = 4
# Under way or arrived, and not decoded yet: ten times what a line of 200 MB/s with a latency of
# 50 ms has under way, and as much as one of 2 GB/s.
FETCH_BYTES = 2**27
_EXIT_SECONDS = 1.0

_log = logging.getLogger("arrowdl.loader")


@dataclass
class _Unit:
    """Ranges under way, and what has arrived."""

    path: str = ""
    missing: int = 0
    arrived: list[tuple[Range, Any]] = field(default_factory=list)
    is_complete: bool = False
    error: BaseException | None = None
    is_released: bool = False


@dataclass(eq=False)
class _Request:
    """Reads a range of a unit, or asks whether its file has changed; a second one may be sent."""

    index: int
    unit: _Unit
    part: Range | None  # None: asks
    begun: float = 0.0
    running: int = 1
    has_second: bool = False
    is_done: bool = False

    @property
    def nbytes(self) -> int:
        return 0 if self.part is None else self.part.nbytes

    def describe(self) -> str:
        """Return what it does, after "arrowdl.Loader"."""
        if self.part is None:
            return f"asked whether {self.unit.path!r} has changed"
        begin, end = self.part.offset, self.part.offset + self.part.nbytes
        return f"read bytes {begin} to {end} of {self.unit.path!r}"


class FetchAhead:
    """Reads the ranges of units in their order, ahead of the thread that waits for them.

    A request that takes much longer than others of its size, while its unit is waited for, is made
    a second time; the first answer counts.
    """

    def __init__(
        self,
        handler: FetchHandler,  # holds what has arrived
        count: int,  # units
        # takes the index of a unit; returns its `UnitRanges`. It may ask the store (for a footer),
        # and is called in several threads at a time
        list_ranges: Callable[[int], UnitRanges],
        # bytes that are under way or held at most, unless the units that are waited for have more,
        # of which two ranges may be under way twice
        nbytes: int = FETCH_BYTES,
        threads: int = REQUESTS_AT_ONCE,  # requests at a time
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
        self._requests: list[_Request] = []  # under way, and not answered
        self._stragglers = Stragglers()
        self._bytes = 0
        self._threads = self._idle = 0
        self._is_closed = False
        self._unneeded = threading.Event()  # when it is closed
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

        Raises the exception of a request, with a note of the file and the range. `close` ends the
        wait.
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
        unit.error = None  # its frames have what was read
        for part, data in unit.arrived:
            self._handler.held.drop(unit.path, part, data)
            self._bytes -= part.nbytes
        unit.arrived.clear()

    def close(self) -> None:
        """Drop everything; requests under way are the last. Waits for nothing."""
        with self._room:
            self._is_closed = True
            self._unneeded.set()
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
            with end_waits_with(self._unneeded):
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
                if not self._has_more() and not self._requests:
                    break
                self._idle += 1
                try:
                    self._room.wait(self._find_late()[1])
                finally:
                    self._idle -= 1
            return None

    def _has_more(self) -> bool:
        return bool(self._pending or self._listed) or self._next < self._count

    def _find_task(self) -> Callable[[], None] | None:
        """Return the next request that has room; ranges are read in the order of the units."""
        late, seconds = self._find_late()
        if late is not None and seconds == 0:
            return self._ask_again(late)
        first = min(self._listed, default=self._count)
        if self._pending and self._pending[0][0] < first:
            index, part, unit = self._pending[0]
            if not self._has_room(index, part):
                return None
            heappop(self._pending)
            self._bytes += part.nbytes
            return partial(self._fetch, _Request(index, unit, part))
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
        except Exception as failure:
            error = failure
        with self._room:
            self._listed.discard(index)
            unit.error, unit.missing, unit.is_complete = error, len(parts), not parts
            if not unit.is_released:
                for part in parts:
                    heappush(self._pending, (index, part, unit))
            self._room.notify_all()
            self._arrival.notify_all()

    def _find_late(self) -> tuple[_Request | None, float | None]:
        """Return the request that gets a second one next, and in how many seconds."""
        late: tuple[_Request | None, float | None] = (None, None)
        now = time.monotonic()
        for request in self._requests:
            if request.index < self._wanted and not request.has_second:
                limit = self._stragglers.find_limit(request.nbytes)
                left = None if limit is None else max(0.0, request.begun + limit - now)
                if left is not None and (late[1] is None or left < late[1]):
                    late = request, left
        return late

    def _ask_again(self, request: _Request) -> Callable[[], None]:
        request.has_second = True
        request.running += 1
        self._stragglers.begin()
        self._bytes += request.nbytes
        return partial(self._fetch, request, True)

    def _fetch(self, request: _Request, is_second: bool = False) -> None:
        begun = time.monotonic()
        if is_second:
            waited = begun - request.begun
            _log.info("arrowdl %s for %.2f s; asked again", request.describe(), waited)
        else:
            with self._room:
                request.begun = begun
                self._requests.append(request)
        data = error = None
        try:
            data = self._read(request, is_second)
        except Exception as failure:
            failure.add_note(f"while arrowdl.Loader {request.describe()}")
            error = failure
        is_whole = self._end(request, data, error, time.monotonic() - begun)
        if is_whole:  # all ranges were of the version that is known, if it is that still
            self._fetch(_Request(request.index, request.unit, None))

    def _read(self, request: _Request, is_second: bool) -> pa.Buffer | None:
        unit, part = request.unit, request.part
        if part is None:
            check_unchanged(self._handler.inner, unit.path)
            return None
        if unit.is_released or unit.error is not None:
            return None
        read = self._handler.read_again if is_second else self._handler.read_below
        data = read(unit.path, part.nbytes, part.offset)
        if len(data) != part.nbytes:
            raise EOFError(f"{len(data)} bytes arrived, of {part.nbytes}")
        return data if isinstance(data, pa.Buffer) else join_bytes([data])

    def _end(
        self, request: _Request, data: pa.Buffer | None, error: Exception | None, seconds: float
    ) -> bool:
        """Note an answer to a request; return whether its unit is to be checked."""
        # The first of two answers that is not an error counts.
        unit, part = request.unit, request.part
        with self._arrival:
            request.running -= 1
            if error is None:
                self._stragglers.add(request.nbytes, seconds)
            if request.is_done or (error is not None and request.running):
                self._bytes -= request.nbytes
                self._room.notify_all()
                return False
            request.is_done = True
            self._requests.remove(request)
            if not self._requests and not self._has_more():
                self._room.notify_all()  # for the threads that would have asked again
            if request.has_second:
                self._stragglers.end()
            if part is None:
                unit.error, unit.is_complete = None if unit.is_released else error, True
                self._arrival.notify_all()
                return False
            self._window = min(self._window + 1, self._most_threads)
            unit.missing -= 1
            if data is None or unit.is_released:
                if not unit.is_released:
                    unit.error = unit.error or error
                self._bytes -= part.nbytes
                self._room.notify_all()
                self._arrival.notify_all()
                return False
            self._handler.held.add(unit.path, part, data)
            unit.arrived.append((part, data))
            return unit.missing == 0 and unit.error is None


_OPEN: weakref.WeakSet[FetchAhead] = weakref.WeakSet()


@at_exit
def _close_all() -> None:
    """End the threads before the interpreter does."""
    opened = list(_OPEN)
    for ahead in opened:
        ahead.close()
    for ahead in opened:
        ahead.join(_EXIT_SECONDS)
