"""`BatchSizes`: how many rows or tokens a batch has, on one rank and on all together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from arrowdl.loader._checks import require_int

_SIZES = {
    "batch_size": "batch_size={}",
    "batch_tokens": "batch_size=Tokens({})",
    "global_batch_size": "ranks=Ranks(global_batch_size={})",
    "global_batch_tokens": "ranks=Ranks(global_batch_size=Tokens({}))",
}
_MOST_BY_DEFAULT = 8  # sequences of ``splits="auto"``: GPUs of a machine
_MOST_NAMED = 12  # of the numbers that fit, in an error


@dataclass(kw_only=True)
class BatchSizes:
    """The size of batches, which a user gives in one of several ways, and the number of sequences.

    Raises TypeError or ValueError if a size is not supported, or contradicts another one.
    """

    batch_size: int | None = None  # the rows of a batch on each rank
    batch_tokens: int | None = None  # its tokens
    global_batch_size: int | None = None  # the rows of a step on all ranks together
    global_batch_tokens: int | None = None  # its tokens
    token_column: str | None = None  # of `Tokens`
    bucket_by: str | None = None  # rows are sorted by the lengths of this column
    splits: int | None = None  # sequences of an epoch; None: one for each rank

    def __post_init__(self) -> None:
        sizes = [name for name in _SIZES if getattr(self, name) is not None]
        if not sizes:
            raise TypeError(
                "give batch_size=, the rows of a batch on this rank, or batch_size=Tokens(...), "
                "its tokens, or ranks=Ranks(global_batch_size=...), those on all ranks together"
            )
        if len(sizes) > 1:
            raise ValueError(
                f"{' and '.join(map(self._show_size, sizes))}: give one of them, the rows or "
                "tokens of a batch on this rank, or those on all ranks together"
            )
        if self.batch_size is not None:
            self.batch_size = require_int("batch_size", self.batch_size, 1, 2**40)
        if self.global_batch_size is not None:
            self._check_splits(self.global_batch_size, f"{self.global_batch_size}")
        if self.bucket_by is None or self.token_column in (None, self.bucket_by):
            return
        raise ValueError(
            f'Tokens(column="{self.token_column}"), Buckets("{self.bucket_by}"): rows are counted '
            "and sorted by the same column, name it once"
        )

    @property
    def counts_tokens(self) -> bool:
        """Whether a budget of tokens bounds batches."""
        return self.batch_tokens is not None or self.global_batch_tokens is not None

    @property
    def is_planned(self) -> bool:
        """Whether the rows of a step depend on the lengths of rows."""
        return self.counts_tokens or self.bucket_by is not None

    def name_plan(self) -> str:
        """Return the option that needs lengths, for errors."""
        for name in ("batch_tokens", "global_batch_tokens"):
            if getattr(self, name) is not None:
                return self._show_size(name)
        return f'batching=Buckets("{self.bucket_by}")'

    def describe(self) -> str:
        """Return what a batch has, for people."""
        size, budget = self.batch_size, self.batch_tokens
        text = f"batches of {size}" if size else f"global batches of {self.global_batch_size}"
        if self.counts_tokens:
            whole = f"global batches of {self.global_batch_tokens} tokens"
            text = f"batches of {budget} tokens" if budget else whole
        if self.bucket_by is not None:
            text = f'{text}, bucketed by "{self.bucket_by}",'
        return text if self.splits is None else f"{text} from {self.splits} sequences"

    def find_splits(self, world_size: int) -> int | None:
        """Return the number of sequences of an epoch; None for the parts of ranks."""
        return world_size if self.splits is None and self.is_planned else self.splits

    def find_tokens(self, world_size: int) -> int | None:
        """Return the budget of `world_size` ranks together; None for batches of rows."""
        return self.global_batch_tokens or (self.batch_tokens and self.batch_tokens * world_size)

    def find_batch_size(self, world_size: int) -> int:
        """Return the rows of a batch on each of `world_size` ranks; 0 with a budget of tokens.

        Raises ValueError if `splits` or `global_batch_size` cannot be divided among them.
        """
        if self.counts_tokens:
            self._check_ranks(world_size)
            return 0
        size = self.batch_size
        if size is None:
            assert self.global_batch_size is not None
            if self.global_batch_size % world_size:
                raise ValueError(
                    f"Ranks.global_batch_size={self.global_batch_size} cannot be divided among "
                    f"{world_size} ranks, only among "
                    f"{_join(_list_divisors(self.global_batch_size, world_size))}. Give a multiple "
                    f"of {world_size}, such as {_round_up(self.global_batch_size, world_size)}"
                )
            size = self.global_batch_size // world_size
        if self.splits is not None and self.splits % world_size:
            fitting = [i * world_size for i in _list_divisors(size, 1)]
            raise ValueError(
                f"{self._name_uneven_splits(world_size)} Give Ranks.splits={_join(fitting)}, the "
                "same in all runs that load each other's states. Without sequences "
                "(Ranks.splits=None, which a mixture does not take), the rows of a step depend on "
                "the number of ranks"
            )
        if self.batch_size is not None:
            rows = size * world_size
            what = f"{rows} rows (batch_size={size}, {_count_ranks(world_size)})"
            self._check_splits(rows, what)
        return size

    def _check_ranks(self, world_size: int) -> None:
        if self.splits is not None and self.splits % world_size:
            raise ValueError(
                f"{self._name_uneven_splits(world_size)} Give Ranks.splits a multiple of "
                f"{world_size}, such as {_round_up(self.splits, world_size)}, the same in all runs "
                "that load each other's states"
            )

    def _name_uneven_splits(self, world_size: int) -> str:
        """Say among how many ranks the sequences can be divided."""
        assert self.splits is not None
        sizes = self.global_batch_size, self.global_batch_tokens
        is_default = self.splits == choose_splits("auto", *sizes)
        default = " (the default)" if is_default else ""
        return (
            f"Ranks.splits={self.splits}{default} cannot be divided among "
            f"{_count_ranks(world_size)}, only among "
            f"{_join(_list_divisors(self.splits, world_size))}."
        )

    def _check_splits(self, rows: int, what: str) -> None:
        """Raise ValueError unless a global batch of `rows` rows has as many of each sequence."""
        if self.splits is None or rows % self.splits == 0:
            return
        raise ValueError(
            f"Ranks.splits={self.splits} does not divide a global batch of {what}: it takes the "
            "same number of rows from each sequence. Give Ranks.splits="
            f"{_join(_list_divisors(rows, self.splits))}, or a global batch of a multiple of "
            f"{self.splits} rows, such as {_round_up(rows, self.splits)}"
        )

    def _show_size(self, name: str) -> str:
        """Return a size as it was given."""
        return _SIZES[name].format(repr(getattr(self, name)))


def _list_divisors(number: int, near: int) -> list[int]:
    """List the divisors of `number`: if they are many, those whose size is nearest to `near`."""
    small = [i for i in range(1, math.isqrt(number) + 1) if number % i == 0]
    divisors = {*small, *(number // i for i in small)}
    nearest = sorted(divisors, key=lambda i: max(i / near, near / i))
    return sorted(nearest[:_MOST_NAMED])


def _count_ranks(world_size: int) -> str:
    return f"{world_size} rank{'' if world_size == 1 else 's'}"


def _join(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last


def _round_up(number: int, factor: int) -> int:
    return -(-number // factor) * factor


def choose_splits(
    splits: int | str | None, global_batch_size: int | None, global_batch_tokens: int | None = None
) -> int | None:
    """Return the number of sequences that ``splits="auto"`` means; any other value as it is.

    A global batch is to have the same rows on any number of ranks, so its size alone decides: the
    divisor that can be divided among the most numbers of ranks, 6 of 12 and 4, not 5, of 20.
    """
    if not isinstance(splits, str):
        return splits
    size = global_batch_size or global_batch_tokens
    if size is None:
        return None
    numbers = range(1, _MOST_BY_DEFAULT + 1)
    divisors = [number for number in numbers if size % number == 0]
    return max(
        divisors,
        key=lambda divisor: (sum(divisor % i == 0 for i in numbers), divisor % 2 == 0, divisor),
    )
