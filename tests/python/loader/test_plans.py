"""Plans of files: listed once, footers read once, shared by Loaders, workers and ranks."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import pickle
import random
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import FilePlan, Retries
from fsspec.implementations.memory import MemoryFileSystem
from helpers.options import group
from helpers.plan_group import Group, share_plan
from helpers.processes import run_python
from helpers.random_cases import check_cases
from helpers.stores import IPC, PARQUET, ROWS, MemoryStore, dump

ALL = list(range(3 * ROWS))
QUICK = Retries(tries=2, first_wait=0.0)


def load(source: Any, store: MemoryStore, **options: Any) -> arrowdl.Loader:
    options = {"columns": ["id"], "filesystem": store.open(), "retries": QUICK, **options}
    return arrowdl.Loader(source, 16, framework="numpy", **group(**options))


def rows_of(loader: arrowdl.Loader) -> list[int]:
    rows = [i for batch in loader for i in batch["id"].tolist()]
    loader.close()
    return rows


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore({**PARQUET, **IPC})


@pytest.mark.parametrize("source", ["b", "c", "b/*/*.parquet"])
def test_a_plan_opens_without_a_request(source: str, store: MemoryStore, tmp_path: Path) -> None:
    first = load(source, store)
    plan = first.plan()
    plan.save(tmp_path / "plan.json")
    assert os.listdir(tmp_path) == ["plan.json"]
    assert FilePlan.load(tmp_path / "plan.json") == plan
    expected = rows_of(first)
    for given in (plan, tmp_path / "plan.json", pickle.loads(pickle.dumps(plan))):
        several: list[dict[str, Any]] = [{}, {"shuffle": True, "seed": 4}]
        if source == "b" and given is plan:
            several.append({"num_workers": 1})
        for options in several:
            store.requests.clear()
            loader = load(source, store, plan=given, **options)
            assert not store.requests
            assert loader.state_dict()["source"] == first.state_dict()["source"]
            assert loader.plan() == plan
            rows = rows_of(loader)
            assert (sorted(rows) if "shuffle" in options else rows) == expected
            if "num_workers" not in options:
                assert store.count("list") == 0
    assert "3 files, 120 rows" in repr(plan)


def test_the_columns_of_directories(store: MemoryStore) -> None:
    plan = load("b", store, columns=None).plan()
    loader = load("b", store, columns=["k", "id"], plan=plan)
    assert [k for batch in loader for k in batch["k"].tolist()][::ROWS] == [0, 1, 2]
    keeps = ds.field("k") == 1
    chosen = load("b", store, filter=keeps, plan=plan)
    source = load("b", store, filter=keeps).state_dict()["source"]
    assert chosen.state_dict()["source"] == source, "the filter excludes directories"
    assert rows_of(chosen) == ALL[40:80]


@pytest.mark.parametrize("source", ["b", "c"])
def test_a_filter_is_counted_once(source: str, store: MemoryStore) -> None:
    keeps = ds.field("id") > 70
    first = load(source, store, filter=keeps)
    plan = first.plan()
    expected = rows_of(first)
    assert expected == ALL[71:]
    store.requests.clear()
    loader = load(source, store, filter=keeps, plan=plan)
    assert not store.requests
    assert rows_of(loader) == expected
    with pytest.raises(ValueError, match="give the filter of the plan"):
        load(source, store, plan=plan)
    whole = load(source, store).plan()
    counted = load(source, store, filter=keeps, plan=whole)
    assert counted.state_dict()["source"] == first.state_dict()["source"]
    assert rows_of(counted) == expected


def test_filters_by_long_lists_are_not_confused(store: MemoryStore) -> None:
    """pyarrow's text of a filter has the first ten and the last ten values of a list."""
    some = [*range(10), 40, 41, *range(110, 120)]
    keeps, others = (ds.field("id").isin(own) for own in (some, [*some[:10], 39, *some[11:]]))
    assert str(keeps) == str(others)
    first = load("b", store, filter=keeps)
    plan, state = first.plan(), first.state_dict()
    again = load("b", store, filter=ds.field("id").isin(some), plan=plan)
    again.load_state_dict(state)
    assert rows_of(again) == some
    with pytest.raises(ValueError, match="give the filter of the plan"):
        load("b", store, filter=others, plan=plan)
    with pytest.raises(ValueError, match="another dataset"):
        load("b", store, filter=others).load_state_dict(state)


