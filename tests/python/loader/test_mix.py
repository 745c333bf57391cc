"""`Loader.mix`: rows of several sources by their weights, in one order for any number of ranks."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from arrowdl import _core
from arrowdl.loader._mixture.schedule import Phase, Turns, read_schedule, read_weights
from helpers.options import group
from helpers.random_cases import choose_examples
from helpers.ranks import Ranks, Steps, divisors
from hypothesis import given, settings
from hypothesis import strategies as st

thorough = settings(max_examples=choose_examples(30, 300))
START = 1000  # of the ids of the second source, and so on


def make_table(number: int, rows: int) -> pa.Table:
    return pa.table({"id": pa.array(range(number * START, number * START + rows), pa.int64())})


def make_tables(lengths: list[int]) -> dict[str, pa.Table]:
    return {f"s{i}": make_table(i, rows) for i, rows in enumerate(lengths)}


def mix(sources: Any, weights: Any, ranks: int = 1, workers: int = 0, **options: Any) -> Ranks:
    def make(**rank: int) -> arrowdl.Loader:
        return arrowdl.Loader.mix(
            sources, weights=weights, framework="numpy", **group(**rank, **options)
        )

    return Ranks(make, ranks, workers)


def count(rows: Any) -> Counter[int]:
    """Rows of each source."""
    return Counter(i // START for i in rows)


# ---- shares


weights_of_some = st.lists(st.integers(0, 20), min_size=1, max_size=5).filter(any)


@given(weights_of_some, st.integers(1, 8), st.integers(0, 200), st.integers(0, 50))
@thorough
def test_random_turns_are_as_they_are_counted(
    weights: list[int], splits: int, change: int, begin: int
) -> None:
    phases = [Phase(0, tuple(weights)), Phase(change + 1, tuple(reversed(weights)))]
    if not any(reversed(weights)):
        return
    for sequence in range(splits):
        turns = Turns(phases, sequence, splits)
        streams = [
            _core.from_arrow_stream(pa.table({"source": pa.array([i] * 400, pa.int32())}))
            for i in range(len(weights))
        ]
        mixed = _core.mix(streams, turns.list_phases(begin)).slice(0, 300)
        rows = pa.RecordBatchReader.from_stream(mixed).read_all()["source"].to_pylist()
        found = Counter(rows)
        for end in (begin, begin + len(rows) // 2, begin + len(rows)):
            before, after = turns.count(begin), turns.count(end)
            found = Counter(rows[: end - begin])
            assert [b - a for a, b in zip(before, after, strict=True)] == [
                found[i] for i in range(len(weights))
            ]


@given(weights_of_some, st.integers(1, 16), st.integers(0, 1000))
@thorough
def test_random_shares_are_the_weights_in_every_prefix(
    weights: list[int], splits: int, rows: int
) -> None:
    phases = [Phase(0, tuple(weights))]
    counts = [Turns(phases, i, splits).count(rows) for i in range(splits)]
    total = [sum(column) for column in zip(*counts, strict=True)]
    for found, weight in zip(total, weights, strict=True):
        share = Fraction(weight, sum(weights)) * rows * splits
        assert abs(found - share) <= len(weights) + 1
    assert sum(total) == rows * splits


@pytest.mark.parametrize(
    ("given_weights", "expected"),
    [
        ({"a": 0.7, "b": 0.3}, (7, 3)),
        ({"a": 2, "b": 4}, (1, 2)),
        ({"a": 1 / 3, "b": 1 / 3}, (1, 1)),
        ({"a": Fraction(1, 3), "b": 0}, (1, 0)),
    ],
)
def test_weights_are_exact(given_weights: Any, expected: Any) -> None:
    assert read_weights(["a", "b"], given_weights) == expected


def test_weights_that_no_number_of_64_bits_has_are_nearly_exact() -> None:
    a, b = read_weights(["a", "b"], {"a": 1e-300, "b": 3})
    assert (a, b) == (1, 2**52 - 1)


# ---- epochs


def test_each_step_has_the_shares() -> None:
    world = mix(make_tables([60, 60]), {"s0": 3, "s1": 1}, global_batch_size=8, splits=2)
    steps, state = world.read(4)
    assert all(count(step) == {0: 6, 1: 2} for step in steps)
    assert state["phases"] == [[0, [3, 1]]]
    # The rows of both sequences of each source, in their order.
    assert [i for step in steps for i in step if i < 30] == list(range(12))


@pytest.mark.parametrize("shuffle", [False, True])
def test_an_epoch_ends_before_a_row_is_repeated(shuffle: bool) -> None:
    tables = make_tables([40, 100])
    world = mix(tables, {"s0": 1, "s1": 1}, global_batch_size=8, splits=4, shuffle=shuffle)
    steps, _ = world.read()
    rows = list(itertools.chain(*steps))
    assert count(rows)[0] == 40
    assert len(set(rows)) == len(rows) == 80
    assert len(world.loaders[0]) == len(steps) == 10
    again, _ = world.read()
    assert (again == steps) is not shuffle


def test_an_epoch_ends_when_all_rows_were_read() -> None:
    tables = make_tables([10, 100])
    world = mix(tables, {"s0": 1, "s1": 4}, global_batch_size=5, splits=1, stop="all", shuffle=True)
    steps, _ = world.read()
    seen = Counter(itertools.chain(*steps))
    assert set(seen) >= {*range(10), *range(START, START + 100)}
    assert count(itertools.chain(*steps)) == {0: 25, 1: 100}
    assert all(2 <= seen[i] <= 3 for i in range(10)), "each epoch of the source has each row once"
    own = [i for step in steps for i in step if i < START]
    assert own[:10] != own[10:20], "in an order of its own"


def test_repeated_rows_come_as_often_as_others() -> None:
    """Sequences of different lengths begin each epoch at the same row, and none is left open."""
    world = mix(
        make_tables([9, 50]), {"s0": 1, "s1": 1}, global_batch_size=16, splits=8, stop="repeat"
    )
    steps, _ = world.read(9 * 10)
    seen = Counter(i for step in steps for i in step if i < START)
    assert sum(seen.values()) == 9 * 80
    assert set(seen.values()) <= {79, 80, 81}


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (1, 2), (2, 0), (2, 2)])
def test_a_source_that_gives_no_more_rows(ranks: int, workers: int) -> None:
    """A process may begin in the middle of a source's epoch and read none of its rows."""
    sources, weights = make_tables([2, 3]), {"s0": 1, "s1": 2}
    options = {"splits": 2, "global_batch_size": 2, "stop": "first", "drop_last": False}
    expected, _ = mix(sources, weights, **options).read()
    assert mix(sources, weights, ranks, workers, **options).read()[0] == expected
    first, state = mix(sources, weights, **options).read(1)
    world = mix(sources, weights, ranks, workers, **options)
    world.load(state)
    assert first + world.read()[0] == expected


