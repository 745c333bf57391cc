"""What a Loader refuses when it is made, before the first batch is read."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers import transforms
from helpers.options import group
from torch.utils.data import DataLoader

TABLE = pa.table({"x": [1, 2, 3], "y": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nulls": "zero"}, "nulls='zero': expected one of 'raise', 'fill', 'nan', 'mask'"),
        ({"ragged": "pad"}, "ragged='pad': expected one of 'jagged', 'padded', 'offsets'"),
        ({"stack": {"m": ["x", "z"]}}, 'stack= names "z", and the columns are "x", "y"'),
        ({"stack": {"y": ["x"]}}, 'the batch has a column "y" that is not stacked'),
        ({"device": "gpu"}, "device='gpu': device type 'gpu' is unknown"),
        ({"device": "cuda:x"}, "device='cuda:x': the device"),
        ({"device": 3.5}, "device=3.5: a device is a Device, a name"),
        (
            {"shuffle": 1234},
            "shuffle=1234: expected True or False or arrowdl.Shuffle(...); the seed",
        ),
        ({"shuffle": "no"}, "shuffle='no': expected True or False"),
        ({"drop_last": None}, "drop_last=None: expected True or False"),
        ({"memory_map": "r"}, "Storage.memory_map='r': expected True or False"),
        (
            {"columns": {"x": "a"}},
            "give a list of names, in the order of the batch's columns; transf",
        ),
    ],
    ids=str,
)
def test_an_option_is_checked_when_it_is_given(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        arrowdl.Loader(TABLE, 2, **group(**options))


def test_bools_of_numpy_are_bools() -> None:
    loader = arrowdl.Loader(
        TABLE, 2, drop_last=np.bool_(True), storage=arrowdl.Storage(memory_map=np.bool_(False))
    )
    assert len(loader) == 1


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": lambda path: path / "a.parquet",
    "mapped": lambda path: path / "a.arrow",
    "dataset with a filter": lambda path: pa.dataset.dataset(path / "a.parquet").filter(
        pa.dataset.field("x") > 0
    ),
    "stream with columns": lambda path: TABLE.to_reader,
}


@pytest.mark.parametrize("name", SOURCES)
def test_stacked_columns_of_each_source(name: str, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    source = SOURCES[name](tmp_path)
    with pytest.raises(ValueError, match='stack= names "y", and the columns are "x"'):
        arrowdl.Loader(source, 2, columns=["x"], stack={"m": ["x", "y"]})
    (batch,) = arrowdl.Loader(source, 3, columns=["y", "x"], stack={"m": ["x"]}, framework="numpy")
    assert (batch["m"].tolist(), list(batch)) == ([[1], [2], [3]], ["m", "y"])


def test_a_column_with_the_name_of_the_mask_is_refused_when_it_is_given() -> None:
    table = TABLE.append_column("valid", TABLE["x"])
    with pytest.raises(ValueError, match='pad_last=True adds a column "valid"'):
        arrowdl.Loader(table, 2, pad_last=True)
    assert arrowdl.Loader(table, 2, pad_last=True, columns=["x"]).batch_size == 2


# ---- DataLoader


def test_a_data_loader_that_collates_batches_is_told_so() -> None:
    dataset = arrowdl.Loader(TABLE, 2).torch_dataset()
    for options in ({}, {"batch_size": 4}):
        with pytest.raises(ValueError, match=r"give it batch_size=None, DataLoader\(loader"):
            next(iter(DataLoader(dataset, **options)))
    assert len(list(DataLoader(dataset, batch_size=None))) == 2


def test_a_data_loader_may_have_its_own_way_to_collate() -> None:
    dataset = arrowdl.Loader(TABLE, 2).torch_dataset()

    def take_first(batches: list[dict[str, torch.Tensor]]) -> torch.Tensor:
        return batches[0]["x"]

    found = DataLoader(dataset, batch_size=1, collate_fn=take_first)
    assert [x.tolist() for x in found] == [[1, 2], [3]]
    assert [batch["x"].tolist() for batch in dataset] == [[1, 2], [3]]


# ---- the end of a Loader


class Reads:
    """Makes streams, and knows whether they have ended."""

    def __init__(self) -> None:
        self.open = 0

    def __call__(self) -> Iterator[pa.RecordBatch]:
        self.open += 1
        try:
            for _ in range(100):
                yield from TABLE.to_batches()
        finally:
            self.open -= 1


@pytest.mark.parametrize("prefetch", [0, 2])
def test_closing_ends_what_is_being_read(prefetch: int) -> None:
    source = Reads()
    with arrowdl.Loader(source, 3, framework="numpy", prefetch=prefetch) as loader:
        batches = iter(loader)
        batch = next(batches)
        assert source.open == 1
    assert source.open == 0
    assert list(batches) == []
    assert batch["x"].tolist() == [1, 2, 3]
    assert loader.stats().batches == 1
    assert "closed" in repr(loader)
    loader.close()
    with pytest.raises(RuntimeError, match="this Loader was closed: make a new one"):
        iter(loader)
    with pytest.raises(RuntimeError, match="this Loader was closed"):
        next(iter(loader.torch_dataset()))


def test_a_state_of_a_closed_loader_goes_on_in_another() -> None:
    with arrowdl.Loader(TABLE, 1, framework="numpy") as loader:
        for _ in loader:
            loader.close()
    assert loader.epoch == 0
    other = arrowdl.Loader(TABLE, 1, framework="numpy")
    other.load_state_dict(loader.state_dict())
    assert [batch["x"].tolist() for batch in other] == [[2], [3]]


@pytest.mark.parametrize("is_left", [False, True])
def test_closing_ends_the_worker_processes(is_left: bool) -> None:
    import multiprocessing

    before = set(multiprocessing.active_children())
    with arrowdl.Loader(TABLE, 1, framework="numpy", num_workers=1) as loader:
        batches = iter(loader)
        assert len([next(batches)] if is_left else list(batches)) == (1 if is_left else 3)
        assert set(multiprocessing.active_children()) > before
    assert set(multiprocessing.active_children()) == before


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_threads": 2}])
def test_closing_while_another_thread_waits_ends_its_loop(options: dict[str, Any]) -> None:
    import multiprocessing

    before = set(multiprocessing.active_children())
    table = pa.table({"x": range(100)})
    loader = arrowdl.Loader(
        table, 1, framework="numpy", transform=transforms.sleep_shortly, **group(**options)
    )
    begun, seen, errors = threading.Event(), [], []

    def train() -> None:
        try:
            for batch in loader:
                seen.append(batch)
                begun.set()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    assert begun.wait(60)
    loader.close()
    thread.join(60)
    assert not thread.is_alive()
    assert errors == []
    assert 1 <= len(seen) < 50
    assert loader.epoch == 0, "the epoch was not read to its end"
    assert loader.stats().batches == len(seen)
    assert set(multiprocessing.active_children()) == before


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals of Unix")
def test_a_signal_handler_closes_while_the_training_waits() -> None:
    def interrupt(batch: Any) -> Any:
        if batch["x"].tolist() == [2]:
            signal.raise_signal(signal.SIGUSR1)
        return batch

    loader = arrowdl.Loader(TABLE, 1, framework="numpy", transform=interrupt)
    others = iter(loader)
    next(others)
    before = signal.signal(signal.SIGUSR1, lambda *_: loader.close())
    try:
        assert [batch["x"].tolist() for batch in loader] == [[1]]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert list(others) == []
    assert loader.state_dict()["stages"] == [[1, 1, 1, 0, 1]]


def test_an_error_in_the_block_comes_out_of_it() -> None:
    with pytest.raises(KeyError), arrowdl.Loader(TABLE, 1, framework="numpy") as loader:
        next(iter(loader))["z"]
    assert "closed" in repr(loader)


# ---- repr


def test_the_rank_is_in_the_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    assert repr(arrowdl.Loader(TABLE, 1, ranks=arrowdl.Ranks(1, 4))).endswith("rank 1 of 4>")
    loader = arrowdl.Loader(TABLE, 1)
    assert repr(loader).endswith("epoch 0, rank 0 of 1>")
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert repr(loader).endswith("rank 2 of 3>")
    monkeypatch.setenv("RANK", "4")
    assert repr(loader).endswith("rank unknown>")


def test_worker_processes_need_unix(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        with pytest.raises(NotImplementedError, match=r"num_workers=2: .* use num_workers=0"):
            arrowdl.Loader(TABLE, 1, framework="numpy", num_workers=2)
    arrowdl.Loader(TABLE, 1, framework="numpy", num_workers=2)
