"""Footers over a network: read once by all processes, and compared where a store tells no more."""

from __future__ import annotations

import io
import os
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._parquet.network import find_footers
from arrowdl.loader._storage import footers
from arrowdl.loader._storage.fetch_ahead import FetchAhead
from arrowdl.loader._storage.held_ranges import HeldRanges, Range
from arrowdl.loader._storage.unit_ranges import UnitRanges
from helpers.counted_files import CountedFiles
from helpers.options import group
from helpers.plan_group import Group, share_plan
from helpers.stores import MemoryStore

FILES, ROWS = 3, 3_000
ALL = list(range(FILES * ROWS))


def write(root: Path) -> CountedFiles:
    """Files that are larger than the end that is kept."""
    for number in range(FILES):
        noise = np.random.default_rng(number).random((ROWS, 8))
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(noise.reshape(-1)), 8)
        ids = range(number * ROWS, (number + 1) * ROWS)
        table = pa.table({"id": ids, "noise": vectors})
        pq.write_table(table, root / f"{number}.parquet", row_group_size=500, compression="none")
    return CountedFiles(root)


@pytest.fixture
def files(tmp_path: Path) -> CountedFiles:
    return write(tmp_path)


def load(files: CountedFiles, **options: Any) -> arrowdl.Loader:
    filesystem = fs.PyFileSystem(files)
    names = [f"{number}.parquet" for number in range(FILES)]
    return arrowdl.Loader(names, 100, framework="numpy", **group(filesystem=filesystem, **options))


def read_ids(batches: Any) -> list[int]:
    return [int(value) for batch in batches for value in batch["id"]]


def list_footers_read(files: CountedFiles) -> list[str]:
    sizes = {str(path.name): path.stat().st_size for path in files.root.iterdir()}
    return [path for path, offset, nbytes in files.reads if offset + nbytes == sizes[path]]


def test_a_pickled_source_reads_no_footer_again(files: CountedFiles) -> None:
    """Which is what worker processes get."""
    loader = load(files)
    assert sorted(list_footers_read(files)) == [f"{i}.parquet" for i in range(FILES)]
    again = pickle.loads(pickle.dumps(loader._pipeline.source))
    store = find_store(again)
    store.forget()
    assert pa.table(again.read(range(len(again.units))))["id"].to_pylist() == ALL
    assert store.reads
    assert not list_footers_read(store)


def find_store(source: Any) -> CountedFiles:
    handler = source.scanner.dataset.filesystem.handler
    while not isinstance(handler, CountedFiles):
        inner = handler.stores[0].filesystem if hasattr(handler, "stores") else handler.inner
        handler = inner.handler
    return handler


def test_worker_processes_read_the_rows(files: CountedFiles) -> None:
    loader = load(files, columns=["id"], num_workers=2)
    assert sorted(read_ids(loader)) == ALL
    loader.close()


def test_for_want_of_room_the_footers_alone_are_kept(files: CountedFiles) -> None:
    loader = load(files)
    kept = find_footers(loader._source.scanner.dataset.filesystem)
    kept._most = 2**16 + 2**14
    for path in ("0.parquet", "1.parquet", "2.parquet"):
        size = (files.root / path).stat().st_size
        data = (files.root / path).read_bytes()[size - 2**16 :]
        kept.keep(path, kept.find(path)._replace(start=size - 2**16, data=data))
    assert kept._held <= kept._most
    assert sorted(kept._ends) == ["2.parquet"]
    assert sorted(kept.list_footers()) == [f"{i}.parquet" for i in range(FILES)]
    again = pickle.loads(pickle.dumps(loader._pipeline.source))
    store = find_store(again)
    store.forget()
    assert pa.table(again.read(range(len(again.units))))["id"].to_pylist() == ALL
    assert not list_footers_read(store)
    kept._most = 0
    kept.keep("0.parquet", kept.find("0.parquet"))
    assert (kept._held, len(kept._ends), len(kept._footers)) == (0, 0, 0)


