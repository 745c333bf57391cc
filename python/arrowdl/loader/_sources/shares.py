"""Shares of the sources of a mixture: arithmetic on weights and rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

Schedule = Sequence[tuple[int, tuple[int, ...]]]
MOST_WEIGHT = 2**62  # of all weights together, for the core


class Phase(NamedTuple):
    """The weights of a mixture from one row on.

    Attributes
    ----------
    row : int
        The first row, of each sequence.
    weights : tuple of int
        Of each source.
    """

    row: int
    weights: tuple[int, ...]


class Turns:
    """Which source each row of a sequence is of.

    The sources take their shares one after the other, the largest weight first. Of the rows that
    those before leave, a source of weight `w` has ``floor((n * w + start) / sum)`` of the first
    `n`, with the sum of its weight and those after it. The sequences have starts evenly spaced, so
    that also the rows of all of them together have these shares (Hermite's identity).

    Parameters
    ----------
    phases : sequence of Phase
        The first one begins at row 0.
    sequence, splits : int
        Index of the sequence, and number of sequences.
    """

    def __init__(self, phases: Sequence[Phase], sequence: int, splits: int) -> None:
        self._phases = phases
        self._sequence = sequence
        self._splits = splits

    def count(self, rows: int) -> list[int]:
        """Count the rows of each source among the first `rows`."""
        counts = [0] * len(self._phases[0].weights)
        for phase, end in self._cut(rows):
            for share in self._list_shares(phase.weights, end - phase.row):
                counts[share.source] += share.rows
        return counts

    def list_phases(self, row: int) -> list[list[int]]:
        """List the phases from `row` on, as ``_core.mix`` takes them."""
        phases = []
        for phase, end in self._cut(math.inf):
            if end <= row:
                continue
            begin = max(row, phase.row)
            shares = self._list_shares(phase.weights, begin - phase.row)
            length = 0 if end == math.inf else int(end) - begin
            phases.append([length, *(i for share in shares for i in share.for_core())])
        return phases

    def _cut(self, rows: float) -> Iterable[tuple[Phase, Any]]:
        ends = [phase.row for phase in self._phases[1:]]
        for phase, end in zip(self._phases, [*ends, math.inf], strict=True):
            if phase.row < rows:
                yield phase, min(end, rows)

    def _list_shares(self, weights: Sequence[int], rows: int) -> list[_Share]:
        shares = []
        total, left = sum(weights), rows
        for source in sorted(range(len(weights)), key=lambda i: -weights[i]):
            weight = weights[source]
            if weight == 0:
                break
            start = self._sequence * total // self._splits
            count, progress = divmod(left * weight + start, total)
            shares.append(_Share(source, weight, count, progress))
            left -= count
            total -= weight
        return shares


class _Share(NamedTuple):
    source: int
    weight: int
    rows: int
    progress: int

    def for_core(self) -> tuple[int, int, int]:
        return self.source, self.weight, self.progress


def read_weights(names: Sequence[str], weights: Any, what: str = "weights") -> tuple[int, ...]:
    """Return the weights of the sources as whole numbers.

    Parameters
    ----------
    names : sequence of str
        Of the sources.
    weights : mapping of str to number

    Raises
    ------
    TypeError
        It is no such mapping.
    ValueError
        A source has no weight, or a weight belongs to no source, is negative, or not finite.
    """
    if not isinstance(weights, Mapping):
        raise TypeError(f"{what}={weights!r}: give a number for each source by its name")
    if set(weights) != set(names):
        raise ValueError(f"{what} names {sorted(map(str, weights))}, and the sources are {names}")
    exact = [_read_weight(weights[name], f'{what}["{name}"]') for name in names]
    if not any(exact):
        raise ValueError(f"{what}={dict(weights)!r}: one of them has to be more than 0")
    common = math.lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * common) for weight in exact]
    divisor = math.gcd(*whole)
    whole = [weight // divisor for weight in whole]
    if (total := sum(whole)) >= MOST_WEIGHT:  # to one part in 10**15
        whole = [max(weight * 2**52 // total, min(weight, 1)) for weight in whole]
    return tuple(whole)


def _read_weight(value: Any, what: str) -> Fraction:
    try:
        weight = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {value!r}: expected a number of 0 or more") from None
    if weight < 0 or isinstance(value, str):
        raise ValueError(f"{what} is {value!r}: expected a number of 0 or more")
    return weight


def read_schedule(names: Sequence[str], weights: Any) -> Schedule:
    """Return the weights of the sources, and the steps from which they hold.

    Parameters
    ----------
    names : sequence of str
    weights : mapping
        Of names to numbers, or of steps, the first one 0, to such mappings.
    """
    is_schedule = isinstance(weights, Mapping) and any(isinstance(key, int) for key in weights)
    if not is_schedule:
        return [(0, read_weights(names, weights))]
    steps = list(weights)
    if steps[0] != 0 or any(not isinstance(b, int) or a >= b for a, b in pairwise(steps)):
        raise ValueError(f"weights has the steps {steps}: give ascending ones, the first one 0")
    return [(step, read_weights(names, weights[step], f"weights[{step}]")) for step in steps]


def plan_phases(
    schedule: Schedule,
    find_row: Callable[[int], int],
    saved: Sequence[Phase],
    done: int,
) -> list[Phase]:
    """Return the phases of an epoch: what was read by `saved`, and the rest by `schedule`.

    Parameters
    ----------
    schedule : sequence of (int, weights)
        By step.
    find_row : callable
        Returns the first row of a step, of each sequence.
    saved : sequence of Phase
        Of the state that was loaded; none for a new epoch.
    done : int
        Rows of each sequence that were read.
    """
    own = [Phase(find_row(step), weights) for step, weights in schedule]
    present = [phase for phase in own if phase.row <= done][-1]
    phases = [phase for phase in saved if phase.row < done]
    to_come = [Phase(done if phases else 0, present.weights)]
    for phase in to_come + [phase for phase in own if phase.row > done]:
        if not phases or phases[-1].weights != phase.weights:
            phases.append(phase)
    return phases
