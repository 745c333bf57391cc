"""Random faults, filters, ranks and stops: each good row once, each bad one named."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
from helpers.faults import flip_value, open_checked, write_checked
from helpers.options import group
from helpers.random_cases import choose_examples
from helpers.ranks import Ranks, Steps, divisors
from hypothesis import given, settings
from hypothesis import strategies as st

thorough = settings(max_examples=choose_examples(25, 120))
MANY = 10**9


class Files:
    """Three files, of which some row groups are damaged and some files removed."""

    def __init__(self, folder: str, rows: int, group_rows: int) -> None:
        self.ends = [rows // 3, rows // 2, rows]
        self.paths = [Path(folder) / f"{i}.parquet" for i in range(3)]
        self.groups: list[tuple[int, int, range]] = []  # file, row group, rows
        start = 0
        for i, end in enumerate(self.ends):
            table = pa.table({"id": pa.array(range(start, end), pa.int64())})
            write_checked(self.paths[i], table, group_rows)
            for number, first in enumerate(range(start, end, group_rows)):
                own = range(first, min(end, first + group_rows))
                self.groups.append((i, number, own))
            start = end
        self.bad: set[int] = set()

    def damage(self, numbers: list[int]) -> None:
        for number in {i % len(self.groups) for i in numbers}:
            file, unit, rows = self.groups[number]
            flip_value(self.paths[file], unit)
            self.bad |= set(rows)

    def remove(self, numbers: list[int]) -> None:
        for file in set(numbers):
            self.paths[file].unlink()
            self.bad |= {i for own, _, rows in self.groups if own == file for i in rows}

    def list_rows(self, loader: Any) -> set[int]:
        """The rows that the stats of a Loader name."""
        starts = {str(path): ([0, *self.ends])[i] for i, path in enumerate(self.paths)}
        return {
            starts[entry.path] + row
            for entry in loader.stats().skipped
            for start, stop in entry.ranges
            for row in range(start, stop)
        }


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.sampled_from([None, 1, 2, 4, 6]))
    ranks = [1, 2, 3, 4] if splits is None else divisors(splits)
    return {
        "rows": draw(st.integers(12, 120)),
        "cut": draw(st.sampled_from([3, 8, 20, 1000])),
        "damaged": draw(st.lists(st.integers(0, 40), max_size=5)),
        "removed": draw(st.lists(st.integers(0, 2), max_size=2)),
        "kept": draw(st.sampled_from([None, 2, 3, 50])),
        "size": 12 * draw(st.sampled_from([1, 2])),
        "options": {
            "splits": splits,
            "shuffle": draw(st.booleans()),
            "seed": draw(st.integers(0, 99)),
            "buffer_size": draw(st.sampled_from([7, 16, 60, 1000])),
            "prefetch": draw(st.sampled_from([0, 2])),
            "pad_last": draw(st.booleans()),
        },
        "worlds": draw(
            st.lists(
                st.tuples(st.sampled_from(ranks), st.integers(0, 2), st.integers(0, 6)),
                min_size=1,
                max_size=3,
            )
        ),
    }


class World(Ranks):
    def __init__(self, files: Files, case: dict[str, Any], ranks: int, workers: int) -> None:
        source = open_checked([str(path) for path in files.paths])
        kept = case["kept"]

        def make(**rank: int) -> Any:
            loader = arrowdl.Loader(
                source,
                case["size"] // ranks,
                framework="numpy",
                **group(on_error="skip", max_skipped_rows=MANY, **rank, **case["options"]),
            )
            return loader if kept is None else loader.filter(lambda b: b["id"] % kept == 0)

        super().__init__(make, ranks, workers)


@given(cases())
@thorough
def test_random_faults(case: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder, case["rows"], case["cut"])
        files.damage(case["damaged"])
        alone = World(files, case, 1, 0)
        worlds = [World(files, case, ranks, workers) for ranks, workers, _ in case["worlds"]]
        resumed = World(files, case, 1, 0)
        files.remove(case["removed"])
        if len(files.bad) == case["rows"]:
            return
        kept = case["kept"] or 1
        good = [i for i in range(case["rows"]) if i not in files.bad and i % kept == 0]
        steps, _ = alone.read()
        assert sorted(i for step in steps for i in step) == good
        (loader,) = alone.loaders
        assert len(steps) == len(loader)
        stats = loader.stats()
        assert (stats.rows, stats.skipped_rows) == (len(good), len(files.bad))
        assert stats.filtered_rows == case["rows"] - len(good) - len(files.bad)
        assert files.list_rows(loader) == files.bad

        read: Steps = []
        state = None
        for world, (_, _, stop) in zip(worlds, case["worlds"], strict=True):
            if state is not None:
                world.load(state)
            part, state = world.read(stop)
            if len(part) < stop:  # the epoch has ended
                assert sorted(i for step in read + part for i in step) == good
                return
            read += part
        resumed.load(state)
        read += resumed.read()[0]
        if state and state["epoch"] == 0:
            assert sorted(i for step in read for i in step) == good
            if case["options"]["splits"] is not None:
                assert read == steps


@st.composite
def transforms(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "rows": draw(st.integers(20, 90)),
        "bad": draw(st.sets(st.integers(0, 89), max_size=3)),
        "size": draw(st.integers(1, 9)),
        "shuffle": draw(st.booleans()),
        "ranks": draw(st.integers(1, 3)),
        "threads": draw(st.sampled_from([0, 0, 2])),
        "stop": draw(st.integers(0, 6)),
        "is_arrow": draw(st.booleans()),
    }


@given(transforms())
@thorough
def test_random_transforms_that_fail(case: dict[str, Any]) -> None:
    rows, bad = case["rows"], case["bad"]
    table = pa.table({"id": pa.array(range(rows), pa.int64())})

    def transform(batch: Any) -> Any:
        ids = batch["id"].to_pylist() if case["is_arrow"] else batch["id"].tolist()
        if bad & set(ids):
            raise ZeroDivisionError("bad")
        return batch

    def make(**rank: int) -> Any:
        return arrowdl.Loader(
            table,
            case["size"],
            framework="numpy",
            num_threads=case["threads"],
            **group(
                shuffle=case["shuffle"],
                buffer_size=20,
                on_error="skip",
                max_skipped_rows=MANY,
                **{"transform_arrow" if case["is_arrow"] else "transform": transform},
                **rank,
            ),
        )

    first = Ranks(make, case["ranks"], 0)
    read, state = first.read(case["stop"])
    rest = Ranks(make, 1, 0)
    loaders = first.loaders
    if state["epoch"] == 0:
        rest.load(state)
        read += rest.read()[0]
        loaders = [*loaders, *rest.loaders]
    ids = [i for step in read for i in step]
    named = [
        row
        for loader in loaders
        for entry in loader.stats().skipped
        for start, stop in entry.ranges
        for row in range(start, stop)
    ]
    assert sorted(ids + named) == list(range(rows)), "each row once, read or named"
    assert not bad & set(ids)
    assert sum(loader.stats().skipped_rows for loader in loaders) == len(named)
    assert len(named) <= len(bad) * case["size"]