def test_names_of_list_items_may_differ(tmp_path: Path) -> None:
    rows = [[i, i + 1] for i in range(20)]
    table = pa.table({"id": pa.array(rows, pa.list_(pa.field("item", pa.int64())))})
    other = pa.table({"id": pa.array(rows, pa.list_(pa.field("element", pa.int64())))})
    pq.write_table(table, tmp_path / "a.parquet")
    for sources in ({"a": table, "b": other}, {"a": tmp_path / "a.parquet", "b": table}):
        loader = arrowdl.Loader.mix(
            sources,
            weights={"a": 1, "b": 1},
            framework="numpy",
            ragged="padded",
            origin="from",
            ranks=arrowdl.Ranks(global_batch_size=8),
        )
        batch = next(iter(loader))
        assert Counter(batch["from"].tolist()) == {0: 4, 1: 4}


def test_an_endless_mixture() -> None:
    world = mix(make_tables([10, 7]), {"s0": 1, "s1": 1}, global_batch_size=4, stop="repeat")
    steps, state = world.read(100)
    assert count(itertools.chain(*steps)) == {0: 200, 1: 200}
    with pytest.raises(TypeError, match="never ends"):
        len(world.loaders[0])
    other = mix(make_tables([10, 7]), {"s0": 1, "s1": 1}, 2, global_batch_size=4, stop="repeat")
    other.load(state)
    more, _ = other.read(3)
    assert world.read(3)[0] == steps[:3], "a new iterator begins the epoch again"
    world.load(state)
    assert world.read(3)[0] == more


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.sampled_from([1, 2, 3, 4, 6]))
    lengths = draw(st.lists(st.integers(splits, 40), min_size=1, max_size=4))
    names = [f"s{i}" for i in range(len(lengths))]
    weights = st.lists(st.integers(1, 9), min_size=len(names), max_size=len(names)).map(
        lambda own: dict(zip(names, own, strict=True))
    )
    schedule: Any = draw(weights)
    if draw(st.booleans()):
        schedule = {0: schedule, draw(st.integers(1, 6)): draw(weights)}
    return {
        "lengths": lengths,
        "weights": schedule,
        "options": {
            "splits": splits,
            "global_batch_size": splits * draw(st.integers(1, 4)),
            "shuffle": draw(st.booleans()),
            "seed": draw(st.integers(0, 99)),
            "buffer_size": draw(st.sampled_from([1, 7, 60, 1000])),
            "stop": draw(st.sampled_from(["first", "all", "repeat"])),
            "drop_last": draw(st.booleans()),
            "prefetch": draw(st.sampled_from([0, 2])),
        },
        "worlds": draw(
            st.lists(
                st.tuples(
                    st.sampled_from(divisors(splits)), st.integers(0, 3), st.sampled_from([0, 1, 3])
                ),
                min_size=1,
                max_size=3,
            )
        ),
    }