def test_what_does_not_fit_a_plan(store: MemoryStore, tmp_path: Path) -> None:
    plan = load("b", store).plan()
    with pytest.raises(ValueError, match=r"the types of \['noise'\] were not compared"):
        load("b", store, columns=["noise"], plan=plan)
    with pytest.raises(ValueError, match="in none of the stores"):
        arrowdl.Loader("memory://other/b", 4, columns=["id"], storage=arrowdl.Storage(plan=plan))
    with pytest.raises(ValueError, match=r"Storage\.plan works on paths and URLs"):
        arrowdl.Loader(pa.table({"id": [1]}), 4, columns=["id"], storage=arrowdl.Storage(plan=plan))
    with pytest.raises(TypeError, match=r"give what Loader\.plan"):
        load("b", store, plan=3)
    for text in ("", "{}", "[]", "3"):
        (tmp_path / "no.json").write_text(text)
        with pytest.raises(ValueError, match=r"no\.json' is not a plan"):
            FilePlan.load(tmp_path / "no.json")
    (tmp_path / "no.json").write_text(json.dumps({"arrowdl_file_plan": 99}))
    with pytest.raises(ValueError, match="a plan of version 99"):
        FilePlan.load(tmp_path / "no.json")
    with pytest.raises(TypeError, match="TableSource has no plan"):
        arrowdl.Loader(pa.table({"id": [1]}), 1).plan()
    with pytest.raises(TypeError, match="a stream has no plan"):
        arrowdl.Loader(iter([pa.record_batch({"id": [1]})]), 1).plan()


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_file_that_changed_since_the_plan(change: str, store: MemoryStore) -> None:
    plan = load("b", store).plan()
    path = "b/k=2/2.parquet"
    if change == "size":
        store.files[path] = dump(0, rows=ROWS + 1)
    else:
        store.times[path] = 99
    with pytest.raises(OSError, match=f"'{path}' has changed since it was listed"):
        list(load("b", store, plan=plan))


class TaggedMemory(MemoryFileSystem):  # type: ignore[misc]
    """Tells ETags, as stores do."""

    protocol = "tagged"
    store: dict[str, Any] = {}  # noqa: RUF012

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().info(path, **options)
        if found["type"] == "file":
            found["ETag"] = hashlib.md5(self.cat_file(path)).hexdigest()
        return found


