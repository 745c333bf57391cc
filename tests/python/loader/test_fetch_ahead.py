"""Row groups over a network: fetched ahead in the order of the epoch, bounded, and released."""

from __future__ import annotations

import gc
import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import Retries
from arrowdl.loader._parquet.network import list_ranges
from arrowdl.loader._storage import fetch_ahead, footers, stragglers, unit_ranges
from arrowdl.loader._storage.fetch_ahead import FetchAhead
from arrowdl.loader._storage.held_ranges import HeldRanges, Range
from arrowdl.loader._storage.unit_ranges import UnitRanges, join_ranges
from helpers.counted_files import CountedFiles
from helpers.options import group
from helpers.random_cases import check_cases

ROWS, GROUP = 4_000, 250


def write(folder: Path, files: int = 2) -> list[str]:
    names = []
    for number in range(files):
        draw = np.random.default_rng(number)
        table = pa.table(
            {
                "id": np.arange(number * ROWS, (number + 1) * ROWS),
                "x": draw.random(ROWS),
                "word": [f"word {i % 7}" for i in range(ROWS)],
                "s": pa.array(
                    [{"a": i, "b": [float(i)] * (i % 3)} for i in range(ROWS)],
                    pa.struct({"a": pa.int64(), "b": pa.list_(pa.float64())}),
                ),
            }
        )
        names.append(f"part-{number}.parquet")
        pq.write_table(table, folder / names[-1], row_group_size=GROUP)
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    write(made)
    return made


