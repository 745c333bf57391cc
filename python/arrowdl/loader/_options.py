"""`Options`: the checked options of a `Loader`."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from arrowdl import _core
from arrowdl.loader._columns import ColumnOptions
from arrowdl.loader._stats import Stats
from arrowdl.loader._types import Framework, NullsOption, RaggedOption, Stack

FRAMEWORKS: tuple[str, ...] = get_args(Framework)
MASK = "valid"  # the column that pad_last adds
_FLAGS = ("shuffle", "drop_last", "pad_last", "writable", "pin_memory", "progress")
_MOST_BY_DEFAULT = 8  # sequences of ``splits="auto"``: GPUs of a machine
_MOST_NAMED = 12  # of the numbers that fit, in an error


@dataclass(kw_only=True)
class Options:
    """What a `Loader` was asked for; see there.

    Raises
    ------
    TypeError, ValueError
        An option has a value that is not supported, or contradicts another option.
    NotImplementedError
        `num_workers` on Windows.
    """

    batch_size: int | None
    global_batch_size: int | None = None
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
    nulls: NullsOption
    ragged: RaggedOption
    dtype: Any = None
    pad_value: Any = 0
    max_length: Any = None
    pad_to_multiple: int | None = None
    writable: bool
    stack: Stack | None
    transform: Callable[[Any], Any] | None
    transform_arrow: Callable[[Any], Any] | None = None
    pin_memory: bool
    buffer_size: int
    progress: bool
    num_threads: int = 0
    report_every: float | None = None
    report: Callable[[Stats], Any] | None = None

    def __post_init__(self) -> None:
        self._check_sizes()
        self.prefetch = require_int("prefetch", self.prefetch, 0, 2**40)
        self.num_workers = require_int("num_workers", self.num_workers, 0)
        self.num_threads = require_int("num_threads", self.num_threads, 0, 2**16)
        self._check_report()
        if self.num_workers and sys.platform == "win32":
            raise NotImplementedError(
                f"num_workers={self.num_workers}: worker processes send descriptors of shared "
                "memory over Unix sockets, which Windows does not have: use num_workers=0"
            )
        self.buffer_size = require_int("buffer_size", self.buffer_size, 1, 2**32 - 1)
        self.seed = require_int("seed", self.seed)
        for name in _FLAGS:
            setattr(self, name, require_bool(name, getattr(self, name)))
        self._check_framework()
        self._check_device()
        self._check_threads()
        if self.pad_last and (self.drop_last or self.stack is True):
            raise ValueError(
                "pad_last=True keeps the last batch and adds a column; drop_last=True leaves that "
                "batch out, and stack=True makes one matrix, which has no other column: give up "
                "one of them"
            )
        self._check_rank()
        self.columns: ColumnOptions = ColumnOptions(
            nulls=self.nulls,
            ragged=self.ragged,
            dtype=self.dtype,
            pad_value=self.pad_value,
            max_length=self.max_length,
            pad_to_multiple=self.pad_to_multiple,
        )
        if self.transform_arrow is not None and not callable(self.transform_arrow):
            raise TypeError(
                f"transform_arrow={self.transform_arrow!r}: give a function of one record batch"
            )
        if self.transform is not None and not callable(self.transform):
            raise TypeError(f"transform={self.transform!r}: give a function of one batch")
        self.stack = _read_stack(self.stack)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise ValueError unless a source with columns `names` has what the options name."""
        if self.pad_last:
            check_mask_name(names)
        if self.columns.has_names:
            self.columns.check_names(names, self.stack if isinstance(self.stack, Mapping) else ())
        if not isinstance(self.stack, Mapping):
            return
        stacked = [column for columns in self.stack.values() for column in columns]
        for column in stacked:
            if column not in names:
                raise ValueError(
                    f'stack={self.stack!r}: "{column}" is not one of the columns that are read, '
                    f"{list(names)}"
                )
        for name in self.stack:
            if name in names and name not in stacked:
                raise ValueError(
                    f'stack={self.stack!r}: the batch has a column "{name}" that is not stacked: '
                    "give the matrix another name"
                )

    def _check_threads(self) -> None:
        if self.num_threads and self.num_workers:
            raise ValueError(
                f"num_threads={self.num_threads}, num_workers={self.num_workers}: call transform= "
                "in threads or in worker processes, not in both"
            )
        if self.num_threads and self.find_device() is not None:
            raise ValueError(
                f"num_threads={self.num_threads}, device={self.device!r}: the work of a thread "
                "would not be ordered before that of the training, whose GPU stream it does not "
                "have. "
                "Without device= the threads make batches on the host; copy these in the training"
            )

    def _check_report(self) -> None:
        seconds, report = self.report_every, self.report
        if seconds is not None and not (isinstance(seconds, (int, float)) and seconds > 0):
            raise ValueError(f"report_every={seconds!r}: give seconds, more than 0")
        if report is not None and not callable(report):
            raise TypeError(f"report={report!r}: give a function that takes the Stats")
        if report is not None and seconds is None:
            raise ValueError("report= needs report_every=, the seconds between two reports")

    def _check_sizes(self) -> None:
        if self.batch_size is None and self.global_batch_size is None:
            raise TypeError(
                "give batch_size=, the rows of a batch on this rank, or global_batch_size=, those "
                "on all ranks together"
            )
        if self.batch_size is not None and self.global_batch_size is not None:
            raise ValueError(
                f"batch_size={self.batch_size!r} and global_batch_size={self.global_batch_size!r}: "
                "give the rows of a batch on this rank, or those on all ranks together, not both"
            )
        for name in ("batch_size", "global_batch_size", "splits"):
            value = getattr(self, name)
            if value is not None:
                most = 2**32 if name == "splits" else 2**40
                setattr(self, name, require_int(name, value, 1, most))
        if self.global_batch_size is not None:
            self._check_splits(self.global_batch_size, f"{self.global_batch_size}")

    def find_batch_size(self, world_size: int) -> int:
        """Return the rows of a batch on each of `world_size` ranks.

        Raises
        ------
        ValueError
            `splits` or `global_batch_size` cannot be divided among them.
        """
        size = self.batch_size
        if size is None:
            assert self.global_batch_size is not None
            if self.global_batch_size % world_size:
                raise ValueError(
                    f"global_batch_size={self.global_batch_size} cannot be divided among "
                    f"{world_size} ranks: it can among "
                    f"{_join(_list_divisors(self.global_batch_size, world_size))}. Give a multiple "
                    f"of {world_size}, such as {_round_up(self.global_batch_size, world_size)}"
                )
            size = self.global_batch_size // world_size
        if self.splits is not None and self.splits % world_size:
            fitting = [i * world_size for i in _list_divisors(size, 1)]
            raise ValueError(
                f"splits={self.splits} cannot be divided among {_count_ranks(world_size)}: it can "
                f"among {_join(_list_divisors(self.splits, world_size))}. Give splits="
                f"{_join(fitting)}, or splits=None, with which the rows of a step depend on the "
                "number of ranks"
            )
        if self.batch_size is not None:
            rows = size * world_size
            what = f"{rows} rows (batch_size={size}, {_count_ranks(world_size)})"
            self._check_splits(rows, what)
        return size

    def _check_splits(self, rows: int, what: str) -> None:
        """Raise ValueError unless a global batch of `rows` rows has as many of each sequence."""
        if self.splits is None or rows % self.splits == 0:
            return
        raise ValueError(
            f"splits={self.splits} does not divide a global batch of {what}: each sequence gives "
            f"as many rows to it. Give splits one of {_join(_list_divisors(rows, self.splits))}, "
            f"or a global batch of a multiple of {self.splits} rows, such as "
            f"{_round_up(rows, self.splits)}"
        )

    def _check_framework(self) -> None:
        if self.framework not in FRAMEWORKS:
            expected = ", ".join(FRAMEWORKS)
            raise ValueError(f"framework={self.framework!r}: expected one of {expected}")
        if self.sharding is not None and (self.framework != "jax" or self.device is not None):
            raise ValueError('sharding= needs framework="jax", and replaces device=')
        if self.pin_memory and self.framework != "torch":
            raise ValueError(f'pin_memory=True needs framework="torch", not {self.framework!r}')

    def _check_device(self) -> None:
        if self.device is None:
            return
        try:
            _core.read_device(self.device, self.framework)  # opens no driver
        except (TypeError, ValueError) as error:
            raise type(error)(f"device={self.device!r}: {error}") from None

    def _check_rank(self) -> None:
        if (self.rank is None) != (self.world_size is None):
            raise ValueError("rank and world_size belong together: give both or none")
        if self.rank is None:
            return
        self.world_size = require_int("world_size", self.world_size, 1)
        self.rank = require_int("rank", self.rank, 0)
        if self.rank >= self.world_size:
            raise ValueError(
                f"rank {self.rank} of world_size {self.world_size}: ranks count from 0"
            )
        self.find_batch_size(self.world_size)

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
            return self.transform is not None
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


