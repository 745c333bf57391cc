"""`Stragglers`: which requests take so long that a second one is likely to be answered first.

On a server whose answers take 50 ms, and one of fifty a second, the Loader took 115 MB/s of 200
without second requests, and 160 with them: `python -m benchmarks.loader.network --stragglers 0.02`.
A limit of 1.2 times the median was no better, and slower where no answer is late.
"""

from __future__ import annotations

import statistics
from collections import deque

# The share of all requests that may be made twice: none of the first twenty.
SHARE = 0.05
# A request is late after this many times the median of the last ones of its size, and seconds.
_TIMES, _LEAST_SECONDS = 2.0, 0.05
_FEWEST, _LAST = 8, 32
_AT_ONCE = 2


class Stragglers:
    """What requests take, by their sizes in powers of two. Calls are made under a lock."""

    def __init__(self) -> None:
        self._seconds: dict[int, deque[float]] = {}
        self._limits: dict[int, float] = {}
        self._requests = self._seconded = 0
        self._running = 0

    def add(self, nbytes: int, seconds: float) -> None:
        """Note what a request took."""
        self._requests += 1
        size = nbytes.bit_length()
        last = self._seconds.setdefault(size, deque(maxlen=_LAST))
        last.append(seconds)
        if len(last) >= _FEWEST:
            self._limits[size] = max(_LEAST_SECONDS, _TIMES * statistics.median(last))

    def find_limit(self, nbytes: int) -> float | None:
        """Return after how many seconds a second request may be sent; None for never."""
        if self._running >= _AT_ONCE or self._seconded + 1 > SHARE * self._requests:
            return None
        return self._limits.get(nbytes.bit_length())

    def begin(self) -> None:
        """Count a second request."""
        self._seconded += 1
        self._running += 1

    def end(self) -> None:
        """One of a request and its second one was answered."""
        self._running -= 1
