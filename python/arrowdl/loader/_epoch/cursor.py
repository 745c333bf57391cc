"""`Cursor`: where a Loader is in its epochs, and on which rank."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping
from typing import Any

from arrowdl.loader._epoch.epochs import Epochs
from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._epoch.sharding import Sharding, count_rest
from arrowdl.loader._epoch.state import Position


class Cursor:
    """The position of a Loader, which iterating moves: by default the start of the first epoch."""

    def __init__(self, epochs: Epochs[Any], position: Position | None = None) -> None:
        self.epochs = epochs
        self.position: Position = Position() if position is None else position

    def copy(self) -> Cursor:
        """Return a cursor at the same position, which moves by itself."""
        return Cursor(self.epochs, copy.deepcopy(self.position))

    def find_ranks(self) -> tuple[int, int]:
        """Return rank and world size: the user's, or those of the process."""
        options = self.epochs.options
        if options.rank is not None and options.world_size is not None:
            return options.rank, options.world_size
        return find_world(options.target.framework)

    def make_sharding(self) -> Sharding:
        """Return how rows are divided, whatever the number of workers."""
        return self.epochs.make_sharding(self.find_ranks()[1], 1)

    # With `may_go_on`, a loaded state may belong to the same workers: each goes on where it was.
    # Otherwise the remaining rows are divided among the workers again. `step` is that of `Reader`.
    def begin(self, worker: int, num_workers: int, *, step: int, may_go_on: bool = True) -> Reader:
        """Start the epoch, or what remains of it.

        Readers that began before no longer move the cursor.
        """
        epochs = self.epochs
        epochs.source.check_process()
        rank, world_size = self.find_ranks()
        self.position = self.find_next()
        sharding = epochs.make_sharding(world_size, num_workers)
        self.position.begin(sharding, may_go_on)
        is_shared = may_go_on and num_workers > 1 and step > 1
        epochs.begin(self.position, self.make_sharding, is_shared=is_shared)
        if epochs.options.target.sharding is not None:
            rows = epochs.open(self.position).num_rows
            left = rows and count_rest(rows, self.position.list_stages())
            epochs.options.check_even(left, world_size)
        return Reader(self.position, rank, sharding, worker, step)

    def find_next(self) -> Position:
        """Return where the next reader begins."""
        if self.is_complete(self.position):
            return Position(self.position.epoch + 1)
        return self.position.for_next_reader()

    def is_complete(self, position: Position) -> bool:
        """Whether all batches of an epoch were returned."""
        # A caller that knows the length, as Lightning does, asks for no more.
        count = self.epochs.count_batches(position) if position.is_begun else None
        return count is not None and position.batches == count

    def is_at(self, reader: Reader) -> bool:
        """Whether `reader` began last, and moves the cursor."""
        return self.position is reader.position

    def finish(self, reader: Reader) -> None:
        """Go to the next epoch after `reader` has read all batches of this one."""
        if self.is_at(reader):
            self.position = Position(reader.position.epoch + 1)

    def count_epoch(self) -> int:
        """Count the batches of each rank in the whole epoch; see `Epochs.count_epoch`."""
        return self.epochs.count_epoch(self.position.epoch, self.make_sharding)

    def describe_steps(self) -> dict[str, Any]:
        """Return the items of a state that decide on the rows of each step."""
        return self.epochs.describe_steps(self.make_sharding)

    def get_state(self) -> dict[str, Any]:
        """Return the items of a state that say which steps an epoch has, and where it is."""
        return {
            **self.describe_steps(),
            **self.epochs.describe_position(self.position, self.make_sharding),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to the position of a state. Raises ValueError if no Loader can have saved it."""
        position = Position.from_state(state)
        self.epochs.check_position(position, self.make_sharding)
        self.position = position


def find_world(framework: str) -> tuple[int, int]:
    """Return rank and world size.

    They come from ``torch.distributed`` if it is initialised, then from the variables ``RANK`` and
    ``WORLD_SIZE``, then from JAX if `framework` is ``"jax"``; otherwise they are 0 and 1.

    Raises ValueError if the variables are not rank and world size.
    """
    torch = sys.modules.get("torch")
    if (
        torch is not None
        and torch.distributed.is_available()
        and torch.distributed.is_initialized()
    ):
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return _read_environment(os.environ["RANK"], os.environ["WORLD_SIZE"])
    if framework == "jax":
        import jax

        return jax.process_index(), jax.process_count()
    return 0, 1


def _read_environment(rank: str, world_size: str) -> tuple[int, int]:
    if rank.isdecimal() and world_size.isdecimal() and int(rank) < int(world_size):
        return int(rank), int(world_size)
    raise ValueError(
        f"the environment has RANK={rank!r} and WORLD_SIZE={world_size!r}: expected a rank, from "
        "0, and the number of ranks; the Loader's ranks=Ranks(rank, world_size) takes precedence"
    )
