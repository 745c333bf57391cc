"""`Skip(max_rows=)`: of all ranks together, and in each pass of a mixture without end."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from helpers.options import group

TABLE = pa.table({"id": range(200), "tokens": [[i] * 4 for i in range(200)]})


class Failing:
    """Fails for bad rows, or for blocks with a token of one."""

    def __init__(self, *bad: int) -> None:
        self.bad = set(bad)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        rows = batch["id"] if "id" in batch else batch["tokens"]
        if self.bad & set(rows.flatten().tolist()):
            raise ZeroDivisionError("a bad row")
        return batch


def is_tenth(batch: dict[str, Any]) -> Any:
    return batch["id"] % 10 == 0


# ---- ranks


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A double of torch.distributed: `rank` says whose Loader is read, in one process."""
    import torch

    store = torch.distributed.HashStore()
    made = SimpleNamespace(
        rank=0,
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: made.rank,
        get_world_size=lambda: 4,
        distributed_c10d=SimpleNamespace(_get_default_store=lambda: store),
    )
    monkeypatch.setattr(torch, "distributed", made)
    return made


def read_ranks(peers: Any, bad: list[int], most: int) -> list[list[int]]:
    """The rows of each step, until a rank raises."""
    loaders = [
        arrowdl.Loader(
            TABLE,
            ranks=arrowdl.Ranks(rank, 4, global_batch_size=8, splits=8),
            columns=["id"],
            framework="numpy",
            on_error=arrowdl.Skip(most),
            transform=Failing(*bad),
        )
        for rank in range(4)
    ]
    iterators = [iter(loader) for loader in loaders]
    steps: list[list[int]] = []
    while True:
        step: list[int] = []
        for peers.rank, (loader, iterator) in enumerate(zip(loaders, iterators, strict=True)):
            if (batch := next(iterator, None)) is None:
                return steps
            step += batch["id"][: loader.valid_rows].tolist()
        steps.append(step)


def test_ranks_share_the_budget(peers: Any) -> None:
    """One bad row of each rank, of which three may be skipped: the fourth is an error."""
    bad = [2, 53, 104, 155]
    assert sum(map(len, read_ranks(peers, bad, 4))) == 196
    with pytest.raises(ZeroDivisionError, match="a bad row") as caught:
        read_ranks(peers, bad, 3)
    assert "1 rows in this epoch on this rank and 3 on others" in str(caught.value.__notes__)
    alone = arrowdl.Loader(
        TABLE,
        ranks=arrowdl.Ranks(0, 1, global_batch_size=8, splits=8),
        columns=["id"],
        on_error=arrowdl.Skip(3),
        transform=Failing(*bad),
    )
    steps: list[Any] = []
    with pytest.raises(ZeroDivisionError):
        steps.extend(alone)
    assert len(steps) == 5, "row 155 is in step 5"


def read_alone(rank: int, bad: list[int], most: int) -> Any:
    loader = arrowdl.Loader(
        TABLE,
        25,
        columns=["id"],
        framework="numpy",
        on_error=arrowdl.Skip(most),
        transform=Failing(*bad),
        ranks=arrowdl.Ranks(rank, 4),
    )
    rows = sum(loader.valid_rows for _ in loader)
    return rows, loader.stats().skipped_rows


def test_ranks_without_a_group_have_a_budget_each() -> None:
    """Together they may skip four times as many rows, and the error says that each counts alone."""
    bad = [2, 53, 104, 155]
    assert [read_alone(rank, bad, 25) for rank in range(4)] == [(25, 25)] * 4
    assert [read_alone(rank, [2], 25) for rank in range(4)] == [(25, 25)] + [(50, 0)] * 3
    for rank in range(4):
        with pytest.raises(ZeroDivisionError, match="a bad row") as caught:
            read_alone(rank, bad, 24)
        (note,) = caught.value.__notes__
        assert "25 rows in this epoch on this rank (each of the 4 ranks counts alone: they" in note


# ---- mixtures without end


def mix(
    bad: list[int], splits: int = 2, ranks: int = 1, rank: int = 0, **options: Any
) -> arrowdl.Loader:
    given: dict[str, Any] = {"columns": ["id"], "max_skipped_rows": 1} | options
    if not {"global_batch_size", "global_batch_tokens"} & set(given):
        given["global_batch_size"] = 4
    return arrowdl.Loader.mix(
        {"x": TABLE},
        weights={"x": 1},
        stop="repeat",
        framework="numpy",
        transform=Failing(*bad),
        **group(
            splits=splits, ragged="offsets", on_error="skip", rank=rank, world_size=ranks, **given
        ),
    )


def read_some(loader: arrowdl.Loader, batches: int = 1_000) -> int:
    """Skipped rows."""
    list(itertools.islice(loader, batches))
    return loader.stats().skipped_rows


def check_limit(loader: arrowdl.Loader, when: str) -> None:
    with pytest.raises(ZeroDivisionError, match="a bad row") as caught:
        read_some(loader)
    assert when in str(caught.value.__notes__)


@pytest.mark.parametrize("splits", [1, 4])
def test_each_pass_has_a_budget(splits: int) -> None:
    """The last row of each of 20 passes, and the first one of others."""
    for bad in ([199], [0]):
        assert read_some(mix(bad, splits, max_skipped_rows=4 // splits)) == 20 * 4 // splits
        check_limit(mix(bad, splits, max_skipped_rows=4 // splits - 1), "in this epoch")
    check_limit(mix([0, 199], splits, max_skipped_rows=4 // splits), "2 errors")


def test_rows_that_are_filtered_are_of_the_pass() -> None:
    assert read_some(mix([199], max_skipped_rows=2).filter(is_tenth)) == 40


def test_a_pass_goes_on_after_a_resume_on_other_ranks() -> None:
    """The state is before, between and behind two bad rows, and in the second pass."""
    bad = [49, 199]
    for steps in (30, 49, 50, 80):
        first = mix(bad, splits=1, max_skipped_rows=8)
        read_some(first, steps)
        state = json.loads(json.dumps(first.state_dict()))
        rest = mix(bad, splits=1, global_batch_size=2, max_skipped_rows=4)
        rest.load_state_dict(state)
        assert read_some(rest) > 20
    loader = mix([49, 199], splits=2, ranks=2, rank=1, max_skipped_rows=4)
    assert read_some(loader) > 20
    check_limit(mix([49, 149, 199], splits=2, max_skipped_rows=4), "in this epoch")


def test_blocks_and_budgets_of_tokens() -> None:
    pack = arrowdl.Pack("tokens", 4)
    blocks = {"pack": pack, "columns": ["tokens"]}
    tokens = {"global_batch_tokens": 16, "token_column": "tokens", "columns": ["id", "tokens"]}
    for options in (blocks, tokens):
        assert read_some(mix([199], max_skipped_rows=2, **options)) == 40
        many = list(range(0, 200, 4))
        check_limit(mix(many, max_skipped_rows=20, **options), "in this epoch")
    for options in (blocks, tokens):  # a tenth of what a pass has
        assert read_some(mix(list(range(16)), max_skipped_rows=None, **options)) >= 16 * 20
        check_limit(mix(list(range(30)), max_skipped_rows=None, **options), "Skip.max_rows=20")
