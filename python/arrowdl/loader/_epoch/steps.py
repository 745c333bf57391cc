"""`Steps`: which rows of each sequence each step of an epoch has."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import RLock, get_ident
from typing import TYPE_CHECKING, NamedTuple, Protocol

from arrowdl.loader._epoch.sharding import Sharding, Stage, count_batches

if TYPE_CHECKING:
    import pyarrow as pa

MOST_STEPS = 2**50  # of an endless mixture


class Steps(Protocol):
    """The steps that are left of an epoch; each has equally many rows of every sequence.

    Sequences that end a row earlier than others give a row less to the last step.
    """

    @property
    def is_endless(self) -> bool:
        """Whether there is no last step."""

    @property
    def count(self) -> int:
        """Steps that are left."""

    def find_row(self, step: int) -> int:
        """Return the row of each sequence that `step` begins with; of `count`, the end."""


class EvenSteps:
    """Steps of one number of rows."""

    is_endless = False  # its end is a number of rows, if a large one

    def __init__(
        self,
        rows: int,  # of the epoch
        done: int,  # rows of each sequence that were read
        sharding: Sharding,  # with `splits`
    ) -> None:
        assert sharding.splits is not None
        self._rows = sharding.global_batch_size // sharding.splits
        self._done = done
        self.count = count_batches(max(0, rows - done * sharding.splits), sharding)

    def find_row(self, step: int) -> int:
        return self._done + step * self._rows


class Window(NamedTuple):
    """How a window of each sequence is sorted by length and cut into batches."""

    sizes: Sequence[int]  # rows of each batch, in ascending order of their lengths
    # indices of the batches, in the order in which they are read. If the sequences have different
    # numbers of rows, the batch of the longest rows is the last one
    draw: Sequence[int]


Part = tuple[Sequence[int], Window | None]


class TokenPlan:
    """Steps of a budget of tokens, which are found when they are asked for."""

    def __init__(
        self,
        start: int,  # the first row, of each sequence
        # rows of the next steps in each sequence, in the order in which they are read; and of rows
        # that are sorted their window
        parts: Iterator[Part],
        *,
        is_endless: bool,  # whether there is always another part
    ) -> None:
        self.is_endless = is_endless
        # whether an error, such as a KeyboardInterrupt, has ended `parts` too early
        self.is_broken = False
        self._planner: int | None = None  # the thread that finds steps
        self._rows = array("q", [start])
        self._windows: list[Window] = []
        self._parts = parts
        self._lock = RLock()  # native threads read steps ahead, and signal handlers save states

    @property
    def is_busy(self) -> bool:
        """Whether this thread is finding steps, in the middle of which it runs a signal handler."""
        return self._planner == get_ident()

    def count(self) -> int:
        """Count all steps, or those that an endless mixture may have."""
        if self.is_endless:
            return MOST_STEPS
        self._find(lambda: False)
        return len(self._rows) - 1

    def find_row(self, step: int, end: int = MOST_STEPS) -> int:
        """Return the first row of a step, or the end of the last one, or some row from `end` on."""
        if self.is_endless and step >= MOST_STEPS:
            return MOST_STEPS  # a step has a row or more
        self._find(lambda: step < len(self._rows) or self._rows[-1] >= end)
        return self._rows[min(step, len(self._rows) - 1)]

    def find_window(self, number: int) -> Window:
        """Return a window of rows that are sorted."""
        self._find(lambda: number < len(self._windows))
        return self._windows[number]

    def _find(self, is_known: Callable[[], bool]) -> None:
        """Find steps until `is_known`, or all."""
        while not is_known():
            with self._lock:
                if is_known():
                    return
                if self.is_broken:
                    raise RuntimeError("planning the steps was interrupted: iterate again")
                try:
                    self._planner = get_ident()
                    if not self._add_next():
                        return
                except BaseException:
                    self.is_broken = True
                    raise
                finally:
                    self._planner = None

    def _add_next(self) -> bool:
        """Add the steps of the next part; return False at the end."""
        if (part := next(self._parts, None)) is None:
            return False
        sizes, window = part
        if window is not None:
            self._windows.append(window)
        for size in sizes:
            self._rows.append(self._rows[-1] + size)
        return True


class TokenSteps:
    """Steps of a budget of tokens."""

    def __init__(
        self,
        tokens: int,  # of all ranks
        plan: TokenPlan,
        done: int = 0,  # steps that were read
    ) -> None:
        self.tokens = tokens
        self.is_endless = plan.is_endless
        self.find_window = plan.find_window
        self._plan = plan
        self._done = done

    @property
    def is_usable(self) -> bool:
        """Whether its steps can be found, neither broken off nor by this thread already."""
        return not (self._plan.is_broken or self._plan.is_busy)

    @property
    def count(self) -> int:
        return self._plan.count() - self._done

    def find_row(self, step: int, end: int = MOST_STEPS) -> int:
        """As in `Steps`; if it is `end` or more, it may be an earlier step's."""
        return self._plan.find_row(self._done + step, end)

    def skip(self, steps: int) -> TokenSteps:
        """Return what is left after `steps` more.

        Raises ValueError if there are fewer.
        """
        if steps and steps > self.count:
            raise ValueError(
                f"not a state of this Loader: it says that {steps} steps of {self.tokens} tokens "
                f"were read, and the rows are enough for {self.count}"
            )
        return TokenSteps(self.tokens, self._plan, self._done + steps)


