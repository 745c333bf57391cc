"""Seeds of what functions draw at random: for each step of an epoch, and each rank."""

from __future__ import annotations

from collections.abc import Callable

from arrowdl.loader._epoch.read import Order, Reader


def seed_steps(
    seed: int,  # of the Loader
    reader: Reader,
) -> Callable[[str, int | None], int]:
    """Return the `find_seed` of `Draws` for the batches that `reader` has left to read.

    Steps count from the start of the epoch, and no worker's number is part of a seed: so it is the
    same with any number of workers, and after a resume.
    """
    position, rank = reader.position, reader.rank
    epoch, order = position.epoch, Order(seed, None)
    before = sum(stage.batches for stage in position.stages)
    done = reader.count_own(position.batches)

    def find_seed(purpose: str, index: int | None) -> int:
        if index is None:
            return order.make_seed(epoch, f"{purpose} in place of a batch")
        step = before + reader.count_all(done + index + 1) - 1
        return order.make_seed(epoch, f"{purpose} of rank {rank} in step {step}")

    return find_seed
