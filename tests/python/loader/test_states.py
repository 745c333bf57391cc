"""Workers that take turns share a rank's rows, and states are good for any number of them."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl.loader._epoch import sharding
from helpers.options import group
from hypothesis import given, settings
from hypothesis import strategies as st

WORLDS = st.tuples(st.integers(1, 3), st.integers(1, 4))


def make_loader(table: pa.Table, counted: bool, batch_size: int, **options: Any) -> arrowdl.Loader:
    source = table if counted else table.to_reader
    return arrowdl.Loader(source, batch_size, prefetch=0, **group(buffer_size=32, **options))


class Workers:
    """The workers of one rank as a DataLoader has them: its own loader each, batches in turns."""

    def __init__(self, loaders: list[arrowdl.Loader]) -> None:
        self.loaders = loaders
        self.readers = [
            loader._read_share(i, len(loaders), may_go_on=len(loaders) == 1)
            for i, loader in enumerate(loaders)
        ]

    def __iter__(self) -> Iterator[list[int]]:
        for reader in itertools.cycle(self.readers):
            batch = next(reader, None)
            if batch is None:
                return
            yield batch["id"].tolist()


@settings(max_examples=80)
@given(st.integers(0, 300), st.integers(1, 40), WORLDS, st.booleans(), st.booleans(), st.booleans())
def test_workers_have_the_batches_of_their_rank(
    rows: int,
    batch_size: int,
    world: tuple[int, int],
    shuffle: bool,
    drop_last: bool,
    counted: bool,
) -> None:
    world_size, workers = world
    table = pa.table({"id": pa.array(range(rows), pa.int64())})
    options: dict[str, Any] = {"shuffle": shuffle, "drop_last": drop_last}
    for rank in range(world_size):
        own = {"rank": rank, "world_size": world_size, **options}
        shared = list(
            Workers([make_loader(table, counted, batch_size, **own) for _ in range(workers)])
        )
        alone = make_loader(table, counted, batch_size, **own)
        batches = [batch["id"].tolist() for batch in alone]
        assert sorted(shared) == sorted(batches)
        if not counted:
            assert shared == batches


@settings(max_examples=80)
@given(st.integers(0, 10**6), st.booleans())
def test_a_state_is_good_for_another_number_of_workers(seed: int, counted: bool) -> None:
    chance = random.Random(seed)
    rows = chance.randint(0, 400)
    table = pa.table({"id": pa.array(range(rows), pa.int64())})
    shuffle = chance.random() < 0.7
    seen: Counter[int] = Counter()
    state: dict[str, Any] | None = None
    worlds = [(chance.randint(1, 3), chance.randint(1, 4)) for _ in range(4)]
    for part, (world_size, workers) in enumerate(worlds):
        batch_size = chance.choice([3, 7, 20])
        steps = chance.randint(0, 5) if part < len(worlds) - 1 else None
        states = []
        for rank in range(world_size):
            own = {"rank": rank, "world_size": world_size, "shuffle": shuffle}
            loaders = [make_loader(table, counted, batch_size, **own) for _ in range(workers)]
            for loader in loaders:
                if state is not None:
                    loader.load_state_dict(state)
            for batch in itertools.islice(Workers(loaders), steps):
                seen.update(batch)
            states.append([loader.state_dict() for loader in loaders])
        assert all(other == states[0] for other in states)
        # As in what torchdata's StatefulDataLoader gives.
        state = {"snapshots": {f"worker_{i}": {"own": state} for i, state in enumerate(states[0])}}
        assert all(len(json.dumps(own)) < 1024 for own in states[0])
        if any(own["epoch"] == 1 for own in states[0]):
            break
    assert len(seen) == rows
    assert seen.total() - rows < 3 * len(worlds)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("steps", range(9))
def test_workers_go_on_with_their_own_states(steps: int, counted: bool) -> None:
    table = pa.table({"id": range(100)})

    def make() -> list[arrowdl.Loader]:
        return [make_loader(table, counted, 7, shuffle=True) for _ in range(3)]

    whole = list(Workers(make()))
    first = make()
    assert list(itertools.islice(Workers(first), steps)) == whole[:steps]
    second = make()
    for loader, stopped in zip(second, first, strict=True):
        loader.load_state_dict(stopped.state_dict())
    readers = [loader._read_share(i, 3) for i, loader in enumerate(second)]
    rest = []
    for turn in itertools.count(steps):
        batch = next(readers[turn % 3], None)
        if batch is None:
            break
        rest.append(batch["id"].tolist())
    assert rest == whole[steps:]


@pytest.mark.parametrize("steps", range(5))
def test_workers_that_have_returned_nothing_go_on_in_their_turn(steps: int) -> None:
    """A run of workers, their state loaded into a new loader, and its workers stopped."""
    table = pa.table({"id": range(100)})

    def make(states: Sequence[Mapping[str, Any]] = ()) -> list[arrowdl.Loader]:
        loaders = [make_loader(table, True, 7, shuffle=True) for _ in range(3)]
        for loader, state in zip(loaders, states, strict=False):
            loader.load_state_dict(state)
        return loaders

    earlier = make()
    seen = list(itertools.islice(Workers(earlier), 5))
    saved = {f"worker_{i}": {"own": loader.state_dict()} for i, loader in enumerate(earlier)}
    stopped = make([{"snapshots": saved}] * 3)
    seen += itertools.islice(Workers(stopped), steps)

    last = make([loader.state_dict() for loader in stopped])
    readers = [loader._read_share(i, 3) for i, loader in enumerate(last)]
    for turn in itertools.count(steps):
        batch = next(readers[turn % 3], None)
        if batch is None:
            break
        seen.append(batch["id"].tolist())
    assert sorted(itertools.chain(*seen)) == list(range(100))


def test_a_state_of_no_loader_is_refused() -> None:
    loader = make_loader(pa.table({"id": [1]}), True, 1)
    with pytest.raises(ValueError, match="not a state of a Loader"):
        loader.load_state_dict({"_snapshot": {"worker_0": {"dataset_state": None}}})


def test_checking_a_state_takes_one_step_for_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that was stopped very often has many stages."""
    steps = 0

    class Counted(sharding._Left):
        def __init__(self, *arguments: Any) -> None:
            nonlocal steps
            steps += 1
            super().__init__(*arguments)

    loader = make_loader(pa.table({"id": range(1_000)}), True, 1)
    state = {**loader.state_dict(), "stages": [[1, 1, 1, 0, 1]] * 300}
    monkeypatch.setattr(sharding, "_Left", Counted)
    loader.load_state_dict(state)
    assert 300 <= steps <= 600
    assert next(iter(loader))["id"].tolist() == [300]
