"""States that no Loader gave are refused, and say why; own rows of ranks that repeat one."""

from __future__ import annotations

from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl.loader._epoch.sharding import Rest, Sharding, Stage, choose_share
from arrowdl.loader._sources.table import TableSource
from helpers.options import group

TABLE = pa.table({"id": range(100)})


def make_loader(**options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(TABLE, 7, framework="numpy", **group(**options))


def contain_itself(state: dict[str, Any]) -> dict[str, Any]:
    outer: dict[str, Any] = {"inner": None}
    outer["inner"] = outer
    return outer


def nest(state: dict[str, Any]) -> dict[str, Any]:
    for _ in range(100_000):
        state = {"inner": state}
    return state


def stages(*given: Any) -> Any:
    return lambda state: {**state, "stages": list(given)}


TAMPERED = [
    (stages([1, 1, 7, 0, 10**9]), r"each of 1 ranks had 1000000000 batches.*100 rows, for 15"),
    (stages([1, 1, 7, 0, 16]), "100 rows, for 15"),
    (stages([1, 1, 7, 1, 15]), "100 rows, for 14"),
    (stages([1, 1, 7, 0, 15], [1, 1, 7, 0, 1]), r"stages\[1\] says .* for 0"),
    (stages([1, 1, 7, 0, -1]), r"stages\[0\] has -1 for batches"),
    (stages([1, 1, 7, 0, True]), r"has True for batches"),
    (stages([1, 1, 7, 0, 1.0]), r"has 1.0 for batches"),
    (stages([1, 1, 7, 2, 1]), r"has 2 for drop_last"),
    (stages([1, 10**9, 7, 0, 1]), r"has 1000000000 for num_workers"),
    (stages([2**40, 1, 7, 0, 1]), r"for world_size"),
    (stages([1, 1, 7, 0]), r"stages\[0\] is not a list of 5 numbers"),
    (stages("11701"), r"stages\[0\] is not a list"),
    (stages([[1], 1, 7, 0, 1]), "has \\[1\\] for world_size"),
    (stages([2**32, 1, 2**40, 0, 2**48]), "more rows than a source can have"),
    (lambda state: {**state, "stages": "x"}, "stages is not of type list"),
    (lambda state: {**state, "stages": {}}, "stages is not of type list"),
    (lambda state: {**state, "epoch": -1}, "epoch is out of range"),
    (lambda state: {**state, "epoch": 10**30}, "epoch is out of range"),
    (lambda state: {**state, "epoch": True}, "epoch is not of type int"),
    (lambda state: {**state, "buffer_size": -1}, "buffer_size is out of range.*'buffer_size': -1"),
    (lambda state: {**state, "buffer_size": 2**40}, "buffer_size is out of range"),
    (lambda state: {**state, "seed": "7"}, "seed is not of type int"),
    (lambda state: {**state, "source": None}, "source is not of type str"),
    (lambda state: {**state, "version": True}, "not a state of a Loader"),
    (lambda state: {**state, "version": 2}, "not a state of a Loader"),
    (lambda state: {"_steps_since_snapshot": -3, "own": state}, "is not a number of steps"),
    (lambda state: {"_steps_since_snapshot": "3", "own": state}, "is not a number of steps"),
    (lambda state: {"_steps_since_snapshot": 14, "own": state}, "had 16 batches"),
    (contain_itself, "or endless"),
    (nest, "more than 30 levels"),
    (lambda state: None, "not a state of a Loader"),
    (lambda state: [state], "not a state of a Loader"),
]


@pytest.mark.parametrize(("tamper", "why"), TAMPERED)
def test_a_tampered_state_is_refused(tamper: Any, why: str) -> None:
    loader = make_loader()
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    with pytest.raises(ValueError, match=why) as caught:
        loader.load_state_dict(tamper(state))
    assert len(str(caught.value)) < 500
    assert loader.state_dict() == state  # it stays where it is
    loader.load_state_dict(state)
    assert next(iter(loader))["id"].tolist() == list(range(14, 21))


def test_a_state_of_the_end_is_none_of_those() -> None:
    loader = make_loader()
    for _ in loader:
        state = loader.state_dict()
    assert state["stages"] == [[1, 1, 7, 0, 15]]
    loader.load_state_dict(state)
    assert list(loader) == []
    assert loader.epoch == 1


def test_states_of_streams_are_checked_as_far_as_is_known() -> None:
    loader = arrowdl.Loader(TABLE.to_reader, 7, framework="numpy")
    next(iter(loader))
    state = {**loader.state_dict(), "stages": [[1, 1, 7, 0, 10**9]]}
    loader.load_state_dict(state)
    assert list(loader) == []
    with pytest.raises(ValueError, match="more rows than"):
        loader.load_state_dict({**state, "stages": [[2**32, 1, 2**30, 0, 10**9]]})


@pytest.mark.parametrize(
    "options",
    [
        {"global_batch_size": 4, "pack": arrowdl.Pack("tokens", 16)},
        {"global_batch_size": 4, "pack": arrowdl.Pack("tokens", 16, strategy="best_fit")},
        {"global_batch_tokens": 64, "token_column": "tokens"},
    ],
    ids=["concat", "best_fit", "tokens"],
)
@pytest.mark.parametrize("place", [0, 1])
def test_steps_that_nobody_can_count_are_refused(options: dict[str, Any], place: int) -> None:
    """A mixture without end has any step, but each is counted from the first one on."""
    table = pa.table({"tokens": [[row] * (row % 7 + 1) for row in range(64)]})
    sources = {"a": table, "b": table}

    def make() -> arrowdl.Loader:
        weights = {"a": 1, "b": 2}
        return arrowdl.Loader.mix(
            sources, weights=weights, stop="repeat", **group(splits=4, ragged="offsets", **options)
        )

    loader = make()
    next(iter(loader))
    state = loader.state_dict()
    ((size, _),) = state["stages"]
    forged = [size, 1]
    forged[place] = 2**46
    with pytest.raises(ValueError, match=rf"stages \[\[.*{2**46}.*have \d+ tokens") as caught:
        make().load_state_dict({**state, "stages": [forged]})
    assert len(str(caught.value)) < 500
    loader.load_state_dict(state)
    next(iter(loader))


# ---- what does not grow with the number of ranks


def test_the_share_of_a_rank_takes_no_longer_among_many() -> None:
    """A million ranks that were resumed three times, and again: of a list of ranks it takes hours.

    By the number of spans that are looked at, not by the clock.
    """
    ranks = 2**20
    rows = ranks * 1000
    sharding = Sharding(ranks, 8, 7, False)
    rest = Rest(rows, [Stage(sharding, 3), Stage(sharding, 5), Stage(sharding, 1)])
    assert len(rest) == rows - ranks * 7 * 9
    share = choose_share(len(rest), ranks // 2, 3, sharding, 0)
    found = rest.slice(share.rows.start, share.rows.stop)
    assert sum(map(len, found)) == len(share.rows)
    assert len(found) < 100


def test_a_loader_among_many_ranks() -> None:
    table = pa.table({"id": range(2**17)})
    loader = arrowdl.Loader(table, 1, framework="numpy", ranks=arrowdl.Ranks(5, 2**16))
    assert [batch["id"].tolist() for batch in loader] == [[10], [11]]
    state = {**loader.state_dict(), "epoch": 0, "stages": [[2**16, 1, 1, 0, 1]]}
    loader.load_state_dict(state)
    assert [batch["id"].tolist() for batch in loader] == [[11]]


# ---- rows of another rank


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("pad_last", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 3, 10, 11, 12, 13, 31])
def test_every_row_is_somebodys_own_once(
    rows: int, pad_last: bool, workers: int, counted: bool
) -> None:
    table = pa.table({"id": range(rows)})
    source = table if counted else table.to_reader
    for world_size in (1, 3, 5):
        own: list[int] = []
        by_mask: list[int] = []
        counts = set()
        for rank in range(world_size):
            batches = 0
            for worker in range(workers):
                loader = arrowdl.Loader(
                    source,
                    2,
                    framework="numpy",
                    pad_last=pad_last,
                    ranks=arrowdl.Ranks(rank, world_size),
                )
                for batch in loader._read_share(worker, workers):
                    batches += 1
                    own += batch["id"][: loader.valid_rows].tolist()
                    if pad_last:
                        by_mask += batch["id"][batch["valid"]].tolist()
                        assert batch["valid"].sum() == loader.valid_rows
                        assert len(batch["id"]) == 2
                assert loader.stats().rows <= rows
            counts.add(batches)
        assert sorted(own) == list(range(rows))
        assert not pad_last or sorted(by_mask) == list(range(rows))
        assert len(counts) == 1


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_repeated_row_after_a_resume(shuffle: bool) -> None:
    first = [make_loader(rank=rank, world_size=2, shuffle=shuffle) for rank in range(2)]
    own: list[int] = []
    for loader in first:
        batches = iter(loader)
        for _ in range(2):
            own += next(batches)["id"].tolist()
    resumed = 0
    for rank in range(5):
        loader = arrowdl.Loader(
            TABLE,
            7,
            framework="numpy",
            shuffle=shuffle,
            ranks=arrowdl.Ranks(rank, 5),
            pad_last=True,
        )
        loader.load_state_dict(first[0].state_dict())
        for batch in loader:
            own += batch["id"][batch["valid"]].tolist()
            resumed += len(batch["id"])
    assert sorted(own) == list(range(100))
    assert resumed == 5 * 3 * 7


def keep(batch: Any) -> Any:
    return batch


@pytest.mark.slow
@pytest.mark.parametrize("counted", [True, False])
def test_valid_rows_with_worker_processes(counted: bool) -> None:
    table = pa.table({"id": range(13)})
    own: list[int] = []
    for rank in range(3):
        loader = arrowdl.Loader(
            table if counted else table.to_batches(),
            2,
            framework="numpy",
            ranks=arrowdl.Ranks(rank, 3),
            num_workers=2,
            transform=keep,
        )
        for batch in loader:
            own += batch["id"][: loader.valid_rows].tolist()
    assert sorted(own) == list(range(13))


@pytest.mark.parametrize("shuffle", [True, False])
def test_what_many_ranks_left_is_read_window_by_window(
    shuffle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not rank by rank: each of them would have a window, or a row group, read for it.

    Twelve lanes of windows that follow each other are read, and no rows for their type.
    """
    reads = 0
    read = TableSource.read

    def count(self: TableSource, units: Any, readers: int = 1) -> Any:
        nonlocal reads
        reads += 1
        return read(self, units, readers)

    monkeypatch.setattr(TableSource, "read", count)
    table = pa.table({"id": range(10_000)})
    options: dict[str, Any] = {"framework": "numpy", "shuffle": shuffle, "buffer_size": 2_500}
    whole = [i for b in arrowdl.Loader(table, 16, **group(**options)) for i in b["id"].tolist()]
    given = set()
    for rank in range(100):
        loader = arrowdl.Loader(table, 7, **group(rank=rank, world_size=100, **options))
        batches = iter(loader)
        for _ in range(3):
            given.update(next(batches)["id"].tolist())
        state = loader.state_dict()
    reads = 0
    loader = arrowdl.Loader(table, 16, **group(**options))
    loader.load_state_dict(state)
    rest = [i for b in loader for i in b["id"].tolist()]
    assert rest == [i for i in whole if i not in given]
    assert reads == (13 if shuffle else 1)
