"""`Ranks(splits=)`: each step has the same rows, in the same order, on any number of ranks."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._batches.assemble import Assembly
from arrowdl.loader._epoch.lanes import Lanes
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sequences import SharedUnits
from arrowdl.loader._epoch.sharding import Span
from arrowdl.loader._ipc.mapped import MappedSource
from arrowdl.loader._parquet.dataset import DatasetSource
from arrowdl.loader._parquet.unit_reader import UnitReader
from arrowdl.loader._sources.base import UnitOrder
from helpers.options import group
from helpers.random_cases import choose_examples
from helpers.ranks import Ranks, Steps, divisors, read_with_stops, worlds
from helpers.written_files import write_parts
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = ["table", "parquet", "ipc", "compressed", "filter", "dataset", "reader"]
thorough = settings(max_examples=choose_examples(30, 300))


def make_table(rows: int, chunk: int) -> pa.Table:
    table = pa.table({"id": pa.array(range(rows), pa.int64())})
    batches = table.to_batches(max_chunksize=chunk)
    return pa.Table.from_batches(batches, table.schema)


@contextmanager
def open_source(kind: str, rows: int, cut: int) -> Iterator[tuple[Any, dict[str, Any], list[int]]]:
    """A source, options of the Loader that reads it, and the ids of its rows in order."""
    ids = list(range(rows))
    table = make_table(rows, cut)
    if kind == "table":
        yield table, {}, ids
    elif kind == "reader":
        yield table.to_reader, {}, ids
    else:
        with tempfile.TemporaryDirectory() as folder:
            ends = itertools.pairwise((0, rows // 3, rows // 2, rows))
            write_parts(folder, [table[start:stop] for start, stop in ends], kind, cut)
            if kind == "dataset":
                yield ds.dataset(folder, format="parquet"), {}, ids
            elif kind == "filter":
                chosen = [i for i in ids if i % 4 == 0 or i > 50]
                is_fourth = pc.bit_wise_and(ds.field("id"), 3) == 0
                yield folder, {"filter": is_fourth | (ds.field("id") > 50)}, chosen
            else:
                yield folder, {}, ids


class World(Ranks):
    def __init__(self, source: Any, ranks: int, workers: int, options: dict[str, Any]) -> None:
        def make(**rank: int) -> arrowdl.Loader:
            return arrowdl.Loader(source, framework="numpy", **group(**rank, **options))

        super().__init__(make, ranks, workers)
        self.splits = options.get("splits")

    def read(self, steps: int | None = None) -> tuple[Steps, Any]:
        read, state = super().read(steps)
        assert self.splits is None or state["splits"] == self.splits
        return read, state


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
    ending = draw(st.sampled_from(["", "drop_last", "pad_last"]))
    options = {
        "splits": splits,
        "global_batch_size": splits * draw(st.integers(1, 5)),
        "drop_last": ending == "drop_last",
        "pad_last": ending == "pad_last",
        "shuffle": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
        "buffer_size": draw(st.sampled_from([1, 7, 16, 60, 1000])),
        "prefetch": draw(st.sampled_from([0, 2])),
    }
    return {
        "kind": draw(st.sampled_from(KINDS)),
        "rows": draw(st.integers(0, 120)),
        "cut": draw(st.sampled_from([1, 4, 13, 50, 1000])),
        "options": options,
        "worlds": draw(worlds(divisors(splits))),
    }


@given(cases())
@thorough
def test_random_steps_are_those_of_one_rank(case: dict[str, Any]) -> None:
    with open_source(case["kind"], case["rows"], case["cut"]) as (source, more, ids):
        options = case["options"] | more
        alone = World(source, 1, 0, options)
        epochs = [alone.read()[0] for _ in range(2)]
        check_epoch(epochs[0], ids, options)
        check_epoch(epochs[1], ids, options)
        for ranks, workers, _ in case["worlds"]:
            world = World(source, ranks, workers, options)
            assert [world.read()[0] for _ in range(2)] == epochs


def check_epoch(steps: Steps, ids: list[int], options: dict[str, Any]) -> None:
    size = options["global_batch_size"]
    seen = sorted(itertools.chain(*steps))
    if options["drop_last"]:
        assert len(set(seen)) == len(seen) == len(ids) // size * size
        assert set(seen) <= set(ids)
    else:
        assert seen == ids, "every row once"
    assert all(len(step) == size for step in steps[:-1])


@given(cases())
@thorough
def test_random_stops_on_other_ranks(case: dict[str, Any]) -> None:
    """Some steps, a stop, other ranks and workers, a stop, ...: the steps of one rank."""
    with open_source(case["kind"], case["rows"], case["cut"]) as (source, more, _):
        options = case["options"] | more
        expected, _ = World(source, 1, 0, options).read()
        rows = sum(map(len, expected))
        read = read_with_stops(
            lambda ranks, workers: World(source, ranks, workers, options), case["worlds"], rows
        )
        assert read == expected


@given(cases(), st.lists(st.integers(1, 5), min_size=4, max_size=4))
@thorough
def test_random_global_batches_read_each_row_once(case: dict[str, Any], sizes: list[int]) -> None:
    with open_source(case["kind"], case["rows"], case["cut"]) as (source, more, ids):
        options = case["options"] | more | {"drop_last": False, "pad_last": False}
        left = iter(sizes)

        def make(ranks: int, workers: int) -> World:
            size = next(left) * options["splits"]
            return World(source, ranks, workers, {**options, "global_batch_size": size})

        steps = read_with_stops(make, case["worlds"], len(ids))
        assert sorted(itertools.chain(*steps)) == ids


def test_the_example_of_the_issue() -> None:
    table = make_table(32, 100)
    for ranks in (1, 2, 4):
        world = World(table, ranks, 0, {"splits": 4, "global_batch_size": 8})
        steps, _ = world.read(2)
        assert steps == [[0, 1, 8, 9, 16, 17, 24, 25], [2, 3, 10, 11, 18, 19, 26, 27]]
        assert [len(loader) for loader in world.loaders] == [4] * ranks
        assert [loader.batch_size for loader in world.loaders] == [8 // ranks] * ranks


def test_a_global_batch_without_splits() -> None:
    world = World(make_table(32, 100), 2, 0, {"global_batch_size": 8, "splits": None})
    assert world.read(1)[0] == [[0, 1, 2, 3, 16, 17, 18, 19]]
    assert "splits" not in world.loaders[0].state_dict()


@pytest.mark.parametrize(
    ("size", "splits"), [(96, 8), (36, 6), (20, 4), (10, 2), (9, 3), (13, 1), (1, 1)]
)
def test_a_global_batch_has_splits_by_default(size: int, splits: int) -> None:
    assert (
        arrowdl.Loader(make_table(4, 4), ranks=arrowdl.Ranks(global_batch_size=size)).state_dict()[
            "splits"
        ]
        == splits
    )
    assert "splits" not in arrowdl.Loader(make_table(4, 4), size).state_dict()


def test_torch_workers_have_the_steps(tmp_path: Path) -> None:
    """The workers of a DataLoader are told their number, and take turns from the first one on."""
    pq.write_table(make_table(100, 1000), tmp_path / "a.parquet", row_group_size=9)
    options = {"splits": 4, "global_batch_size": 8, "shuffle": True, "buffer_size": 16}
    expected, _ = World(tmp_path, 1, 0, options).read()

    def make(state: Any) -> list[Any]:
        loaders = [
            arrowdl.Loader(tmp_path, framework="numpy", **group(**options)) for _ in range(3)
        ]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        return loaders

    def read(loaders: list[Any], may_go_on: bool) -> Steps:
        shares = [loader._read_share(i, 3, may_go_on=may_go_on) for i, loader in enumerate(loaders)]
        read = []
        for share in itertools.cycle(shares):
            if (batch := next(share, None)) is None:
                return read
            read.append(batch["id"].tolist())
            if len(read) == 5 and len(loaders) == 3 and stop:
                return read
        raise AssertionError

    stop = True
    loaders = make(None)
    assert read(loaders, True) == expected[:5]
    # As in what torchdata's StatefulDataLoader gives.
    state = {f"worker_{i}": {"own": loader.state_dict()} for i, loader in enumerate(loaders)}
    stop = False
    assert read(make(state), False) == expected[5:]


WRONG = {
    "neither": ({}, "give batch_size="),
    "both": ({"batch_size": 2, "global_batch_size": 4}, "give one of them"),
    "ranks": (
        {"global_batch_size": 24, "splits": 8, "rank": 0, "world_size": 3},
        r"splits=8 \(the default\) cannot be divided among 3 ranks, only among "
        r"1, 2, 4 or 8\. Give Ranks.splits=3, 6, 12 or 24, the same in all runs",
    ),
    "ranks of other splits": (
        {"global_batch_size": 24, "splits": 4, "rank": 0, "world_size": 3},
        r"splits=4 cannot be divided among 3 ranks, only among 1, 2 or 4\. Give Ranks.splits=3",
    ),
    "many ranks": (
        {"global_batch_size": 96, "rank": 0, "world_size": 16},
        r"splits=8 \(the default\) .* Give Ranks.splits=16, 32, 48 or 96",
    ),
    "many ranks with a budget": (
        {"global_batch_tokens": 96, "token_column": "id", "rank": 0, "world_size": 16},
        r"splits=8 \(the default\) .* Give Ranks.splits a multiple of 16",
    ),
    "batch": (
        {"global_batch_size": 10, "rank": 0, "world_size": 4},
        "global_batch_size=10 cannot be divided among 4 ranks, only among 1, 2, 5 or 10.* 12",
    ),
    "shares": (
        {"global_batch_size": 12, "splits": 8},
        "splits=8 does not divide a global batch of 12: .*splits=1, 2, 3, 4, 6 or 12, .* as 16",
    ),
    "shares of ranks": (
        {"batch_size": 3, "splits": 8, "rank": 1, "world_size": 4},
        r"does not divide a global batch of 12 rows \(batch_size=3, 4 ranks\)",
    ),
    "shares of one rank": (
        {"batch_size": 3, "splits": 2, "rank": 0, "world_size": 1},
        r"does not divide a global batch of 3 rows \(batch_size=3, 1 rank\)",
    ),
    "zero": ({"batch_size": 3, "splits": 0}, "splits=0: expected an int of at least 1"),
    "text": ({"global_batch_size": "8"}, "global_batch_size='8': expected an int"),
}


@pytest.mark.parametrize("name", WRONG)
def test_numbers_that_do_not_fit(name: str) -> None:
    options, message = WRONG[name]
    with pytest.raises((TypeError, ValueError), match=message):
        arrowdl.Loader(make_table(4, 4), **group(**options))


def test_the_number_of_ranks_is_checked_when_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = arrowdl.Loader(make_table(64, 64), ranks=arrowdl.Ranks(global_batch_size=8, splits=8))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    for use in (iter, len):
        with pytest.raises(ValueError, match="among 1, 2, 4 or 8"):
            use(loader)
    assert "global batches of 8 from 8 sequences" in repr(loader)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert (loader.batch_size, len(loader)) == (2, 8)


def test_a_prime_global_batch_has_two_divisors() -> None:
    with pytest.raises(ValueError, match=r"splits=1 or 1000003, or .* as 1000004"):
        arrowdl.Loader(make_table(4, 4), ranks=arrowdl.Ranks(global_batch_size=1_000_003, splits=4))


def test_a_state_of_other_splits_is_refused() -> None:
    table = make_table(64, 64)
    options = [{"splits": 4}, {"splits": 8}, {"splits": None}]
    loaders = [arrowdl.Loader(table, **group(global_batch_size=8, **more)) for more in options]
    for one, other in itertools.permutations(loaders, 2):
        next(iter(one))
        with pytest.raises(
            ValueError, match=r"is of Ranks.splits=\w+, and this Loader has Ranks.splits=\w+"
        ):
            other.load_state_dict(one.state_dict())


TAMPERED = {
    "no int": ({"splits": "4"}, "splits is not an int"),
    "bool": ({"splits": True}, "splits is not an int"),
    "none": ({"splits": 0}, "splits is not an int"),
    "old stage": ({"stages": [[1, 1, 8, 0, 1]]}, r"stages\[0\] is not a list of 2 numbers"),
    "no multiple": ({"stages": [[6, 1]]}, "6 for global_batch_size: no multiple of splits=4"),
    "too many": ({"stages": [[8, 9]]}, "had 9 global batches of 8 rows, .* 64 rows, for 8"),
    "huge": ({"stages": [[2**60, 2**40]]}, "more rows than a source can have"),
    "negative": ({"stages": [[8, -1]]}, r"stages\[0\] has -1 for batches"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_damaged_state_is_refused(name: str) -> None:
    loader = arrowdl.Loader(make_table(64, 64), ranks=arrowdl.Ranks(global_batch_size=8, splits=4))
    change, message = TAMPERED[name]
    with pytest.raises(ValueError, match=message):
        loader.load_state_dict(loader.state_dict() | change)


def test_a_state_counts_global_batches() -> None:
    table = make_table(64, 64)
    loader = arrowdl.Loader(table, ranks=arrowdl.Ranks(global_batch_size=8, splits=4))
    next(iter(loader))
    state = loader.state_dict()
    assert (state["splits"], state["stages"]) == (4, [[8, 1]])
    other = arrowdl.Loader(table, batch_size=8, ranks=arrowdl.Ranks(0, 2, splits=4))
    other.load_state_dict(state)
    batches = iter(other)
    assert [next(batches)["id"].tolist() for _ in range(2)] == [
        [2, 3, 4, 5, 18, 19, 20, 21],
        [6, 7, 8, 9, 22, 23, 24, 25],
    ]
    assert other.state_dict()["stages"] == [[8, 1], [16, 2]]
    same = arrowdl.Loader(table, batch_size=4, ranks=arrowdl.Ranks(0, 2, splits=4))
    same.load_state_dict(state)
    next(iter(same))
    assert same.state_dict()["stages"] == [[8, 2]]


@pytest.mark.parametrize("kind", ["table", "ipc", "parquet"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_batches_may_be_written_to(kind: str, ranks: int) -> None:
    """Also the last batch: the only row of one sequence, or a row of another rank."""
    with open_source(kind, 33, 5) as (source, _, ids):
        options = {"splits": 4, "global_batch_size": 8, "framework": "torch"}
        loaders = [
            arrowdl.Loader(source, **group(rank=i, world_size=ranks, **options))
            for i in range(ranks)
        ]
        for _ in range(2):
            seen = []
            for loader in loaders:
                for batch in loader:
                    seen += batch["id"][: loader.valid_rows].tolist()
                    batch["id"].fill_(-1)
            assert sorted(seen) == ids


def test_ranks_without_a_row_in_the_last_batch_repeat_one() -> None:
    """25 rows in steps of 8: the last step has one row, and each rank a batch."""
    table = make_table(25, 100)
    for workers in (0, 2):
        worlds = [
            World(table, 4, workers, {"splits": 8, "global_batch_size": 8, "pad_last": padded})
            for padded in (False, True)
        ]
        for world in worlds:
            steps, _ = world.read()
            assert len(steps) == 4
            assert len(steps[-1]) == 1
    loader = arrowdl.Loader(
        table, ranks=arrowdl.Ranks(0, 4, global_batch_size=8, splits=8), pad_last=True
    )
    batches = list(loader)
    assert [len(batch["valid"]) for batch in batches] == [2, 2, 2, 2]
    assert batches[-1]["valid"].tolist() == [False, False]
    (own,) = steps[-1]
    assert batches[-1]["id"].tolist() == [own, own], "the row that another rank has"


def write_csv(table: pa.Table, path: Path) -> ds.Dataset:
    csv.write_csv(table, path)
    return ds.dataset(path, format="csv")


def write_compressed_ipc(table: pa.Table, path: Path) -> Path:
    feather.write_feather(table, path, compression="lz4", chunksize=30)
    return path


@pytest.mark.parametrize("write", [write_csv, write_compressed_ipc])
def test_a_process_decodes_a_file_once_that_has_no_row_groups(
    write: Callable[[pa.Table, Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(make_table(400, 400), tmp_path / "a.arrow")
    scans = note_scans(monkeypatch)
    for ranks in (1, 2):
        scans.clear()
        world = World(source, ranks, 0, {"splits": 8, "global_batch_size": 16})
        steps, _ = world.read()
        assert steps[0] == [start + row for start in range(0, 400, 50) for row in range(2)]
        assert scans == [[0]] * ranks


def note_scans(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The row groups of each scan that is opened from now on."""
    scans: list[list[int]] = []
    open_scan = UnitReader._open

    def note(self: Any, opened: Any, *limits: Any) -> Any:
        scans.extend(map(list, opened))
        return open_scan(self, opened, *limits)

    monkeypatch.setattr(UnitReader, "_open", note)
    return scans


