"""Loader: every source row by row against pyarrow's own reading; orders, ranks, resumes."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arrowdl
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrowdl.loader._integrations.torch_epochs import Iterations
from helpers.options import group
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = 1_037
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": np.random.default_rng(7).normal(size=ROWS).astype("float32"),
        "label": pa.array([i % 10 for i in range(ROWS)], pa.int8()),
        "flag": [i % 3 == 0 for i in range(ROWS)],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(range(ROWS * 4), pa.float32()), 4),
        "tokens": [list(range(i, i + i % 5)) for i in range(ROWS)],
    }
)
IDS = list(range(ROWS))


# Written down: states and experiments must mean the same in later versions.
FIRST_FILES = [775, 934, 289, 312, 191, 950, 11, 452]
FIRST_LANES = [527, 473, 804, 538, 182, 208, 457, 344]
FIRST_TABLE = [990, 802, 181, 70, 519, 632, 801, 690]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    (root / "parquet").mkdir()
    for i, start in enumerate(range(0, ROWS, 400)):
        part = TABLE.slice(start, 400)
        pq.write_table(part, root / f"parquet/part-{i}.parquet", row_group_size=150)
    (root / "parquet/_SUCCESS").touch()
    with pa.ipc.new_file(root / "file.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=100)
    with pa.ipc.new_stream(root / "stream.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=100)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(root / "zstd.feather", TABLE.schema, options=options) as writer:
        writer.write_table(TABLE, max_chunksize=100)
    ds.write_dataset(
        TABLE.select(["id", "x", "label"]),
        root / "hive",
        format="parquet",
        partitioning=ds.partitioning(pa.schema({"label": pa.int8()}), flavor="hive"),
    )
    return root


CUT_TABLE = pa.Table.from_batches(TABLE.to_batches(max_chunksize=100))
# Those with one order of rows, that of TABLE.
SOURCES: dict[str, Callable[[Path], Any]] = {
    "directory": lambda root: root / "parquet",
    "glob": lambda root: str(root / "parquet/*.parquet"),
    "paths": lambda root: sorted((root / "parquet").glob("*.parquet")),
    "dataset": lambda root: ds.dataset(root / "parquet"),
    "ipc file": lambda root: root / "file.arrow",
    "ipc stream": lambda root: root / "stream.arrow",
    "compressed ipc": lambda root: root / "zstd.feather",
    "table": lambda root: TABLE,
    "chunked table": lambda root: pa.Table.from_batches(TABLE.to_batches(max_chunksize=70)),
    "batch": lambda root: TABLE.to_batches()[0],
    "in-memory dataset": lambda root: ds.dataset(TABLE),
    "polars": lambda root: pl.from_arrow(TABLE),
    "polars lazy": lambda root: pl.from_arrow(TABLE).lazy(),
    "duckdb": lambda root: duckdb.from_arrow(TABLE),
    "DeviceArray": lambda root: arrowdl.from_arrow(TABLE.to_batches()[0]),
    "list of DeviceArrays": lambda root: list(arrowdl.from_arrow_stream(CUT_TABLE)),
    "function": lambda root: TABLE.to_reader,
    "list of batches": lambda root: TABLE.to_batches(max_chunksize=100),
}
ONE_PASS: dict[str, Callable[[], Any]] = {
    "reader": TABLE.to_reader,
    "capsule": TABLE.__arrow_c_stream__,
    "DeviceStream": lambda: arrowdl.from_arrow_stream(TABLE),
    "generator": lambda: iter(TABLE.to_batches(max_chunksize=100)),
}
COUNTED = ["directory", "ipc file", "table", "chunked table", "polars", "list of DeviceArrays"]
UNCOUNTED = ["duckdb", "function", "list of batches", "in-memory dataset"]


def read_ids(batches: Any) -> list[int]:
    return [i for batch in batches for i in batch["id"].tolist()]


def to_rows(batch: dict[str, Any]) -> list[dict[str, Any]]:
    columns = {
        name: [row.tolist() for row in value.unbind()] if value.is_nested else value.tolist()
        for name, value in batch.items()
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# ---- sources


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_row_of_every_source(name: str, shuffle: bool, files: Path) -> None:
    loader = arrowdl.Loader(SOURCES[name](files), 100, **group(shuffle=shuffle, buffer_size=300))
    for _ in range(2):  # epochs
        batches = list(loader)
        assert [len(batch["id"]) for batch in batches] == [100] * 10 + [37]
        rows = [row for batch in batches for row in to_rows(batch)]
        assert [row["id"] for row in rows] != IDS if shuffle else True
        assert sorted(rows, key=lambda row: row["id"]) == TABLE.to_pylist()
        if not shuffle:
            assert [row["id"] for row in rows] == IDS


@pytest.mark.parametrize("name", ONE_PASS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_streams_are_for_one_pass(name: str, shuffle: bool) -> None:
    loader = arrowdl.Loader(ONE_PASS[name](), 100, shuffle=shuffle)
    assert sorted(read_ids(loader)) == IDS
    with pytest.raises(RuntimeError, match="one pass, and has been read"):
        list(loader)


def test_pandas() -> None:
    frame = TABLE.select(["id", "x"]).to_pandas()
    assert read_ids(arrowdl.Loader(frame, 64)) == IDS


@pytest.mark.parametrize("name", [*COUNTED, *UNCOUNTED])
def test_columns_in_the_order_asked_for(name: str, files: Path) -> None:
    loader = arrowdl.Loader(SOURCES[name](files), 500, columns=["label", "id"])
    assert [list(batch) for batch in loader] == [["label", "id"]] * 3
    with pytest.raises(ValueError, match="nope"):
        list(arrowdl.Loader(SOURCES[name](files), 500, columns=["nope"]))


def test_partition_columns_are_columns(files: Path) -> None:
    loader = arrowdl.Loader(files / "hive", 100, shuffle=True)
    labels: dict[int, int] = {}
    for batch in loader:
        labels |= zip(batch["id"].tolist(), batch["label"].tolist(), strict=True)
    assert labels == {i: i % 10 for i in IDS}


@pytest.mark.parametrize("shuffle", [False, True])
def test_filter(shuffle: bool, files: Path) -> None:
    expected = [i for i in IDS if i % 10 == 3 and i > 200]
    rows = (ds.field("label") == 3) & (ds.field("id") > 200)
    loader = arrowdl.Loader(files / "parquet", 10, filter=rows, shuffle=shuffle)
    assert len(loader) == -(-len(expected) // 10)
    assert sorted(read_ids(loader)) == expected
    filtered = ds.dataset(files / "parquet").filter(rows)
    assert sorted(read_ids(arrowdl.Loader(filtered, 10, shuffle=shuffle))) == expected
    with pytest.raises(ValueError, match="filter= works on files"):
        arrowdl.Loader(TABLE, 10, filter=rows)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a Loader cannot read int"):
        arrowdl.Loader(3, 10)
    with pytest.raises(FileNotFoundError, match="no file at"):
        arrowdl.Loader(tmp_path / "nope.parquet", 10)
    (tmp_path / "a.parquet").touch()
    (tmp_path / "b.arrow").touch()
    with pytest.raises(ValueError, match="some of the files are Parquet and some"):
        arrowdl.Loader(tmp_path, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
        ({"prefetch": -1}, "prefetch=-1"),
        ({"framework": "mxnet"}, "framework='mxnet'"),
        ({"columns": "id"}, "give a list of names"),
        ({"rank": 1}, "belong together"),
        ({"rank": 2, "world_size": 2}, "rank=2, world_size=2"),
        ({"shuffle": True, "buffer_size": 0}, "buffer_size=0"),
    ],
)
def test_arguments_that_mean_nothing(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        arrowdl.Loader(TABLE, **group(**{"batch_size": 10, **arguments}))


def test_empty_sources() -> None:
    for source in (TABLE.slice(0, 0), TABLE.slice(0, 0).to_reader()):
        assert list(arrowdl.Loader(source, 10, shuffle=True)) == []


# ---- batches


def test_frameworks() -> None:
    plain = TABLE.select(["id", "x", "vector"])
    for framework in ("torch", "numpy"):
        batch = next(iter(arrowdl.Loader(plain, 10, framework=framework)))
        assert {name: tuple(value.shape) for name, value in batch.items()} == {
            "id": (10,),
            "x": (10,),
            "vector": (10, 4),
        }
    import jax

    batches = list(arrowdl.Loader(plain.select(["x", "vector"]), 500, framework="jax"))
    assert isinstance(batches[0]["x"], jax.Array)
    assert np.array_equal(np.concatenate([b["x"] for b in batches]), plain["x"].to_numpy())


def test_nulls_by_policy() -> None:
    table = pa.table({"id": [1, None, 3]})
    with pytest.raises(BufferError, match="id"):
        list(arrowdl.Loader(table, 3))
    (batch,) = arrowdl.Loader(table, 3, nulls="fill")
    assert batch["id"].tolist() == [1, 0, 3]
    (batch,) = arrowdl.Loader(table, 3, nulls="mask")
    assert batch["id"][1].tolist() == [True, False, True]


def test_stack_and_transform() -> None:
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1]})
    (matrix,) = arrowdl.Loader(table, 2, columns=["a", "b"], stack=True)
    assert matrix.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    (batch,) = arrowdl.Loader(table, 2, stack={"features": ["b", "a"]})
    assert batch["features"].tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert batch["y"].tolist() == [0, 1]
    (pair,) = arrowdl.Loader(table, 2, stack={"x": ["a"]}, transform=lambda b: (b["x"], b["y"]))
    assert [value.tolist() for value in pair] == [[[1.0], [2.0]], [0, 1]]


def test_padded_lists() -> None:
    table = pa.table({"t": [[1, 2], [], [3]]})
    ((padded, lengths),) = (batch["t"] for batch in arrowdl.Loader(table, 3, ragged="padded"))
    assert padded.tolist() == [[1, 2], [0, 0], [3, 0]]
    assert lengths.tolist() == [2, 0, 1]


def test_batches_of_a_table_are_its_memory_where_nobody_writes() -> None:
    (batch,) = arrowdl.Loader(TABLE.select(["x"]), ROWS, writable=False)
    assert batch["x"].data_ptr() == TABLE["x"].chunk(0).buffers()[1].address


# ---- order


def test_the_same_seed_gives_the_same_batches(files: Path) -> None:
    def read(**arguments: Any) -> list[list[int]]:
        loader = arrowdl.Loader(
            files / "parquet",
            64,
            **group(**{"shuffle": True, "seed": 1, "buffer_size": 256, **arguments}),
        )
        return [read_ids(loader), read_ids(loader)]

    first, second = read()
    assert read() == [first, second]
    assert first != second
    assert read(prefetch=0) == [first, second]
    assert read(columns=["id"]) == [first, second]
    assert read(seed=2)[0] != first
    loader = arrowdl.Loader(files / "parquet", 64, shuffle=arrowdl.Shuffle(256), seed=1)
    loader.set_epoch(1)
    assert read_ids(loader) == second
    assert loader.epoch == 2


def test_shuffled_order_is_for_all_time(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = arrowdl.Loader(files / "parquet", 8, shuffle=arrowdl.Shuffle(400), seed=7)
    assert next(iter(loader))["id"].tolist() == FIRST_FILES
    # The order of row groups that do not fit into memory.
    monkeypatch.setattr("arrowdl.loader._buffer.BUFFER_BYTES", 0)
    loader = arrowdl.Loader(files / "parquet", 8, shuffle=arrowdl.Shuffle(400), seed=7)
    assert next(iter(loader))["id"].tolist() == FIRST_LANES
    loader = arrowdl.Loader(TABLE, 8, shuffle=arrowdl.Shuffle(400), seed=7)
    assert next(iter(loader))["id"].tolist() == FIRST_TABLE


def test_an_epoch_left_in_the_middle_starts_again() -> None:
    loader = arrowdl.Loader(TABLE, 100, shuffle=True)
    first = [batch["id"].tolist() for batch in itertools.islice(loader, 3)]
    assert [batch["id"].tolist() for batch in itertools.islice(loader, 3)] == first


# ---- ranks

shapes = st.tuples(st.integers(0, 300), st.integers(1, 40), st.integers(1, 5), st.integers(1, 90))


@settings(max_examples=60)
@given(shapes, st.booleans(), st.booleans(), st.booleans())
def test_ranks_share_the_rows(
    shape: tuple[int, int, int, int], shuffle: bool, drop_last: bool, counted: bool
) -> None:
    rows, batch_size, world_size, window = shape
    table = pa.table({"id": pa.array(range(rows), pa.int64())})
    seen: Counter[int] = Counter()
    batches = set()
    for rank in range(world_size):
        loader = arrowdl.Loader(
            table if counted else table.to_reader(),
            batch_size,
            drop_last=drop_last,
            **group(rank=rank, world_size=world_size, shuffle=shuffle, buffer_size=window),
        )
        read = [batch["id"].tolist() for batch in loader]
        batches.add(len(read))
        if counted:
            loader.set_epoch(0)
            assert len(loader) == len(read)
        assert all(len(batch) == batch_size for batch in (read if drop_last else read[:-1]))
        seen.update(i for batch in read for i in batch)
    assert len(batches) == 1, "ranks with more batches than others wait for ever"
    repeated = seen.total() - len(seen)
    if drop_last:
        assert repeated == 0
        assert rows - len(seen) < world_size * batch_size + (0 if not counted else world_size)
    else:
        assert len(seen) == rows
        assert repeated < world_size


def test_ranks_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert read_ids(arrowdl.Loader(TABLE, 100)) == IDS[519:]
    assert read_ids(arrowdl.Loader(TABLE, 100, ranks=arrowdl.Ranks(0, 1))) == IDS


@pytest.mark.parametrize(("rank", "world"), [("5", "2"), ("-1", "2"), ("x", "2"), ("0", "0")])
def test_environments_that_make_no_sense(
    rank: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world)
    with pytest.raises(ValueError, match=f"RANK='{rank}' and WORLD_SIZE='{world}'"):
        list(arrowdl.Loader(TABLE, 100))


def test_ranks_are_read_from_torch() -> None:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=store)
    try:
        assert read_ids(arrowdl.Loader(TABLE, 100)) == IDS
    finally:
        torch.distributed.destroy_process_group()


# ---- states


def resume(source: Any, seed: int) -> None:
    """Some batches by some ranks, then some by others, then the rest by yet others: all rows."""
    chance = random.Random(seed)
    shuffle = chance.random() < 0.7
    seen: Counter[int] = Counter()
    state: dict[str, Any] | None = None
    worlds = [chance.randint(1, 4) for _ in range(3)]
    for part, world_size in enumerate(worlds):
        batch_size = chance.choice([7, 33, 100])
        steps = chance.randint(0, 3) if part < len(worlds) - 1 else None
        states = []
        for rank in range(world_size):
            loader = arrowdl.Loader(
                source,
                batch_size,
                columns=["id"],
                prefetch=chance.randint(0, 2),
                **group(shuffle=shuffle, rank=rank, world_size=world_size, buffer_size=200),
            )
            if state is not None:
                loader.load_state_dict(json.loads(json.dumps(state)))
            batches = iter(loader)
            seen.update(read_ids(itertools.islice(batches, steps)))
            states.append(loader.state_dict())
            del batches
        assert all(other == states[0] for other in states)
        state = states[0]
        if state["epoch"] == 1:
            break
        assert len(json.dumps(state)) < 1024
    assert len(seen) == ROWS
    assert seen.total() - ROWS < max(worlds)


@pytest.mark.parametrize("name", [*COUNTED, *UNCOUNTED])
@pytest.mark.parametrize("seed", range(6))
def test_resumes_lose_and_repeat_nothing(name: str, seed: int, files: Path) -> None:
    resume(SOURCES[name](files), seed)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("name", [*COUNTED, *UNCOUNTED])
def test_a_resumed_epoch_goes_on_as_the_whole_one(name: str, shuffle: bool, files: Path) -> None:
    def make() -> arrowdl.Loader:
        return arrowdl.Loader(
            SOURCES[name](files),
            50,
            **group(shuffle=shuffle, buffer_size=128, rank=1, world_size=2),
        )

    whole = make()
    epochs = [[batch["id"].tolist() for batch in whole] for _ in range(2)]
    for steps in (0, 1, 4, len(epochs[0])):
        first = make()
        batches: Any = iter(first)
        list(itertools.islice(batches, steps))
        state = first.state_dict()
        batches.close()  # duckdb has one result open at a time
        second = make()
        second.load_state_dict(state)
        assert [batch["id"].tolist() for batch in second] == epochs[0][steps:]
        if steps < len(epochs[0]):
            assert [batch["id"].tolist() for batch in second] == epochs[1]


def test_states_of_something_else_are_refused(files: Path) -> None:
    loader = arrowdl.Loader(TABLE, 50, shuffle=True)
    state = loader.state_dict()
    for other, word in (
        (arrowdl.Loader(TABLE.slice(1), 50, shuffle=True), "dataset"),
        (arrowdl.Loader(files / "parquet", 50, shuffle=True), "dataset"),
        (arrowdl.Loader(TABLE, 50, shuffle=True, seed=1), "seed"),
        (arrowdl.Loader(TABLE, 50), "shuffle"),
        (arrowdl.Loader(TABLE, 50, shuffle=arrowdl.Shuffle(5)), "Shuffle.buffer_size"),
    ):
        with pytest.raises(ValueError, match=f"another {word}"):
            other.load_state_dict(state)
    with pytest.raises(ValueError, match="states of several Loaders"):
        loader.load_state_dict({"train": state, "test": {**state, "seed": 5}})
    for wrong in ({}, {"version": 99}, []):
        with pytest.raises(ValueError, match="not a state of a Loader"):
            loader.load_state_dict(wrong)  # type: ignore[arg-type]
    other = arrowdl.Loader(TABLE, 7, shuffle=True, prefetch=5, framework="numpy")
    other.load_state_dict(state)
    in_order = arrowdl.Loader(TABLE, 50, seed=1)  # which means nothing then
    in_order.load_state_dict(arrowdl.Loader(TABLE, 50).state_dict())


# ---- PyTorch's DataLoader


WITH_WORKERS = """
import json, sys
import arrowdl
from torch.utils.data import DataLoader
for workers in (0, 1, 2):
    for shuffle in (False, True):
        loader = arrowdl.Loader(sys.argv[1], 100, columns=["id", "x"], shuffle=shuffle)
        for _ in range(2):  # a second pass forks a process that has read
            batches = DataLoader(loader.torch_dataset(), batch_size=None, num_workers=workers)
            ids = [i for batch in batches for i in batch["id"].tolist()]
            print(json.dumps([workers, shuffle, ids]))
            list(loader)
