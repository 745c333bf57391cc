"""`Tokens` and `Buckets`: steps by the lengths of rows."""

from __future__ import annotations

import itertools
import math
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pytest
from helpers.options import group
from helpers.random_cases import choose_examples
from helpers.ranks import Ranks, Steps, divisors, read_with_stops, worlds
from helpers.written_files import write_parts
from hypothesis import given, settings
from hypothesis import strategies as st

Lengths = list[int]
KINDS = ["table", "parquet", "ipc", "compressed", "filter", "dataset"]
LONGEST = 20
thorough = settings(max_examples=choose_examples(25, 150))


def make_table(lengths: Lengths) -> pa.Table:
    tokens = [[i % 100] * n for i, n in enumerate(lengths)]
    return pa.table(
        {
            "id": pa.array(range(len(lengths)), pa.int64()),
            "tokens": pa.array(tokens, pa.list_(pa.int8())),
            "n": pa.array(lengths, pa.int32()),
        }
    )


@contextmanager
def open_source(kind: str, table: pa.Table, cut: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A source, and options of the Loader that reads it."""
    if kind == "table":
        yield pa.Table.from_batches(table.to_batches(max_chunksize=cut), table.schema), {}
        return
    with tempfile.TemporaryDirectory() as folder:
        half = len(table) // 2
        write_parts(folder, [table[:half], table[half:]], kind, cut)
        source = ds.dataset(folder) if kind == "dataset" else folder
        yield source, {"filter": ds.field("id") >= 5} if kind == "filter" else {}


class World(Ranks):
    """Ranks that check the budget of each batch."""

    def __init__(self, source: Any, ranks: int, workers: int, options: dict[str, Any]) -> None:
        def check(batch: dict[str, Any]) -> dict[str, Any]:
            budget = options.get("global_batch_tokens")
            if budget is not None:
                assert math.prod(batch["tokens"][0].shape) * ranks <= budget
                assert len(batch["id"]) * ranks <= budget
            return batch

        def make(**rank: int) -> arrowdl.Loader:
            given = {"framework": "numpy", "transform": check} | options | rank
            return arrowdl.Loader(source, **group(**given))

        super().__init__(make, ranks, workers)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.sampled_from([1, 2, 3, 4, 6]))
    bucket = draw(st.sampled_from([None, "tokens", "n"]))
    options: dict[str, Any] = {
        "splits": splits,
        "drop_last": draw(st.booleans()),
        "shuffle": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
        "buffer_size": draw(st.sampled_from([1, 7, 16, 60, 1000])),
        "prefetch": draw(st.sampled_from([0, 2])),
        "ragged": draw(st.sampled_from(["padded", "offsets"])),
        "framework": draw(st.sampled_from(["numpy", "numpy", "jax", "torch"])),
    }
    if options["framework"] == "jax":
        options["dtype"] = {"id": "int32"}
    if options["framework"] == "torch":
        options["ragged"] = "padded"  # where others have offsets it has one nested tensor
    if bucket is not None:
        options["bucket_by"] = bucket
    if bucket is None or draw(st.booleans()):
        most = draw(st.integers(LONGEST, 5 * LONGEST))
        options["global_batch_tokens"] = splits * most + draw(st.integers(0, splits - 1))
        if bucket is None:
            options["token_column"] = draw(st.sampled_from(["tokens", "n"]))
    else:
        options["global_batch_size"] = splits * draw(st.integers(1, 5))
    one = st.one_of(st.integers(0, 4), st.integers(0, LONGEST))
    return {
        "kind": draw(st.sampled_from(KINDS)),
        "lengths": draw(st.lists(one, max_size=100)),
        "cut": draw(st.sampled_from([1, 4, 13, 1000])),
        "planned": draw(st.sampled_from([1, 5, 1000])),  # rows together
        "options": options,
        "worlds": draw(worlds(divisors(splits))),
    }


def read_sequences(source: Any, options: dict[str, Any]) -> list[list[int]]:
    """The ids of each sequence, without budgets and sorting."""
    splits = options["splits"]
    plain = {
        k: options[k]
        for k in ("splits", "shuffle", "seed", "buffer_size", "filter")
        if k in options
    }
    with pytest.MonkeyPatch.context() as patch:
        if (
            "bucket_by" in options
        ):  # whose buffer stays as it is, where few row groups fit a larger one
            patch.setattr("arrowdl.loader._buffer.LANES", 0)
        loader = arrowdl.Loader(
            source,
            framework="numpy",
            columns=["id"],
            **group(rank=0, world_size=1, global_batch_size=splits, **plain),
        )
    steps = [batch["id"].tolist() for batch in loader]
    rows = sum(map(len, steps))
    sizes = [(i + 1) * rows // splits - i * rows // splits for i in range(splits)]
    sequences: list[list[int]] = [[] for _ in sizes]
    for j, step in enumerate(steps):
        for i, row in zip((i for i, n in enumerate(sizes) if j < n), step, strict=True):
            sequences[i].append(row)
    return sequences


def plan_window(parts: list[list[int]], lengths: Lengths, options: dict[str, Any]) -> Steps:
    """The steps of a window of each sequence, as plainly as they can be said."""
    steps = []
    tokens = options.get("global_batch_tokens")
    if options["drop_last"] and tokens is not None:
        parts = [part[: min(map(len, parts))] for part in parts]
    size = options.get("global_batch_size", 0) // len(parts)
    if "bucket_by" in options:
        sorted_rows = min(map(len, parts)) // size * size if size else LONGEST * 1000
        parts = [
            sorted(part[:sorted_rows], key=lambda row: lengths[row]) + part[sorted_rows:]
            for part in parts
        ]
    while any(parts):
        count = size or 1
        while not size and count < max(map(len, parts)):
            taken = [part[: count + 1] for part in parts]
            if options["ragged"] == "padded":
                longest = max(max(1, lengths[row]) for rows in taken for row in rows)
                fits = longest * (count + 1) * len(parts) <= tokens
            else:
                most = max(sum(max(1, lengths[row]) for row in rows) for rows in taken)
                fits = most * len(parts) <= tokens
            if not fits:
                break
            count += 1
        steps.append([row for part in parts for row in part[:count]])
        parts = [part[count:] for part in parts]
    return steps


def check_steps(steps: Steps, source: Any, lengths: Lengths, options: dict[str, Any]) -> None:
    """Compare the steps of an epoch with what is meant."""
    sequences = read_sequences(source, options)
    window = max(map(len, sequences)) or 1
    if "bucket_by" in options:
        window = -(-options["buffer_size"] // len(sequences))
        if "global_batch_size" in options:
            size = options["global_batch_size"] // len(sequences)
            window = max(1, window // size) * size
    at = 0
    for start in range(0, max(map(len, sequences)), window):
        parts = [rows[start : start + window] for rows in sequences]
        expected = plan_window(parts, lengths, options)
        if options["drop_last"] and "global_batch_size" in options:
            expected = [step for step in expected if len(step) == options["global_batch_size"]]
        found = steps[at : at + len(expected)]
        if options["shuffle"]:
            assert sorted(found) == sorted(expected)
        else:
            assert found == expected
        at += len(expected)
    assert at == len(steps)


@given(cases())
@thorough
def test_random_steps_are_those_of_one_rank(case: dict[str, Any]) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        open_source(case["kind"], make_table(case["lengths"]), case["cut"]) as (source, more),
    ):
        patch.setattr("arrowdl.loader._epoch.plan_tokens._CHUNK_ROWS", case["planned"])
        options = case["options"] | more
        alone = World(source, 1, 0, options)
        epochs = []
        for _ in range(2):
            count = len(alone.loaders[0])
            epochs.append(alone.read()[0])
            assert len(epochs[-1]) == count
        check_steps(epochs[0], source, case["lengths"], options)
        if not options["drop_last"]:
            first = 5 if case["kind"] == "filter" else 0
            for steps in epochs:
                assert sorted(itertools.chain(*steps)) == list(range(first, len(case["lengths"])))
        for ranks, workers, _ in case["worlds"]:
            world = World(source, ranks, workers, options)
            assert [world.read()[0] for _ in range(2)] == epochs


@given(cases())
@thorough
def test_random_stops_on_other_ranks(case: dict[str, Any]) -> None:
    """Some steps, a stop, other ranks and workers, a stop, ...: the steps of one rank."""
    with (
        pytest.MonkeyPatch.context() as patch,
        open_source(case["kind"], make_table(case["lengths"]), case["cut"]) as (source, more),
    ):
        patch.setattr("arrowdl.loader._epoch.plan_tokens._CHUNK_ROWS", case["planned"])
        options = case["options"] | more
        expected, _ = World(source, 1, 0, options).read()
        rows = sum(map(len, expected))
        read = read_with_stops(
            lambda ranks, workers: World(source, ranks, workers, options), case["worlds"], rows
        )
        assert read == expected


@pytest.mark.parametrize("ragged", ["padded", "offsets"])
def test_sequences_that_end_a_row_earlier(ragged: str) -> None:
    """They have a row less of the longest rows, which come last in a window."""
    for seed in range(12):
        draw = random.Random(seed)
        lengths = [draw.randrange(LONGEST) for _ in range(draw.choice([25, 26, 28]))]
        options: dict[str, Any] = {
            "splits": 3,
            "drop_last": seed % 4 == 0,
            "shuffle": True,
            "seed": seed,
            "buffer_size": draw.choice([15, 100]),
            "ragged": ragged,
            "bucket_by": "tokens",
            "global_batch_tokens": 3 * 40,
        }
        source = make_table(lengths)
        steps = World(source, 1, 0, options).read()[0]
        check_steps(steps, source, lengths, options)
        assert World(source, 3, 2, options).read()[0] == steps


def test_no_rows(tmp_path: Path) -> None:
    feather.write_feather(make_table([]), tmp_path / "0.arrow", compression="uncompressed")
    for more in ({"batch_tokens": 9}, {"batch_size": 2, "bucket_by": "tokens"}):
        loader = arrowdl.Loader(tmp_path, framework="numpy", **group(**more))
        assert (len(loader), list(loader)) == (0, [])
