"""`Options`: the checked options of a `Loader`, and their combinations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from arrowdl import _core
from arrowdl.loader._checks import require_bool, require_int
from arrowdl.loader._options.functions import Functions
from arrowdl.loader._options.sizes import BatchSizes
from arrowdl.loader._options.target import Target
from arrowdl.loader._progress import check_bar
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._skipped import check_number_name
from arrowdl.loader._stats import Stats

MASK = "valid"  # the column that pad_last adds
_CPU = 1  # of DLDeviceType
_BUCKET_ROWS = 65_536  # of ``buffer_size="auto"``, at most


@dataclass(kw_only=True)
class Options:
    """What a `Loader` was asked for: its flat options, and the fields of its value objects.

    Raises TypeError or ValueError if an option has a value that is not supported, or contradicts
    another option; NotImplementedError for `num_workers` on Windows.
    """

    sizes: BatchSizes
    target: Target
    functions: Functions
    shuffle: bool
    seed: int
    drop_last: bool
    rank: int | None
    world_size: int | None
    prefetch: int
    num_workers: int
    pad_last: bool
    columns: _core.ColumnOptions
    buffer_size: int | Literal["auto"]
    progress: bool
    num_threads: int = 0
    report_every: float | None = None
    report: Callable[[Stats], Any] | None = None
    pack: Pack | None = None
    on_error: str = "raise"
    max_skipped_rows: int | None = None
    storage: Storage = field(default_factory=Storage)
    dtype: Any = None  # of `columns`, as it was given
    bucket_rows: int | None = None  # of the windows of `bucket_by`; by default the buffer's

    def __post_init__(self) -> None:
        self._check_work()
        self.drop_last = require_bool("drop_last", self.drop_last)
        self.pad_last = require_bool("pad_last", self.pad_last)
        self._check_padding()
        self._check_sharding()
        if self.progress:
            check_bar()
        if self.world_size is not None:
            self.sizes.find_batch_size(self.world_size)
        self._check_pack()

    def _check_work(self) -> None:
        self.prefetch = require_int("prefetch", self.prefetch, 0, 2**40)
        self.num_workers = require_int("num_workers", self.num_workers, 0)
        self.num_threads = require_int("num_threads", self.num_threads, 0, 2**16)
        if self.num_workers and sys.platform == "win32":
            raise NotImplementedError(
                f"num_workers={self.num_workers}: worker processes send descriptors of shared "
                "memory over Unix sockets, which Windows does not have: use num_workers=0"
            )
        if self.num_threads and self.num_workers:
            raise ValueError(
                f"num_threads={self.num_threads}, num_workers={self.num_workers}: call transform= "
                "in threads or in worker processes, not in both"
            )
        device = self.target.find_device() if self.num_threads else None
        if device is not None and device.type != _CPU:
            raise ValueError(
                f"num_threads={self.num_threads}, device={self.target.device!r}: a thread "
                "does not have the GPU stream of the training, which would not wait for its work. "
                "Leave device= out: the threads make batches on the host, and the training copies "
                "them"
            )

    def _check_padding(self) -> None:
        if not self.pad_last:
            return
        if self.sizes.counts_tokens:
            raise ValueError(
                f"{self.sizes.name_plan()}: pad_last=True pads to a number of rows, but "
                "batches with a budget of tokens have different numbers. Leave pad_last= out: "
                "valid_rows says which rows belong to this rank"
            )
        if self.drop_last or self.columns.is_matrix:
            raise ValueError(
                "pad_last=True keeps the last batch and adds a column; drop_last=True leaves that "
                "batch out, and stack=True makes one matrix, which has no other column: give up "
                "one of them"
            )

    def _check_sharding(self) -> None:
        if self.target.sharding is None or self.pad_last:
            return
        if not self.skips and not self.functions.filters:
            return
        what = "on_error='skip'" if self.skips else "filter()"
        raise ValueError(
            "device= is a sharding, which makes global arrays: all processes must give the same "
            f"number of rows of each batch, but {what} drops rows of some: give pad_last=True"
        )

    def _check_pack(self) -> None:
        if self.pack is None:
            return
        if self.columns.stacks:
            raise ValueError(
                "stack= joins columns of one value for each row, and the rows of "
                "batching=Pack(...) are blocks of many: leave stack= out"
            )
        if self.sizes.is_planned:
            raise ValueError(
                f"batching=Pack(...) and {self.sizes.name_plan()}: blocks have one length, so "
                "there is nothing to sort or to count. Give batch_size= or "
                "Ranks.global_batch_size, a number of blocks"
            )

    def with_buffer(self, rows: int) -> Options:
        """Return the options with a buffer of `rows` rows, which "auto" means."""
        return replace(self, buffer_size=rows, bucket_rows=min(rows, _BUCKET_ROWS))

    def count_shuffled_rows(self, total: int) -> int:
        """Count the rows, of `total`, that are permuted together.

        With `pack`, sequences divide a buffer that does not hold all rows.
        """
        if self.pack is None or self.sizes.splits is None or self.buffer_rows >= total:
            return self.buffer_rows
        return -(-self.buffer_rows // self.sizes.splits)

    @property
    def buffer_rows(self) -> int:
        """Rows of the buffer; 0 if the first rows of a stream decide, or if nothing is buffered."""
        return 0 if self.buffer_size == "auto" else self.buffer_size

    @property
    def skips(self) -> bool:
        """Whether rows that fail are skipped."""
        return self.on_error == "skip"

    @property
    def in_use(self) -> frozenset[str]:
        """The options that `Stats.advice` asks for."""
        options = {
            "transform": bool(self.functions.steps),
            "transform_arrow": self.functions.transform_arrow is not None,
            "num_workers": self.num_workers > 0,
            "num_threads": self.num_threads > 0,
            "prefetch": self.prefetch > 0 or self.num_workers > 0,
            "shuffle": self.shuffle,
            "ragged": not self.columns.is_jagged or self.target.framework != "torch",
            "cache": self.storage.cache is not None,
        }
        return frozenset({name for name, is_used in options.items() if is_used})

    @property
    def exposes_writable_tensors(self) -> bool:
        """Whether the user, or a function of the user, gets tensors that can be written to."""
        return self.target.exposes_writable_tensors(calls_functions=bool(self.functions.steps))

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise ValueError unless a source with columns `names` has what the options name."""
        if self.pad_last:
            check_mask_name(names)
        if self.skips:
            check_number_name(names)
        self.columns.check_names(names)

    def check_even(self, rows: int | None, world_size: int) -> None:
        """Raise ValueError if ranks may have other numbers of rows in a global array of JAX."""
        # `rows` are left of the epoch; None if their number is unknown.
        is_even = self.target.sharding is None or world_size == 1 or self.pad_last or self.drop_last
        size = self.sizes.find_batch_size(world_size) * world_size
        if is_even or (rows is not None and size and rows % size == 0):
            return
        raise ValueError(
            "device= is a sharding, which makes global arrays: all processes must give the same "
            "number of rows of each batch, but in the last step of an epoch some may have fewer: "
            "give pad_last=True or drop_last=True"
        )

    def fills(self, names: Sequence[str]) -> bool:
        """Whether nulls of columns may become zero or NaN when they are decoded."""
        # They stay where more than the conversion reads them, or reads them otherwise.
        if self.functions.transform_arrow is not None or self.columns.casts or self.skips:
            return False
        return self.columns.fills(names)


def check_mask_name(names: Sequence[str]) -> None:
    """Raise ValueError if a column has the name of the mask that `pad_last` adds."""
    if MASK in names:
        raise ValueError(
            f'pad_last=True adds a column "{MASK}", and the source has one: rename it, or leave it '
            "out with columns="
        )
