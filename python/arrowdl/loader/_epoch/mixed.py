"""`MixedEpochs`: epochs of a mixture, whose rows follow from the weights of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from arrowdl import _core
from arrowdl.loader._epoch.blocks import MixtureBlocks
from arrowdl.loader._epoch.epochs import FindSharding, check_has_end
from arrowdl.loader._epoch.indexed import IndexedEpochs
from arrowdl.loader._epoch.mixed_sequences import MixedSequences
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sequences import EpochSequences, OpenSequences
from arrowdl.loader._epoch.sharding import Sharding
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._mixture.schedule import Phase
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._skip.numbered_mixture import number_mixture
from arrowdl.loader._skip.numbers import Numbered
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._sources.base import IndexedSource


class MixedEpochs(IndexedEpochs[MixedSource]):
    """Each epoch has the weights of its position, which a state brings with it."""

    joins_rows = True

    def begin(self, position: Position, find_sharding: FindSharding, *, is_shared: bool) -> None:
        phases = self._plan_phases(position, find_sharding)
        if is_shared and position.phases not in ([], phases):
            raise ValueError(
                "each worker of the DataLoader goes on from a state of its own, so that other "
                "weights, or steps of another size, would begin at another row in each: give "
                "the saved state to Loader.load_state_dict, and make the DataLoader then"
            )
        position.phases = phases

    def open(self, position: Position) -> MixedSource:
        return self._order_rows(position.phases) if position.phases else self.source

    def _order_rows(self, phases: Sequence[Phase]) -> MixedSource:
        return self.source.with_order(self.source.order.with_phases(phases))

    def number(self, rows: MixedSource, faults: Sequence[Faults] = ()) -> tuple[Any, Numbered]:
        return number_mixture(rows, faults or self._list_faults())

    def _choose_opener(self) -> OpenSequences:
        return open_mixture

    def limit_pass(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        return stream.slice(0, self.source.order.count_member_rows())

    def count_epoch(self, epoch: int, find_sharding: FindSharding) -> int:
        check_has_end(self.source)
        position = Position(epoch)
        if self.options.sizes.counts_tokens:
            position.phases = self._plan_phases(position, find_sharding)
        return self._count_whole(position, find_sharding())

    def count_passes(self, position: Position, sharding: Sharding) -> int:
        if not self.source.is_endless:
            return 0
        if self.plan is None or sharding.tokens is None:
            rows = position.count_rows()
        else:
            rows = self._find_next_row(position, sharding)
        return rows * self.source.order.splits // self.source.order.count_member_rows()

    def _find_next_row(self, position: Position, sharding: Sharding) -> int:
        """Return the row of each sequence with which the next step begins."""
        assert self.plan is not None
        rows, stages = self.open(position), position.list_stages()
        return self.plan.find_steps(rows, position.epoch, stages, sharding).find_row(0)

    def describe_position(self, position: Position, find_sharding: FindSharding) -> dict[str, Any]:
        state = position.to_state()
        # Only past phases are saved; later ones follow from `weights=`, or from a loaded state.
        if "phases" in state and position.sharding is not None:
            end = max(1, self._find_settled_end(position, find_sharding))
            state["phases"] = [phase for phase in state["phases"] if phase[0] < end]
        return state

    def check_position(self, position: Position, find_sharding: FindSharding) -> None:
        check_weights(self.source, position)
        phases = self._plan_phases(position, find_sharding)
        if self.source.is_endless:
            position.check_tokens(0)
        self._check_rows(self._order_rows(phases), position, find_sharding)

    def open_blocks(
        self, order: Order, lengths: IndexedSource | None, pack: Pack, epoch: int
    ) -> Any:
        return MixtureBlocks(self.source, cast("MixedSource", lengths), pack, epoch)

    def _plan_phases(self, position: Position, find_sharding: FindSharding) -> list[Phase]:
        """Return the phases of the epoch of `position`."""
        source, saved, size = self.source, position.phases, self.options.sizes.global_batch_size
        if size is None:  # a budget of tokens
            assert self.plan is not None
            stages = position.list_stages()
            return self.plan.find_phases(source, saved, position.epoch, stages, find_sharding())
        phases = source.order.plan(saved, position.count_steps(), size)
        end = self._find_settled_end(position, find_sharding)
        before, after = ([phase for phase in some if phase.row < end] for some in (saved, phases))
        if saved and self.plan is not None and before != after:
            raise ValueError(
                "the weights change within a window of batching=Buckets(...), whose rows are "
                "sorted and were read in part: go on with the weights of the state up to row "
                f"{end} of each sequence, set_epoch starts an epoch with others"
            )
        return phases

    def _find_settled_end(self, position: Position, find_sharding: FindSharding) -> int:
        """Return the row of each sequence up to which the order of the rows is settled."""
        if self.plan is None:
            return position.count_rows()
        sharding = find_sharding()
        if not self.options.sizes.counts_tokens:
            return self.plan.find_window_end(position.count_rows(), sharding)
        return self.plan.find_window_end(self._find_next_row(position, sharding), sharding)


def open_mixture(
    source: IndexedSource, epoch: int, splits: int, *, shares_units: bool
) -> EpochSequences:
    """Open the sequences of an epoch of a mixture; see `OpenSequences`."""
    return MixedSequences(cast("MixedSource", source), epoch)


def check_weights(source: MixedSource, position: Position) -> None:
    """Raise ValueError if the weights of a position are those of another number of sources."""
    count = len(source.members)
    if any(len(phase.weights) != count for phase in position.phases):
        raise ValueError(
            f"the state is of a mixture of {len(position.phases[0].weights)} sources, and this "
            f"one has {count}"
        )