@pytest.fixture
def files(folder: Path) -> CountedFiles:
    return CountedFiles(folder)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of a few kilobytes, as many as would be of megabytes, each read once.

    The files are not much larger than the ends that are kept in memory, which would have the rows.
    """
    monkeypatch.setattr(footers, "_END_BYTES", 64)
    monkeypatch.setattr(stragglers, "SHARE", 0.0)
    monkeypatch.setattr(unit_ranges, "GAP_BYTES", 100)
    monkeypatch.setattr(unit_ranges, "RANGE_BYTES", 1_500)
    monkeypatch.setattr(fetch_ahead, "FETCH_BYTES", 20_000)


def open_dataset(files: CountedFiles, **options: Any) -> ds.FileSystemDataset:
    names = sorted(path.name for path in files.root.glob("*.parquet"))
    return ds.dataset(names, filesystem=fs.PyFileSystem(files), **options)


def make_loader(files: CountedFiles, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(open_dataset(files), 100, framework="numpy", **group(**options))


def read_ids(batches: Any) -> list[int]:
    return [int(value) for batch in batches for value in batch["id"]]


def list_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "arrowdl-fetch"]


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["id"]},
        {"columns": ["id", "x"], "shuffle": True, "buffer_size": 500},
        {"columns": ["id", "s.b"], "shuffle": True, "ragged": "padded"},
        {"columns": ["id"], "filter": ds.field("x") > 0.5},
        {"columns": ["x", "id"], "filter": ds.field("s", "a") > 3_000},
        {"columns": ["id", "word"], "vocabulary": {"word": [f"word {i}" for i in range(7)]}},
        {"columns": ["id"], "global_batch_size": 100, "splits": 4, "shuffle": True},
    ],
)
def test_rows_are_those_of_local_files(
    folder: Path, files: CountedFiles, options: dict[str, Any]
) -> None:
    given = {"batch_size": 100, **options} if "global_batch_size" not in options else options
    local = arrowdl.Loader(sorted(folder.glob("*.parquet")), framework="numpy", **group(**given))
    remote = arrowdl.Loader(open_dataset(files), framework="numpy", **group(**given))
    for _ in range(2):
        for expected, batch in zip(local, remote, strict=True):
            assert set(batch) == set(expected)
            for name in batch:
                values = batch[name] if isinstance(batch[name], tuple) else [batch[name]]
                wanted = expected[name] if isinstance(batch[name], tuple) else [expected[name]]
                for own, other in zip(values, wanted, strict=True):
                    np.testing.assert_array_equal(own, other)


def test_each_range_of_an_epoch_is_read_once_and_no_other(
    files: CountedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_ranges, "GAP_BYTES", 0)
    columns = ["id", "s.b"]
    loader = make_loader(files, columns=columns, ragged="padded", shuffle=True)
    files.forget()
    assert sorted(read_ids(loader)) == list(range(2 * ROWS))
    expected = []
    for fragment in open_dataset(files).get_fragments():
        for unit in fragment.split_by_row_group():
            ranges = list_ranges(unit, ["id", "s.b"])
            expected += [(ranges.path, *part) for part in ranges.ranges]
            assert sum(part.nbytes for part in ranges.ranges) < unit.row_groups[0].total_byte_size
    files.reads[:] = [read for read in files.reads if read in set(expected)]
    assert sorted(files.reads) == sorted(expected)


def test_rows_are_counted_and_dictionaries_read_from_fetched_ranges(
    files: CountedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_ranges, "GAP_BYTES", 0)
    schema = pq.read_schema(files.root / "part-0.parquet")
    words = schema.set(2, pa.field("word", pa.dictionary(pa.int32(), pa.string())))
    format = ds.ParquetFileFormat(dictionary_columns=["word"])
    dataset = open_dataset(files, format=format, schema=words)
    expected = {
        (unit.path, *part)
        for fragment in dataset.get_fragments()
        for unit in fragment.split_by_row_group()
        for part in (*list_ranges(unit, ["x"]).ranges, *list_ranges(unit, ["word"]).ranges)
    }
    files.forget()
    condition = ds.field("x") > 0.5
    loader = arrowdl.Loader(dataset, 100, columns=["word"], filter=condition, framework="numpy")
    assert loader.vocabulary("word").to_pylist() == [f"word {i}" for i in range(7)]
    footers = {read for read in files.reads if read[1] + read[2] > 0 and read not in expected}
    assert {offset for _, offset, _ in footers} <= set(find_ends(files))
    assert expected <= set(files.reads)


def find_ends(files: CountedFiles) -> list[int]:
    """Where pyarrow reads the footers."""
    sizes = [path.stat().st_size for path in files.root.glob("*.parquet")]
    return [max(0, size - 2**16) for size in sizes]


def test_row_groups_are_fetched_in_the_order_of_the_epoch(files: CountedFiles) -> None:
    loader = make_loader(files, columns=["id"], shuffle=True, buffer_size=GROUP, prefetch=0)
    files.forget()
    batches = iter(loader)
    order = [batch["id"][0] // GROUP for batch in batches]
    starts = {}
    for fragment in open_dataset(files).get_fragments():
        for unit in fragment.split_by_row_group():
            offset = list_ranges(unit, ["id"]).ranges[0].offset
            starts[unit.path, offset] = len(starts)
    read = [starts[path, offset] for path, offset, _ in files.reads if (path, offset) in starts]
    units = list(dict.fromkeys(order))
    places = [units.index(unit) for unit in dict.fromkeys(read) if unit in units]
    # Several requests begin at the same time: none is far from its place.
    assert all(abs(place - index) < 32 for index, place in enumerate(places))


def test_error_names_the_file_and_the_range(files: CountedFiles) -> None:
    once = Retries(tries=1)
    loader = make_loader(files, columns=["id"], retries=once)
    (unit, *_) = list(open_dataset(files).get_fragments())[1].split_by_row_group()[3:]
    path, (damaged, *_) = list_ranges(unit, ["id"])

    def fail(read: str, offset: int, nbytes: int) -> None:
        if (read, offset) == (path, damaged.offset):
            raise ConnectionResetError("the store went away")

    files.before = fail
    got: list[int] = []
    with pytest.raises(OSError, match="the store went away") as caught:
        got.extend(int(value) for batch in loader for value in batch["id"])
    text = "".join(caught.value.__notes__)
    assert f"bytes {damaged.offset} to {damaged.offset + damaged.nbytes} of {path!r}" in text
    assert got == list(range(ROWS + 3 * GROUP))[: len(got)]
    options = {"on_error": "skip", "max_skipped_rows": GROUP, "retries": once}
    skipping = make_loader(files, columns=["id"], **options)
    missing = set(range(ROWS + 3 * GROUP, ROWS + 4 * GROUP))
    assert set(read_ids(skipping)) == set(range(2 * ROWS)) - missing
    (entry,) = skipping.stats().skipped
    assert entry.path == path


def test_nothing_is_tried_again_for_an_abandoned_epoch(files: CountedFiles) -> None:
    begun = threading.Event()

    def fail(read: str, offset: int, nbytes: int) -> None:
        if read == "part-1.parquet":
            begun.set()
            raise ConnectionResetError("the store went away")

    patient = Retries(deadline=1e6, first_wait=1e4, most_wait=1e4)
    loader = make_loader(files, columns=["id"], retries=patient)
    files.before = fail
    batches = iter(loader)
    next(batches)
    assert begun.wait(30)
    del batches
    gc.collect()
    for thread in list_threads():
        thread.join(30)
    assert not list_threads()


def test_file_that_changes_is_an_error(tmp_path: Path) -> None:
    write(tmp_path)
    files = CountedFiles(tmp_path)
    loader = make_loader(files, columns=["id"])
    read_ids(loader)  # its files stay open
    table = pq.read_table(tmp_path / "part-1.parquet")
    changed = table.set_column(0, "id", pa.array(np.arange(ROWS)[::-1]))
    pq.write_table(changed, tmp_path / "part-1.parquet", row_group_size=GROUP)
    os.utime(tmp_path / "part-1.parquet", (1, 1))  # some stores know whole seconds
    with pytest.raises(OSError, match=r"part-1.parquet.*has changed"):
        read_ids(loader)


def test_abandoned_epoch_leaves_no_thread_and_sends_no_request(files: CountedFiles) -> None:
    loader = make_loader(files)
    batches = iter(loader)
    next(batches)
    assert len(files.reads) < 700  # of more than 1,000
    del batches
    gc.collect()
    for thread in list_threads():
        thread.join(30)
    assert not list_threads()
    count = len(files.reads)
    assert read_ids(make_loader(CountedFiles(files.root), columns=["id"])) == list(range(2 * ROWS))
    assert len(files.reads) == count


# A program that ends while every request waits for an answer that never comes.
HANGING = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import arrowdl, pyarrow.dataset as ds, pyarrow.fs as fs
from helpers.counted_files import CountedFiles
files = CountedFiles(Path(sys.argv[1]))
dataset = ds.dataset(["part-0.parquet"], filesystem=fs.PyFileSystem(files))
loader = arrowdl.Loader(dataset, 100, framework="numpy", columns=["id"])
asked = threading.Event()
def hang(path, offset, nbytes):
    asked.set()
    threading.Event().wait()
files.before = hang
batches = iter(loader)
threading.Thread(target=next, args=(batches,), daemon=True).start()
assert asked.wait(30)
print("ends", flush=True)
"""


