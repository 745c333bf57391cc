"""Random Loaders that are left in the middle and go on with other ranks, beside lists of rows."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from helpers.options import group
from helpers.random_cases import check_cases

SOURCES = ["table", "parquet", "ipc", "dataset", "reader"]


def draw_table(rng: random.Random) -> pa.Table:
    """Numbered rows in pieces; the other columns are made of the number."""
    pieces = [rng.choice([0, 1, 2, 5, 11, 20]) for _ in range(rng.randrange(1, 6))]
    first = 0
    batches = []
    for count in pieces:
        ids = list(range(first, first + count))
        batches.append(pa.record_batch(rows_of(ids), names=["id", "x", "v", "t", "n", "k"]))
        first += count
    return pa.Table.from_batches(batches)


def rows_of(ids: list[int]) -> list[pa.Array]:
    return [
        pa.array(ids, pa.int64()),
        pa.array([i / 2 for i in ids], pa.float32()),
        pa.array([[i, -i] for i in ids], pa.list_(pa.int32(), 2)),
        pa.array(["z" * (i % 3) for i in ids], pa.string()),
        pa.array([i if i % 5 else None for i in ids], pa.int16()),
        pa.array([f"w{i % 4}" for i in ids], pa.string()).dictionary_encode(),
    ]


def write(rng: random.Random, table: pa.Table, kind: str, folder: Path) -> Any:
    """Something to read the rows of `table` from, in its order."""
    if kind == "table":
        return table
    if kind == "reader":
        return lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    cuts = sorted(rng.randrange(len(table) + 1) for _ in range(rng.randrange(3)))
    ends = [0, *cuts, len(table)]
    paths = []
    for i, (start, stop) in enumerate(pairwise(ends)):
        path = folder / f"{i}.{'arrow' if kind == 'ipc' else 'parquet'}"
        part = table[start:stop]
        if kind == "ipc":
            pa.feather.write_feather(part, path, compression="uncompressed")
        else:
            pq.write_table(part, path, row_group_size=rng.choice([1, 3, 10, 1000]))
        paths.append(str(path))
    return pa.dataset.dataset(paths) if kind == "dataset" else paths


def transform(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Importable, for worker processes. Keeps all but the order of the columns."""
    return batch.select(["t", "k", "n", "v", "x", "id"])


def draw_options(rng: random.Random) -> dict[str, Any]:
    """Options that change how columns become tensors, not which rows a batch has."""
    options: dict[str, Any] = {"nulls": {"n": rng.choice(["mask", "fill", "nan"])}}
    if options["nulls"]["n"] == "nan" or rng.random() < 0.3:
        options["dtype"] = rng.choice(["float32", {"n": "float64", "x": "float16"}])
    options["ragged"] = rng.choice(["offsets", {"t": "padded"}])
    if options["ragged"] != "offsets":
        options["pad_value"] = {"t": 7}
        options["pad_to_multiple"] = rng.choice([None, 4])
        options["max_length"] = rng.choice([None, {"t": 1}])
    if rng.random() < 0.5:
        options["transform_arrow"] = transform
    return options


def check_rows(batch: dict[str, Any], options: dict[str, Any], values: list[str]) -> list[int]:
    """The numbers of the rows, whose other columns are what the numbers say."""
    ids = [int(i) for i in batch["id"]]
    assert batch["x"].tolist() == [i / 2 for i in ids]
    assert batch["v"].tolist() == [[i, -i] for i in ids]
    assert [values[int(code)] for code in batch["k"]] == [f"w{i % 4}" for i in ids]
    check_nulls(batch["n"], options["nulls"]["n"], ids)
    if options["ragged"] != "offsets":
        rows, lengths = batch["t"]
        longest = 2 if options["max_length"] is None else 1
        assert lengths.tolist() == [min(i % 3, longest) for i in ids]
        for i, row in zip(ids, rows.tolist(), strict=True):
            used = min(i % 3, longest)
            assert row == [ord("z")] * used + [7] * (len(row) - used)
        assert rows.shape[1] % (options["pad_to_multiple"] or 1) == 0
        return ids
    flat, offsets = batch["t"]
    assert np.diff(offsets).tolist() == [i % 3 for i in ids]
    assert bytes(flat) == b"z" * len(flat)
    return ids


def check_nulls(column: Any, policy: str, ids: list[int]) -> None:
    if policy == "mask":
        column, mask = column
        assert mask.tolist() == [i % 5 != 0 for i in ids]
    found = column.tolist()
    assert len(found) == len(ids)
    for i, value in zip(ids, found, strict=True):
        if i % 5:
            assert value == i
        elif policy != "mask":
            assert np.isnan(value) if policy == "nan" else value == 0


