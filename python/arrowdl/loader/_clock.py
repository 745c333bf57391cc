"""`Clock`: what the threads that read ahead do, by which the training's waits are divided."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Literal, TypeVar, get_args

from arrowdl._lifecycle import in_forked_child

T = TypeVar("T")

Work = Literal["source", "storage", "decode", "conversion", "transform", "copy", "start"]
WORKS: tuple[Work, ...] = get_args(Work)

# Shorter waits are not divided: that would take longer than many of them.
NOTICED_SECONDS = 1e-4
_MOST_SPANS = 256  # of those since the last wait that was divided


class ReadingTime:
    """Counts the seconds in which pyarrow waits for at least one file of ours, in this process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Count from 0: in a forked child, where no other thread reads."""
        self._lock = threading.Lock()
        self._running = 0
        self._begin = self._seconds = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._begin = time.perf_counter()
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self._seconds += time.perf_counter() - self._begin

    def count(self) -> float:
        """Return the seconds so far."""
        with self._lock:
            since = time.perf_counter() - self._begin if self._running else 0.0
            return self._seconds + since


READING = ReadingTime()
in_forked_child(READING.forget)


class Clock:
    """Notes when threads that read ahead begin and end their work. A pickle is a new one."""

    def __init__(self) -> None:
        self._spans: deque[tuple[Work, float, float]] = deque(maxlen=_MOST_SPANS)
        # By thread: what it does, since when, and what READING had counted.
        self._running: dict[int, tuple[Work, float, float]] = {}

    def __reduce__(self) -> tuple[type[Clock], tuple[()]]:
        return Clock, ()

    @contextmanager
    def measure(self, work: Work) -> Iterator[None]:
        """Note the time of the block as `work`; other work within it is noted as that alone."""
        thread = threading.get_ident()
        outer = self._end(thread)
        self._begin(thread, work)
        try:
            yield
        finally:
            self._end(thread)
            if outer is not None:
                self._begin(thread, outer)

    def time(self, items: Iterable[T]) -> Iterator[T]:
        """Yield `items`, and note the time to make each as decoding."""
        iterator = iter(items)
        held: list[T] = []  # this keeps no item that the caller drops
        while True:
            with self.measure("decode"):
                held.extend(islice(iterator, 1))
            if not held:
                return
            yield held.pop()

    def _begin(self, thread: int, work: Work) -> None:
        self._running[thread] = work, time.perf_counter(), READING.count()

    def _end(self, thread: int) -> Work | None:
        running = self._running.pop(thread, None)
        if running is None:
            return None
        work, begin, counted = running
        end = time.perf_counter()
        if work == "decode" and (waited := min(READING.count() - counted, end - begin)) > 0:
            self._spans.append(("storage", begin, begin + waited))
            begin += waited
        self._spans.append((work, begin, end))
        return work

    def find_overlaps(self, begin: float, end: float) -> dict[Work, float]:
        """Return the seconds of each work between two times, which may be done side by side.

        Work that ended before is forgotten.
        """
        overlaps: dict[Work, float] = {}
        spans = [(work, since, end) for work, since, _ in self._running.copy().values()]
        try:
            while True:
                spans.append(self._spans.popleft())
        except IndexError:
            pass
        for work, first, last in spans:
            if (seconds := min(end, last) - max(begin, first)) > 0:
                overlaps[work] = overlaps.get(work, 0.0) + seconds
        return overlaps


def scale(work: Mapping[Work, float], seconds: float) -> dict[Work, float]:
    """Return the seconds of each work, made less in proportion if all are more than `seconds`."""
    total = sum(work.values())
    factor = min(1.0, seconds / total) if total > 0 else 0.0
    return {name: factor * part for name, part in work.items()}