"""


def test_dataloader_workers_share_the_rows(files: Path) -> None:
    """In a process without JAX, whose threads do not go with the forks of DataLoader."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_WORKERS, files / "parquet"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    lines = list(map(json.loads, done.stdout.splitlines()))
    assert len(lines) == 3 * 2 * 2
    for workers, shuffle, ids in lines:
        assert sorted(ids) == IDS, (workers, shuffle)
        if workers < 2 and not shuffle:
            assert ids == IDS


ITERATIONS = """
import gc, glob, os, sys, tempfile
import arrowdl
import pyarrow as pa
from torch.utils.data import DataLoader
workers, persistent = int(sys.argv[1]), sys.argv[2] == "True"
tempfile.tempdir = tempfile.mkdtemp()
table = pa.table({"id": range(100)})

def make():
    return arrowdl.Loader(table, 7, shuffle=arrowdl.Shuffle(32))

def read(batches):
    return sorted(batch["id"].tolist() for batch in batches)

alone = make()
epochs = [read(alone) for _ in range(10)]
assert len({str(epoch) for epoch in epochs}) == 10

def deal(loader, **options):
    return DataLoader(
        loader.torch_dataset(), batch_size=None, num_workers=workers, persistent_workers=persistent,
        **options,
    )

loader = make()
batches = deal(loader, prefetch_factor=9)
assert [read(batches) for _ in range(3)] == epochs[:3]
for epoch in range(3, 6):  # left in the middle, when a worker may be through
    for i, batch in enumerate(batches):
        if i == 13:
            break
assert read(batches) == epochs[6]
if not persistent:  # which have one iteration at a time
    both = list(zip(iter(batches), iter(batches)))
    # The epochs go to whichever iteration's workers begin first.
    assert sorted(read(column) for column in zip(*both)) == sorted(epochs[7:9])
del batches

if not persistent:  # those go on by themselves
    batches = deal(loader)
    for epoch in (5, 5, 2):
        loader.set_epoch(epoch)
        assert [read(batches) for _ in range(2)] == epochs[epoch : epoch + 2]
    assert read(loader) == epochs[2], "it stays where it is"
    assert read(batches) == epochs[3]

first = make()
first.set_epoch(4)
some = iter(first)
seen = [next(some)["id"].tolist() for _ in range(5)]
loader = make()
loader.load_state_dict(first.state_dict())
batches = deal(loader)
rest = [i for batch in batches for i in batch["id"].tolist()]
assert sorted(rest + [i for batch in seen for i in batch]) == list(range(100))
assert [read(batches) for _ in range(2)] == epochs[5:7]

assert glob.glob(f"{tempfile.tempdir}/arrowdl-*")
del batches, loader, first, some
gc.collect()
assert not glob.glob(f"{tempfile.tempdir}/arrowdl-*")
os.rmdir(tempfile.tempdir)
"""


