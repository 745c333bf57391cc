"""`Loader(on_error="skip")` with splits: what a function that fails takes out of a step.

A sequence gives a part of its rows to each step. A function that fails takes the whole part.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from helpers.options import group
from helpers.random_cases import choose_examples
from helpers.ranks import Ranks, Steps, divisors, worlds
from helpers.written_files import write_parts
from hypothesis import given, settings
from hypothesis import strategies as st

thorough = settings(max_examples=choose_examples(20, 300))
MANY = 10**9
MOVED = 10_000  # is added to the number of each row that a function was given
KINDS = ["table", "parquet", "ipc", "compressed", "filter", "dataset", "reader"]
PLANS = ["rows", "pack", "tokens", "buckets", "mixture", "mixed tokens", "mixed pack"]
WAYS = ["transform", "arrow", "both", "threads", "map", "guard"]


def make_table(rows: int, first: int = 0) -> pa.Table:
    """Documents of 1 to 5 tokens, all of which say the number of the row."""
    ids = range(first, first + rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "tokens": pa.array([[i] * (1 + i % 5) for i in ids], pa.list_(pa.int64())),
        }
    )


@contextmanager
def open_source(kind: str, table: pa.Table, cut: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A source, and the options of a Loader that reads it."""
    if kind in ("table", "reader"):
        cuts = pa.Table.from_batches(table.to_batches(max_chunksize=cut), table.schema)
        yield (cuts if kind == "table" else cuts.to_reader), {}
        return
    with tempfile.TemporaryDirectory() as folder:
        third = len(table) // 3
        write_parts(folder, [table[:third], table[third:]], kind, cut)
        source = ds.dataset(folder) if kind == "dataset" else folder
        yield source, {"filter": ds.field("id") != 5} if kind == "filter" else {}


def name_rows(batch: Any) -> Any:
    """The numbers of the rows of a batch; of blocks, those of all tokens of each."""
    return batch["id"] if "id" in batch else batch["tokens"]


