"""`IndexedEpochs`: epochs of a source whose rows can be read in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from arrowdl import _core
from arrowdl.loader._epoch.blocks import SourceBlocks
from arrowdl.loader._epoch.epochs import Epochs, FindSharding
from arrowdl.loader._epoch.plan import StepPlan
from arrowdl.loader._epoch.read import FindParts, Order, Reader, read_share
from arrowdl.loader._epoch.read_splits import copies_rows, read_splits
from arrowdl.loader._epoch.sequences import OpenSequences, open_sequences
from arrowdl.loader._epoch.sharding import Sharding, count_batches, count_rest
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._epoch.steps import Steps, find_even_steps
from arrowdl.loader._options.functions import Functions
from arrowdl.loader._options.options import Options
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._skip.numbered import NumberedSource
from arrowdl.loader._skip.numbers import Numbered
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._sources.base import IndexedSource

S = TypeVar("S", bound=IndexedSource)


class IndexedEpochs(Epochs[S]):
    """Each epoch has all rows, in an order of its own."""

    def __init__(self, source: S, options: Options) -> None:
        super().__init__(source, options)
        if options.sizes.is_planned:
            # Worker processes get it, and none of the user's functions with it.
            only = replace(
                options,
                functions=Functions(),
                target=replace(options.target, device=None, sharding=None),
                progress=False,
                report=None,
                report_every=None,
            )
            self.plan = StepPlan(source, self.order, only, self._choose_opener())

    def prepare(self) -> None:
        super().prepare()
        if self.plan is not None:
            self.plan.prepare()

    def number(self, rows: S, faults: Sequence[Faults] = ()) -> tuple[Any, Numbered]:
        numbered = NumberedSource(rows, 0, *(faults or self._list_faults()))
        return numbered, numbered

    def _list_faults(self) -> Sequence[Faults]:
        return () if self.plan is None else self.plan.list_faults()

    def read(
        self, rows: S, reader: Reader, *, reads_ahead: bool
    ) -> tuple[_core.DeviceStream, FindParts | None]:
        sharding, position = reader.sharding, reader.position
        if sharding.splits is None:
            return read_share(rows, self.order, reader), None
        rows.check_unchanged()
        steps = self.find_steps(rows, position, sharding)
        # Unless rows are copied, the source decides whose memory they are in.
        is_joined = copies_rows(sharding)
        open_rows = self._choose_opener()
        sequences = open_rows(rows, position.epoch, sharding.splits, shares_units=is_joined)
        if self.plan is not None:
            sequences = self.plan.sort(sequences, rows, position.epoch, steps, sharding)
        return read_splits(sequences, rows.num_rows, steps, reader, reads_ahead=reads_ahead)

    def find_steps(self, rows: IndexedSource, position: Position, sharding: Sharding) -> Steps:
        """Return the steps of an epoch that a position has left, with `splits`."""
        if self.plan is None:
            return find_even_steps(rows.num_rows, position.stages, sharding)
        return self.plan.find_steps(rows, position.epoch, position.stages, sharding)

    def _choose_opener(self) -> OpenSequences:
        """Return what opens the sequences of an epoch, of the source or of its rows' lengths."""
        return partial(open_sequences, self.order)

    def copies_rows(self, sharding: Sharding) -> bool:
        if self.options.sizes.bucket_by is not None:
            return True
        if sharding.splits is None or sharding.tokens is not None:
            return False  # batches of a single sequence are slices
        return self.joins_rows or copies_rows(sharding)

    def is_ready(self, *, is_gathered: bool) -> bool:
        return not is_gathered or self.source.is_small

    def count_batches(self, position: Position) -> int | None:
        sharding = position.sharding
        if sharding is None:
            return None
        rows = self.open(position)
        if self.plan is not None:
            return self.find_steps(rows, position, sharding).count
        return count_batches(count_rest(rows.num_rows, position.stages), sharding) or None

    def count_epoch(self, epoch: int, find_sharding: FindSharding) -> int:
        return self._count_whole(Position(epoch), find_sharding())

    def _count_whole(self, position: Position, sharding: Sharding) -> int:
        """Count the batches of the whole epoch of a position."""
        rows = self.open(position)
        if self.plan is not None:
            return self.plan.find_steps(rows, position.epoch, [], sharding).count
        return count_batches(rows.num_rows, sharding)

    def describe_steps(self, find_sharding: FindSharding) -> dict[str, Any]:
        if self.plan is None:
            return super().describe_steps(find_sharding)
        sharding = find_sharding()
        return {"splits": sharding.splits, "steps": self.plan.describe(sharding)}

    def check_position(self, position: Position, find_sharding: FindSharding) -> None:
        self._check_rows(self.open(position), position, find_sharding)

    def _check_rows(
        self, rows: IndexedSource, position: Position, find_sharding: FindSharding
    ) -> None:
        """Raise ValueError if more was read than there is."""
        if self.plan is None or not self.options.sizes.counts_tokens:
            position.check_rows(rows.num_rows)
        else:
            self.find_steps(rows, position, find_sharding())

    def open_blocks(
        self, order: Order, lengths: IndexedSource | None, pack: Pack, epoch: int
    ) -> Any:
        assert lengths is not None
        return SourceBlocks(self.source, lengths, pack, order, epoch)
