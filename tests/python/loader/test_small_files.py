"""Small Parquet files, several of which are read at once: order, errors, and what is left over."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import Shuffle
from arrowdl.loader._parquet.row_groups import RowGroupFiles
from helpers.processes import run_python

ROWS = 50
FILES = 60
SECONDS = 60.0


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files of some rows each, in scans of five or more."""
    monkeypatch.setattr("pyarrow.cpu_count", lambda: 2)
    monkeypatch.setattr("arrowdl.loader._parquet.scan_limits._JOINED_BYTES", 2_000)
    paths = [tmp_path / f"{i:02}.parquet" for i in range(FILES)]
    for i, path in enumerate(paths):
        rows = ROWS + i % 3 if i % 7 else i % 2  # some have one row, or none
        pq.write_table(pa.table({"x": np.arange(rows) + 1000 * i}), path)
    return paths


def _read_expected(paths: list[Path]) -> list[int]:
    return [x for path in paths for x in pq.read_table(path).column("x").to_pylist()]


def _list_rows(batches: Any) -> list[int]:
    return [int(x) for batch in batches for x in batch["x"]]


def _comes(condition: Callable[[], bool]) -> bool:
    """Whether `condition` holds within some seconds."""
    until = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def _find_open(folder: Path) -> list[str]:
    opened = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the folder's own
            opened.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in opened if str(folder) in name]


class Meeting:
    """Lets the thread that reads from one file on wait for one that reads from the other one on."""

    def __init__(self, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._names = names
        self._barrier = threading.Barrier(2)
        self.threads: set[int] = set()
        self._read = RowGroupFiles._read_group
        monkeypatch.setattr(RowGroupFiles, "_read_group", lambda *given: self._meet(*given))

    def _meet(self, files: Any, group: Any, *rest: Any) -> Iterator[tuple[pa.RecordBatch, int]]:
        batches = self._read(files, group, *rest)
        first = next(batches)  # decoded
        if Path(group[0].path).name in self._names:
            self._barrier.wait(SECONDS)
            self.threads.add(threading.get_ident())
        yield first
        yield from batches


@pytest.mark.parametrize("shuffle", [False, True])
def test_two_threads_decode_files_at_once(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch, shuffle: bool
) -> None:
    loader = arrowdl.Loader(paths, 64, framework="numpy", shuffle=shuffle)
    # Each is the first one of its scan.
    meeting = Meeting({"01.parquet", "02.parquet"}, monkeypatch)
    rows = _list_rows(loader)
    assert len(meeting.threads) == 2
    assert (sorted(rows) if shuffle else rows) == _read_expected(paths)
    assert not shuffle or rows != sorted(rows)


@pytest.mark.parametrize("batch_size", [7, 64, 1000])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_rows_are_in_order(paths: list[Path], batch_size: int, prefetch: int) -> None:
    loader = arrowdl.Loader(paths, batch_size, framework="numpy", prefetch=prefetch)
    assert _list_rows(loader) == _read_expected(paths)


@pytest.mark.parametrize("shuffle", [False, True, Shuffle(buffer_size=500)])
def test_states_are_exact(paths: list[Path], shuffle: Any) -> None:
    def make() -> arrowdl.Loader:
        return arrowdl.Loader(paths, 64, framework="numpy", shuffle=shuffle)

    rows = _list_rows(make())
    assert sorted(rows) == _read_expected(paths)
    loader = make()
    read = []
    for i, batch in enumerate(loader):
        read += batch["x"].tolist()
        if i == 11:
            break
    resumed = make()
    resumed.load_state_dict(loader.state_dict())
    assert read + _list_rows(resumed) == rows


def test_workers_read_small_files(paths: list[Path]) -> None:
    loader = arrowdl.Loader(paths, 64, framework="numpy", num_workers=2)
    assert sorted(_list_rows(loader)) == _read_expected(paths)


@pytest.mark.parametrize("place", [1, 3, 4, 30, FILES - 1])
def test_an_error_comes_where_its_rows_would(paths: list[Path], place: int) -> None:
    """Though another thread meets it while it reads ahead."""
    bad = paths[place]
    data = bytearray(bad.read_bytes())
    data[4:24] = b"\xff" * 20  # the header of the first page
    bad.write_bytes(data)
    before = _read_expected(paths[:place])
    rows: list[int] = []
    loader = arrowdl.Loader(paths, 1, framework="numpy")
    with pytest.raises(OSError, match=bad.name) as caught:  # noqa: PT012
        for batch in loader:
            rows += batch["x"].tolist()
    assert rows == before, caught.value
    skipping = arrowdl.Loader(paths, 1, framework="numpy", on_error="skip")
    kept = before + _read_expected(paths[place + 1 :])
    assert sorted(set(_list_rows(skipping))) == kept  # other rows stand in for its rows


def test_a_file_that_changes_meanwhile_gives_no_row(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written again, with as many rows and bytes, after its rows were read."""
    join = arrowdl._core.join_parquet_files

    def change(names: list[str], most: int) -> Any:
        joined = join(names, most)
        if str(paths[20]) in names:
            os.utime(paths[20], ns=(1, 1))
        return joined

    monkeypatch.setattr("arrowdl._core.join_parquet_files", change)
    loader = arrowdl.Loader(paths, 1, framework="numpy")
    rows: list[int] = []
    with pytest.raises(OSError, match=r"20\.parquet' has changed since this Loader"):  # noqa: PT012
        for batch in loader:
            rows += batch["x"].tolist()
    assert rows == _read_expected(paths[:20])


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux's /proc")
@pytest.mark.parametrize("batches", [1, 20, 10**6])
def test_no_thread_and_no_file_is_left(paths: list[Path], tmp_path: Path, batches: int) -> None:
    loader = arrowdl.Loader(paths, 16, framework="numpy")
    _list_rows(loader)
    gc.collect()
    threads = len(os.listdir("/proc/self/task"))
    for _ in range(3):
        for i, _batch in enumerate(loader, 1):
            if i == batches:
                break
    gc.collect()
    assert _comes(lambda: not _find_open(tmp_path))
    assert _comes(lambda: len(os.listdir("/proc/self/task")) <= threads)


FORK = """
import os
import arrowdl, pyarrow

pyarrow.cpu_count = lambda: 2

def read(batches):
    return [x for batch in batches for x in batch["x"].tolist()]

loader = arrowdl.Loader(PATHS, 64, framework="numpy")
batches = iter(loader)
rows = next(batches)["x"].tolist()
child = os.fork()
if child == 0:
    os._exit(0 if read(loader) == sorted(read(loader)) != [] else 1)
rows += read(batches)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert rows == read(loader)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_reads_all_rows_again(paths: list[Path]) -> None:
    run_python(FORK.replace("PATHS", str(list(map(str, paths)))))
