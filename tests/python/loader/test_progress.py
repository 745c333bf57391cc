"""`Loader(progress=True)`: one bar of tqdm, which counts all batches of an epoch."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
import tqdm.auto
from helpers.options import group

TABLE = pa.table({"id": pa.array(range(96), pa.int32())})


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The total, what it began with and what it ended with, of each bar."""
    made: list[list[Any]] = []

    class Noted(tqdm.auto.tqdm):  # type: ignore[misc,type-arg]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.noted = [self.total, self.n, None]
            made.append(self.noted)

        def close(self) -> None:
            self.noted[2] = self.n
            super().close()

    monkeypatch.setattr(tqdm.auto, "tqdm", Noted)
    return made


def make(source: Any = TABLE, batch_size: int | None = 8, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(source, batch_size, framework="numpy", **group(progress=True, **options))


def read(loader: arrowdl.Loader, batches: int) -> Any:
    iterator = iter(loader)
    for _ in range(batches):
        next(iterator)
    return loader.state_dict()


def test_a_resumed_epoch_goes_on_where_it_was(bars: list[list[Any]]) -> None:
    state = read(make(), 5)
    loader = make()
    loader.load_state_dict(state)
    list(loader)
    list(loader)
    assert bars[1:] == [[12, 5, 12], [12, 0, 12]]


def test_a_resume_with_other_batches_ends_full(bars: list[list[Any]]) -> None:
    state = read(make(), 4)
    for size, total, left in ((16, 6, 4), (4, 24, 16)):
        loader = make(batch_size=size)
        loader.load_state_dict(state)
        list(loader)
        assert bars[-1] == [total, total - left, total]


def test_a_resumed_stream_counts_on(bars: list[list[Any]]) -> None:
    state = read(make(TABLE.to_batches), 5)
    loader = make(TABLE.to_batches)
    loader.load_state_dict(state)
    list(loader)
    assert bars[1:] == [[None, 5, 12]]


def test_one_rank_and_one_worker_have_a_bar(bars: list[list[Any]]) -> None:
    for rank in range(2):
        list(make(rank=rank, world_size=2))
    assert bars == [[6, 0, 6]]
    for worker in range(3):
        list(make(batch_size=9)._read_share(worker, 3))
    assert bars[1:] == [[4, 0, 4]]  # of 11


def test_without_tqdm_the_loader_says_so_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("arrowdl.loader._progress.find_spec", lambda name: None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tqdm"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"progress=True .* pip install tqdm"):
        make()
    arrowdl.Loader(TABLE, 8)