def test_ranks_share_the_footers_with_the_plan(
    files: CountedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    for rank in range(2):
        share_plan(Group(rank, told), monkeypatch)
        files.forget()
        loader = load(files, plan="share", rank=0, world_size=1)
        if rank == 1:
            assert not files.reads
            assert read_ids(loader) == ALL
            assert not list_footers_read(files)


# ---- files that are rewritten within a second


def dump(values: range) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": values}), sink, compression="none", use_dictionary=False)
    return sink.getvalue()


@pytest.mark.parametrize("is_told", [True, False])
def test_a_file_of_the_same_size_and_second_is_an_error(
    is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store tells whole seconds or nothing, and no ETag."""
    store = MemoryStore({"a.parquet": dump(range(100))})
    other = dump(range(100, 200))
    assert len(other) == len(store.files["a.parquet"])
    store.times["a.parquet"] = int(time.time())
    if not is_told:
        monkeypatch.setattr(store, "_describe", lambda path: describe(store, path))
    loader = arrowdl.Loader(
        "a.parquet", 16, framework="numpy", storage=arrowdl.Storage(filesystem=store.open())
    )
    assert read_ids(loader) == list(range(100))
    store.files["a.parquet"] = other
    with pytest.raises(OSError, match=r"'a\.parquet' has changed since its footer was read"):
        read_ids(loader)


def describe(store: MemoryStore, path: str) -> fs.FileInfo:
    if path not in store.files:
        return fs.FileInfo(path, fs.FileType.NotFound)
    return fs.FileInfo(path, fs.FileType.File, size=len(store.files[path]))


def test_files_that_were_written_before_cost_no_request_more() -> None:
    store = MemoryStore({"a.parquet": dump(range(100))})
    loader = arrowdl.Loader(
        "a.parquet", 16, framework="numpy", storage=arrowdl.Storage(filesystem=store.open())
    )
    store.requests.clear()
    assert read_ids(loader) == list(range(100))
    assert store.count("read") == 0  # a file as small as its end


def test_fractions_of_seconds_are_compared(files: CountedFiles) -> None:
    path = files.root / "1.parquet"
    os.utime(path, ns=(10**18, 10**18 + 7 * 10**8))
    loader, plan = load(files), load(files).plan()
    os.utime(path, ns=(10**18, 10**18 + 8 * 10**8))
    with pytest.raises(OSError, match=r"1\.parquet' has changed .*written at another time"):
        read_ids(loader)
    with pytest.raises(OSError, match=r"1\.parquet' has changed .*written at another time"):
        read_ids(load(files, plan=plan))
    os.utime(path, ns=(10**18, 10**18))  # a store that tells whole seconds
    assert read_ids(load(files, plan=plan)) == ALL


def test_a_footer_that_is_not_as_the_plan_says_is_an_error(files: CountedFiles) -> None:
    plan = load(files).plan()
    first, *others = plan.files
    wrong = first._replace(rows=(499, *first.rows[1:]))
    changed = type(plan)(**{**vars(plan), "files": (wrong, *others)})
    with pytest.raises(OSError, match="since the plan was made: its footer has other row groups"):
        read_ids(load(files, plan=changed))


# ---- ranges that the store has to be asked for


class Nothing:
    """Stands in for a `FetchHandler` of files without bytes."""

    held = HeldRanges()
    inner = None

    def read_below(self, path: str, nbytes: int, offset: int) -> bytes:
        return bytes(nbytes)


def test_footers_are_asked_for_side_by_side() -> None:
    """Each answer waits for the one of the next unit: one after the other, none would come."""
    asked = [threading.Event() for _ in range(9)]
    order = []

    def list_ranges(index: int) -> UnitRanges:
        asked[index].set()
        assert index % 4 == 3 or asked[index + 1].wait(30)
        return UnitRanges("f", [Range(index, 1)])

    handler: Any = Nothing()
    read = handler.read_below
    handler.read_below = lambda path, nbytes, offset: order.append(offset) or read(path, nbytes, 0)
    fetched = FetchAhead(handler, 8, list_ranges, 100, 4)
    fetched.start()
    fetched.wait(0, 8)
    assert sorted(order) == list(range(8))
    fetched.close()
    assert fetched.join(30)


def test_an_error_of_a_list_is_raised_where_its_unit_is() -> None:
    def list_ranges(index: int) -> UnitRanges:
        if index == 1:
            raise FileNotFoundError("gone")
        return UnitRanges("f", [Range(index, 1)])

    handler: Any = Nothing()
    fetched = FetchAhead(handler, 3, list_ranges, 100, 2)
    fetched.start()
    fetched.wait(0, 1)
    with pytest.raises(FileNotFoundError, match="gone"):
        fetched.wait(1, 2)
    fetched.wait(2, 3)
    fetched.close()
    assert fetched.join(30)


def test_a_footer_is_one_of_parquet_or_ipc() -> None:
    stamp: Any = None
    parquet = dump(range(5))
    length = int.from_bytes(parquet[-8:-4], "little") + 8
    cut = footers._End(stamp, 10, parquet, False).cut()
    assert cut is not None
    assert (cut.start, cut.data) == (10 + len(parquet) - length, parquet[-length:])
    assert cut.read(8, cut.start + length - 8) == parquet[-8:]
    assert cut.read(8, cut.start - 1) is None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.schema({"id": pa.int64()})) as writer:
        writer.write_batch(pa.record_batch({"id": [1]}))
    ipc = sink.getvalue().to_pybytes()
    cut = footers._End(stamp, 0, ipc, False).cut()
    assert cut is not None
    assert 10 < len(cut.data) < len(ipc)
    assert footers._End(stamp, 0, b"a,b\n1,2\n", False).cut() is None
    assert footers._End(stamp, 0, b"\xff\xff\xff\xffPAR1", False).cut() is None
