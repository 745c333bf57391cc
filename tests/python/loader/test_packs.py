"""Packed blocks as rows, of the same steps on any number of ranks, with exact resumes."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._epoch.blocks import BlockPlan
from helpers.options import group
from helpers.random_cases import choose_examples
from helpers.ranks import Ranks, divisors, read_with_stops, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

thorough = settings(max_examples=choose_examples(25, 120))

KINDS = ["table", "parquet", "ipc", "filter", "dataset"]
Block = list[int]


def make_table(lengths: list[int], chunk: int, first: int = 1) -> pa.Table:
    """Documents of these lengths, whose tokens are numbers that never come twice."""
    ends = list(itertools.accumulate(lengths, initial=first))
    tokens = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    columns = {"id": range(len(lengths)), "tokens": pa.array(tokens, pa.list_(pa.int32()))}
    table = pa.table(columns)
    return pa.Table.from_batches(table.to_batches(max_chunksize=chunk), table.schema)


@contextmanager
def open_source(kind: str, table: pa.Table, cut: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A source, and the options of a Loader that reads it."""
    rows = table.num_rows
    if kind == "table":
        yield table, {}
        return
    with tempfile.TemporaryDirectory() as folder:
        for i, (start, stop) in enumerate(itertools.pairwise((0, rows // 3, rows // 2, rows))):
            part = table[start:stop]
            if kind == "ipc":
                feather.write_feather(part, f"{folder}/{i}.arrow", compression="uncompressed")
            else:
                pq.write_table(part, f"{folder}/{i}.parquet", row_group_size=cut)
        source = ds.dataset(folder, format="parquet") if kind == "dataset" else folder
        yield source, {"filter": pc.field("id") != 3} if kind == "filter" else {}


def get_tokens(batch: Any) -> Any:
    return {"id": batch["tokens"]}


class World(Ranks):
    """Ranks whose rows are the tokens of blocks."""

    def __init__(self, source: Any, ranks: int, workers: int, options: dict[str, Any]) -> None:
        def make(**rank: int) -> arrowdl.Loader:
            given = {"framework": "numpy", "transform": get_tokens} | options | rank
            if isinstance(source, dict):
                return arrowdl.Loader.mix(source, **group(**given))
            return arrowdl.Loader(source, **group(**given))

        super().__init__(make, ranks, workers)


def pack_rows(source: Any, options: dict[str, Any], epoch: int) -> list[Block]:
    """The blocks of `DeviceStream.pack` of the rows of an epoch, in their order without splits."""
    shuffle = {name: options[name] for name in ("shuffle", "seed", "filter") if name in options}
    size = -(-options["buffer_size"] // (options.get("splits") or 1))
    loader = arrowdl.Loader(
        source,
        7,
        framework="numpy",
        columns=["tokens"],
        **group(buffer_size=size, rank=0, world_size=1, **shuffle),
    )
    loader.set_epoch(epoch)
    rows = [
        values[start:stop].tolist()
        for values, offsets in (batch["tokens"] for batch in loader)
        for start, stop in itertools.pairwise(offsets)
    ]
    table = pa.table({"tokens": pa.array(rows, pa.list_(pa.int32()))})
    pack = arrowdl.from_arrow_stream(table).pack(**options["pack"].list_arguments())
    return [block for array in pack for block in arrowdl.to_numpy(array["tokens"]).tolist()]


def deal(blocks: list[Block], options: dict[str, Any]) -> list[list[Block]]:
    """The global batches: as many blocks of each of `splits` runs of blocks."""
    drop_last, splits, size = options["drop_last"], options["splits"], options["global_batch_size"]
    cuts = [i * len(blocks) // splits for i in range(splits + 1)]
    runs = [blocks[start:stop] for start, stop in itertools.pairwise(cuts)]
    share = size // splits
    steps = len(blocks) // size if drop_last else -(-len(blocks) // size)
    return [
        [block for run in runs for block in run[i * share : (i + 1) * share]] for i in range(steps)
    ]


@st.composite
def packs(draw: st.DrawFn) -> arrowdl.Pack:
    return arrowdl.Pack(
        "tokens",
        draw(st.sampled_from([1, 4, 7, 16])),
        draw(st.sampled_from(["concat", "best_fit"])),
        buffer_size=draw(st.sampled_from([1, 2, 5, 256])),
        long=draw(st.sampled_from(["split", "truncate", "drop"])),
    )


@st.composite
def cases(draw: st.DrawFn, with_splits: bool = True) -> dict[str, Any]:
    splits = draw(st.sampled_from([1, 2, 3, 4, 6])) if with_splits else None
    options = {
        "pack": draw(packs()),
        "splits": splits,
        "global_batch_size": (splits or 12) * draw(st.integers(1, 4)),
        "drop_last": with_splits and draw(st.booleans()),
        "shuffle": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
        "buffer_size": draw(st.sampled_from([1, 7, 16, 60, 1000])),
        "prefetch": draw(st.sampled_from([0, 2])),
        "framework": draw(st.sampled_from(["numpy", "numpy", "jax", "torch"])),
        "columns": ["tokens"],  # JAX has no int64
    }
    return {
        "kind": draw(st.sampled_from(KINDS)),
        "lengths": draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 9, 40]), max_size=80)),
        "cut": draw(st.sampled_from([1, 4, 13, 50])),
        "options": options,
        "worlds": draw(worlds(divisors(splits or 12))),
    }


@given(cases())
@thorough
def test_random_blocks_are_those_of_pack(case: dict[str, Any]) -> None:
    table = make_table(case["lengths"], case["cut"])
    with open_source(case["kind"], table, case["cut"]) as (source, more):
        options = case["options"] | more
        expected = [deal(pack_rows(source, options, epoch), options) for epoch in range(2)]
        for ranks, workers, _ in [(1, 0, 0), *case["worlds"]]:
            world = World(source, ranks, workers, options)
            lengths = {len(loader) for loader in world.loaders}
            assert lengths == {len(expected[0])}, "of all ranks"
            assert [world.read()[0] for _ in range(2)] == expected


@given(cases())
@thorough
def test_random_stops_on_other_ranks(case: dict[str, Any]) -> None:
    """Some steps, a stop, other ranks and workers, a stop, ...: the steps of one rank."""
    table = make_table(case["lengths"], case["cut"])
    with open_source(case["kind"], table, case["cut"]) as (source, more):
        options = case["options"] | more
        expected, _ = World(source, 1, 0, options).read()
        blocks = sum(map(len, expected))
        read = read_with_stops(
            lambda ranks, workers: World(source, ranks, workers, options), case["worlds"], blocks
        )
        assert read == expected


@given(cases(with_splits=False))
@thorough
def test_random_ranks_without_splits_have_each_block_once(
    case: dict[str, Any],
) -> None:
    """Ranks have runs of blocks, and the remaining blocks are divided again after a stop."""
    table = make_table(case["lengths"], case["cut"])
    with open_source(case["kind"], table, case["cut"]) as (source, more):
        options = case["options"] | more
        blocks = sorted(pack_rows(source, options, 0))
        read = read_with_stops(
            lambda ranks, workers: World(source, ranks, workers, options),
            case["worlds"],
            len(blocks),
        )
        assert sorted(itertools.chain(*read)) == blocks


# ---------------------------------------------------------------- mixtures


@st.composite
def mixtures(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.sampled_from([1, 2, 3]))
    lengths = st.lists(st.sampled_from([0, 1, 2, 3, 9]), min_size=splits, max_size=25)
    options = {
        "pack": replace(
            draw(packs()),
            buffer_size=draw(st.sampled_from([1, 2])),
            length=draw(st.sampled_from([1, 4, 7])),
        ),
        "splits": splits,
        "global_batch_size": splits * draw(st.integers(1, 3)),
        "weights": {"a": draw(st.integers(1, 3)), "b": draw(st.integers(1, 3))},
        "shuffle": draw(st.booleans()),
        "buffer_size": draw(st.sampled_from([1, 7, 60])),
    }
    return {
        "lengths": [[1, *draw(lengths)], [1, *draw(lengths)]],
        "options": options,
        "worlds": draw(worlds(divisors(splits))),
    }


def read_sequences(sources: Any, options: dict[str, Any], count: int) -> list[list[list[int]]]:
    """The first rows of each sequence of a mixture that does not pack."""
    plain = {name: value for name, value in options.items() if name not in ("pack", "stop")}
    splits = options["splits"]
    loader = arrowdl.Loader.mix(
        sources, framework="numpy", stop="repeat", **group(**plain | {"global_batch_size": splits})
    )
    rows = []
    for batch in itertools.islice(loader, count):
        values, offsets = batch["tokens"]
        rows.append([values[a:b].tolist() for a, b in itertools.pairwise(offsets)])
    return [list(sequence) for sequence in zip(*rows, strict=True)]


def count_sequence(sources: Any, options: dict[str, Any]) -> int:
    """Count the rows of each sequence of an epoch of a mixture that does not pack."""
    plain = {name: value for name, value in options.items() if name != "pack"}
    return len(
        arrowdl.Loader.mix(sources, **group(**plain | {"global_batch_size": options["splits"]}))
    )


def pack_sequence(rows: list[list[int]], pack: arrowdl.Pack) -> tuple[list[Block], list[int]]:
    """The blocks of a sequence, and the row where the one after each of them begins."""
    table = pa.table({"tokens": pa.array(rows, pa.list_(pa.int32()))})
    arguments = pack.list_arguments() | {"add": ["resume_from"]}
    blocks: list[Block] = []
    ends: list[int] = []
    for array in arrowdl.from_arrow_stream(table).pack(**arguments):
        blocks += arrowdl.to_numpy(array["tokens"]).tolist()
        ends += arrowdl.to_numpy(array["resume_from"])[:, 0].tolist()
    return blocks, ends


def make_sources(lengths: list[list[int]]) -> dict[str, pa.Table]:
    tables = [make_table(own, 100, 1 + 10_000 * i) for i, own in enumerate(lengths)]
    return {name: table.select(["tokens"]) for name, table in zip("ab", tables, strict=True)}


@given(mixtures(), st.sampled_from(["first", "all", "repeat"]))
@thorough
def test_random_mixtures_pack_each_sequence(case: dict[str, Any], stop: str) -> None:
    sources, options = make_sources(case["lengths"]), case["options"] | {"stop": stop}
    share = options["global_batch_size"] // options["splits"]
    pack = options["pack"]
    if stop == "first":
        rows = count_sequence(sources, options)
        packed = [pack_sequence(own[:rows], pack) for own in read_sequences(sources, options, rows)]
        count = min(len(blocks) for blocks, _ in packed)
    else:
        rows = count_sequence(sources, options | {"stop": "all"})
        packed = [
            pack_sequence(own, pack) for own in read_sequences(sources, options, 4 * rows + 1200)
        ]
        count = max(next(i for i, end in enumerate(ends, 1) if end >= rows) for _, ends in packed)
    steps = -(-count // share)
    expected = [
        [block for blocks, _ in packed for block in blocks[i * share : min(count, (i + 1) * share)]]
        for i in range(steps)
    ]
    if stop == "repeat":
        last = share * steps - count
        expected = expected[: steps - (last > 0)]
    read: Any = []
    state = None
    for ranks, workers, taken in [*case["worlds"], (1, 0, None)]:
        if len(read) == len(expected):
            break
        world = World(sources, ranks, workers, options)
        if state is not None:
            world.load(state)
        left = len(expected) - len(read)
        most = left if taken is None else min(taken, left)
        now, state = world.read(most if stop == "repeat" else taken)
        read += now
    assert read == expected
    if stop == "all" and pack.long == "split":
        tokens = {token for step in read for block in step for token in block} - {0}
        assert tokens == {token for table in sources.values() for token in list_tokens(table)}


def list_tokens(table: pa.Table) -> list[int]:
    return list(itertools.chain(*table["tokens"].to_pylist()))


def test_a_document_of_many_blocks() -> None:
    """It begins before a rank's first block, and ends after its last one."""
    table = make_table([1, 2_000, 3], 10)
    options = {
        "pack": arrowdl.Pack("tokens", 4), "splits": 4, "global_batch_size": 4,
        "drop_last": False, "shuffle": False, "buffer_size": 1,
    }  # fmt: skip
    expected = deal(pack_rows(table, options, 0), options)
    for ranks in (1, 4):
        read = read_with_stops(
            lambda ranks, workers: World(table, ranks, workers, options),
            [(ranks, 0, 50)],
            sum(map(len, expected)),
        )
        assert read == expected


@pytest.mark.parametrize("strategy", ["concat", "best_fit"])
def test_two_readers_plan_the_same_blocks(strategy: Any) -> None:
    """As a signal handler that saves a state, in the middle of the thread that plans."""
    table = pa.table({"n": pa.array([1 + i % 7 for i in range(2000)], pa.int32())})

    def open_lengths(row: int) -> arrowdl.DeviceStream:
        return arrowdl.from_arrow_stream(table.slice(row)).rebatch(100)

    def make() -> BlockPlan:
        return BlockPlan(open_lengths, arrowdl.Pack("n", 8, strategy, buffer_size=8))

    whole = make()
    expected = [whole.find(block) for block in range(whole.count())]
    plan = make()
    first = plan._extend()
    for _ in range(3):
        next(first)
    second = plan._extend()
    for _ in range(2):
        next(second)
    next(first)
    assert [plan.find(block) for block in range(len(expected))] == expected
    assert plan.count() == len(expected)
    assert plan.count_until(1000) == make().count_until(1000)
