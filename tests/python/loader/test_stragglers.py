"""Requests that a store answers late are made a second time: seldom, and rows stay as they are."""

from __future__ import annotations

import itertools
import logging
import random
import threading
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._parquet.network import list_ranges
from arrowdl.loader._storage import footers, stragglers
from arrowdl.loader._storage.disk_cache import DiskCache
from arrowdl.loader._storage.fetch_ahead import FetchAhead
from arrowdl.loader._storage.held_ranges import HeldRanges, Range
from arrowdl.loader._storage.stragglers import Stragglers
from arrowdl.loader._storage.unit_ranges import UnitRanges
from helpers.counted_files import CountedFiles
from helpers.options import group
from helpers.random_cases import check_cases

GROUPS, GROUP = 64, 10
LATE = "late.parquet"


class StallingFiles(CountedFiles):
    """Answers a request for the file "late.parquet" when it is made a second time.

    Attributes
    ----------
    begin : int, optional
        The begin of the range whose first read stalls; None for no read.
    is_asking_late : bool
        Whether the first question for its size and time stalls, once its rows were read.
    has_second : threading.Event
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.begin: int | None = None
        self.is_asking_late = False
        self.has_second = threading.Event()
        self.before = self._stall_read
        self._calls = 0
        self._is_read = False

    def _stall(self) -> None:
        self._calls += 1
        if self._calls == 1:
            self.has_second.wait(60)
        else:
            self.has_second.set()

    def _stall_read(self, path: str, offset: int, nbytes: int) -> None:
        if (path, offset) == (LATE, self.begin):
            self._is_read = True
            if not self.is_asking_late:
                self._stall()

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        if self.is_asking_late and self._is_read and LATE in paths:
            self._stall()
        return super().get_file_info(paths)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StallingFiles:
    # The late file is smaller than the ends that are kept in memory, which would have its rows.
    monkeypatch.setattr(footers, "_END_BYTES", 64)
    folder = tmp_path / "files"
    folder.mkdir()
    noise = [random.Random(row).randbytes(1_000) for row in range(GROUPS * GROUP)]
    table = pa.table({"id": range(GROUPS * GROUP), "noise": noise})
    pq.write_table(table, folder / "a.parquet", row_group_size=GROUP, compression="none")
    pq.write_table(table.slice(0, GROUP), folder / LATE, compression="none")
    return StallingFiles(folder)


@pytest.mark.parametrize("is_cached", [False, True])
@pytest.mark.parametrize("is_asking_late", [False, True])
def test_the_second_answer_counts(
    files: StallingFiles,
    is_asking_late: bool,
    is_cached: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first one comes when the second is asked for, or after a minute."""
    monkeypatch.setattr(stragglers, "_LEAST_SECONDS", 0.3)  # a busy machine is late as well
    caplog.set_level(logging.INFO, "arrowdl.loader")
    options = {"cache": tmp_path / "cache", "cache_bytes": 10**7} if is_cached else {}
    names = ["a.parquet", LATE, "a.parquet"]
    dataset = ds.dataset(names, filesystem=fs.PyFileSystem(files))
    loader = arrowdl.Loader(dataset, 50, framework="numpy", columns=["id"], **group(**options))  # type: ignore[arg-type]
    _, fragment, _ = dataset.get_fragments()
    ((files.begin, nbytes),) = list_ranges(fragment, ["id"]).ranges
    files.is_asking_late = is_asking_late
    rows = [i for batch in loader for i in batch["id"].tolist()]
    assert rows == [*range(GROUPS * GROUP), *range(GROUP), *range(GROUPS * GROUP)]
    assert files.has_second.is_set()
    told = [text for text in caplog.messages if text.endswith("s; asked again")]
    what = f"read bytes {files.begin} to {files.begin + nbytes} of {LATE!r}"
    what = f"asked whether {LATE!r} has changed" if is_asking_late and not is_cached else what
    assert any(what in text for text in told)


