"""Ranks of a training and the workers of each, all in this process."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

Steps = list[list[int]]


class Ranks:
    """Ranks, and workers of each as the pool has them, all in this process.

    `make` returns the Loader of a rank; it takes `rank` and `world_size`.
    """

    def __init__(self, make: Callable[..., Any], ranks: int, workers: int) -> None:
        self.workers = workers
        self.loaders = [make(rank=i, world_size=ranks) for i in range(ranks)]

    def load(self, state: Any) -> None:
        for loader in self.loaders:
            loader.load_state_dict(json.loads(json.dumps(state)))

    def read(self, steps: int | None = None) -> tuple[Steps, Any]:
        """Own rows of each step, the ranks' one after the other, and the state after it."""
        ranks = [self._read_rank(rank, steps) for rank in range(len(self.loaders))]
        read = [list(itertools.chain(*parts)) for parts in zip(*ranks, strict=True)]
        states = [loader.state_dict() for loader in self.loaders]
        assert all(state == states[0] for state in states), "one state for all"
        return read, states[0]

    def _read_rank(self, rank: int, steps: int | None) -> Steps:
        loader = self.loaders[rank]
        if self.workers == 0:
            batches = itertools.islice(loader, steps)
            return [batch["id"][: loader.valid_rows].tolist() for batch in batches]
        return list(itertools.islice(self._read_pool(rank), steps))

    def _read_pool(self, rank: int) -> Iterator[list[int]]:
        loader = self.loaders[rank]
        reader = loader._cursor.begin(0, self.workers, step=1)
        place = reader.position.to_state()
        pipeline = loader._pipeline.for_workers()
        shares = [
            pipeline.read_share(place, rank, len(self.loaders), i, self.workers)
            for i in range(self.workers)
        ]
        for turn in itertools.count(reader.position.batches):
            item = next(shares[turn % self.workers], None)
            if item is None:
                assert all(next(share, None) is None for share in shares)
                loader.set_epoch(reader.position.epoch + 1)
                return
            reader.position.give(turn + 1)
            yield item[1]["id"][: item[0]].tolist()


def worlds(ranks: Sequence[int]) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """Ranks, workers of each and steps, up to the next stop."""
    world = st.tuples(st.sampled_from(ranks), st.integers(0, 3), st.sampled_from([0, 1, 2, 3, 5]))
    return st.lists(world, min_size=1, max_size=3)


def read_with_stops(
    make: Callable[[int, int], Ranks], worlds: Iterable[tuple[int, int, int]], rows: int
) -> Steps:
    """Some steps of each of `worlds`, a stop after each, and the others of one rank.

    `make` takes ranks and workers. An epoch has `rows` rows.
    """
    read: Steps = []
    state = None
    for ranks, workers, steps in [*worlds, (1, 0, None)]:
        if read and sum(map(len, read)) == rows:
            break
        world = make(ranks, workers)
        if state is not None:
            world.load(state)
        now, state = world.read(steps)
        read += now
    return read


def divisors(number: int) -> list[int]:
    return [i for i in range(1, number + 1) if number % i == 0]
