"""`Options`: the checked options of a `Loader`."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from arrowdl import _core
from arrowdl.loader._checks import require_bool, require_int
from arrowdl.loader._progress import check_bar
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._skipped import check_number_name
from arrowdl.loader._stats import Stats
from arrowdl.loader._types import Framework

FRAMEWORKS: tuple[str, ...] = get_args(Framework)
MASK = "valid"  # the column that pad_last adds
_CPU = 1  # of DLDeviceType
_FLAGS = (
    "drop_last",
    "pad_last",
    "writable",
)
_SIZES = {
    "batch_size": "batch_size={}",
    "batch_tokens": "batch_size=Tokens({})",
    "global_batch_size": "ranks=Ranks(global_batch_size={})",
    "global_batch_tokens": "ranks=Ranks(global_batch_size=Tokens({}))",
}
_MOST_BY_DEFAULT = 8  # sequences of ``splits="auto"``: GPUs of a machine
_BUCKET_ROWS = 65_536  # of ``buffer_size="auto"``, at most
_MOST_NAMED = 12  # of the numbers that fit, in an error


@dataclass(frozen=True)
class Step:
    """A function of `Loader.map` or `Loader.filter`."""

    function: Callable[[Any], Any]
    is_filter: bool


@dataclass(kw_only=True)
class Options:
    """What a `Loader` was asked for: its flat options, and the fields of its value objects.

    Raises
    ------
    TypeError, ValueError
        An option has a value that is not supported, or contradicts another option.
    NotImplementedError
        `num_workers` on Windows.
    """

    batch_size: int | None
    global_batch_size: int | None = None
    batch_tokens: int | None = None
    global_batch_tokens: int | None = None
    token_column: str | None = None
    bucket_by: str | None = None
    splits: int | None = None
    framework: Framework
    device: Any
    shuffle: bool
    seed: int
    drop_last: bool
    rank: int | None
    world_size: int | None
    prefetch: int
    num_workers: int
    pad_last: bool
    sharding: Any
    columns: _core.ColumnOptions
    writable: bool
    transform: Callable[[Any], Any] | None
    transform_arrow: Callable[[Any], Any] | None = None
    pin_memory: bool
    buffer_size: int | Literal["auto"]
    progress: bool
    num_threads: int = 0
    report_every: float | None = None
    report: Callable[[Stats], Any] | None = None
    pack: Pack | None = None
    on_error: str = "raise"
    max_skipped_rows: int | None = None
    cache: str | os.PathLike[str] | None = None
    seed_transforms: bool = True
    chain: tuple[Step, ...] = ()
    bucket_rows: int | None = None  # of the windows of `bucket_by`; by default the buffer's

    def __post_init__(self) -> None:
        self._check_sizes()
        self.prefetch = require_int("prefetch", self.prefetch, 0, 2**40)
        self.num_workers = require_int("num_workers", self.num_workers, 0)
        self.num_threads = require_int("num_threads", self.num_threads, 0, 2**16)
        if self.num_workers and sys.platform == "win32":
            raise NotImplementedError(
                f"num_workers={self.num_workers}: worker processes send descriptors of shared "
                "memory over Unix sockets, which Windows does not have: use num_workers=0"
            )
        for name in _FLAGS:
            setattr(self, name, require_bool(name, getattr(self, name)))
        self._check_plan()
        self._check_framework()
        self._check_device()
        self._check_threads()
        if self.progress:
            check_bar()
        if self.pad_last and (self.drop_last or self.columns.is_matrix):
            raise ValueError(
                "pad_last=True keeps the last batch and adds a column; drop_last=True leaves that "
                "batch out, and stack=True makes one matrix, which has no other column: give up "
                "one of them"
            )
        self._check_rank()
        if self.transform_arrow is not None and not callable(self.transform_arrow):
            raise TypeError(
                f"transform_arrow={self.transform_arrow!r}: give a function of one record batch"
            )
        if self.transform is not None and not callable(self.transform):
            raise TypeError(f"transform={self.transform!r}: give a function of one batch")
        self._check_pack()

    def with_buffer(self, rows: int) -> Options:
        """Return the options with a buffer of `rows` rows, which "auto" means."""
        return replace(self, buffer_size=rows, bucket_rows=min(rows, _BUCKET_ROWS))

    def count_shuffled_rows(self, total: int) -> int:
        """Count the rows, of `total`, that are permuted together.

        With `pack`, sequences divide a buffer that does not hold all rows.
        """
        if self.pack is None or self.splits is None or self.buffer_rows >= total:
            return self.buffer_rows
        return -(-self.buffer_rows // self.splits)

    @property
    def buffer_rows(self) -> int:
        """Rows of the buffer; 0 if the first rows of a stream decide, or if nothing is buffered."""
        return 0 if self.buffer_size == "auto" else self.buffer_size

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise ValueError unless a source with columns `names` has what the options name."""
        if self.pad_last:
            check_mask_name(names)
        if self.skips:
            check_number_name(names)
        self.columns.check_names(names)

    def _check_threads(self) -> None:
        if self.num_threads and self.num_workers:
            raise ValueError(
                f"num_threads={self.num_threads}, num_workers={self.num_workers}: call transform= "
                "in threads or in worker processes, not in both"
            )
        device = self.find_device() if self.num_threads else None
        if device is not None and device.type != _CPU:
            raise ValueError(
                f"num_threads={self.num_threads}, device={self.device!r}: the work of a thread "
                "would not be ordered before that of the training, whose GPU stream it does not "
                "have. "
                "Without device= the threads make batches on the host; copy these in the training"
            )

    def _check_pack(self) -> None:
        if self.pack is None:
            return
        if self.columns.stacks:
            raise ValueError(
                "stack= joins columns of one value for each row, and the rows of "
                "batching=Pack(...) are blocks of many: leave stack= out"
            )
        if self.is_planned:
            raise ValueError(
                f"batching=Pack(...) and {self.name_plan()}: blocks have one length, so there is "
                "nothing to sort or to count. Give batch_size= or Ranks.global_batch_size, a "
                "number of blocks"
            )

    @property
    def skips(self) -> bool:
        """Whether rows that fail are skipped."""
        return self.on_error == "skip"

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is called with each batch: `transform`, and then the functions of the chain."""
        first = () if self.transform is None else (Step(self.transform, False),)
        return (*first, *self.chain)

    @property
    def in_use(self) -> frozenset[str]:
        """The options that `Stats.advice` asks for."""
        given = {
            "transform": bool(self.steps),
            "transform_arrow": self.transform_arrow is not None,
            "num_workers": self.num_workers > 0,
            "num_threads": self.num_threads > 0,
            "prefetch": self.prefetch > 0 or self.num_workers > 0,
            "shuffle": self.shuffle,
            "ragged": not self.columns.is_jagged or self.framework != "torch",
            "cache": self.cache is not None,
        }
        return frozenset(name for name, is_given in given.items() if is_given)

    @property
    def filters(self) -> bool:
        """Whether a step drops rows."""
        return any(step.is_filter for step in self.chain)

    @property
    def maps_kept(self) -> bool:
        """Whether a `map` follows a `filter`."""
        kinds = [step.is_filter for step in self.chain]
        return True in kinds and False in kinds[kinds.index(True) :]

    def _check_sizes(self) -> None:
        given = [name for name in _SIZES if getattr(self, name) is not None]
        if not given:
            raise TypeError(
                "give batch_size=, the rows of a batch on this rank, or batch_size=Tokens(...), "
                "its tokens, or ranks=Ranks(global_batch_size=...), those on all ranks together"
            )
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(map(self._show_size, given))}: give one of them, the rows or "
                "tokens of a batch on this rank, or those on all ranks together"
            )
        if self.batch_size is not None:
            self.batch_size = require_int("batch_size", self.batch_size, 1, 2**40)
        if self.global_batch_size is not None:
            self._check_splits(self.global_batch_size, f"{self.global_batch_size}")
        if self.counts_tokens and self.pad_last:
            raise ValueError(
                f"{self._show_size(given[0])}: pad_last=True pads to a number of rows, which "
                "batches of a budget of tokens do not have. valid_rows says which rows are of this "
                "rank"
            )

    def _show_size(self, name: str) -> str:
        """Return a size as it was given."""
        return _SIZES[name].format(repr(getattr(self, name)))

    def _check_plan(self) -> None:
        if self.bucket_by is None or self.token_column in (None, self.bucket_by):
            return
        raise ValueError(
            f'Tokens(column="{self.token_column}"), Buckets("{self.bucket_by}"): rows are counted '
            "and sorted by one column, name it once"
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

    def describe_batches(self) -> str:
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

        Raises
        ------
        ValueError
            `splits` or `global_batch_size` cannot be divided among them.
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
                    f"{world_size} ranks: it can among "
                    f"{_join(_list_divisors(self.global_batch_size, world_size))}. Give a multiple "
                    f"of {world_size}, such as {_round_up(self.global_batch_size, world_size)}"
                )
            size = self.global_batch_size // world_size
        if self.splits is not None and self.splits % world_size:
            fitting = [i * world_size for i in _list_divisors(size, 1)]
            raise ValueError(
                f"{self._name_uneven_splits(world_size)} Give Ranks.splits={_join(fitting)}, the "
                "same to all runs that go on with each other's states. Without sequences "
                "(Ranks.splits=None, but not in a mixture) the rows of a step depend on the number "
                "of ranks"
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
                f"{world_size}, such as {_round_up(self.splits, world_size)}, the same to all runs "
                "that go on with each other's states"
            )

    def _name_uneven_splits(self, world_size: int) -> str:
        """Say among how many ranks the sequences can be divided."""
        assert self.splits is not None
        sizes = self.global_batch_size, self.global_batch_tokens
        is_default = self.splits == choose_splits("auto", *sizes)
        default = ", which it is unless you give it," if is_default else ""
        return (
            f"Ranks.splits={self.splits}{default} cannot be divided among "
            f"{_count_ranks(world_size)}: it can among "
            f"{_join(_list_divisors(self.splits, world_size))}."
        )

    def _check_splits(self, rows: int, what: str) -> None:
        """Raise ValueError unless a global batch of `rows` rows has as many of each sequence."""
        if self.splits is None or rows % self.splits == 0:
            return
        raise ValueError(
            f"Ranks.splits={self.splits} does not divide a global batch of {what}: each sequence "
            "gives as many rows to it. Give Ranks.splits one of "
            f"{_join(_list_divisors(rows, self.splits))}, or a global batch of a multiple of "
            f"{self.splits} rows, such as {_round_up(rows, self.splits)}"
        )

    def _check_framework(self) -> None:
        if self.framework not in FRAMEWORKS:
            expected = ", ".join(FRAMEWORKS)
            raise ValueError(f"framework={self.framework!r}: expected one of {expected}")
        if self.sharding is not None and self.framework != "jax":
            raise ValueError(
                f'device={self.sharding!r} needs framework="jax", not {self.framework!r}'
            )
        if self.sharding is not None and not self.pad_last and (self.skips or self.filters):
            what = "on_error='skip'" if self.skips else "filter()"
            raise ValueError(
                "device= is a sharding, which makes global arrays: all processes give as many rows "
                f"of each batch, and {what} drops rows of some: give pad_last=True"
            )

    def check_even(self, rows: int | None, world_size: int) -> None:
        """Raise ValueError if ranks may have other numbers of rows in a global array of JAX.

        Parameters
        ----------
        rows : int, optional
            That are left of the epoch; None if they are unknown.
        world_size : int
        """
        is_even = self.sharding is None or world_size == 1 or self.pad_last or self.drop_last
        size = self.find_batch_size(world_size) * world_size
        if is_even or (rows is not None and size and rows % size == 0):
            return
        raise ValueError(
            "device= is a sharding, which makes global arrays: all processes give as many rows of "
            "each batch, and in the last step of an epoch some may have fewer: give pad_last=True "
            "or drop_last=True"
        )

    def _check_device(self) -> None:
        if self.device is None:
            return
        try:
            _core.read_device(self.device, self.framework)  # opens no driver
        except (TypeError, ValueError) as error:
            raise type(error)(f"device={self.device!r}: {error}") from None

    def _check_rank(self) -> None:
        if self.world_size is not None:
            self.find_batch_size(self.world_size)

    def fills(self, names: Sequence[str]) -> bool:
        """Whether nulls of columns may become zero or NaN when they are decoded.

        They stay where more than the conversion reads them, or reads them otherwise.
        """
        if self.transform_arrow is not None or self.columns.casts or self.skips:
            return False
        return self.columns.fills(names)

    def find_device(self) -> _core.Device | None:
        """Return the device of the batches.

        A name without an index is the current device of the calling thread, so the thread that
        iterates calls this, not one that copies ahead.
        """
        if self.device is None:
            return None
        return _core.read_device(self.device, self.framework)

    @property
    def tensor_framework(self) -> str:
        """The framework whose tensors the batches are made of, before `sharding` is applied."""
        return self.framework if self.sharding is None else "numpy"

    @property
    def exposes_writable_tensors(self) -> bool:
        """Whether the user gets tensors that can be written to; JAX's cannot."""
        if not self.writable:
            return False
        if self.sharding is not None:
            return bool(self.steps)
        return self.framework != "jax"


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
    return max(divisors, key=lambda own: (sum(own % i == 0 for i in numbers), own % 2 == 0, own))


def check_mask_name(names: Sequence[str]) -> None:
    """Raise ValueError if a column has the name of the mask that `pad_last` adds."""
    if MASK in names:
        raise ValueError(
            f'pad_last=True adds a column "{MASK}", and the source has one: rename it, or leave it '
            "out with columns="
        )