def fill_steps(
    # the next rows of each sequence as int64, the tokens of each: as many rows of all. Rows of
    # sequences that end before others have no tokens
    chunks: Iterable[Sequence[pa.Array]],
    max_tokens: int,  # tokens of one sequence in a step; if padded, of its share of the step
    *,
    is_padded: bool,  # whether each row takes as many tokens as the longest of the step
) -> Iterator[int]:
    """Yield how many rows of each sequence a step has: the largest number that fits, at least 1."""
    return (_fill_padded if is_padded else _fill_sums)(chunks, max_tokens)


def _fill_padded(chunks: Iterable[Sequence[pa.Array]], max_tokens: int) -> Iterator[int]:
    import pyarrow.compute as pc

    count = longest = 0
    for chunk in chunks:
        for tokens in _view(pc.max_element_wise(*chunk)):
            longest = max(longest, tokens)
            if count and (count + 1) * longest > max_tokens:
                yield count
                count, longest = 0, tokens
            count += 1
    if count:
        yield count


def _fill_sums(chunks: Iterable[Sequence[pa.Array]], max_tokens: int) -> Iterator[int]:
    import pyarrow.compute as pc

    count = last = 0  # rows of this step in earlier chunks; of the step before
    limits: list[int] = []  # for the sum of all tokens of each sequence up to a row of this step
    before: list[int] = []  # these sums before the chunk
    for chunk in chunks:
        before = before or [0] * len(chunk)
        limits = limits or [max_tokens] * len(chunk)
        sums = [
            _view(pc.cumulative_sum(part, start=start))
            for part, start in zip(chunk, before, strict=True)
        ]
        begin, rows = 0, len(sums[0])
        while True:
            end = min(map(partial(_find_end, begin, 2 * last + 1), sums, limits))
            if end == rows:
                break
            last = count + end - begin
            yield last
            starts = before if end == 0 else [sequence_sums[end - 1] for sequence_sums in sums]
            limits = [start + max_tokens for start in starts]
            begin, count = end, 0
        count += rows - begin
        before = [sequence_sums[-1] for sequence_sums in sums]
    if count:
        yield count


def _find_end(begin: int, near: int, sums: memoryview, limit: int) -> int:
    """Return the first row from `begin` on whose sum is above the limit; it may be near."""
    end = bisect_right(sums, limit, begin, min(begin + near, len(sums)))
    return bisect_right(sums, limit, end) if end == begin + near else end


def _view(tokens: pa.Array) -> memoryview:
    """Return the values of an int64 array without nulls, which are not copied."""
    values = memoryview(tokens.buffers()[1]).cast("q")
    return values[tokens.offset : tokens.offset + len(tokens)]


def find_even_steps(
    rows: int,  # of the epoch
    stages: Sequence[Stage],  # what was read
    sharding: Sharding,  # with `splits`
) -> EvenSteps:
    """Return the steps that are left of an epoch, of one number of rows."""
    assert sharding.splits is not None
    sizes = (stage.batches * stage.sharding.global_batch_size for stage in stages)
    return EvenSteps(rows, sum(size // sharding.splits for size in sizes), sharding)
