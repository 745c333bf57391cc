"""Random chains of stream adaptors, beside lists of rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import arrowdl
import pyarrow as pa
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

Row = dict[str, Any]
Chunks = list[list[Row]]
Step = tuple[str, Callable[[Any], Any], Callable[[Chunks, Chunks], None]]


def draw_batches(rng: random.Random) -> list[pa.RecordBatch]:
    """Batches with a number for each row, and columns of any type."""
    kinds = {name: draw_type(rng, 2) for name in "xy"[: rng.randrange(3)]}
    batches = []
    first = 0
    for _ in range(rng.randrange(6)):
        count = rng.choice([0, 1, 2, 5, 17])
        columns: dict[str, pa.Array] = {"id": pa.array(range(first, first + count), pa.int64())}
        for name, kind in kinds.items():
            columns[name] = lay_out(rng, kind, draw_values(rng, kind, count, 0.2))
        batches.append(pa.record_batch(columns))
        first += count
    fields = [("id", pa.int64()), *kinds.items()]
    no_rows = [lay_out(rng, kind, []) for _, kind in fields]
    return batches or [pa.record_batch(no_rows, names=[name for name, _ in fields])]


def run(batches: list[pa.RecordBatch], steps: list[Step]) -> Chunks:
    stream = arrowdl.from_arrow_stream(
        pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    )
    for _, apply, _ in steps:
        stream = apply(stream)
    return [pa.array(array).to_pylist() for array in stream]


def rows_of(chunks: Chunks) -> list[Row]:
    return [row for chunk in chunks for row in chunk]


def draw_step(rng: random.Random, names: list[str]) -> Step:
    kind = rng.randrange(7)
    n = rng.choice([1, 2, 3, 7, 40])
    if kind == 0:
        chosen = ["id", *rng.sample(names[1:], rng.randrange(len(names)))]
        rng.shuffle(chosen)
        return "select " + " ".join(chosen), lambda s: s.select(chosen), expect_columns(chosen)
    if kind == 1:
        drop = rng.random() < 0.3
        return (
            f"rebatch {n} {drop}",
            lambda s: s.rebatch(n, drop_last=drop),
            expect_batches(n, drop),
        )
    if kind == 2:
        start, length = rng.randrange(20), rng.choice([None, rng.randrange(30)])
        return (
            f"slice {start} {length}",
            lambda s: s.slice(start, length),
            expect_rows(start, length),
        )
    if kind == 3:
        seed = rng.randrange(2**63)
        return f"shuffle {n} {seed}", lambda s: s.shuffle(n, seed), expect_windows(n)
    if kind == 4:
        count = rng.randrange(1, 5)
        index, pad = rng.randrange(count), rng.random() < 0.5
        expected = expect_share(index, count, pad)
        return f"shard {index} {count} {pad}", lambda s: s.shard(count, index, pad=pad), expected
    if kind == 5:
        return "prefetch", lambda s: s.prefetch(n), expect_same
    return "to cpu", lambda s: s.to("cpu"), expect_same


def expect_same(before: Chunks, after: Chunks) -> None:
    assert after == before


def expect_columns(names: list[str]) -> Callable[[Chunks, Chunks], None]:
    def check(before: Chunks, after: Chunks) -> None:
        assert after == [[{name: row[name] for name in names} for row in chunk] for chunk in before]
        assert all(list(row) == names for row in rows_of(after))

    return check


def expect_batches(n: int, drop: bool) -> Callable[[Chunks, Chunks], None]:
    def check(before: Chunks, after: Chunks) -> None:
        rows = rows_of(before)
        batches = [rows[i : i + n] for i in range(0, len(rows), n)]
        if drop and batches and len(batches[-1]) < n:
            batches.pop()
        assert after == batches

    return check


def expect_rows(start: int, length: int | None) -> Callable[[Chunks, Chunks], None]:
    def check(before: Chunks, after: Chunks) -> None:
        stop = None if length is None else start + length
        assert rows_of(after) == rows_of(before)[start:stop]

    return check


def expect_windows(n: int) -> Callable[[Chunks, Chunks], None]:
    """Each window of `n` rows has the rows that it had, in whatever order."""

    def check(before: Chunks, after: Chunks) -> None:
        rows, shuffled = rows_of(before), rows_of(after)
        assert len(rows) == len(shuffled)
        for i in range(0, len(rows), n):
            window = sorted(rows[i : i + n], key=lambda row: row["id"])
            assert sorted(shuffled[i : i + n], key=lambda row: row["id"]) == window

    return check


def expect_share(index: int, count: int, pad: bool) -> Callable[[Chunks, Chunks], None]:
    """Expect one of `count` runs of rows of each array, as long as the others or one longer; with
    `pad`, the last row again if the run is empty."""

    def check(before: Chunks, after: Chunks) -> None:
        shares = []
        for chunk in before:
            small, more = divmod(len(chunk), count)
            start = index * small + min(index, more)
            share = chunk[start : start + small + (index < more)]
            if pad and chunk and not share:
                share = [chunk[-1]]
            shares.append(share)
        assert [chunk for chunk in after if chunk] == [share for share in shares if share]

    return check


def check_chain(rng: random.Random) -> None:
    batches = draw_batches(rng)
    names = batches[0].schema.names
    chunks: Chunks = [batch.to_pylist() for batch in batches]
    steps: list[Step] = []
    assert rows_of(run(batches, [])) == rows_of(chunks)
    for _ in range(rng.randrange(1, 5)):
        step = draw_step(rng, names)
        steps.append(step)
        said = [name for name, _, _ in steps]
        after = run(batches, steps)
        assert after == run(batches, steps), f"not the same again: {said}"
        try:
            step[2](chunks, after)
        except AssertionError as error:
            error.add_note(f"after {said}, of {[len(chunk) for chunk in chunks]} rows")
            raise
        chunks = after
        names = [
            name for name in names if not step[0].startswith("select") or name in step[0].split()
        ]


def test_chains_of_adaptors() -> None:
    check_cases(check_chain, 60)


def check_shards(rng: random.Random) -> None:
    """All shards together are the stream, each row once."""
    batches = draw_batches(rng)
    count = rng.randrange(1, 6)
    shuffled: Step = ("shuffle", lambda s: s.shuffle(7, 5), expect_windows(7))
    steps: list[Step] = [shuffled] if rng.random() < 0.5 else []
    whole = [row["id"] for row in rows_of(run(batches, steps))]
    parts = []
    for index in range(count):
        shard: Step = ("shard", lambda s, i=index: s.shard(count, i), expect_same)
        parts += [row["id"] for row in rows_of(run(batches, [*steps, shard]))]
    assert sorted(parts) == sorted(whole) == list(range(sum(batch.num_rows for batch in batches)))


def test_shards_are_disjoint_and_complete() -> None:
    check_cases(check_shards, 40)