def write_ipc(path: Path, table: pa.Table) -> Path:
    feather.write_feather(table, path.with_suffix(".arrow"), compression="uncompressed")
    return path.with_suffix(".arrow")


def write_more(path: Path, table: pa.Table) -> arrowdl.Loader:
    """A Loader of its own order, which drops the rows that a file has beside those of `table`."""
    others = pa.table({"id": pa.array([-1, -2, -3], pa.int64())})
    pq.write_table(pa.concat_tables([others, table, others]), path, row_group_size=7)
    rows = ds.field("id") >= 0
    return arrowdl.Loader(path, 1, shuffle=arrowdl.Shuffle(9), seed=3, filter=rows)


def write_dataset(path: Path, table: pa.Table) -> ds.Dataset:
    pq.write_table(table, path, row_group_size=11)
    return ds.dataset(path)


MEMBERS = [write_ipc, write_more, write_dataset, lambda path, table: arrowdl.Loader(table, 1)]


def write(folder: Path, lengths: list[int], kind: str) -> dict[str, Any]:
    tables = make_tables(lengths)
    if kind == "tables":
        return tables
    if kind == "several":
        return {
            name: MEMBERS[i % len(MEMBERS)](folder / name, table)
            for i, (name, table) in enumerate(tables.items())
        }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=13)
    return {name: folder / f"{name}.parquet" for name in tables}