@pytest.mark.parametrize(
    ("workers", "persistent"),
    [
        (1, True),
        (3, False),
        pytest.param(1, False, marks=pytest.mark.slow),
        pytest.param(3, True, marks=pytest.mark.slow),
    ],
)
def test_each_iteration_of_workers_is_the_next_epoch(workers: int, persistent: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ITERATIONS, str(workers), str(persistent)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr


def test_workers_elsewhere_count_for_themselves(tmp_path: Path) -> None:
    iterations = Iterations()
    assert iterations._folder is not None
    shutil.rmtree(iterations._folder.path)
    assert [iterations.join("a", 5, 0, epoch=3, is_own=False) for _ in range(3)] == [None, 4, 5]


def test_workers_agree_on_the_iteration() -> None:
    """In any order, also with one seed for all iterations."""
    for seeds in ([1, 2, 3, 4], [7, 7, 7, 7]):
        iterations = Iterations()
        joined = [
            (seed, iterations.join("a", seed, worker, epoch=9, is_own=False))
            for seed in seeds
            for worker in (2, 0, 1)
        ]
        epochs = [None] * 3 + [10] * 3 + [11] * 3 + [12] * 3
        assert joined == list(zip(np.repeat(seeds, 3), epochs, strict=True))
        assert iterations.join("b", 1, 0, epoch=2, is_own=False) is None
    late = Iterations()
    assert late.join("a", 1, 0, epoch=0, is_own=False) is None
    assert late.join("a", 2, 0, epoch=0, is_own=False) == 1
    assert late.join("a", 1, 1, epoch=0, is_own=False) is None
    assert late.join("a", 2, 1, epoch=0, is_own=False) == 1
    assert late.join("a", 3, 0, epoch=8, is_own=True) == 8
    assert late.join("a", 4, 0, epoch=0, is_own=False) == 9


def test_dataset_has_the_length_of_the_loader() -> None:
    assert len(arrowdl.Loader(TABLE, 100).torch_dataset()) == 11
    with pytest.raises(TypeError, match="no length"):
        len(arrowdl.Loader(TABLE.to_reader(), 100).torch_dataset())


# ---- for people


def test_stats_and_repr() -> None:
    loader = arrowdl.Loader(TABLE, 100, shuffle=True, seed=3)
    list(loader)
    stats = loader.stats()
    assert (stats.batches, stats.rows) == (11, ROWS)
    assert stats.source_seconds > 0
    assert stats.conversion_seconds > 0
    assert stats.bottleneck in ("source", "conversion", "consumer")
    assert repr(loader) == (
        "<arrowdl.Loader of 1037 rows, batches of 100 for torch, shuffled with seed 3, epoch 1, "
        "rank 0 of 1>"
    )
    assert "stream" not in repr(arrowdl.Loader(TABLE.to_reader(), 5))


@pytest.mark.parametrize("workers", [0, 2])
def test_stats_count_bytes(workers: int) -> None:
    table = pa.table({"x": pa.array(range(95), pa.int32()), "s": ["abc"] * 95})
    loader = arrowdl.Loader(table, 10, num_workers=workers, framework="numpy", ragged="offsets")
    list(loader)
    stats = loader.stats()
    assert (stats.batches, stats.rows) == (10, 95)
    offsets = (95 + 10) * 4
    assert 0 <= stats.bytes - (95 * (4 + 3) + offsets) < (10 * 3 * 64 if workers else 1)


def test_progress_shows_the_batches(capsys: pytest.CaptureFixture[str]) -> None:
    list(arrowdl.Loader(TABLE, 100, progress=True))
    assert "11/11" in capsys.readouterr().err


def test_errors_of_the_source_reach_the_training() -> None:
    def fail() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise OSError("disk on fire")

    batches = iter(arrowdl.Loader(fail, 1000))
    next(batches)
    with pytest.raises(OSError, match="disk on fire"):
        list(batches)


def test_a_stream_has_no_length_whatever_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks neither the environment nor a framework for the ranks."""
    monkeypatch.setenv("RANK", "x")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = arrowdl.Loader(TABLE.to_reader, 2, framework="numpy")
    with pytest.raises(TypeError, match="a Loader over a stream has no length"):
        len(loader)