def test_a_process_decodes_each_row_group_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(make_table(400, 400), tmp_path / "a.parquet", row_group_size=30)
    scans = note_scans(monkeypatch)
    for shuffle in (False, True):
        scans.clear()
        world = World(tmp_path, 1, 0, {"splits": 8, "global_batch_size": 16, "shuffle": shuffle})
        check_epoch(world.read()[0], list(range(400)), {"global_batch_size": 16, "drop_last": 0})
        assert sorted(itertools.chain(*scans)) == list(range(14))


@pytest.mark.parametrize(("megabytes", "count"), [(1, 2), (100, 1)])
def test_sequences_share_the_memory_for_reading_ahead(
    megabytes: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of four readers holds a row group, and more if row groups are small."""
    pq.write_table(make_table(160, 160), tmp_path / "a.parquet", row_group_size=40)
    scans = note_scans(monkeypatch)
    source = arrowdl.Loader(tmp_path, 1)._source
    assert isinstance(source, DatasetSource)
    sizes = [megabytes * 2.0**20] * 4
    source.reader.sizes = dataclasses.replace(source.reader.sizes, nbytes=sizes)
    order = UnitOrder(source, range(4))
    stream = source.read_rows(0, 160, order, readers=4)
    assert len(next(stream)) == 10
    assert scans == [[0]], "the others come first"
    assert len(next(stream)) == 30
    assert len(scans) == count
    assert sum(map(len, stream)) == 120


def test_all_sequences_start_before_one_reads_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(make_table(160, 160), tmp_path / "a.parquet", row_group_size=10)
    scans = note_scans(monkeypatch)
    next(
        iter(
            arrowdl.Loader(tmp_path, ranks=arrowdl.Ranks(global_batch_size=4, splits=4), prefetch=0)
        )
    )
    assert scans == [[0], [4], [8], [12]]


def test_each_sequence_has_its_own_shuffle(tmp_path: Path) -> None:
    pq.write_table(make_table(32, 32), tmp_path / "a.parquet")
    options = {"splits": 2, "global_batch_size": 32, "shuffle": True, "buffer_size": 31}
    ((step,), _) = World(tmp_path, 1, 0, options).read()
    assert sorted(step) == list(range(32))
    first, second = (sorted(range(16), key=own.__getitem__) for own in (step[:16], step[16:]))
    assert first != second


def test_sequences_share_the_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a window come before those of the next one: here of eight rows."""
    monkeypatch.setattr("arrowdl.loader._buffer.BUFFER_BYTES", 0)
    pq.write_table(make_table(32, 32), tmp_path / "a.parquet")
    options = {"splits": 2, "global_batch_size": 16, "shuffle": True, "buffer_size": 16}
    (steps, _) = World(tmp_path, 1, 0, options).read()
    source = arrowdl.Loader(tmp_path, 1)._source
    assert isinstance(source, DatasetSource)
    order, sequences = Order(0, 16).arrange(source, 0, 2)
    lanes = Lanes(source, order, sequences[0], 8)
    rows = [
        [row for array in lanes.read(i, i + 8) for row in pa.array(array["id"]).to_pylist()]
        for i in (0, 8)
    ]
    assert [sorted(step[:8]) for step in steps] == list(map(sorted, rows))


def test_shared_units_are_released(tmp_path: Path) -> None:
    pq.write_table(make_table(40, 40), tmp_path / "a.parquet", row_group_size=10)
    source = arrowdl.Loader(tmp_path, 1)._source
    assert isinstance(source, DatasetSource)
    spans = [Span(25, 30), Span(3, 7), Span(7, 10), Span(21, 25)]
    shared = SharedUnits(source, UnitOrder(source, range(4)), spans)
    for number, span in enumerate(spans):
        arrays = [pa.array(array["id"]).to_pylist() for array in shared.read(span)]
        assert list(itertools.chain(*arrays)) == list(range(span.start, span.stop))
        assert bool(shared._shared_arrays) == (number < 3)


def test_rows_that_are_joined_are_not_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feather.write_feather(make_table(32, 32), tmp_path / "a.arrow", compression="uncompressed")
    given: list[Any] = []
    choose = Assembly._choose_converter

    def note(self: Assembly, access: Any) -> Any:
        given.append(access)
        return choose(self, access)

    monkeypatch.setattr(Assembly, "_choose_converter", note)
    monkeypatch.setattr(MappedSource, "for_writing", lambda self: pytest.fail("joined anyway"))
    for source in (make_table(32, 32), tmp_path):
        list(arrowdl.Loader(source, ranks=arrowdl.Ranks(global_batch_size=4, splits=4)))
    assert given == [{"_own": True}] * 2


def transform(batch: dict[str, Any]) -> dict[str, Any]:
    """Importable, for worker processes."""
    return {"id": batch["id"], "count": len(batch["id"])}


@pytest.mark.slow
def test_worker_processes_have_the_steps(tmp_path: Path) -> None:
    pq.write_table(make_table(70, 70), tmp_path / "a.parquet", row_group_size=9)
    options: dict[str, Any] = {"splits": 2, "global_batch_size": 6, "shuffle": True}
    expected, _ = World(tmp_path, 1, 0, options).read()
    first = arrowdl.Loader(
        tmp_path, framework="numpy", num_workers=2, transform=transform, **group(**options)
    )
    with first:
        batches = list(itertools.islice(first, 3))
        state = first.state_dict()
    assert [batch["id"].tolist() for batch in batches] == expected[:3]
    assert [batch["count"] for batch in batches] == [6] * 3
    world = World(tmp_path, 2, 0, options)
    world.load(state)
    assert world.read()[0] == expected[3:]
    second = arrowdl.Loader(tmp_path, framework="numpy", num_workers=1, **group(**options))
    second.load_state_dict(state)
    with second:
        assert [batch["id"].tolist() for batch in second] == expected[3:]


def make_columns(rows: int) -> pa.Table:
    words = pa.array(["a", "b", "c"])
    codes = pa.array([i % 3 for i in range(rows)], pa.int32())
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "word": pa.array([f"w{i % 4}" for i in range(rows)]).dictionary_encode(),
            "struct": pa.StructArray.from_arrays(
                [pa.DictionaryArray.from_arrays(codes, words)], ["code"]
            ),
            "text": pa.array(["z" * (i % 5) for i in range(rows)]),
            "pair": pa.array([[i, -i] for i in range(rows)], pa.list_(pa.int32(), 2)),
            "null": pa.array([i if i % 5 else None for i in range(rows)], pa.int16()),
        }
    )