def test_program_ends_although_the_store_hangs(folder: Path) -> None:
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", HANGING, str(folder), tests]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("ends\n", 0), done.stderr


# Interrupts, as Ctrl-C does, an epoch that waits for a store that hangs; the epoch is abandoned.
INTERRUPTED = """
import gc, os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import arrowdl, pyarrow.dataset as ds, pyarrow.fs as fs
from arrowdl.loader._parquet import scan_limits
from arrowdl.loader._storage import fetch_ahead, stragglers, unit_ranges
from helpers.counted_files import CountedFiles
fetch_ahead.FETCH_BYTES, unit_ranges.RANGE_BYTES = 4_000, 1_000
scan_limits.FETCHED = scan_limits.FETCHED._replace(nbytes=4_000)
for options in ({"prefetch": 0}, {"shuffle": arrowdl.Shuffle(500)}):
    files, go, once = CountedFiles(Path(sys.argv[1])), threading.Event(), threading.Lock()
    dataset = ds.dataset(["part-0.parquet"], filesystem=fs.PyFileSystem(files))
    loader = arrowdl.Loader(dataset, 100, framework="numpy", columns=["id"], **options)
    def hang(path, offset, nbytes):
        if len(files.reads) > 12:
            if once.acquire(blocking=False):
                os.kill(os.getpid(), signal.SIGINT)
            go.wait()
    files.reads.clear()
    files.before = hang
    batches = iter(loader)
    try:
        print("complete", len(list(batches)))
    except KeyboardInterrupt:
        pass
    del batches
    gc.collect()
    go.set()
    end = time.monotonic() + 30  # a thread of requests ends when it is idle for a second
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)
    print(len(files.reads) < 48, threading.active_count(), flush=True)  # 48: of the whole epoch
"""


def test_epoch_that_waits_for_a_store_that_hangs_can_be_abandoned(folder: Path) -> None:
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", INTERRUPTED, str(folder), tests]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("True 1\nTrue 1\n", 0), done.stderr


def test_local_files_are_not_fetched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_ahead, "FetchAhead", None)
    dataset = ds.dataset(str(folder))
    assert read_ids(arrowdl.Loader(dataset, 100, framework="numpy", columns=["id"]))
    assert not list_threads()