def test_the_store_is_not_asked_for_what_a_late_disk_keeps(
    files: StallingFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stragglers, "_LEAST_SECONDS", 0.3)  # a busy machine is late as well
    dataset = ds.dataset(["a.parquet", LATE], filesystem=fs.PyFileSystem(files))
    loader = arrowdl.Loader(
        dataset,
        50,
        framework="numpy",
        columns=["id"],
        storage=arrowdl.Storage(cache=tmp_path / "cache", cache_bytes=10**7),
    )
    assert sum(len(batch["id"]) for batch in loader) == (GROUPS + 1) * GROUP
    files.forget()
    calls = itertools.count(1)
    late: list[str] = []
    is_found = threading.Event()

    whole = DiskCache._load

    def load(cache: DiskCache, name: str, nbytes: int) -> bytes | None:
        if next(calls) == 50:
            late.append(name)
            assert is_found.wait(60)  # for the second request
        elif name in late:
            is_found.set()
        return whole(cache, name, nbytes)

    monkeypatch.setattr(DiskCache, "_load", load)
    assert sum(len(batch["id"]) for batch in loader) == (GROUPS + 1) * GROUP
    assert is_found.is_set()
    assert files.reads == []


def test_a_few_requests_say_nothing() -> None:
    seen = Stragglers()
    for _ in range(7):
        seen.add(1_000, 0.1)
        seen.add(5_000, 0.3)
    seen.add(5_000, 0.3)
    assert seen.find_limit(5_000) is None, "15 requests"
    for _ in range(20):
        seen.add(9_000, 9.0)
    assert seen.find_limit(5_000) == pytest.approx(0.6)
    assert seen.find_limit(8_000) == pytest.approx(0.6), "of the same power of two"
    assert seen.find_limit(1_000) is None, "7 of its size"
    assert seen.find_limit(10**6) is None


def test_one_of_twenty_requests_and_two_at_a_time() -> None:
    seen = Stragglers()
    for _ in range(100):
        seen.add(1_000, 0.001)
    assert seen.find_limit(1_000) == 0.05, "of a quick store too"
    seen.begin()
    assert seen.find_limit(1_000) is not None
    seen.begin()
    assert seen.find_limit(1_000) is None, "two are under way"
    for _ in range(3):
        seen.end()
        seen.begin()
    seen.end()
    assert seen.find_limit(1_000) is None, "five of a hundred"
    for _ in range(20):
        seen.add(1_000, 0.001)
    assert seen.find_limit(1_000) is not None


class OneFile:
    """Stands in for a `FetchHandler`: bytes of one file; a read may wait, or fail."""

    def __init__(self, data: bytes, draw: random.Random) -> None:
        self.data = data
        self.held = HeldRanges()
        self.inner = None
        self.lock = threading.Lock()
        self.reading = self.most = self.seconds = 0
        self._draw = draw
        self._seconded: set[int] = set()
        self._answered = threading.Condition(self.lock)

    def read_below(self, path: str, nbytes: int, offset: int) -> bytes:
        with self.lock:
            fate = self._draw.random()
            if fate < 0.3:  # late: until the second one is asked for, or answered; or no more
                self._answered.wait_for(lambda: offset in self._seconded, 0.05)
            if fate < 0.1:
                raise ConnectionResetError("the first one fails")
        return self.data[offset : offset + nbytes]

    def read_again(self, path: str, nbytes: int, offset: int) -> bytes:
        with self.lock:
            self.seconds += 1
            self._seconded.add(offset)
            self._answered.notify_all()
            if self._draw.random() < 0.3:
                raise ConnectionResetError("the second one fails")
        return self.data[offset : offset + nbytes]


def test_random_answers_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever comes first, and whichever fails: right bytes or the error, and nothing is left."""
    monkeypatch.setattr(stragglers, "SHARE", 1.0)
    monkeypatch.setattr(stragglers, "_FEWEST", 1)
    monkeypatch.setattr(stragglers, "_LEAST_SECONDS", 0.002)
    counts = [0, 0]

    def check(draw: random.Random) -> None:
        data = draw.randbytes(4_000)
        units = [[Range(100 * i, 50), Range(100 * i + 60, 30)] for i in range(40)]
        file: Any = OneFile(data, draw)
        fetched = FetchAhead(file, 40, lambda index: UnitRanges("f", units[index]), 400, 6)
        fetched.start()
        for index, unit in enumerate(units):
            try:
                fetched.wait(index, index + 1)
            except ConnectionResetError:
                counts[0] += 1
            else:
                for begin, nbytes in unit:
                    found = file.held.find("f", begin, nbytes)
                    assert bytes(found) == data[begin : begin + nbytes]
            fetched.release(index, index + 1)
        fetched.close()
        assert fetched.join(30)
        assert not file.held._held
        assert fetched._bytes == 0
        counts[1] += file.seconds

    check_cases(check, 5)
    assert counts[1] > 0
