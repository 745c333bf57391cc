"""`Waits`: what the training waited for, by what was done meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from arrowdl import _core
from arrowdl.loader._clock import WORKS, Clock, Work, scale


class HostCopies:
    """The host's time in copies of streams to devices, which the core counts for the process."""

    def __init__(
        self,
        *,
        # whether a thread copies, also while the training does not wait; else the training copies
        is_ahead: bool,
    ) -> None:
        self._is_ahead = is_ahead
        self._at = time.perf_counter()
        self._seconds = _core.stream_copy_seconds()

    def find_overlap(self, begin: float, end: float) -> float:
        """Return the seconds between two times, by the share of the time since the last call."""
        seconds = _core.stream_copy_seconds()
        spent, passed = seconds - self._seconds, end - self._at
        self._seconds, self._at = seconds, end
        if not self._is_ahead or passed <= 0:
            return min(spent, end - begin)
        return min(1.0, spent / passed) * (end - begin)


class Waits:
    """Divides the time in which the training waits for an item."""

    def __init__(
        self,
        clocks: Iterable[Clock],  # of the threads that read ahead, and of the caller's
        copies: HostCopies | None,
    ) -> None:
        self._clocks = list(clocks)
        self._copies = copies

    def divide(
        self,
        begin: float,
        end: float,
        item: Any,  # that was waited for; None at the end
    ) -> dict[Work, float]:
        """Return the seconds of each work between two times: at most `end` - `begin` together.

        For a `Message` of a worker process, they are in proportion to what the worker did for it;
        for its first one, the rest is the time that the worker took to start.
        """
        shares: dict[Work, float] = {}
        for clock in self._clocks:
            for work, seconds in clock.find_overlaps(begin, end).items():
                shares[work] = shares.get(work, 0.0) + seconds
        if self._copies is not None:
            shares["copy"] = self._copies.find_overlap(begin, end)
        shares = scale(shares, end - begin)
        if spent := getattr(item, "spent", ()):
            left = end - begin - sum(shares.values())
            for work, seconds in scale(dict(zip(WORKS, spent, strict=True)), left).items():
                shares[work] = shares.get(work, 0.0) + seconds
        if getattr(item, "is_first", False):
            shares["start"] = max(0.0, end - begin - sum(shares.values()))
        return shares
