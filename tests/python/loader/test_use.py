"""Loader in hands that do odd things: iterators at once, states, pickles, arguments."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import pickle
import re
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._batches.finish import pin
from arrowdl.loader._iteration import Iteration
from arrowdl.loader._progress import NoBar
from helpers.options import group
from torch.utils.data import DataLoader

TABLE = pa.table({"id": range(1000)})


def make(**arguments: Any) -> arrowdl.Loader:
    return arrowdl.Loader(TABLE, **group(**{"batch_size": 10, "shuffle": True, **arguments}))


def read_ids(batches: Any) -> list[int]:
    return [i for batch in batches for i in batch["id"].tolist()]


EPOCHS = [read_ids(loader) for loader in [make()] for _ in range(2)]


# ---- iterators


def test_two_iterators_at_once_read_one_epoch_each() -> None:
    loader = make()
    pairs = [(a["id"].tolist(), b["id"].tolist()) for a, b in zip(loader, loader, strict=True)]
    assert [i for a, _ in pairs for i in a] == [i for _, b in pairs for i in b] == EPOCHS[0]
    assert loader.epoch == 1
    assert read_ids(loader) == EPOCHS[1]


def test_an_iterator_that_was_replaced_says_nothing_of_the_state() -> None:
    loader = make()
    old, new = iter(loader), iter(loader)
    next(new)
    list(old)
    assert loader.epoch == 0
    assert loader.state_dict()["stages"] == [[1, 1, 10, 0, 1]]
    assert read_ids(new) == EPOCHS[0][10:]
    assert loader.epoch == 1


def test_set_epoch_in_the_middle_is_for_the_next_iterator() -> None:
    loader = make()
    batches = iter(loader)
    next(batches)
    loader.set_epoch(1)
    assert read_ids(batches) == EPOCHS[0][10:]
    assert loader.epoch == 1
    assert read_ids(loader) == EPOCHS[1]


def test_a_resumed_epoch_of_several_parts_keeps_its_order() -> None:
    """What is left by several ranks is in several spans, which are opened one after another."""
    first = make(rank=0, world_size=3)
    next(iter(first))
    state = first.state_dict()
    expected, loader = make(), make()
    expected.load_state_dict(state)
    loader.load_state_dict(state)
    batches = iter(loader)
    start = read_ids(itertools.islice(batches, 2))
    loader.set_epoch(1)
    assert start + read_ids(batches) == read_ids(expected)


def test_a_state_waits_for_its_reader() -> None:
    loader = make()
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    for _ in range(2):
        loader.load_state_dict(state)
        assert loader.state_dict() == state
    iter(loader)  # and not read from
    assert loader.state_dict() == state
    next(batches)
    assert loader.state_dict() == state
    assert read_ids(loader) == EPOCHS[0][10:]


def test_an_iterator_that_is_dropped_gives_back_what_it_holds(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=100)
    threads = {*threading.enumerate()}  # of other tests: some may end meanwhile
    for _ in range(5):
        next(iter(arrowdl.Loader(tmp_path, 10, shuffle=arrowdl.Shuffle(50))))
    assert {*threading.enumerate()} <= threads


def test_a_batch_whose_transform_failed_comes_again() -> None:
    calls = itertools.count()

    def fail_at_third(batch: Any) -> Any:
        if next(calls) == 2:
            raise KeyError("third")
        return batch

    loader = make(transform=fail_at_third)
    with pytest.raises(KeyError, match="third"):
        list(loader)
    again = make()
    again.load_state_dict(loader.state_dict())
    assert read_ids(again) == EPOCHS[0][20:]


def test_threads_with_a_loader_each() -> None:
    found: list[list[int]] = []
    readers = [threading.Thread(target=lambda: found.append(read_ids(make()))) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert found == [EPOCHS[0]] * 4


# ---- the same source, the same order


def test_the_order_of_a_table_does_not_depend_on_its_chunks() -> None:
    """A lazy frame has as many chunks as it had threads."""
    table = pa.table({"id": range(20_000)})
    loader = arrowdl.Loader(table, 64, shuffle=True)
    next(batches := iter(loader))
    state, rest = loader.state_dict(), read_ids(batches)
    for size in (7, 999, 5_000):
        chunked = pa.Table.from_batches(table.to_batches(max_chunksize=size))
        other = arrowdl.Loader(chunked, 64, shuffle=True)
        other.load_state_dict(state)
        assert read_ids(other) == rest


# ---- pickles


def count() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=100)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_goes_to_another_process(shuffle: bool, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=100)
    rows = ds.field("id") >= 0
    sources: list[tuple[Any, Any]] = [
        (TABLE, None),
        (TABLE.to_batches(max_chunksize=100), None),
        (pl.from_arrow(TABLE), None),
        (count, None),
        (tmp_path, None),
        (tmp_path, rows),
        (ds.dataset(tmp_path), rows),
    ]
    for source, filter in sources:
        loader = arrowdl.Loader(source, 10, filter=filter, shuffle=shuffle, columns=["id"])
        copy = pickle.loads(pickle.dumps(loader.torch_dataset()))
        assert read_ids(copy) == read_ids(loader)
    with pytest.raises(TypeError, match="pickl"):
        pickle.dumps(arrowdl.Loader(TABLE.to_reader(), 10))


# ---- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": "7"}, "seed='7': expected an int"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"buffer_size": 2**32}, "at most 4294967295"),
        ({"batch_size": 2**70}, "batch_size=1180591620717411303424"),
        ({"prefetch": 2**70}, "prefetch=1180591620717411303424"),
        ({"rank": "0", "world_size": "2"}, "world_size='2'"),
        ({"rank": -1, "world_size": 2}, "rank=-1"),
        ({"stack": ["id"]}, "give True, or names and their columns"),
        ({"stack": {"x": "id"}}, "'x': 'id'}: give a list of at least one column"),
        ({"stack": {"x": []}}, "'x': .* give a list of at least one column"),
        ({"transform": 3}, "a function of one batch"),
        ({"columns": {"id"}}, "a list of names"),
        ({"columns": 3}, "a list of names"),
        ({"columns": [0]}, "0 is not a str"),
        ({"columns": ["id", "id"]}, '"id" is listed twice'),
    ],
)
def test_arguments_that_mean_nothing(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make(**arguments)


def test_arguments_of_numpy_are_as_good() -> None:
    loader = make(batch_size=np.int64(10), seed=np.int32(0))
    loader.set_epoch(np.int64(1))
    assert read_ids(loader) == EPOCHS[1]
    assert type(loader.state_dict()["epoch"]) is int
    columns: Any = (name for name in ["id"])
    loader = make(columns=columns)
    assert [read_ids(loader), read_ids(loader)] == EPOCHS


@pytest.mark.parametrize("filter", ["id > 3", [("id", ">", 3)]])
def test_filters_that_are_no_expression(filter: Any) -> None:
    with pytest.raises(TypeError, match="give a pyarrow expression"):
        arrowdl.Loader(ds.dataset(TABLE), 10, filter=filter)


def test_a_matrix_does_not_take_the_place_of_a_column() -> None:
    table = pa.table({"x": [1.0], "y": [2.0]})
    with pytest.raises(ValueError, match='a column "x" that is not stacked'):
        list(arrowdl.Loader(table, 1, stack={"x": ["y"]}))
    (batch,) = arrowdl.Loader(table, 1, stack={"x": ["x", "y"]})
    assert batch["x"].tolist() == [[1.0, 2.0]]


def without(key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda state: {name: value for name, value in state.items() if name != key}


@pytest.mark.parametrize(
    "change",
    [
        without("seed"),
        without("epoch"),
        lambda state: {**state, "stages": [[0, 5]]},
        lambda state: {**state, "stages": [[1, -5]]},
        lambda state: {**state, "stages": [[1, 1, 0, 0, 3]]},
        lambda state: {**state, "stages": [[0, 1, 5, 0, 3]]},
        lambda state: {**state, "stages": None},
        lambda state: {**state, "epoch": "1"},
        lambda state: {**state, "epoch": -1},
    ],
)
def test_states_that_are_damaged(change: Callable[[dict[str, Any]], Any]) -> None:
    loader = make()
    with pytest.raises(ValueError, match="not a state of a Loader"):
        loader.load_state_dict(change(loader.state_dict()))
    assert read_ids(loader) == EPOCHS[0]


def test_pinning_leaves_what_is_no_tensor() -> None:
    """What a transform gives may be anything."""

    class Pinned:
        def pin_memory(self) -> str:
            return "pinned"

    pair = namedtuple("pair", "x name")
    assert pin({"a": [Pinned(), 3], "b": pair(Pinned(), "n")}) == {
        "a": ["pinned", 3],
        "b": pair("pinned", "n"),
    }


# ---- what is made for each epoch


@pytest.mark.parametrize("empty", [pa.array([], pa.string()), pa.nulls(1, pa.string())])
def test_the_first_codes_say_what_codes_mean(empty: pa.Array) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()

    def make(last: pa.Array) -> Callable[[], Iterator[pa.RecordBatch]]:
        columns = [empty.dictionary_encode(), words, words[:0], last]
        return lambda: (pa.record_batch({"k": column}) for column in columns)

    loader = arrowdl.Loader(make(words[:1]), 5, nulls="fill", framework="numpy")
    for _ in range(2):
        codes = [i for batch in loader for i in batch["k"].tolist()]
        assert codes[-4:] == [0, 1, 0, 0]
    other = pa.array(["b"]).dictionary_encode()
    with pytest.raises(ValueError, match="changes between batches"):
        list(arrowdl.Loader(make(other), 5, nulls="fill"))


def test_a_function_may_make_a_query_or_a_dataset(tmp_path: Path) -> None:
    table = pa.table({"id": range(20)})
    pq.write_table(table, tmp_path / "a.parquet")
    frame = pl.DataFrame(table)
    for make in (frame.lazy, lambda: ds.dataset(tmp_path)):
        loader = arrowdl.Loader(make, 3)
        for _ in range(2):
            assert read_ids(loader) == list(range(20))


# ---- given to a DataLoader

ADVICE = "DataLoader(loader.torch_dataset(), batch_size=None)"


@pytest.mark.parametrize("batch_size", [None, 1])
@pytest.mark.parametrize("source", [TABLE, TABLE.to_batches], ids=["table", "stream"])
def test_a_dataloader_wants_the_dataset(source: Any, batch_size: int | None) -> None:
    loader = arrowdl.Loader(source, 10)
    with pytest.raises(TypeError, match=re.escape(ADVICE)):
        list(DataLoader(loader, batch_size=batch_size))
    assert len(list(DataLoader(loader.torch_dataset(), batch_size=None))) == 100


@pytest.mark.slow
def test_a_worker_of_a_dataloader_wants_the_dataset() -> None:
    with pytest.raises(TypeError, match=re.escape(ADVICE)):
        list(DataLoader(make(), num_workers=1, multiprocessing_context="spawn"))
    gc.collect()  # torch's error is in a cycle with the frames that hold the worker process
    assert multiprocessing.active_children() == []


def test_a_loader_is_no_sequence() -> None:
    assert not isinstance(make(), Sequence)
    with pytest.raises(TypeError, match="no batch number 3"):
        make()[3]


def test_an_interrupt_in_the_progress_bar_loses_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that the training has not received is not counted as read."""

    class Interrupting(NoBar):
        def __enter__(self) -> Callable[[int], None]:
            shown = iter([None, None])
            return lambda rows: next(shown, KeyboardInterrupt) and interrupt()

    def interrupt() -> None:
        raise KeyboardInterrupt

    table = pa.table({"id": range(20)})
    loader = arrowdl.Loader(table, 2, framework="numpy")
    monkeypatch.setattr(Iteration, "_make_bar", lambda self, reader: Interrupting())
    with pytest.raises(KeyboardInterrupt):
        list(loader)
    monkeypatch.undo()
    rest = arrowdl.Loader(table, 2, framework="numpy")
    rest.load_state_dict(loader.state_dict())
    assert next(iter(rest))["id"].tolist() == [4, 5]