class Failing:
    """Functions that raise if a bad row is in their batch, and write to the others."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad

    def fail(self, batch: dict[str, Any]) -> dict[str, Any]:
        rows = name_rows(batch)
        has_bad = bool(self.bad & set(rows.flatten().tolist()))
        rows += MOVED  # batches may be written to, before an error, too
        if has_bad:
            raise ZeroDivisionError("a bad row")
        return {"id": rows}

    def fail_arrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch["id" if "id" in batch.schema.names else "tokens"]
        values = rows if pa.types.is_integer(rows.type) else rows.flatten()
        if self.bad & set(values.to_pylist()):
            raise ZeroDivisionError("a bad row")
        return batch

    def keep(self, batch: dict[str, Any]) -> Any:
        rows = batch["id"] - MOVED
        return [row % 4 != 0 for row in rows.reshape(len(rows), -1)[:, 0].tolist()]

    def require(self, batch: dict[str, Any]) -> dict[str, Any]:
        if not all(self.keep(batch)):
            raise AssertionError("rows that the filter has dropped")
        return batch

    def add(self, way: str, options: dict[str, Any]) -> dict[str, Any]:
        more: dict[str, Any] = {"on_error": "skip", "max_skipped_rows": MANY}
        more["transform"] = self.fail
        if way == "threads":
            more["num_threads"] = 2
        if way in ("arrow", "both"):
            more["transform_arrow"] = self.fail_arrow
        if way == "arrow":
            more["transform"] = Failing(set()).fail
        if way in ("map", "guard"):
            del more["transform"]
        return options | more

    def extend(self, way: str, loader: Any) -> Any:
        if way == "map":
            return loader.map(self.fail)
        if way == "guard":
            return loader.map(self.fail).filter(self.keep).map(self.require)
        return loader


def get_rows(batch: Any) -> Any:
    return {"id": name_rows(batch)}


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.sampled_from([1, 2, 3, 4, 6]))
    plan = draw(st.sampled_from(PLANS))
    kind = draw(st.sampled_from(KINDS if plan in ("rows", "pack") else KINDS[:-1]))
    options: dict[str, Any] = {
        "splits": splits,
        "shuffle": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
        "buffer_size": draw(st.sampled_from([7, 16, 1000])),
        "prefetch": draw(st.sampled_from([0, 2])),
    }
    if "tokens" in plan:
        options |= {"global_batch_tokens": splits * draw(st.integers(5, 25))}
        options |= {"token_column": "tokens"}
    else:
        options |= {"global_batch_size": splits * draw(st.integers(1, 5))}
        ending = draw(st.sampled_from(["", "drop_last", "pad_last"]))
        options |= {ending: True} if ending else {}
    if "pack" in plan:
        options["pack"] = arrowdl.Pack("tokens", draw(st.sampled_from([4, 7])))
        options["columns"] = ["tokens"]
    if plan == "buckets":
        options["bucket_by"] = "tokens"
    if "mix" in plan:
        options |= {"weights": {"a": draw(st.integers(1, 3)), "b": 1}}
        options |= {"stop": draw(st.sampled_from(["first", "all"]))}
    return {
        "kind": kind,
        "plan": plan,
        "rows": draw(st.integers(8, 60)),
        "cut": draw(st.sampled_from([1, 4, 13, 1000])),
        "bad": draw(st.sets(st.integers(0, 59), max_size=5)),
        "way": draw(st.sampled_from(WAYS)),
        "options": options,
        "worlds": draw(worlds(divisors(splits))),
    }


def make_ranks(
    source: Any, options: dict[str, Any], ranks: int, workers: int, extend: Callable[[Any], Any]
) -> Ranks:
    def make(**rank: int) -> Any:
        given = {"framework": "numpy", "ragged": "offsets"} | options | rank
        if "weights" in options:
            other, own = make_table(20, 1_000), source
            if "filter" in given:  # of files alone
                of_files = {"filter": given.pop("filter"), "columns": given.get("columns")}
                own = arrowdl.Loader(source, 1, **group(shuffle=True, seed=3, **of_files))
            return extend(arrowdl.Loader.mix({"a": own, "b": other}, **group(**given)))
        return extend(arrowdl.Loader(source, **group(**given)))

    return Ranks(make, ranks, workers)


def list_parts(source: Any, options: dict[str, Any]) -> list[list[list[Any]]]:
    """The rows that each sequence gives to each step."""
    plain = options | {"transform": get_rows}
    ranks = make_ranks(source, plain, options["splits"], 0, lambda loader: loader)
    read = [ranks._read_rank(rank, None) for rank in range(options["splits"])]
    return [list(step) for step in zip(*read, strict=True)]


def has_bad(row: Any, bad: set[int]) -> bool:
    return bool(bad & set(row if isinstance(row, list) else [row]))


def is_kept(row: Any) -> bool:
    return (row[0] if isinstance(row, list) else row) % 4 != 0


def expect(parts: list[list[list[Any]]], bad: set[int], way: str) -> Steps:
    return [
        [
            (np.array(row) + MOVED).tolist()
            for part in step
            if not any(has_bad(row, bad) for row in part)
            for row in part
            if way != "guard" or is_kept(row)
        ]
        for step in parts
    ]


def count(ranks: Ranks) -> tuple[int, int, int]:
    stats = [loader.stats() for loader in ranks.loaders]
    return tuple(  # type: ignore[return-value]
        sum(getattr(own, name) for own in stats)
        for name in ("rows", "skipped_rows", "filtered_rows")
    )


def list_named(ranks: Ranks) -> set[Any]:
    return {entry for loader in ranks.loaders for entry in loader.stats().skipped}


@given(cases())
@thorough
def test_random_functions_that_fail(case: dict[str, Any]) -> None:
    """Each step has the same rows on any number of ranks, and after stops: of good parts all."""
    bad, way = case["bad"], case["way"]
    failing = Failing(bad)
    table = make_table(case["rows"])
    with open_source(case["kind"], table, case["cut"]) as (source, more):
        given = case["options"] | more

        def make(ranks: int, workers: int) -> Ranks:
            options = failing.add(way, given)
            return make_ranks(source, options, ranks, workers, lambda x: failing.extend(way, x))

        parts = list_parts(source, given)
        good = [part for step in parts for part in step if part]
        good = [part for part in good if not any(has_bad(row, bad) for row in part)]
        if not any(way != "guard" or is_kept(row) for part in good for row in part):
            return  # there may be no row to repeat
        alone = make(1, 0)
        steps, _ = alone.read()
        if case["kind"] != "reader":  # whose last step is cut more finely
            assert steps == expect(parts, bad, way)
        rows = sum(len(part) for step in parts for part in step)
        assert sum(count(alone)) == rows
        for ranks, workers, _ in case["worlds"]:
            other = make(ranks, workers)
            assert other.read()[0] == steps
            if not workers:
                assert count(other) == count(alone)
                assert list_named(other) == list_named(alone)
        read: Steps = []
        state: Any = None
        for ranks, workers, stop in [*case["worlds"], (1, 0, None)]:
            world = make(ranks, workers)
            if state is not None:
                if state["epoch"]:
                    break
                world.load(state)
            now, state = world.read(stop)
            read += now
        assert read == steps


def read_ids(ranks: int, **options: Any) -> tuple[Steps, Ranks]:
    table = make_table(120).select(["id"])
    given = {"splits": 4, "global_batch_size": 16, "on_error": "skip", "max_skipped_rows": MANY}
    made = make_ranks(table, given | options, ranks, 0, lambda loader: loader)
    return made.read()[0], made


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_bad_row_takes_the_rows_of_its_sequence(ranks: int) -> None:
    steps, made = read_ids(ranks, transform=Failing({17}).fail)
    rows = [i - MOVED for step in steps for i in step]
    assert sorted(rows) == [i for i in range(120) if not 16 <= i < 20]
    (entry,) = list_named(made)
    assert entry.ranges == ((16, 20),)


def test_a_function_that_fails_for_all_parts_together() -> None:
    """It is called once more, and the batch is left out: nothing says which row is at fault."""
    calls: list[int] = []

    def fail(batch: dict[str, Any]) -> dict[str, Any]:
        calls.append(len(batch["id"]))
        if len(batch["id"]) > 4 and 17 in batch["id"]:
            raise ZeroDivisionError("too many rows")
        return batch

    steps, made = read_ids(1, transform=fail)
    assert [len(step) for step in steps] == [16] * 4 + [0] + [16] * 2 + [8]
    assert calls == [16] * 5 + [4] * 4 + [16] + [1] + [16] * 2 + [8]
    assert count(made) == (104, 16, 0)


def test_an_error_that_passes_takes_no_row() -> None:
    calls: list[int] = []

    def fail_once(batch: dict[str, Any]) -> dict[str, Any]:
        calls.append(len(batch["id"]))
        if len(calls) == 3:
            raise ConnectionError("try again")
        return batch

    steps, made = read_ids(2, transform=fail_once)
    assert sorted(itertools.chain(*steps)) == list(range(120))
    assert count(made) == (120, 0, 0)


def fail_in_worker(batch: dict[str, Any]) -> dict[str, Any]:
    return Failing({17, 41, 100}).fail(batch)


@pytest.mark.slow
def test_worker_processes_leave_out_the_same_rows() -> None:
    expected, alone = read_ids(1, transform=fail_in_worker)
    steps, made = read_ids(2, transform=fail_in_worker, num_workers=2)
    assert steps == expected
    assert count(made) == count(alone)
    for loader in made.loaders:
        loader.close()
