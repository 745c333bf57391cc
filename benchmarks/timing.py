"""Compares the times of several calls: calibrated loops, interleaved rounds, medians."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Budget:
    """How long to measure: seconds of one statement in each round, and of all rounds together."""

    loop_seconds: float
    total_seconds: float
    min_rounds: int


FULL = Budget(loop_seconds=0.004, total_seconds=6.0, min_rounds=25)
QUICK = Budget(loop_seconds=0.002, total_seconds=0.5, min_rounds=5)


@dataclass(frozen=True)
class Timing:
    """Seconds per call of one statement, one number per round."""

    statement: str
    loops: int
    rounds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.rounds, n=4)
        return low, high

    def to_json(self) -> dict[str, Any]:
        return {
            "statement": self.statement,
            "median": self.median,
            "quartiles": self.quartiles,
            "min": min(self.rounds),
            "rounds": len(self.rounds),
            "loops": self.loops,
        }


def find_ratio(ours: Timing, peer: Timing) -> float:
    """The median of each round's ratio: a round is short, and the machine's speed drifts."""
    rounds = zip(ours.rounds, peer.rounds, strict=True)
    return statistics.median(first / second for first, second in rounds)


def measure(statements: list[str], names: Mapping[str, Any], budget: Budget) -> list[Timing]:
    """Time `statements`, which see `names`, in rounds that run each of them once.

    A disturbance of the machine thus meets them all. `timeit` compiles each into a loop, without
    the cost of a wrapping call, and turns garbage collection off. The first round, which warms
    caches up, is thrown away.
    """
    timers = [timeit.Timer(statement, globals=dict(names)) for statement in statements]
    loops = [_calibrate(timer, budget.loop_seconds) for timer in timers]
    seconds: list[list[float]] = [[] for _ in timers]
    spent = 0.0
    number = -1
    while number < budget.min_rounds or spent < budget.total_seconds:
        number += 1
        # Every other round runs backwards: no statement always follows the same one.
        for i in range(len(timers)) if number % 2 else reversed(range(len(timers))):
            elapsed = timers[i].timeit(loops[i])
            spent += elapsed
            if number > 0:
                seconds[i].append(elapsed / loops[i])
    return [Timing(*parts) for parts in zip(statements, loops, seconds, strict=True)]


def _calibrate(timer: timeit.Timer, loop_seconds: float) -> int:
    """How many calls fill `loop_seconds`, by the quickest of a few trials of each length."""
    loops = 1
    if loop_seconds == 0:
        return loops
    while True:
        elapsed = min(timer.repeat(repeat=3, number=loops))
        if elapsed >= loop_seconds / 4:
            return max(1, round(loops * loop_seconds / elapsed))
        loops *= 4


def format_seconds(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
