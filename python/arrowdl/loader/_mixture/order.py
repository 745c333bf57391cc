"""`MixedOrder`: which source each row of a mixture is of, and where an epoch ends."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from arrowdl.loader._mixture.schedule import Phase, Schedule, Turns, plan_phases
from arrowdl.loader._sources.base import ENDLESS, IndexedSource
from arrowdl.loader._sources.row_bytes import LANES


@dataclass(frozen=True)
class Member:
    """A source of a mixture."""

    name: str
    source: IndexedSource
    seed: int
    # The rows of its shuffle buffer. None: its rows keep their order, or the mixture has not yet
    # divided its own buffer.
    buffer_size: int | None
    is_loader: bool  # it was given as a Loader: seed and buffer are its own, not the mixture's
    lanes: int = LANES  # of its shuffle, at most


Stop = Literal["first", "all", "repeat"]


class MixedOrder:
    """The weights of the sources of a mixture, row by row."""

    phases: tuple[Phase, ...]  # the weights, and the rows from which they hold
    length: int  # the rows of each sequence in an epoch

    def __init__(
        self,
        members: Sequence[Member],
        schedule: Schedule,  # the weights, and the steps from which they hold
        rows_of_step: int,  # 0 with a budget of tokens
        stop: Stop,
        splits: int,  # the number of sequences
    ) -> None:
        self.schedule = schedule
        self.stop: Stop = stop
        self.splits = splits
        self._names = [member.name for member in members]
        self._rows = [member.source.num_rows for member in members]
        self._other: MixedOrder | None = None
        self._check_rows()
        first = [Phase(0, schedule[0][1])]
        self._is_settled = rows_of_step > 0 or len(schedule) == 1
        if rows_of_step > 0:
            self._use(plan_phases(schedule, lambda step: step * rows_of_step, [], 0))
        elif self._is_settled:
            self._use(first)
        else:  # a plan finds the rows of the steps
            self._use(first, ENDLESS)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_other": None}

    @property
    def is_endless(self) -> bool:
        """Whether an epoch has no end."""
        return self.stop == "repeat"

    def count_member_rows(self) -> int:
        """Count the rows of all sources."""
        return sum(self._rows)

    def plan(
        self, saved: Sequence[Phase], steps: Sequence[tuple[int, int]], size: int
    ) -> list[Phase]:
        """Return the phases of an epoch after the steps that were read."""
        # `saved` are the phases of the steps that were read. `steps` has numbers of these, and the
        # rows of each. The steps to come have `size` rows.
        done = sum(count * rows for count, rows in steps) // self.splits

        def find_row(step: int) -> int:
            row = 0
            for count, rows in steps:
                taken = min(step, count)
                row += taken * rows
                step -= taken
            return (row + step * size) // self.splits

        return plan_phases(self.schedule, find_row, saved, done)

    def with_phases(self, phases: Sequence[Phase]) -> MixedOrder:
        """Return the order by other weights."""
        if tuple(phases) == self.phases and self._is_settled:
            return self
        if self._other is None or self._other.phases != tuple(phases):
            order = copy(self)
            order._use(phases)
            self._other = order  # asked for again at each step
        return self._other

    def without_end(self, phases: Sequence[Phase]) -> MixedOrder:
        """Return the order by other weights, of epochs that never end."""
        order = copy(self)
        order.stop = "repeat"
        order._use(phases)
        return order

    def find_length(self, phases: Sequence[Phase]) -> int:
        """Return the rows of each sequence by other weights; many if these have no end."""
        order = copy(self)
        try:
            order._use(phases)
        except ValueError:  # a weight is 0 until there is another one
            return ENDLESS
        return order.length

    def _use(self, phases: Sequence[Phase], length: int | None = None) -> None:
        self.phases = tuple(phases)
        self.length = self._count_length() if length is None else length

    def _check_rows(self) -> None:
        for name, rows in zip(self._names, self._rows, strict=True):
            if rows < self.splits:
                raise ValueError(
                    f'"{name}" has {rows} rows, and Ranks.splits={self.splits} sequences need a '
                    "row each: give fewer splits, or leave it out"
                )

    def _count_length(self) -> int:
        """Count the rows of each sequence of an epoch."""
        if self.is_endless:
            return ENDLESS
        lengths = map(self._find_end, range(self.splits))
        return min(lengths) if self.stop == "first" else max(lengths)

    def _find_end(self, sequence: int) -> int:
        """Find the number of rows with which one sequence has ended."""
        turns = Turns(self.phases, sequence, self.splits)
        available = [self._count_rows(member, sequence) for member in range(len(self._rows))]
        if self.stop == "all":
            lacks = [i for i, weight in enumerate(self.phases[-1].weights) if weight == 0]
            counts = turns.count(self.phases[-1].row)
            for i in lacks:
                if counts[i] < available[i]:
                    raise ValueError(
                        f'the weight of "{self._names[i]}" is 0 in the end, so an epoch never '
                        'reads all of its rows: give stop="first" or "repeat", or leave it out'
                    )

        def has_ended(rows: int) -> bool:
            pairs = list(zip(turns.count(rows), available, strict=True))
            if self.stop == "first":  # the row after them would be one too many
                return any(count > rows for count, rows in pairs)
            return all(count >= rows for count, rows in pairs)

        high = 1
        while not has_ended(high):
            high *= 2
        low = high // 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if has_ended(middle) else (middle + 1, high)
        return low - 1 if self.stop == "first" else low

    def _count_rows(self, member: int, sequence: int) -> int:
        """Count the rows of one sequence of a source."""
        rows = self._rows[member]
        return (sequence + 1) * rows // self.splits - sequence * rows // self.splits


def read_stop(stop: Any) -> Stop:
    """Return `stop`. Raises ValueError unless it is known."""
    if stop not in get_args(Stop):
        raise ValueError(f'stop={stop!r}: expected "first", "all" or "repeat"')
    return cast("Stop", stop)
