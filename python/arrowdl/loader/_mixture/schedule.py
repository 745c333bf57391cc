"""Shares of the sources of a mixture: arithmetic on weights and rows."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

Schedule = Sequence[tuple[int, tuple[int, ...]]]
MOST_WEIGHT = 2**60  # of all weights together, for the core
_SCALE = 2**60
_TICKS = 2**62
_MOST_STEPS = 2**40


class Phase(NamedTuple):
    """The weights of a mixture from one row on."""

    row: int  # the first row, of each sequence
    weights: tuple[int, ...]  # of each source


class Turns:
    """Which source each row of a sequence is of.

    The sources take their shares one after the other, those of the largest weights first. A source
    of weight `w` gets its part of the rows that the sources before it leave, ``w / sum`` of the
    weights from it on: ``floor(n * w / sum + progress)`` of the first `n`. What is left of the sum
    is its progress towards the next row, also into the next phase. At the start, the progress of
    the sequences is evenly spaced, so that also the rows of all of them together have these shares
    (Hermite's identity).
    """

    def __init__(
        self,
        phases: Sequence[Phase],  # the first one begins at row 0
        sequence: int,  # index of the sequence, and number of sequences
        splits: int,
    ) -> None:
        first = phases[0].weights
        order = sorted(range(len(first)), key=lambda i: -first[i])
        start = [0] * len(first)
        for level, source in enumerate(order):
            start[source] = sequence * _find_stride(level, splits) % splits * _TICKS // splits
        self._rows = [phase.row for phase in phases]
        self._parts = [_Part(phase.weights, order) for phase in phases]
        self._starts = [([0] * len(first), start)]  # rows and progress at the start of each phase
        for part, (begin, end) in zip(self._parts, pairwise(self._rows), strict=False):
            self._starts.append(part.go_on(*self._starts[-1], end - begin))

    def count(self, rows: int) -> list[int]:
        """Count the rows of each source among the first `rows`."""
        counts, _ = self._find(self._find_phase(rows), rows)
        return counts

    def list_phases(self, row: int) -> list[list[int]]:
        """List the phases from `row` on, as ``_core.mix`` takes them."""
        first = self._find_phase(row)
        phases = []
        for i in range(first, len(self._parts)):
            begin = max(row, self._rows[i])
            length = self._rows[i + 1] - begin if i + 1 < len(self._rows) else 0
            _, progress = self._find(i, begin)
            phases.append([length, *self._parts[i].for_core(progress)])
        return phases

    def _find_phase(self, row: int) -> int:
        return max(0, bisect_right(self._rows, row) - 1)

    def _find(self, phase: int, row: int) -> tuple[list[int], list[int]]:
        return self._parts[phase].go_on(*self._starts[phase], row - self._rows[phase])


def _find_stride(level: int, splits: int) -> int:
    """Return a step through all sequences: with one for all levels, their roundings would agree."""
    stride = 2 * level + 1
    while math.gcd(stride, splits) > 1:
        stride += 1
    return stride


class _Part:
    """The shares of a phase. Progress is counted in parts of `_TICKS` of a row."""

    def __init__(self, weights: Sequence[int], order: Sequence[int]) -> None:
        # Large numbers, so that progress is hardly rounded from one phase to the next.
        scale = max(1, _SCALE // sum(weights))
        left = sum(weights) * scale
        self._shares = []
        for source in order:
            weight = weights[source] * scale
            if weight:
                self._shares.append((source, weight, left))
            left -= weight

    def go_on(
        self, counts: Sequence[int], progress: Sequence[int], rows: int
    ) -> tuple[list[int], list[int]]:
        """Return the rows of each source, and their progress, after `rows` more."""
        counts, progress = list(counts), list(progress)
        for source, weight, total in self._shares:
            taken, rest = divmod(rows * weight + progress[source] * total // _TICKS, total)
            counts[source] += taken
            progress[source] = -(-rest * _TICKS // total)  # so that the same rest comes out again
            rows -= taken
        return counts, progress

    def for_core(self, progress: Sequence[int]) -> Iterator[int]:
        for source, weight, total in self._shares:
            yield from (source, weight, progress[source] * total // _TICKS)


def read_weights(
    names: Sequence[str],  # of the sources
    weights: Any,
    what: str = "weights",
) -> tuple[int, ...]:
    """Return the weights of the sources as whole numbers."""
    if not isinstance(weights, Mapping):
        raise TypeError(f"{what}={weights!r}: give a number for each source by its name")
    if set(weights) != set(names):
        raise ValueError(f"{what} names {sorted(map(str, weights))}, but the sources are {names}")
    exact = [_read_weight(weights[name], f'{what}["{name}"]') for name in names]
    if not any(exact):
        raise ValueError(f"{what}={dict(weights)!r}: one of them must be more than 0")
    common = math.lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * common) for weight in exact]
    divisor = math.gcd(*whole)
    whole = [weight // divisor for weight in whole]
    if (total := sum(whole)) >= MOST_WEIGHT:  # to one part in 10**15
        whole = [max(weight * 2**52 // total, min(weight, 1)) for weight in whole]
    return tuple(whole)


def _read_weight(value: Any, what: str) -> Fraction:
    try:
        if isinstance(value, (str, bytes)):
            raise ValueError
        exact = isinstance(value, (int, Fraction))
        weight = Fraction(value) if exact else Fraction(str(float(value)))
        if weight >= 0:
            return weight
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{what} is {value!r}: expected a number of 0 or more")


def read_schedule(
    names: Sequence[str],
    weights: Any,  # of names to numbers, or of steps, the first one 0, to such mappings
) -> Schedule:
    """Return the weights of the sources, and the steps from which they hold."""
    is_schedule = isinstance(weights, Mapping) and any(map(_is_step, weights))
    if not is_schedule:
        return [(0, read_weights(names, weights))]
    steps = list(weights)
    are_steps = all(_is_step(step) and step < _MOST_STEPS for step in steps) and all(
        a < b for a, b in pairwise(steps)
    )
    if not are_steps or steps[0] != 0:
        raise ValueError(
            f"weights has the steps {steps}: give steps in ascending order, the first of them 0"
        )
    return [
        (operator.index(step), read_weights(names, step_weights, f"weights[{step}]"))
        for step, step_weights in weights.items()
    ]


def _is_step(key: Any) -> bool:
    return hasattr(key, "__index__")


def plan_phases(
    schedule: Schedule,  # by step
    find_row: Callable[[int], int],  # returns the first row of a step, of each sequence
    saved: Sequence[Phase],  # of the state that was loaded; none for a new epoch
    done: int,  # rows of each sequence that were read
) -> list[Phase]:
    """Return the phases of an epoch: what was read by `saved`, and the rest by `schedule`."""
    planned_phases = [Phase(find_row(step), weights) for step, weights in schedule]
    present = [phase for phase in planned_phases if phase.row <= done][-1]
    phases = [phase for phase in saved if phase.row < done]
    to_come = [Phase(done if phases else 0, present.weights)]
    for phase in to_come + [phase for phase in planned_phases if phase.row > done]:
        if not phases or phases[-1].weights != phase.weights:
            phases.append(phase)
    return phases