@pytest.mark.parametrize("kind", ["tables", "parquet", "several"])
@given(case=cases())
@thorough
def test_random_steps_are_those_of_one_rank(
    kind: str, case: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In whole epochs, and with stops, each followed by other ranks and workers."""
    sources = write(tmp_path_factory.mktemp("sources"), case["lengths"], kind)
    options, weights = case["options"], case["weights"]
    most = 30 if options["stop"] == "repeat" else None
    expected, _ = mix(sources, weights, **options).read(most)
    check(expected, case)
    for ranks, workers, _ in case["worlds"]:
        assert mix(sources, weights, ranks, workers, **options).read(most)[0] == expected
    read: Steps = []
    state = None
    for ranks, workers, steps in [*case["worlds"], (1, 0, most)]:
        if len(read) == len(expected) and read:
            break
        world = mix(sources, weights, ranks, workers, **options)
        if state is not None:
            world.load(state)
        now, state = world.read(steps)
        read += now
    assert read[: len(expected)] == expected


def check(steps: Steps, case: dict[str, Any]) -> None:
    options = case["options"]
    seen = Counter(itertools.chain(*steps))
    if options["stop"] == "first":
        assert all(times == 1 for times in seen.values())
    if options["stop"] == "all" and not options["drop_last"]:
        for i, rows in enumerate(case["lengths"]):
            assert all(seen[i * START + row] for row in range(rows))
    names = [f"s{i}" for i in range(len(case["lengths"]))]
    schedule = read_schedule(names, case["weights"])
    wanted = [0.0] * len(names)
    found: Counter[int] = Counter()
    # In the last step, sequences may have ended.
    for number, step in enumerate(steps[:-1]):
        weights = [own for start, own in schedule if start <= number][-1]
        for i, weight in enumerate(weights):
            wanted[i] += weight * len(step) / sum(weights)
        found.update(count(step))
        most = 2 * len(names) + 1e-6  # the sums are rounded
        assert all(abs(found[i] - wanted[i]) <= most for i in range(len(names)))


# ---- weights that change


def test_weights_change_at_a_step() -> None:
    tables = make_tables([100, 100])
    weights = {0: {"s0": 1, "s1": 0}, 3: {"s0": 0, "s1": 1}, 5: {"s0": 1, "s1": 1}}
    steps, state = mix(tables, weights, global_batch_size=4, splits=2).read(7)
    shares = [dict(count(step)) for step in steps]
    assert shares == [{0: 4}] * 3 + [{1: 4}] * 2 + [{0: 2, 1: 2}] * 2
    assert [row for row, _ in state["phases"]] == [0, 6, 10], "the weights of what was read"


def test_other_weights_hold_from_a_resume_on() -> None:
    tables = make_tables([100, 100])
    before = mix(tables, {"s0": 3, "s1": 1}, global_batch_size=4, splits=2)
    first, state = before.read(5)
    after = mix(tables, {"s0": 1, "s1": 3}, 2, global_batch_size=4, splits=2)
    after.load(state)
    second, later = after.read(4)
    assert all(count(step) == {0: 1, 1: 3} for step in second)
    rows = list(itertools.chain(*first, *second))
    assert len(set(rows)) == len(rows), "no row is read twice"
    assert later["phases"] == [[0, [3, 1]], [10, [1, 3]]]
    again = mix(tables, {"s0": 1, "s1": 3}, global_batch_size=4, splits=2)
    again.load(later)
    rest, _ = again.read()
    rows += itertools.chain(*rest)
    assert len(set(rows)) == len(rows)
    assert count(rows)[1] in (99, 100), "up to the end of the first sequence"
    whole, _ = again.read()
    assert count(itertools.chain(*whole))[1] in (99, 100), "the next epoch has its own weights"


def test_short_phases_have_their_shares() -> None:
    """A new phase goes on with the progress of the last one, and does not round again."""
    tables = make_tables([900, 900, 900])
    weights = {step: {"s0": 50 + step % 2, "s1": 50, "s2": 1} for step in range(500)}
    steps, _ = mix(tables, weights, global_batch_size=8, splits=8, stop="repeat").read(500)
    found = count(itertools.chain(*steps))
    for source, share in ((0, 50.5 / 101.5), (1, 50 / 101.5), (2, 1 / 101.5)):
        assert abs(found[source] - 4_000 * share) < 8


def test_steps_of_a_schedule_are_those_that_were_read() -> None:
    """After a resume with another global batch."""
    tables = make_tables([200, 200])
    weights = {0: {"s0": 1, "s1": 0}, 6: {"s0": 0, "s1": 1}}
    _, state = mix(tables, weights, global_batch_size=4, splits=2).read(3)
    other = mix(tables, weights, global_batch_size=8, splits=2)
    other.load(state)
    steps, _ = other.read(5)
    assert [dict(count(step)) for step in steps] == [{0: 8}] * 3 + [{1: 8}] * 2


@pytest.mark.parametrize("size", [{}, {"bucket_by": "n"}, {"token_column": "n"}])
def test_a_state_of_a_time_when_a_source_had_no_weight(size: dict[str, str]) -> None:
    """With ``stop="all"``: by the weights up to there alone, the epoch would have no end."""
    ones = pa.array([1] * 40, pa.int32())
    tables = {name: own.append_column("n", ones) for name, own in make_tables([40, 40]).items()}
    unit = "global_batch_tokens" if "token_column" in size else "global_batch_size"
    weights = {0: {"s0": 1, "s1": 0}, 4: {"s0": 1, "s1": 1}}
    options = {unit: 4, "splits": 2, "stop": "all", **size}
    _, state = mix(tables, weights, **options).read(2)
    expected, _ = mix(tables, weights, **options).read()
    loader = arrowdl.Loader.mix(tables, weights=weights, **group(**options))
    loader.load_state_dict(state)
    saved = loader.state_dict()
    assert (saved["stages"], saved["phases"]) == (state["stages"], state["phases"])
    loader.load_state_dict(saved)
    again = mix(tables, weights, **options)
    again.load(saved)
    rest, _ = again.read()
    assert rest == expected[2:]


# ---- rows


def test_rows_say_where_they_come_from() -> None:
    world = mix(make_tables([20, 20]), {"s0": 1, "s1": 1}, global_batch_size=4, origin="from")
    for batch in world.loaders[0]:
        assert batch["from"].tolist() == [i // START for i in batch["id"]]
        assert batch["from"].dtype == "int32"


def test_loaders_keep_their_columns_and_order() -> None:
    table = make_table(0, 40).append_column("x", pa.array(range(40)))
    only = arrowdl.Loader(table, 1, columns=["id"], shuffle=True, seed=3)
    other = make_table(1, 40)
    world = mix({"a": only, "b": other}, {"a": 1, "b": 1}, global_batch_size=8, splits=1)
    rows = list(itertools.chain(*world.read()[0]))
    mine = [i for i in rows if i < START]
    assert sorted(mine) == list(range(40)) != mine
    assert [i for i in rows if i >= START] == list(range(START, START + 40))


COLORS = {"a": ["red", "green"], "b": ["blue", "red"]}


def write_colors(kind: str, folder: Path) -> dict[str, Any]:
    tables = {
        name: pa.table({"color": pa.array(colors * 4).dictionary_encode()})
        for name, colors in COLORS.items()
    }
    if kind == "tables":
        return tables
    for name, table in tables.items():
        if kind == "parquet":
            pq.write_table(table, folder / f"{name}.{kind}")
        else:
            codec = "lz4" if kind == "compressed" else "uncompressed"
            feather.write_feather(table, folder / f"{name}.{kind}", compression=codec)
    return {name: ds.dataset(folder / f"{name}.{kind}", format=FORMATS[kind]) for name in tables}


FORMATS = {"parquet": "parquet", "ipc": "ipc", "compressed": "ipc"}


@pytest.mark.parametrize("kind", ["tables", *FORMATS])
@pytest.mark.parametrize("shuffle", [False, True])
def test_dictionaries_have_one_vocabulary(kind: str, shuffle: bool, tmp_path: Path) -> None:
    sources = write_colors(kind, tmp_path)
    own = {name: arrowdl.Loader(source, 8, framework="numpy") for name, source in sources.items()}
    for members in (sources, own):
        loader = arrowdl.Loader.mix(
            members,
            weights={"a": 1, "b": 1},
            framework="numpy",
            ranks=arrowdl.Ranks(global_batch_size=4, splits=2),
            shuffle=shuffle,
            origin="from",
        )
        values = loader.vocabulary("color").to_pylist()
        assert values == ["red", "green", "blue"]
        rows = [
            (int(source), values[code])
            for batch in loader
            for source, code in zip(batch["from"], batch["color"], strict=True)
        ]
        assert Counter(rows) == {(0, "red"): 4, (0, "green"): 4, (1, "blue"): 4, (1, "red"): 4}
    # The Loaders keep their own.
    assert own["b"].vocabulary("color").to_pylist() == ["blue", "red"]
    assert next(iter(own["b"]))["color"].tolist() == [0, 1] * 4


def test_nested_dictionaries_that_differ_are_refused(tmp_path: Path) -> None:
    for name, colors in COLORS.items():
        column = pa.StructArray.from_arrays([pa.array(colors * 4).dictionary_encode()], ["c"])
        pq.write_table(pa.table({"s": column}), tmp_path / f"{name}.parquet")
    sources = {name: tmp_path / f"{name}.parquet" for name in COLORS}
    loader = arrowdl.Loader.mix(
        sources,
        weights={"a": 1, "b": 1},
        framework="numpy",
        ranks=arrowdl.Ranks(global_batch_size=4, splits=2),
    )
    with pytest.raises(ValueError, match=r'the dictionary of "s\.c" changes'):
        list(loader)


def test_numbers_of_numpy_are_numbers() -> None:
    weights = {
        np.int64(0): {"s0": np.float32(0.5), "s1": np.int8(1)},
        np.int64(2): {"s0": 1, "s1": 1},
    }
    loader = mix(make_tables([40, 40]), weights, global_batch_size=np.int64(4), splits=np.int64(2))
    _, state = loader.read(3)
    loader.load(state)
    assert json.loads(json.dumps(state))["phases"] == [[0, [1, 2]], [4, [1, 1]]]


def test_the_seed_is_no_part_of_the_source() -> None:
    tables = make_tables([40, 40])
    one, two = (
        mix(tables, {"s0": 1, "s1": 1}, global_batch_size=4, shuffle=True, seed=seed)
        for seed in (1, 2)
    )
    with pytest.raises(ValueError, match="of another seed"):
        two.load(one.read(1)[1])


def test_batches_may_be_written_to() -> None:
    tables = make_tables([16, 16])
    for ranks in (1, 2):
        for loader in mix(tables, {"s0": 1, "s1": 1}, ranks, global_batch_size=8).loaders:
            for batch in loader:
                batch["id"] += 5
    assert tables["s0"]["id"].to_pylist() == list(range(16))


WRONG: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "list": ([make_table(0, 8)], {"s0": 1}, {}, "sources by their names"),
    "none": ({}, {}, {}, "sources by their names"),
    "stream": (
        {"a": make_table(0, 8).to_reader},
        {"a": 1},
        {},
        '"a" is a stream: a mixture takes sources whose rows',
    ),
    "batches": (
        {"a": lambda: iter(make_table(0, 8).to_batches())},
        {"a": 1},
        {},
        r"Make a table of it \(pyarrow.table\(stream\)\), or write it to files",
    ),
    "mixture": (
        {
            "a": arrowdl.Loader.mix(
                make_tables([8]), weights={"s0": 1}, ranks=arrowdl.Ranks(global_batch_size=4)
            )
        },
        {"a": 1},
        {},
        'name the sources of "a" here, each with its weight there times the weight of "a"',
    ),
    "batch_size": (
        make_tables([8]),
        {"s0": 1},
        {"batch_size": 4},
        r"'batch_size': give ranks=Ranks\(global_batch_size=...\), the rows of a step on all ranks",
    ),
    "list of tables": ([make_table(0, 8)], {"s0": 1}, {}, "sources= is a list: give one or more"),
    "columns": (
        {"a": make_table(0, 8), "b": pa.table({"other": list(range(8))})},
        {"a": 1, "b": 1},
        {},
        r'"a" has the columns \[\'id\'\], and "b" \[\'other\'\]',
    ),
    "no rows": (make_tables([8, 3]), {"s0": 1, "s1": 1}, {}, '"s1" has 3 rows, and Ranks.splits=4'),
    "no weight": (make_tables([8, 8]), {"s0": 1}, {}, "weights names"),
    "negative": (make_tables([8]), {"s0": -1}, {}, 'weights\\["s0"\\] is -1'),
    "nan": (make_tables([8]), {"s0": float("nan")}, {}, 'weights\\["s0"\\] is nan'),
    "text": (make_tables([8]), {"s0": "3"}, {}, "is '3': expected a number"),
    "zero": (make_tables([8]), {"s0": 0}, {}, "one of them must be more than 0"),
    "no mapping": (make_tables([8]), [1], {}, "give a number for each source"),
    "steps": (make_tables([8]), {2: {"s0": 1}}, {}, "the first of them 0"),
    "never": (
        make_tables([8, 8]),
        {"s0": 1, "s1": 0},
        {"stop": "all"},
        'weight of "s1" is 0 in the end',
    ),
    "stop": (make_tables([8]), {"s0": 1}, {"stop": "last"}, "stop='last'"),
    "splits": (make_tables([8]), {"s0": 1}, {"splits": None}, "splits=None"),
    "origin": (make_tables([8]), {"s0": 1}, {"origin": "id"}, "have a column of this name"),
    "no sequences": (make_tables([8]), {"s0": 1}, {"splits": 0}, "splits=0: expected an int"),
    "size": (make_tables([8]), {"s0": 1}, {"global_batch_size": "4"}, "expected an int"),
    "vocabulary": (
        make_tables([8]),
        {"s0": 1},
        {"vocabulary": {"color": ["red"]}},
        'vocabulary= names "color"',
    ),
    "memory_map": (make_tables([8]), {"s0": 1}, {"memory_map": "no"}, "memory_map='no'"),
    "no name": (make_tables([8]), {"s0": 1}, {"origin": ""}, "origin='': give the name"),
    "transform": (
        {"a": arrowdl.Loader(make_table(0, 8), 1, transform=print)},
        {"a": 1},
        {},
        r'"a" has transform=: give it to Loader\.mix',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name: str) -> None:
    sources, weights, options, message = WRONG[name]
    with pytest.raises((TypeError, ValueError), match=message):
        arrowdl.Loader.mix(sources, weights=weights, **group(**{"global_batch_size": 4} | options))


def test_types_that_differ_are_named() -> None:
    tables = {"a": make_table(0, 8), "b": pa.table({"id": pa.array(range(8), pa.int32())})}
    with pytest.raises(ValueError, match=r'"b" has "id" of int32, and "a" of int64.* cast a table'):
        arrowdl.Loader.mix(
            tables, weights={"a": 1, "b": 1}, ranks=arrowdl.Ranks(global_batch_size=4)
        )


def test_workers_with_states_of_their_own_keep_the_weights() -> None:
    """Otherwise the weights would begin at another row in each."""
    tables = make_tables([80, 80])

    def read_share(weights: Any, worker: int, state: Any) -> Any:
        loader = mix(tables, weights, global_batch_size=8).loaders[0]
        if state is not None:
            loader.load_state_dict(state)
        share = loader._read_share(worker, 2, may_go_on=True)
        return loader, share

    loader, share = read_share({"s0": 1, "s1": 1}, 0, None)
    next(share)
    state = loader.state_dict()
    assert next(read_share({"s0": 1, "s1": 1}, 0, state)[1])
    with pytest.raises(ValueError, match=r"give the saved state to Loader\.load_state_dict"):
        read_share({"s0": 1, "s1": 3}, 0, state)


def test_a_state_of_other_sources_is_refused() -> None:
    state = mix(make_tables([8, 8]), {"s0": 1, "s1": 1}, global_batch_size=4).read(1)[1]
    for lengths, message in (([8, 9], "another dataset"), ([8, 8], "of a mixture of 1 sources")):
        other = mix(make_tables(lengths), {"s0": 1, "s1": 1}, global_batch_size=4)
        damaged = state | {"phases": [[0, [1]]]} if lengths == [8, 8] else state
        with pytest.raises(ValueError, match=message):
            other.load(damaged)
    other = mix(make_tables([8, 8]), {"s0": 1, "s1": 1}, global_batch_size=4, stop="all")
    with pytest.raises(ValueError, match="another dataset or stop="):
        other.load(state)


@pytest.mark.parametrize(
    "phases",
    [
        3,
        [3],
        [[1, [1, 1]]],
        [[0, [1, -1]]],
        [[0, [0, 0]]],
        [[0, [1, 1]], [0, [1, 1]]],
        [[0, [1.5, 1]]],
    ],
)
def test_a_damaged_state_is_refused(phases: Any) -> None:
    world = mix(make_tables([8, 8]), {"s0": 1, "s1": 1}, global_batch_size=4)
    with pytest.raises(ValueError, match="phases"):
        world.load(world.read(1)[1] | {"phases": phases})


def test_worker_processes_have_the_steps(tmp_path: Path) -> None:
    sources = write(tmp_path, [50, 70], "parquet")
    options: dict[str, Any] = {"weights": {"s0": 1, "s1": 2}, "framework": "numpy", "shuffle": True}
    alone = arrowdl.Loader.mix(sources, **group(global_batch_size=12, **options))
    with arrowdl.Loader.mix(
        sources, num_workers=2, **group(global_batch_size=12, **options)
    ) as loader:
        for _ in range(2):
            assert [b["id"].tolist() for b in loader] == [b["id"].tolist() for b in alone]


def test_loaders_with_dictionaries_in_lists(tmp_path: Path) -> None:
    """The mixture gives its own copies other codes: they read their dictionaries by these."""
    for name, values in (("a", "pqrs"), ("b", "qzpy")):
        table = pa.table(
            {
                "top": pa.array(list(values)).dictionary_encode(),
                "list": pa.ListArray.from_arrays(
                    pa.array(range(5), pa.int32()), pa.array(list("uvuv")).dictionary_encode()
                ),
            }
        )
        pq.write_table(table, tmp_path / f"{name}.parquet")
    loaders = {name: make_reader(tmp_path / f"{name}.parquet") for name in "ab"}
    mixture = arrowdl.Loader.mix(
        loaders,
        weights={"a": 1, "b": 1},
        ranks=arrowdl.Ranks(global_batch_size=4, splits=1),
        framework="numpy",
    )
    codes = np.concatenate([batch["top"] for batch in mixture])
    values = [mixture.vocabulary("top")[int(code)].as_py() for code in codes]
    assert sorted(values) == sorted("pqrsqzpy")
    assert loaders["b"].vocabulary("top").to_pylist() == list("qzpy")


def make_reader(path: Path) -> arrowdl.Loader:
    return arrowdl.Loader(path, 2, framework="numpy")
