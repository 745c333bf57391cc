"""Seeds of what functions draw at random, for each read of a map dataset."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

from arrowdl.loader._epoch.read import Order


def seed_reads(
    seed: int,  # of the Loader
) -> Callable[[str, int | None], int]:
    """Return a `find_seed` of `Draws` with a new seed at each call: a sampler has no steps.

    In a worker of a DataLoader it depends on the worker's seed, which torch draws for each
    iteration: otherwise new workers would draw the same in each epoch.
    """
    reads = itertools.count()
    order = Order(seed, None)

    def find_seed(purpose: str, index: int | None) -> int:
        return order.make_seed(next(reads), f"{purpose} of a map dataset {_find_worker_seed()}")

    return find_seed


def _find_worker_seed() -> int:
    torch_data = sys.modules.get("torch.utils.data")
    worker = None if torch_data is None else torch_data.get_worker_info()
    return 0 if worker is None else int(worker.seed)
