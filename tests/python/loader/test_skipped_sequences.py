"""`Loader(on_error="skip")` with steps by the lengths of rows: budgets, buckets and blocks."""

from __future__ import annotations

import itertools
import json
import logging
import os
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from helpers.faults import flip_value, open_checked, write_checked
from helpers.options import group
from helpers.processes import run_python
from helpers.random_cases import choose_examples
from helpers.ranks import Ranks, Steps, divisors, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

thorough = settings(max_examples=choose_examples(25, 120))
MANY = 10**9
COLUMNS = ["id", "tokens", "n"]


def make_table(lengths: list[int], first: int = 0) -> pa.Table:
    """Documents, each of tokens that say its number."""
    ids = range(first, first + len(lengths))
    tokens = [[1 + i] * n for i, n in zip(ids, lengths, strict=True)]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "tokens": pa.array(tokens, pa.list_(pa.int32())),
            "n": pa.array(lengths, pa.int32()),
        }
    )


class Files:
    """Two files of row groups, and what they would be if some lengths were 0."""

    def __init__(self, folder: Path, lengths: list[int], group_rows: int) -> None:
        self.lengths, self.group_rows = lengths, group_rows
        self.cut = -(-len(lengths) // 2)
        self.folder = folder
        self.groups: list[tuple[int, int, range]] = []
        for i, (start, stop) in enumerate([(0, self.cut), (self.cut, len(lengths))]):
            for number, first in enumerate(range(start, stop, group_rows)):
                self.groups.append((i, number, range(first, min(stop, first + group_rows))))
        self.source = self.write("data", lengths)

    def write(self, name: str, lengths: list[int]) -> Any:
        path = self.folder / name
        path.mkdir()
        table = make_table(lengths)
        parts = [table[: self.cut], table[self.cut :]]
        for i, part in enumerate(parts):
            write_checked(path / f"{i}.parquet", part, self.group_rows)
        return open_checked([str(path / f"{i}.parquet") for i in range(2)])

    def remove(self, file: int | None) -> set[int]:
        """Remove a file; return its rows."""
        if file is not None:
            (self.folder / f"data/{file}.parquet").unlink()
        return {row for own, _, rows in self.groups if own == file for row in rows}

    def damage(self, faults: set[tuple[int, str]]) -> set[int]:
        """Damage a column of each row group that is named; return their rows."""
        rows: set[int] = set()
        for number, column in {(i % len(self.groups), name) for i, name in faults}:
            file, unit, own = self.groups[number]
            flip_value(self.folder / f"data/{file}.parquet", unit, COLUMNS.index(column))
            rows |= set(own)
        return rows


def open_loader(source: Any, options: dict[str, Any], **rank: Any) -> arrowdl.Loader:
    common = {"framework": "numpy", "ragged": "offsets", "max_skipped_rows": MANY}
    if options.get("on_error") != "skip":
        del common["max_skipped_rows"]
    return arrowdl.Loader(source, **group(**common | options, **rank))


class World(Ranks):
    def __init__(self, source: Any, ranks: int, workers: int, options: dict[str, Any]) -> None:
        def make(**rank: int) -> arrowdl.Loader:
            return open_loader(source, options, **rank)

        super().__init__(make, ranks, workers)


def take_tokens(batch: Any) -> Any:
    return {"id": batch["tokens"]}


def strip(steps: Steps, bad: set[int]) -> Steps:
    """Drop the rows of bad documents, or the blocks with one of their tokens."""

    def is_good(row: Any) -> bool:
        return not {token - 1 for token in row} & bad if isinstance(row, list) else row not in bad

    return [[row for row in step if is_good(row)] for step in steps]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    splits = draw(st.sampled_from([1, 2, 4]))
    kind = draw(st.sampled_from(["tokens", "buckets", "both", "pack"]))
    length_column = draw(st.sampled_from(["tokens", "n"]))
    options: dict[str, Any] = {
        "splits": splits,
        "shuffle": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
        "buffer_size": draw(st.sampled_from([3, 7, 16, 1000])),
        "prefetch": draw(st.sampled_from([0, 2])),
    }
    if kind in ("tokens", "both"):
        options["global_batch_tokens"] = splits * draw(st.integers(10, 40))
        options["token_column"] = length_column
    else:
        options["global_batch_size"] = splits * draw(st.integers(1, 4))
    if kind in ("buckets", "both"):
        options["bucket_by"] = length_column
    if kind == "pack":
        options["pack"] = arrowdl.Pack(
            "tokens",
            draw(st.sampled_from([3, 8])),
            draw(st.sampled_from(["concat", "best_fit"])),
            buffer_size=draw(st.sampled_from([1, 2, 256])),
            lengths=None if length_column == "tokens" else "n",
        )
        options["transform"] = take_tokens
    faults = st.sets(st.tuples(st.integers(0, 30), st.sampled_from(COLUMNS)), max_size=3)
    return {
        "lengths": draw(st.lists(st.integers(0, 10), min_size=8, max_size=60)),
        "group_rows": draw(st.sampled_from([2, 5, 13])),
        "early": draw(faults),
        "removed": draw(st.sampled_from([None, None, 0, 1])),
        "column": length_column,
        "options": options,
        "worlds": draw(worlds(divisors(splits))),
    }


@given(cases())
@thorough
def test_random_faults_leave_the_other_rows_where_they_are(case: dict[str, Any]) -> None:
    """Rows of unknown length count as those without tokens; the others keep their place.

    Some faults are there when the lengths are read, and a file may be removed later.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), case["lengths"], case["group_rows"])
        bad = files.damage(case["early"])
        lost: set[int] = set()
        for number, column in case["early"]:
            if column == case["column"]:
                lost |= set(files.groups[number % len(files.groups)][2])
        options = case["options"] | {"on_error": "skip"}
        made = [World(files.source, *world[:2], options) for world in [*case["worlds"], (1, 0, 0)]]
        whole = World(files.source, 1, 0, options)
        for world in [*made, whole]:
            assert len({len(loader) for loader in world.loaders}) == 1, "of all ranks"
            for loader in world.loaders:
                loader._pipeline.epochs.prepare()
        bad |= files.remove(case["removed"])
        if len(bad) == len(case["lengths"]):
            return
        known = [0 if i in lost else n for i, n in enumerate(case["lengths"])]
        model = World(files.write("model", known), 1, 0, case["options"])
        expected = strip(model.read()[0], bad - lost if "pack" in options else bad)
        if "pack" in options and not any(map(any, expected)):
            return  # it has no block to repeat
        assert whole.read()[0] == expected
        (loader,) = whole.loaders
        rows = sum(map(len, expected))
        assert loader.stats().rows == rows
        assert loader.stats().skipped_rows == sum(map(len, model_rows(model))) - rows
        read: Steps = []
        state = None
        for world, (_, _, steps) in zip(made, [*case["worlds"], (1, 0, None)], strict=True):
            if state is not None:
                if state["epoch"]:
                    break
                world.load(state)
            now, state = world.read(steps)
            read += now
        assert read == expected


def model_rows(model: World) -> Steps:
    model.loaders[0].set_epoch(0)
    return model.read()[0]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Twenty row groups of five documents."""
    return Files(tmp_path, [1 + i % 9 for i in range(100)], 5)


PACK = {"pack": arrowdl.Pack("tokens", 16), "batch_size": 3}
TOKENS = {"batch_tokens": 30, "token_column": "tokens"}
BUCKETS = {"batch_size": 8, "bucket_by": "tokens", "buffer_size": 40}


@pytest.mark.parametrize("options", [PACK, TOKENS, BUCKETS])
def test_the_first_error_is_raised_by_default(files: Files, options: dict[str, Any]) -> None:
    files.damage({(3, "tokens")})
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        list(open_loader(files.source, options))


@pytest.mark.parametrize("options", [PACK, TOKENS, BUCKETS])
@pytest.mark.parametrize("column", ["tokens", "id"])
def test_rows_are_named(
    files: Files, options: dict[str, Any], column: str, caplog: pytest.LogCaptureFixture
) -> None:
    files.damage({(3, column)})
    loader = open_loader(files.source, options | {"on_error": "skip"})
    with caplog.at_level(logging.WARNING, "arrowdl.loader"):
        steps = [loader.valid_rows for _ in loader]
    assert len(steps) == len(loader)
    (entry,) = loader.stats().skipped
    path = str(files.folder / "data/0.parquet")
    assert (entry.path, entry.ranges, entry.row_group) == (path, ((15, 20),), 3)
    (message,) = caplog.messages
    assert message.startswith(f"skipped rows 15 to 19 of {path!r}, row group 3: OSError: ")
    assert "CRC checksum" in message


@pytest.mark.parametrize("options", [PACK, TOKENS, BUCKETS])
def test_a_state_of_files_that_were_mended(files: Files, options: dict[str, Any]) -> None:
    files.damage({(3, "tokens")})
    loader = open_loader(files.source, options | {"on_error": "skip"})
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    again = open_loader(files.source, options | {"on_error": "skip"})
    again.load_state_dict(state)
    assert len(list(again)) == len(loader) - 1
    mended = open_loader(files.write("mended", files.lengths), options | {"on_error": "skip"})
    state["source"] = mended.state_dict()["source"]
    with pytest.raises(
        ValueError, match=r"the lengths of 5 rows \(\w+\) could not be read, and now"
    ):
        mended.load_state_dict(state)


@pytest.mark.parametrize("options", [PACK, TOKENS, BUCKETS])
def test_a_rank_that_cannot_read_all_lengths(files: Files, options: dict[str, Any]) -> None:
    """Its state differs from the other rank's, neither loads the other's, and its epoch ends."""
    skipping = options | {"on_error": "skip", "world_size": 2}
    first = open_loader(files.source, skipping | {"rank": 0})
    states = [first.state_dict()]
    files.damage({(3, "tokens")})
    second = open_loader(files.source, skipping | {"rank": 1})
    states.append(second.state_dict())
    assert states[0] != states[1]
    for loader, state in [(first, states[1]), (second, states[0])]:
        with pytest.raises(ValueError, match=r"the lengths of (5|no) rows .*could not be read"):
            loader.load_state_dict(state)
    assert len(list(second)) == len(second)
    strict = open_loader(files.source, options | {"rank": 0, "world_size": 2})
    with pytest.raises(OSError, match=r"(?s)CRC checksum verification failed.*0\.parquet"):
        list(strict)


class Group:
    """A double of torch.distributed: ranks of one process, which begin one after the other."""

    def __init__(self, ranks: int) -> None:
        import torch

        self.rank, self.ranks, self.requests = 0, ranks, 0
        self.store = torch.distributed.HashStore()
        self.distributed_c10d = SimpleNamespace(_get_default_store=lambda: self)

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def get_rank(self) -> int:
        return self.rank

    def get_world_size(self) -> int:
        return self.ranks

    def __getattr__(self, name: str) -> Any:
        self.requests += name != "add"  # of rows that are skipped, in any step
        return getattr(self.store, name)


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Group:
    import torch

    made = Group(2)
    monkeypatch.setattr(torch, "distributed", made)
    return made


@pytest.mark.parametrize("options", [PACK, TOKENS, BUCKETS])
@pytest.mark.parametrize("is_damaged_first", [False, True])
def test_ranks_that_read_other_lengths_notice_it(
    files: Files, peers: Group, options: dict[str, Any], is_damaged_first: bool
) -> None:
    """Each at the first batch after all have begun: none goes on to steps that differ."""
    skipping = options | {"on_error": "skip", "world_size": 2}
    sound = open_loader(files.source, skipping | {"rank": int(is_damaged_first)})
    sound.state_dict()
    files.damage({(3, "tokens")})
    damaged = open_loader(files.source, skipping | {"rank": int(not is_damaged_first)})
    loaders = [damaged, sound] if is_damaged_first else [sound, damaged]
    iterators = []
    for peers.rank, loader in enumerate(loaders):
        iterators.append(iter(loader))
        if peers.rank == 0:
            next(iterators[0])  # alone: it does not wait
    known = [r"could read all rows", r"could not read the lengths of 5 rows \(\w+\)"]
    other, own = reversed(known) if is_damaged_first else known
    with pytest.raises(RuntimeError, match=f"rank 0 {other}, and rank 1 {own}: their steps would"):
        next(iterators[1])
    peers.rank = 0
    with pytest.raises(RuntimeError, match=f"rank 1 {own}, and rank 0 {other}: their steps would"):
        next(iterators[0])


def test_ranks_that_read_the_same_lengths_compare_once(files: Files, peers: Group) -> None:
    files.damage({(3, "tokens")})
    skipping = TOKENS | {"on_error": "skip", "world_size": 2}
    loaders = [open_loader(files.source, skipping | {"rank": i}) for i in range(2)]
    for epoch in range(2):
        counts = []
        for peers.rank, loader in enumerate(loaders):
            assert loader.epoch == epoch
            counts.append(sum(1 for _ in loader))
        assert counts[0] == counts[1]
    iterators = []
    for peers.rank, loader in enumerate(loaders):
        iterators.append(iter(loader))
        next(iterators[-1])
    peers.rank = 0
    next(iterators[0])
    before = peers.requests
    assert [sum(1 for _ in iterator) for iterator in iterators] == [counts[0] - 2, counts[0] - 1]
    assert peers.requests == before


def test_ranks_of_a_store_that_is_gone_go_on(files: Files, peers: Group) -> None:
    skipping = TOKENS | {"on_error": "skip", "world_size": 2, "rank": 0}
    loader = open_loader(files.source, skipping)
    batches = iter(loader)
    next(batches)

    def fail(*_: Any) -> Any:
        raise RuntimeError("Connection reset by peer")

    peers.check = fail  # type: ignore[attr-defined]
    assert sum(1 for _ in batches) == len(loader) - 1
    peers.set = fail  # type: ignore[attr-defined]
    assert sum(1 for _ in loader) == len(loader)


FORKED = """
import os
from types import SimpleNamespace
import torch
from arrowdl.loader._epoch.compare_ranks import find_store

HashStore = torch.distributed.HashStore
store = HashStore()
torch.distributed = SimpleNamespace(
    is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 0,
    get_world_size=lambda: 2,
    distributed_c10d=SimpleNamespace(_get_default_store=lambda: store),
)
assert find_store(0, 2) is store
assert find_store(1, 2) is find_store(0, 3) is find_store(0, 1) is None
child = os.fork()
if child == 0:  # as a worker of a DataLoader: the connection is the training's
    inherited, store = find_store(0, 2), HashStore()
    os._exit(0 if inherited is None and find_store(0, 2) is store else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), find_store(0, 2) is store)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_use_the_store_of_its_parent() -> None:
    assert run_python(FORKED).split() == ["0", "True"]


GLOO = """
import os, sys
import torch.distributed as dist
import arrowdl, pyarrow as pa, pyarrow.parquet as pq

def run(rank, folder):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the log
    dist.init_process_group("gloo", f"file://{folder}/group", rank=rank, world_size=2)
    path = f"{folder}/{rank}/0.parquet"
    loader = arrowdl.Loader(
        path,
        batch_size=arrowdl.Tokens(30),
        framework="torch",
        ragged="offsets",
        on_error=arrowdl.Skip(1000),
    )
    total = 0
    try:
        for batch in loader:
            dist.all_reduce(batch["id"].sum())
            total += 1
    except RuntimeError as error:
        print(str(error), flush=True)
        sys.exit(3)
    print("read", total, flush=True)

if __name__ == "__main__":
    import multiprocessing, tempfile
    table = pa.table({"id": range(200), "tokens": [[i] * (1 + i % 9) for i in range(200)]})
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(2):
            os.mkdir(f"{folder}/{rank}")
            path = f"{folder}/{rank}/0.parquet"
            pq.write_table(table, path, row_group_size=5, compression="zstd")
        column = pq.read_metadata(path).row_group(3).column(1)
        with open(path, "r+b") as file:
            file.seek(column.dictionary_page_offset or column.data_page_offset)
            file.write(bytes([255] * 40))
        context = multiprocessing.get_context("fork")
        started = [context.Process(target=run, args=(i, folder)) for i in range(2)]
        for process in started:
            process.start()
        for process in started:
            process.join(60)
        print(sorted(process.exitcode for process in started))
"""


@pytest.mark.slow
def test_processes_that_read_other_lengths_end() -> None:
    lines = run_python(GLOO).splitlines()
    assert all(code != 0 for code in json.loads(lines[-1])), "neither goes on, nor waits for ever"
    assert any("rank 1 could not read the lengths of 5 rows" in line for line in lines)


def test_too_many_documents_of_unknown_length(files: Files) -> None:
    files.damage({(i, "tokens") for i in range(3)})
    options = PACK | {"on_error": "skip"}
    with pytest.raises(OSError, match=r"the lengths of 15 rows cannot be read, and Skip"):
        list(open_loader(files.source, options | {"max_skipped_rows": 14}))
    options["max_skipped_rows"] = 15
    assert list(open_loader(files.source, options))


def test_a_transform_that_fails_for_a_block(files: Files) -> None:
    def fail(batch: Any) -> Any:
        if 8 in batch["id"][0]:
            raise ZeroDivisionError("bad")
        return batch

    loader = open_loader(files.source, PACK | {"on_error": "skip", "transform": fail})
    seen = [batch["tokens"][: loader.valid_rows] for batch in loader]
    tokens = set(itertools.chain(*(block for step in seen for block in step.tolist())))
    assert 9 not in tokens
    (entry,) = loader.stats().skipped
    assert entry.error == "ZeroDivisionError: bad"
    ((start, stop),) = entry.ranges
    assert start <= 8 < stop
    assert loader.stats().skipped_rows == 3, "blocks"


def test_a_mixture_of_blocks_and_of_budgets(files: Files) -> None:
    files.damage({(3, "tokens"), (5, "id")})
    table = make_table([4] * 50, 1000)
    weights = {"a": 1, "b": 1}
    for own in ({"global_batch_size": 4, "pack": PACK["pack"]}, {"global_batch_tokens": 80}):
        options: dict[str, Any] = {"weights": weights, "splits": 2, "stop": "all", **own}
        options |= {"framework": "numpy", "ragged": "offsets", "on_error": "skip"}
        if "pack" not in own:
            options["token_column"] = "tokens"
        sources = {"a": files.source, "b": table}
        steps = []
        for ranks in (1, 2):
            loaders = [
                arrowdl.Loader.mix(sources, **group(rank=i, world_size=ranks, **options))
                for i in range(ranks)
            ]
            for loader in loaders:
                loader._options.max_skipped_rows = MANY
            counts = [[loader.valid_rows for _ in loader] for loader in loaders]
            assert len(counts[0]) == len(counts[-1]) == len(loaders[0])
            steps.append([sum(step) for step in zip(*counts, strict=True)])
            named = {e.ranges for loader in loaders for e in loader.stats().skipped}
            assert named == {((15, 20),), ((25, 30),)}
        assert steps[0] == steps[1]


def test_a_column_of_lengths(files: Files) -> None:
    """It gives the same blocks, and the lists are not read for it."""
    plain = open_loader(files.source, PACK)
    pack = arrowdl.Pack("tokens", 16, lengths="n")
    counted = open_loader(files.source, PACK | {"pack": pack})
    blocks = [batch["tokens"].tolist() for batch in plain]
    assert [batch["tokens"].tolist() for batch in counted] == blocks
    plain.load_state_dict(counted.state_dict())
    wrong = make_table(files.lengths).set_column(2, "n", pa.array([3] * 100))
    with pytest.raises(ValueError, match='"n" says that a row has 3 tokens, and "tokens" has 1'):
        list(open_loader(wrong, PACK | {"pack": pack}))
    with pytest.raises(ValueError, match=r'Pack\.lengths="n", and the columns'):
        open_loader(files.source, PACK | {"pack": pack, "columns": ["tokens"]})
    with pytest.raises(TypeError, match="lengths=3: give the name"):
        arrowdl.Pack("tokens", 16, lengths=3)  # type: ignore[arg-type]


def test_a_column_of_lengths_of_a_stream() -> None:
    """They cannot be read before the epoch; they are checked as those of other sources are."""
    table = make_table([4, 1, 3], 1)
    batches = table.to_batches()

    def read(name: str, found: list[pa.RecordBatch]) -> list[Any]:
        pack = arrowdl.Pack("tokens", 4, lengths=name)
        source = partial(pa.RecordBatchReader.from_batches, found[0].schema, found)
        return [batch["tokens"].tolist() for batch in arrowdl.Loader(source, 2, batching=pack)]

    assert read("n", batches) == [[[2, 2, 2, 2], [3, 4, 4, 4]]]
    with pytest.raises(ValueError, match='no field "length"'):
        read("length", batches)
    wrong = table.set_column(table.column_names.index("n"), "n", pa.array([4, 3, 3], pa.int32()))
    with pytest.raises(ValueError, match='"n" says that a row has 3 tokens, and "tokens" has 1'):
        read("n", wrong.to_batches())
