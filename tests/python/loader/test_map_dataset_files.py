"""Map datasets over files: the cache, threads, forks, changes and pickles."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import weakref
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pytest
from arrowdl.loader import MapDataset
from arrowdl.loader._random_access.rows import UnitCache
from helpers.map_datasets import ROWS, TABLE, CountingSource, make, run_script, write_parquet

# ---------------------------------------------------------------------------
# The cache


def count_reads(dataset: MapDataset) -> CountingSource:
    return CountingSource(dataset)


def unit_bytes(dataset: MapDataset) -> int:
    return max(
        sum(array.nbytes for array in dataset._source.read([unit]))
        for unit in range(len(dataset._source.units))
    )


def cache_of(dataset: MapDataset) -> UnitCache:
    return dataset._rows._cache  # type: ignore[union-attr]


def test_the_cache_keeps_what_was_used_last(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)  # 6 row groups
    loader = arrowdl.Loader(path, 4, framework="numpy")
    most = unit_bytes(loader.map_dataset())
    dataset = loader.map_dataset(cache_bytes=2 * most)
    source = count_reads(dataset)
    dataset[[0, 15]]
    assert source.read_units == [0, 1]
    dataset[[5]]  # group 1 was used before group 0 then
    dataset[[25]]
    assert source.read_units == [0, 1, 2]
    dataset[[3, 27]]
    assert source.read_units == [0, 1, 2]
    assert dataset[[12, 3]]["id"].tolist() == [12, 3]
    assert source.read_units == [0, 1, 2, 1]
    assert cache_of(dataset).nbytes <= 2 * most


def test_a_gather_of_more_than_the_cache_keeps_no_more(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    loader = arrowdl.Loader(path, 4, framework="numpy")
    most = unit_bytes(loader.map_dataset())
    for limit, kept in ((0, 0), (1, most), (3 * most, 3 * most)):
        dataset = loader.map_dataset(cache_bytes=limit)
        rows = [(i * 23) % ROWS for i in range(ROWS)]
        assert dataset[rows]["id"].tolist() == rows
        assert cache_of(dataset).nbytes <= kept
    dataset.close()
    with pytest.raises(RuntimeError, match="this map dataset was closed"):
        dataset[0]
    dataset.close()
    assert len(dataset) == ROWS
    assert "closed" in repr(dataset)
    assert [len(batch["id"]) for batch in loader][:2] == [4, 4]  # the Loader is open


def test_close_releases_the_row_groups(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    with arrowdl.Loader(path, 4, framework="numpy").map_dataset() as dataset:
        batch = dataset[[1, 30]]
        cache = weakref.ref(cache_of(dataset))
        assert cache().nbytes > 0  # type: ignore[union-attr]
    gc.collect()
    assert cache() is None
    assert batch["id"].tolist() == [1, 30]


def test_threads_read_at_once(tmp_path: Path) -> None:
    """Each group is read once, by several threads, which then all have it."""
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    dataset = arrowdl.Loader(path, 4, framework="numpy").map_dataset()
    dataset[0:0]  # opens the rows
    source = dataset._rows._source = dataset._rows._cache._source = count_reads(dataset)  # type: ignore[union-attr]
    gate = threading.Barrier(8)
    source.before = lambda: None
    wrong: list[Any] = []

    def read(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(ROWS)
        gate.wait(30)
        for start in range(0, ROWS, 7):
            rows = order[start : start + 7]
            found = dataset[rows]["id"].tolist()
            if found != rows.tolist():
                wrong.append((found, rows))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert sorted(source.read_units) == list(range(6))


def test_a_thread_that_fails_leaves_the_work_to_those_that_wait(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, TABLE.select(["id"]), 10)
    dataset = arrowdl.Loader(path, 4, framework="numpy").map_dataset()
    dataset[0:0]
    source = dataset._rows._cache._source = count_reads(dataset)  # type: ignore[union-attr]
    started, go_on = threading.Event(), threading.Event()

    def fail_once() -> None:
        if len(source.read_units) == 1:
            started.set()
            go_on.wait(30)
            raise OSError("a disk that comes back")

    source.before = fail_once
    outcomes: dict[str, Any] = {}

    def read(name: str) -> None:
        try:
            outcomes[name] = dataset[[4, 2]]["id"].tolist()
        except OSError as error:
            outcomes[name] = str(error)

    first = threading.Thread(target=read, args=("first",))
    first.start()
    assert started.wait(30)
    second = threading.Thread(target=read, args=("second",))
    second.start()
    go_on.set()
    first.join(30)
    second.join(30)
    assert outcomes == {"first": "a disk that comes back", "second": [4, 2]}


# ---------------------------------------------------------------------------
# Files that change


@pytest.mark.parametrize("kind", ["parquet", "ipc", "ipc, read", "ipc files"])
@pytest.mark.parametrize("is_read_before", [False, True])
def test_a_file_that_changed(kind: str, is_read_before: bool, tmp_path: Path) -> None:
    dataset, _ = make(kind, tmp_path, cache_bytes=0)
    if is_read_before:
        dataset[[1, 2]]
    path = next(path for path in sorted(tmp_path.rglob("*.*")) if path.is_file())
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    with pytest.raises(OSError, match="has changed since this Loader was made"):
        dataset[[2, 1]]


@pytest.mark.parametrize("kind", ["parquet files", "ipc files"])
def test_the_first_read_compares_all_files(kind: str, tmp_path: Path) -> None:
    dataset, _ = make(kind, tmp_path)
    last = max(path for path in tmp_path.rglob("*.*") if path.is_file())
    os.utime(last, ns=(0, last.stat().st_mtime_ns + 10**9))
    with pytest.raises(OSError, match=f"{last.name}' has changed"):
        dataset[[0]]


def test_only_the_files_of_the_rows_are_compared(tmp_path: Path) -> None:
    dataset, ids = make("ipc files", tmp_path)
    dataset[[0]]
    last = max((tmp_path / "arrow").iterdir())
    os.utime(last, ns=(0, last.stat().st_mtime_ns + 10**9))
    assert dataset[[3, 1]]["id"].tolist() == [ids[3], ids[1]]
    with pytest.raises(OSError, match=f"{last.name}' has changed"):
        dataset[[1, 59]]


# ---------------------------------------------------------------------------
# Pickles


@pytest.mark.parametrize(
    "kind", ["table", "record batches", "ipc", "ipc files", "parquet", "filter"]
)
def test_pickles(kind: str, tmp_path: Path) -> None:
    dataset, ids = make(kind, tmp_path, cache_bytes=10**6)
    dataset[[1]]
    data = pickle.dumps(dataset)
    if kind in ("parquet", "ipc"):
        assert len(data) < 100_000  # no rows
    again = pickle.loads(data)
    assert len(again) == len(dataset)
    assert again[[9, 2]]["id"].tolist() == [ids[9], ids[2]]
    assert again._cache_bytes == 10**6


# ---------------------------------------------------------------------------
# Forks

FORK = """
import os, sys, threading
from pathlib import Path
import arrowdl
from helpers.map_datasets import ROWS, TABLE, CountingSource, write_parquet

dataset = arrowdl.Loader(
    write_parquet(Path(sys.argv[1]), TABLE.select(["id"]), 10), 4, framework="numpy"
).map_dataset()
dataset[[0, 55]]
cache = dataset._rows._cache
source = cache._source = CountingSource(dataset)
reading, go_on = threading.Event(), threading.Event()

def hold():
    reading.set()
    go_on.wait(60)

source.before = hold
threading.Thread(target=lambda: dataset[[25]]).start()
reading.wait(60)  # one thread reads group 2, and another one has the lock
locked = threading.Event()

def lock():
    with cache._lock:
        locked.set()
        go_on.wait(60)

threading.Thread(target=lock).start()
locked.wait(60)
child = os.fork()
if child == 0:
    source.before = lambda: None
    source.read_units.clear()
    source._lock = threading.Lock()
    found = dataset[[25, 3, 55]]["id"].tolist(), source.read_units
    os._exit(0 if found == ([25, 3, 55], [2]) else 1)
go_on.set()
assert os.waitpid(child, 0)[1] == 0
assert dataset[[25, 26]]["id"].tolist() == [25, 26]
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_needs_no_thread_of_its_parent(tmp_path: Path) -> None:
    run_script(FORK, tmp_path, tmp_path, seconds=60)