class Epoch:
    """One epoch of a source, read by as many ranks as there happen to be."""

    def __init__(self, rng: random.Random, source: Any, rows: int) -> None:
        self.rng = rng
        self.source = source
        self.rows = rows
        self.columns = draw_options(rng)
        if callable(source):  # a stream, whose dictionaries differ
            self.columns["vocabulary"] = {"k": ["w3", "w1", "w0", "w2"]}
        self.order = {
            "shuffle": rng.random() < 0.6,
            "seed": rng.randrange(2**31),
            "buffer_size": rng.choice([1, 3, 16, 1000]),
        }

    def open(self, world: int, state: Any, batch_size: int, **options: Any) -> list[arrowdl.Loader]:
        loaders = []
        for rank in range(world):
            loader = arrowdl.Loader(
                self.source,
                batch_size,
                framework="numpy",
                prefetch=self.rng.choice([0, 1, 3]),
                **group(rank=rank, world_size=world, **self.order, **self.columns, **options),
            )
            if state is not None:
                loader.load_state_dict(state)
            loaders.append(loader)
        return loaders

    def check(self, loader: arrowdl.Loader, batch: dict[str, Any]) -> list[int]:
        return check_rows(batch, self.columns, loader.vocabulary("k").to_pylist())


def read_steps(
    epoch: Epoch, loaders: list[arrowdl.Loader], steps: int | None
) -> tuple[list[list[list[int]]], list[Any], bool]:
    """Batches of each step and rank, the states afterwards, and whether the epoch is over."""
    iterators = [iter(loader) for loader in loaders]
    read: list[list[list[int]]] = []
    while steps is None or len(read) < steps:
        batches = [next(iterator, None) for iterator in iterators]
        if None in batches:
            assert batches == [None] * len(batches), "ranks have as many batches"
            return read, [loader.state_dict() for loader in loaders], True
        read.append(
            [epoch.check(loader, batch) for loader, batch in zip(loaders, batches, strict=True)]
        )
    return read, [loader.state_dict() for loader in loaders], False


def check_stops(rng: random.Random, folder: Path) -> None:
    table = draw_table(rng)
    source = write(rng, table, rng.choice(SOURCES), folder)
    epoch = Epoch(rng, source, len(table))
    drop_last = rng.random() < 0.3
    seen: Counter[int] = Counter()
    state = None
    is_over = False
    most = 1  # rows that one step may hold back or repeat
    while not is_over:
        world = rng.randrange(1, 5)
        size = rng.choice([1, 2, 3, 7, 20])
        most = max(most, world * size)
        steps = rng.choice([0, 1, 2, 3, None])
        loaders = epoch.open(world, state, size, drop_last=drop_last)
        read, states, is_over = read_steps(epoch, loaders, steps)
        assert all(one == states[0] for one in states), "ranks agree on where they are"
        state = rng.choice(states)
        last = len(read) - 1
        for step, batches in enumerate(read):
            for ids in batches:
                assert 0 < len(ids) <= size
                seen.update(ids)
            if step < last or not is_over:
                continue
            check_last(batches, drop_last, size)
    ids = set(range(len(table)))
    assert set(seen) <= ids
    if drop_last:
        assert max(seen.values(), default=1) == 1
        assert len(seen) > len(table) - most
    else:
        assert set(seen) == ids, "no row is missing"
        assert sum(seen.values()) - len(table) < 4, "a rank repeats one row at most, at the end"


def check_last(batches: list[list[int]], drop_last: bool, size: int) -> None:
    lengths = [len(ids) for ids in batches]
    assert max(lengths) - min(lengths) <= 1
    if drop_last:
        assert lengths == [size] * len(lengths)


def test_stops_and_other_ranks(tmp_path: Path) -> None:
    number = iter(range(10**9))

    def check(rng: random.Random) -> None:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        check_stops(rng, folder)

    check_cases(check, 30)


def check_order(rng: random.Random, folder: Path) -> None:
    """One order of rows for any number of ranks, batch size and stop."""
    table = draw_table(rng)
    epoch = Epoch(rng, write(rng, table, rng.choice(SOURCES), folder), len(table))
    (loader,) = epoch.open(1, None, rng.randrange(1, 9))
    orders = []
    for _ in range(2):
        orders.append([i for batch in loader for i in epoch.check(loader, batch)])
        assert sorted(orders[-1]) == list(range(len(table)))
    if not epoch.order["shuffle"]:
        assert orders == [list(range(len(table)))] * 2
    stopped = rng.randrange(2)
    (again,) = epoch.open(1, None, 3)
    again.set_epoch(stopped)
    steps = rng.randrange(5)
    read, (state,), _ = read_steps(epoch, [again], steps)
    (resumed,) = epoch.open(1, state, 5)
    rest, _, _ = read_steps(epoch, [resumed], None)
    ids = [i for (batch,) in read for i in batch]
    if len(ids) < len(table):
        ids += [i for (batch,) in rest for i in batch]
    assert ids == orders[stopped]


def test_one_order(tmp_path: Path) -> None:
    number = iter(range(10**9))

    def check(rng: random.Random) -> None:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        check_order(rng, folder)

    check_cases(check, 25)


@pytest.mark.slow
def test_stops_with_workers(tmp_path: Path) -> None:
    """Processes: few cases."""
    for seed in range(2):
        rng = random.Random(seed)
        table = draw_table(rng)
        epoch = Epoch(rng, table, len(table))
        first = epoch.open(1, None, 3, num_workers=2)
        read, (state,), is_over = read_steps(epoch, first, 2)
        rest = epoch.open(2, state, 2, num_workers=1)
        ids = [i for batches in read for batch in batches for i in batch]
        if not is_over:
            more, _, _ = read_steps(epoch, rest, None)
            ids += [i for batches in more for batch in batches for i in batch]
        assert set(ids) == set(range(len(table)))
        assert len(ids) - len(table) < 2
