"""`Epochs`: which rows the epochs of a source have, and how a share of one is read.

A class for each kind of source: `StreamEpochs` here, `IndexedEpochs`, `MixedEpochs`. `PackedEpochs`
has the blocks of packed rows in the place of the rows of one of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Generic, Self, TypeVar

from arrowdl import _core
from arrowdl.loader._epoch.blocks import StreamBlocks
from arrowdl.loader._epoch.plan import StepPlan
from arrowdl.loader._epoch.read import FindParts, Order, Reader, read_stream
from arrowdl.loader._epoch.sharding import Sharding
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._options.options import Options
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._skip.numbered_stream import NumberedStream
from arrowdl.loader._skip.numbers import Numbered
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._sources.base import IndexedSource, Source, count_member_rows
from arrowdl.loader._sources.row_bytes import count_lanes
from arrowdl.loader._sources.stream import StreamSource

FindSharding = Callable[[], Sharding]
_TORCH_ADVICE = "DataLoader(loader.torch_dataset(), batch_size=None)"


S = TypeVar("S", bound=Source)


class Epochs(ABC, Generic[S]):
    """The epochs of a source."""

    joins_rows = False  # whether an epoch always reads rows into new memory

    def __init__(self, source: S, options: Options) -> None:
        self.source = source  # its own rows, whatever an epoch makes of them
        self.options = options
        self.order: Order = Order(options.seed, None)
        if options.shuffle:
            rows = options.buffer_rows
            self.order = Order(options.seed, rows, count_lanes(source.measure_held(), rows))
        self.plan: StepPlan | None = None  # if the steps depend on the lengths of the rows

    def with_options(
        self,
        options: Options,  # which give each step the same rows
    ) -> Self:
        """Return the same epochs, whose lengths are not read again."""
        changed = copy(self)
        changed.options = options
        changed.plan = copy(self.plan)  # without the steps that were planned
        return changed

    def prepare(self) -> None:
        """Find what each worker process would find again; called before they are made."""
        self.source.prepare()

    def list_lost(self) -> list[Skipped]:
        """Name the rows that are in no step, since their lengths cannot be read."""
        return []

    def make_sharding(self, world_size: int, num_workers: int) -> Sharding:
        """Return how the rows are divided among ranks and workers."""
        options = self.options
        size = options.sizes.find_batch_size(world_size)
        splits, tokens = (
            options.sizes.find_splits(world_size),
            options.sizes.find_tokens(world_size),
        )
        return Sharding(world_size, num_workers, size, options.drop_last, splits, tokens)

    def begin(
        self,
        position: Position,  # of the reader
        find_sharding: FindSharding,  # returns how rows are divided, whatever the number of workers
        *,
        # whether other readers, which go on from states of their own, have to settle the same
        is_shared: bool,
    ) -> None:
        """Settle what an epoch decides on when a reader begins with it."""
        return

    def open(self, position: Position) -> S:
        """Return the rows that the ranks share in the epoch of a position."""
        return self.source

    @abstractmethod
    def number(
        self,
        rows: S,
        # of each source; by default those that the lengths of the rows have shown
        faults: Sequence[Faults] = (),
    ) -> tuple[S, Numbered]:
        """Return the rows of an epoch with numbers, and what these mean."""

    @abstractmethod
    def read(
        self,
        rows: S,  # of `open`, as they are or wrapped
        reader: Reader,
        *,
        reads_ahead: bool,  # whether a native thread joins the rows of the next batches
    ) -> tuple[_core.DeviceStream, FindParts | None]:
        """Read the remaining batches of one worker, an array for each batch.

        Returns also what counts the parts of a batch, by its index and its rows, if it has several.

        Raises OSError if a file has changed since the source was opened.
        """

    def copies_rows(self, sharding: Sharding) -> bool:
        """Whether `read` puts rows that are in memory into new memory."""
        return False

    def is_ready(
        self,
        *,
        is_gathered: bool,  # whether rows are copied into new memory
    ) -> bool:
        """Whether rows come fast enough without a thread that reads ahead."""
        return False

    def limit_pass(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        """Return the rows of an epoch, or of one pass over the sources of one without end."""
        return stream

    def count_batches(self, position: Position) -> int | None:
        """Count the batches of each rank in the present stage; None if unknown or not begun."""
        return None

    def count_epoch(self, epoch: int, find_sharding: FindSharding) -> int:
        """Count the batches of each rank in a whole epoch.

        Raises TypeError if the number of rows is unknown, or the epoch has no end.
        """
        raise TypeError(
            "a Loader over a stream has no length: its number of rows is unknown. PyTorch's "
            f"DataLoader needs none: {_TORCH_ADVICE}"
        )

    def count_pass(self, position: Position) -> int | None:
        """Count the rows, or blocks, of one pass over the sources; None if that is not known."""
        return count_member_rows(self.source)

    def count_passes(self, position: Position, sharding: Sharding) -> int:
        """Count the passes over the sources that an epoch without end has made; 0 for others."""
        return 0

    def describe_steps(self, find_sharding: FindSharding) -> dict[str, Any]:
        """Return the items of a state that decide on the rows of each step."""
        return {} if self.options.sizes.splits is None else {"splits": self.options.sizes.splits}

    def describe_position(self, position: Position, find_sharding: FindSharding) -> dict[str, Any]:
        """Return the items of a state that say where the epoch is."""
        return position.to_state()

    def check_position(self, position: Position, find_sharding: FindSharding) -> None:
        """Raise ValueError if no Loader of these rows can have come to a position."""
        return

    @abstractmethod
    def open_blocks(
        self,
        order: Order,  # of the rows
        # the length of each row, or the mixture of these; None of a stream
        lengths: IndexedSource | None,
        pack: Pack,
        epoch: int,
    ) -> Any:
        """Return the packed blocks of an epoch."""


class StreamEpochs(Epochs[StreamSource]):
    """Each epoch reads the stream from its start."""

    def __init__(self, source: StreamSource, options: Options) -> None:
        super().__init__(source, options)
        if options.sizes.is_planned:
            raise TypeError(
                f"{options.sizes.name_plan()} needs the lengths of rows before they are read, and "
                "this source is a stream, which is read from its start: give the Loader a table of "
                "its rows (pyarrow.table(stream)), or write them to Parquet or Arrow IPC files"
            )

    def number(
        self, rows: StreamSource, faults: Sequence[Faults] = ()
    ) -> tuple[StreamSource, Numbered]:
        numbered = NumberedStream(rows)
        return numbered, numbered

    def read(
        self, rows: StreamSource, reader: Reader, *, reads_ahead: bool
    ) -> tuple[_core.DeviceStream, FindParts | None]:
        return read_stream(rows, self.order, reader)

    def open_blocks(
        self, order: Order, lengths: IndexedSource | None, pack: Pack, epoch: int
    ) -> Any:
        return StreamBlocks(self.source, order, pack)


def check_read(epochs: Epochs[Any]) -> None:
    """Raise OSError if a file has changed while an epoch was read."""
    for _, source in epochs.source.list_members():
        # With skipping, what decodes units is checked where it is read.
        if not (epochs.options.skips and source.decodes_units):
            source.check_read()


def check_has_end(source: Source) -> None:
    """Raise TypeError if an epoch has no end, and so no length."""
    if source.is_endless:
        raise TypeError('a mixture of stop="repeat" has no length: it never ends')
