"""`Steps`: which rows of each sequence each step of an epoch has."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from arrowdl.loader._epoch.sharding import Sharding, count_batches


class Steps(Protocol):
    """The steps that are left of an epoch; each has equally many rows of every sequence.

    Sequences that end a row earlier than others give a row less to the last step.
    """

    @property
    def count(self) -> int:
        """Steps that are left."""

    def find_row(self, step: int) -> int:
        """Return the row of each sequence that `step` begins with; of `count`, the end."""


class EvenSteps:
    """Steps of one number of rows.

    Parameters
    ----------
    rows : int
        Of the epoch.
    done : int
        Rows of each sequence that were read.
    sharding : Sharding
        With `splits`.
    """

    def __init__(self, rows: int, done: int, sharding: Sharding) -> None:
        assert sharding.splits is not None
        self._rows = sharding.global_batch_size // sharding.splits
        self._done = done
        self.count = count_batches(max(0, rows - done * sharding.splits), sharding)

    def find_row(self, step: int) -> int:
        return self._done + step * self._rows


class Window(NamedTuple):
    """How a window of each sequence is sorted by length and cut into batches.

    Attributes
    ----------
    sizes : sequence of int
        Rows of each batch, in ascending order of their lengths.
    draw : sequence of int
        Indices of the batches, in the order in which they are read. If the sequences have
        different numbers of rows, the batch of the longest rows is the last one.
    """

    sizes: Sequence[int]
    draw: Sequence[int]


class TokenSteps:
    """Steps of a budget of tokens.

    Parameters
    ----------
    tokens : int
        Of all ranks.
    rows : array of int
        The first row of each step in each sequence, and the end of the last step.
    windows : sequence of Window
        If the rows are sorted.
    done : int
        Steps that were read.
    """

    def __init__(
        self, tokens: int, rows: array[int], windows: Sequence[Window] = (), done: int = 0
    ) -> None:
        self.tokens = tokens
        self.windows = windows
        self._rows = rows
        self._done = done

    @property
    def count(self) -> int:
        return len(self._rows) - 1 - self._done

    def find_row(self, step: int) -> int:
        return self._rows[min(self._done + step, len(self._rows) - 1)]

    def skip(self, steps: int) -> TokenSteps:
        """Return what is left after `steps` more.

        Raises
        ------
        ValueError
            There are fewer.
        """
        if steps > self.count:
            raise ValueError(
                f"not a state of this Loader: it says that {steps} steps of {self.tokens} tokens "
                f"were read, and the rows are enough for {self.count}"
            )
        return TokenSteps(self.tokens, self._rows, self.windows, self._done + steps)


def fill_steps(sequences: Sequence[Iterable[int]], most: int, *, is_padded: bool) -> Iterator[int]:
    """Yield how many rows of each sequence a step has: the largest number that fits, at least 1.

    Parameters
    ----------
    sequences : sequence of iterable of int
        Tokens of the rows of each sequence; some may have a row less than others.
    most : int
        Tokens of one sequence in a step; if padded, of its share of the step.
    is_padded : bool
        Whether each row takes as many tokens as the longest of the step.
    """
    rows = itertools.zip_longest(*sequences, fillvalue=0)
    return _fill_padded(map(max, rows), most) if is_padded else _fill_sums(rows, most)


def _fill_padded(rows: Iterable[int], most: int) -> Iterator[int]:
    count = longest = 0
    for tokens in rows:
        longest = max(longest, tokens)
        if count and (count + 1) * longest > most:
            yield count
            count, longest = 0, tokens
        count += 1
    if count:
        yield count


def _fill_sums(rows: Iterable[tuple[int, ...]], most: int) -> Iterator[int]:
    count = 0
    sums: Sequence[int] = ()
    for tokens in rows:
        with_row = [a + b for a, b in zip(sums, tokens, strict=True)] if count else tokens
        if count and max(with_row) > most:
            yield count
            count, with_row = 0, tokens
        sums = with_row
        count += 1
    if count:
        yield count