def list_rows(batch: dict[str, Any], count: int) -> list[tuple[Any, ...]]:
    flat, offsets = batch["text"]
    return [
        (
            int(batch["id"][i]),
            int(batch["word"][i]),
            int(batch["struct"]["code"][i]),
            bytes(flat[offsets[i] : offsets[i + 1]]),
            batch["pair"][i].tolist(),
            int(batch["null"][i]),
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_keep_their_values(shuffle: bool, tmp_path: Path) -> None:
    table = make_columns(200)
    for i in range(3):
        pq.write_table(table[i * 70 : i * 70 + 70], tmp_path / f"{i}.parquet", row_group_size=37)
    options: dict[str, Any] = {
        "framework": "numpy",
        "nulls": "fill",
        "ragged": "offsets",
        "shuffle": shuffle,
        "buffer_size": 64,
    }
    expected = [
        row
        for batch in arrowdl.Loader(tmp_path, 8, **group(**options))
        for row in list_rows(batch, len(batch["id"]))
    ]
    for source in (tmp_path, table, table.to_batches(max_chunksize=60)):
        for ranks in (1, 2):
            read = []
            for rank in range(ranks):
                loader = arrowdl.Loader(
                    source, 16 // ranks, **group(splits=4, rank=rank, world_size=ranks, **options)
                )
                for batch in loader:
                    read += list_rows(batch, loader.valid_rows)
            assert sorted(read) == sorted(expected)