def choose_splits(splits: Any, global_batch_size: Any) -> int | None:
    """Return the number of sequences that ``splits="auto"`` means; any other value as it is.

    A global batch is to have the same rows on any number of ranks, so its size alone decides.
    """
    if splits != "auto":
        return cast("int | None", splits)
    if global_batch_size is None:
        return None
    size = require_int("global_batch_size", global_batch_size, 1, 2**40)
    return max(i for i in range(1, _MOST_BY_DEFAULT + 1) if size % i == 0)


def require_int(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """`value` as an int; NumPy's integers are accepted.

    Raises
    ------
    ValueError
        `value` is no integer, or is less than `least` or more than `most`.
    """
    limits = "" if least is None else f" of at least {least}"
    limits += "" if most is None else f" and at most {most}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{name}={value!r}: expected an int{limits}")
    number = operator.index(value)
    if (least is not None and number < least) or (most is not None and number > most):
        raise ValueError(f"{name}={value!r}: expected an int{limits}")
    return number


def check_mask_name(names: Sequence[str]) -> None:
    """Raise ValueError if a column has the name of the mask that `pad_last` adds."""
    if MASK in names:
        raise ValueError(
            f'pad_last=True adds a column "{MASK}", and the source has one: rename it, or leave it '
            "out with columns="
        )


def require_bool(name: str, value: Any) -> bool:
    """`value` as a bool; NumPy's bools are accepted.

    Raises
    ------
    TypeError
        `value` is no bool.
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    is_seed = name == "shuffle" and hasattr(value, "__index__")
    advice = f"; the seed of the shuffle is seed={value!r}" if is_seed else ""
    raise TypeError(f"{name}={value!r}: expected True or False{advice}")


def _read_stack(stack: Any) -> bool | dict[str, list[str]]:
    if stack is None or isinstance(stack, bool):
        return bool(stack)
    if not isinstance(stack, Mapping):
        raise TypeError(f'stack={stack!r}: give True, or names and their columns, {{"x": ["a"]}}')
    for name, columns in stack.items():
        if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
            raise TypeError(f"stack={stack!r}: give a list of at least one column as {name!r}")
    return {name: list(columns) for name, columns in stack.items()}