def rewrite(data: bytes) -> bytes:
    """The same rows and row groups, in more bytes."""
    table = pq.read_table(io.BytesIO(data)).replace_schema_metadata({"by": "another"})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=10, compression="none")
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "others"),
    [
        (dump(ROWS), ""),
        (dump(999), "ETags"),
        (rewrite(dump(ROWS)), "sizes and ETags"),
        (dump(ROWS, rows=ROWS + 1), "refused"),
    ],
)
@pytest.mark.parametrize("has_etags", [True, False])
def test_a_state_of_files_that_were_written_since(
    data: bytes, others: str, has_etags: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """With other numbers of rows it is refused; otherwise a warning tells what is known."""
    memory = TaggedMemory() if has_etags else MemoryFileSystem()
    box = f"/{uuid.uuid4().hex}"
    for path, written in PARQUET.items():
        memory.pipe(f"{box}/{path}", written)

    def make() -> arrowdl.Loader:
        return arrowdl.Loader(
            f"{box}/b", 16, framework="numpy", storage=arrowdl.Storage(filesystem=memory)
        )

    state = json.loads(json.dumps(make().state_dict()))
    assert [bool(digest) for digest in state["files"]] == [True, has_etags]
    for damaged in (None, 7, ["x"], [1, 2], {"a": 1}, state["files"]):
        make().load_state_dict({**state, "files": damaged})
    assert not caplog.records or "other sizes" in caplog.text  # of [1, 2]
    caplog.clear()
    memory.pipe(f"{box}/b/k=1/1.parquet", data)
    if others == "refused":
        with pytest.raises(ValueError, match="another dataset"):
            make().load_state_dict(state)
        return
    make().load_state_dict(state)
    if not has_etags:
        others = others.removesuffix("ETags").removesuffix(" and ")
    told = [record.getMessage() for record in caplog.records]
    assert [text.split(" than ")[0] for text in told] == [f"the files have other {others}"] * bool(
        others
    )
    memory.rm(box, recursive=True)


@pytest.mark.parametrize("kind", ["mapped", "mixture", "mixture of mapped"])
def test_a_state_of_local_files_that_were_written_since(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The sizes of mapped Arrow files, and of the files of a mixture, are known."""

    def write(name: str, words: list[str]) -> Path:
        table = pa.table({"word": words})
        path = tmp_path / name
        if "mapped" in kind:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, path)
        return path

    ending = "arrow" if "mapped" in kind else "parquet"
    paths = [write(f"{i}.{ending}", [f"{i}" * 5] * ROWS) for i in range(2)]

    def make() -> arrowdl.Loader:
        if kind == "mapped":
            return arrowdl.Loader(paths, 16, ragged="offsets")
        table = pa.table({"word": ["in memory"] * ROWS})
        sources = {"a": paths[0], "b": paths[1], "c": table}
        return arrowdl.Loader.mix(
            sources,
            weights=dict.fromkeys(sources, 1),
            ranks=arrowdl.Ranks(global_batch_size=16),
            ragged="offsets",
        )

    state = json.loads(json.dumps(make().state_dict()))
    make().load_state_dict(state)
    assert not caplog.records
    write(f"1.{ending}", ["a much longer word, no two alike", *map(str, range(ROWS - 1))])
    make().load_state_dict(state)
    (record,) = caplog.records
    assert "other sizes than those of the state" in record.getMessage()


def test_local_files(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.parquet").write_bytes(dump(i * ROWS))
    options: dict[str, Any] = {"framework": "numpy", "columns": ["id"]}
    first = arrowdl.Loader(tmp_path, 16, **group(**options))
    plan = first.plan()
    again = arrowdl.Loader(tmp_path, 16, **group(plan=plan, **options))
    again.load_state_dict(first.state_dict())
    assert rows_of(again) == rows_of(first) == ALL
    os.utime(tmp_path / "1.parquet", (9, 9))
    with pytest.raises(OSError, match=r"1\.parquet' has changed since the plan"):
        arrowdl.Loader(tmp_path, 16, **group(plan=plan, **options))
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"1\.parquet', which the plan has, is gone"):
        arrowdl.Loader(tmp_path, 16, **group(plan=plan, **options))


def test_unreadable_files_are_skipped(store: MemoryStore) -> None:
    plan = load("b", store).plan()
    del store.files["b/k=1/1.parquet"]
    loader = load("b", store, plan=plan, on_error="skip", max_skipped_rows=60)
    rows = [i for batch in loader for i in batch["id"][: loader.valid_rows].tolist()]
    assert set(rows) == set(ALL[:40] + ALL[80:])
    assert {entry.path for entry in loader.stats().skipped} == {"b/k=1/1.parquet"}
    assert loader.stats().skipped[0].row_group == 0


@pytest.mark.parametrize("count", [300, pytest.param(10_001, marks=pytest.mark.slow)])
def test_many_files_are_listed_once_and_read_once(count: int) -> None:
    """A double counts: one request lists, and each footer is read by one."""
    stub = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}), stub)
    store = MemoryStore({f"n/{i:05}.parquet": stub.getvalue() for i in range(count)})
    plan = load("n", store).plan()
    assert plan.num_rows == 2 * count
    assert store.count("list") == 1
    reads = [number for (kind, _), number in store.requests.items() if kind == "read"]
    assert (len(reads), max(reads)) == (count, 1)
    store.requests.clear()
    loader = load("n", store, plan=plan)
    assert not store.requests
    next(iter(loader))
    assert store.count("list") == 0
    assert store.count("read") < 5_000  # row groups that are fetched ahead, at most


def test_rank_0_shares_its_plan(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    options: dict[str, Any] = {"plan": "share", "rank": 0, "world_size": 1}
    share_plan(Group(0, told), monkeypatch)
    assert rows_of(load("b", store, **options)) == ALL
    assert isinstance(told[0], FilePlan)
    share_plan(Group(1, told), monkeypatch)
    store.requests.clear()
    loader = load("b", store, **options)
    assert not store.requests
    assert rows_of(loader) == ALL
    told.clear()
    share_plan(Group(0, told), monkeypatch)
    with pytest.raises(FileNotFoundError):
        load("nothing", store, **options)
    share_plan(Group(1, told), monkeypatch)
    with pytest.raises(RuntimeError, match=r"rank 0 could not make the plan.*FileNotFoundError"):
        load("nothing", store, **options)
    monkeypatch.undo()
    assert rows_of(load("b", store, **options)) == ALL  # without a group


@pytest.mark.parametrize("plan", ["share", "a plan"])
def test_what_has_no_paths_has_no_plan(plan: str, store: MemoryStore, tmp_path: Path) -> None:
    """No rank reads before it finds out."""
    given: Any = plan
    if plan != "share":
        load("b", store).plan().save(given := tmp_path / "plan.json")
    dataset = ds.dataset("b", filesystem=store.open(), partitioning="hive")
    store.requests.clear()
    sources: dict[str, Any] = {"x": dataset, "y": dataset}
    with pytest.raises(ValueError, match="give each Loader of the mixture its own"):
        arrowdl.Loader.mix(
            sources,
            weights=dict.fromkeys(sources, 1),
            ranks=arrowdl.Ranks(global_batch_size=4),
            storage=arrowdl.Storage(plan=given),
        )
    for source in (pa.table({"id": [1]}), lambda: pa.table({"id": [1]}).to_reader()):
        with pytest.raises(
            ValueError, match=r"Storage\.plan works on paths and URLs, tables .*, not on"
        ):
            arrowdl.Loader(source, 4, framework="numpy", storage=arrowdl.Storage(plan=given))
    assert not store.count("read")


GLOO = """
import os, sys
import torch.distributed as group
import torch.multiprocessing as processes
import arrowdl, pyarrow as pa, pyarrow.parquet as pq

def run(rank, folder):
    group.init_process_group("gloo", f"file://{folder}/group", rank=rank, world_size=2)
    loader = arrowdl.Loader(
        f"{folder}/*.parquet",
        4,
        framework="numpy",
        storage=arrowdl.Storage(plan="share"),
    )
    assert ("scanner" in vars(loader._source)) and loader.plan().num_rows == 20
    print(sorted(i for batch in loader for i in batch["id"].tolist()), flush=True)
    group.destroy_process_group()

if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table({"id": range(20)}), f"{folder}/a.parquet", row_group_size=5)
        processes.start_processes(run, (folder,), 2, start_method="fork")
"""


@pytest.mark.slow
def test_a_process_group_of_torch_shares_a_plan() -> None:
    lines = run_python(GLOO).splitlines()
    assert sorted(i for line in lines for i in json.loads(line)) == list(range(20))


# ---- plans that were damaged or changed


def change_count(plan: FilePlan) -> FilePlan:
    first = plan.files[0]._replace(counts=(9, *plan.files[0].counts[1:]))
    return dataclasses.replace(plan, files=(first, *plan.files[1:]))


CHANGES: dict[str, Callable[[FilePlan], FilePlan]] = {
    "a count": change_count,
    "a file is missing": lambda plan: dataclasses.replace(plan, files=plan.files[1:]),
    "a file is there twice": lambda plan: dataclasses.replace(
        plan, files=(*plan.files, plan.files[0])
    ),
    "another order": lambda plan: dataclasses.replace(plan, files=plan.files[::-1]),
    "a fingerprint": lambda plan: dataclasses.replace(plan, fingerprint="0" * 16),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("keeps", [None, ds.field("id") >= 5])
def test_a_plan_has_the_rows_of_its_fingerprint(
    change: Callable[[FilePlan], FilePlan], keeps: Any, store: MemoryStore
) -> None:
    plan = change(load("b", store).plan())
    with pytest.raises(ValueError, match=r"the plan has the fingerprint .*Make a new plan"):
        load("b", store, plan=plan, filter=keeps)
    plan = change(load("b", store, filter=ds.field("id") < 50).plan())
    with pytest.raises(ValueError, match="the plan has the fingerprint"):
        load("b", store, plan=plan, filter=ds.field("id") < 50)


def test_a_plan_of_another_folder(tmp_path: Path) -> None:
    for name in ("a", "b", "ab"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.parquet").write_bytes(dump(0))
    plan = arrowdl.Loader(tmp_path / "a", 16, framework="numpy").plan()
    for path in ("a", "a/", "*", "a/*.parquet", "a/x.parquet", "**/*.parquet"):
        assert (
            arrowdl.Loader(
                tmp_path / path, 16, framework="numpy", storage=arrowdl.Storage(plan=plan)
            ).plan()
            == plan
        )
    for path in ("b", "b/*.parquet", "ab"):
        with pytest.raises(ValueError, match=r"a/x\.parquet', which is not at or below"):
            arrowdl.Loader(
                tmp_path / path, 16, framework="numpy", storage=arrowdl.Storage(plan=plan)
            )


def sign(found: Any) -> bytes:
    """Write a plan with the digest of what it has, as one who knows how would."""
    content = {name: own for name, own in found.items() if name != "digest"}
    text = json.dumps(content, sort_keys=True).encode()
    content["digest"] = hashlib.blake2b(text, digest_size=8).hexdigest()
    return json.dumps(content).encode()


VALUES: list[Any] = [None, 3, -1, 1.5, True, "", "x", [], [3], [[]], {}, {"a": 3}, 2**70]


def mutate(random: random.Random, found: Any) -> None:
    """Change one value, at any depth, to something else."""
    while True:
        keys = list(found) if isinstance(found, dict) else range(len(found))
        key = random.choice(list(keys))
        below = found[key]
        if isinstance(below, (dict, list)) and below and random.random() < 0.8:
            found = below
            continue
        if random.random() < 0.2:
            del found[key]
        else:
            found[key] = random.choice(VALUES)
        return


def test_random_damage_to_plans(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan = load("b", store).plan()
    plan.save(path)
    good = path.read_bytes()
    expected = rows_of(load("b", store))

    def check(random: random.Random) -> None:
        found = json.loads(good)
        kind = random.choice(["bytes", "value", "signed value"])
        if kind == "bytes":
            data = bytearray(good)
            for _ in range(random.randint(1, 3)):
                data[random.randrange(len(data))] = random.randrange(256)
            path.write_bytes(data[: random.choice([len(data), random.randrange(len(data))])])
        else:
            mutate(random, found)
            path.write_bytes(sign(found) if kind == "signed value" else json.dumps(found).encode())
        error, read = "", None
        try:
            read = FilePlan.load(path)
        except ValueError as found_error:
            error = str(found_error)
        if read is None:
            assert "plan.json" in error
            return
        if read != plan:
            assert kind == "signed value", "the digest tells"
            with suppress(ValueError, OSError):
                rows = rows_of(load("b", store, plan=read))
                assert rows == expected

    check_cases(check, 200)


def test_columns_that_only_a_filter_reads_were_compared(tmp_path: Path) -> None:
    """Their types may differ, and a plan of other columns does not know."""
    pq.write_table(pa.table({"x": [1], "y": pa.array([0.1], pa.float32())}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": [3], "y": [0.1]}), tmp_path / "1.parquet")
    plan = arrowdl.Loader(tmp_path, 2, columns=["x"]).plan()
    with pytest.raises(ValueError, match=r"the types of \['y'\] were not compared"):
        arrowdl.Loader(
            tmp_path,
            2,
            columns=["x"],
            filter=ds.field("y") <= 0.1,
            storage=arrowdl.Storage(plan=plan),
        )