def test_footers_of_files_of_a_metadata_file_are_read_once(tmp_path: Path) -> None:
    """By the layers that try again and look whether all bytes arrive."""
    write(tmp_path)
    parts = []
    for name in ("part-0.parquet", "part-1.parquet"):
        metadata = pq.read_metadata(tmp_path / name)
        metadata.set_file_path(name)
        parts.append(metadata)
    schema = pq.read_schema(tmp_path / "part-0.parquet")
    pq.write_metadata(schema, tmp_path / "_metadata", metadata_collector=parts)
    files = CountedFiles(tmp_path)
    dataset = ds.parquet_dataset("_metadata", filesystem=fs.PyFileSystem(files))
    files.forget()
    loader = arrowdl.Loader(dataset, 100, framework="numpy", columns=["id"])
    assert sorted(path for path, *_ in files.reads) == ["part-0.parquet", "part-1.parquet"]
    assert read_ids(loader) == list(range(2 * ROWS))


class Bytes:
    """Stands in for a `FetchHandler`: one file, whose reads are checked against a bound."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.held = HeldRanges()
        self.inner = None
        self.lock = threading.Lock()
        self.count = self.most = self.read = self.released = 0

    def read_below(self, path: str, nbytes: int, offset: int) -> bytes:
        with self.lock:
            self.read += nbytes
            self.count += 1
            self.most = max(self.most, self.read - self.released)
        return self.data[offset : offset + nbytes]


def test_random_units_stay_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(draw: random.Random) -> None:
        data = draw.randbytes(20_000)
        units = [list(draw_ranges(draw, len(data))) for _ in range(draw.randrange(1, 20))]
        joined = [join_ranges(unit) for unit in units]
        sizes = [sum(part.nbytes for part in parts) for parts in joined]
        bound = draw.choice([0, 100, 3_000, 100_000])
        file: Any = Bytes(data)
        threads = draw.randrange(1, 5)
        fetched = FetchAhead(
            file, len(units), lambda index: UnitRanges("f", joined[index]), bound, threads
        )
        fetched.start()
        first = 0
        while first < len(units):
            stop = min(len(units), first + draw.randrange(1, 3))
            fetched.wait(first, stop)
            for begin, nbytes in (part for unit in units[first:stop] for part in unit):
                found = file.held.find("f", begin, nbytes)
                assert (b"" if found is None else bytes(found)) == data[begin : begin + nbytes]
            with file.lock:  # before the room is given: what is read after it has it
                file.released += sum(sizes[first:stop])
            fetched.release(first, stop)
            first = stop
            if draw.random() < 0.02:
                break
        fetched.close()
        assert fetched.join(30)
        two = max(map(sum, zip(sizes, [*sizes[1:], 0], strict=True)))  # that are waited for
        assert file.most <= max(bound, two)
        assert first < len(units) or file.count == sum(map(len, joined))
        assert not file.held._held

    check_cases(check, 60)


def draw_ranges(draw: random.Random, size: int) -> Iterator[Range]:
    position = 0
    while position < size and draw.random() < 0.9:
        nbytes = draw.choice([1, 50, 700, 4_000])
        if position + nbytes <= size:
            yield Range(position, nbytes)
        position += nbytes + draw.choice([0, 0, 20, 99, 101, 3_000])


def test_random_ranges_are_joined_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(draw: random.Random) -> None:
        given = list(draw_ranges(draw, 30_000))
        draw.shuffle(given)
        joined = join_ranges(given)
        assert all(0 < part.nbytes <= unit_ranges.RANGE_BYTES for part in joined)
        ends = [part.offset + part.nbytes for part in joined]
        assert all(a <= part.offset for a, part in zip(ends, joined[1:], strict=False))
        covered = {byte for part in joined for byte in range(*bounds(part))}
        wanted = {byte for part in given for byte in range(*bounds(part))}
        assert wanted <= covered
        for part in given:  # of which none is cut that fits
            if part.nbytes <= unit_ranges.RANGE_BYTES:
                assert any(
                    whole.offset <= part.offset and bounds(part)[1] <= bounds(whole)[1]
                    for whole in joined
                )

    check_cases(check, 60)


def bounds(part: Range) -> tuple[int, int]:
    return part.offset, part.offset + part.nbytes


def test_source_is_pickled_without_what_it_holds(files: CountedFiles) -> None:
    loader = make_loader(files, columns=["id"])
    next(iter(loader))
    again = pickle.loads(pickle.dumps(loader._pipeline.source))
    assert sum(map(len, again.read(range(len(again.units))))) == 2 * ROWS
