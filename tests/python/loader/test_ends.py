"""What a `Loader` leaves behind: no memory, no thread, no file, however its epochs end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl import debug
from helpers.processes import run_python

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux's /proc")

ROWS = 20_000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.FixedSizeListArray.from_arrays(np.arange(ROWS * 16, dtype="float32"), 16),
        "text": [str(i) for i in range(ROWS)],
    }
)


def write_files(folder: Path) -> tuple[Path, Path]:
    parquet, ipc = folder / "rows.parquet", folder / "rows.arrow"
    pq.write_table(TABLE, parquet, row_group_size=3_000)
    with pa.ipc.new_file(ipc, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=3_000)
    return parquet, ipc


def count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def find_open(folder: Path) -> list[str]:
    """Files of `folder` that this process has open or mapped."""
    opened = []
    for number in os.listdir("/proc/self/fd"):
        try:
            opened.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # the folder's own
            continue
    opened += Path("/proc/self/maps").read_text().splitlines()
    return [name for name in opened if str(folder) in name]


def comes(condition: Callable[[], bool]) -> bool:
    """Whether `condition` holds within some seconds."""
    until = time.monotonic() + 10
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def break_off(loader: arrowdl.Loader) -> None:
    for i, _ in enumerate(loader):
        if i == 3:
            break


def drop_iterator(loader: arrowdl.Loader) -> None:
    batches = iter(loader)
    next(batches)
    del batches


def raise_in_the_loop(loader: arrowdl.Loader) -> None:
    try:
        for _ in loader:
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass


def raise_in_the_transform(loader: arrowdl.Loader) -> None:
    def fail(batch: Any) -> Any:
        raise KeyError("no")

    loader._pipeline.options.functions.transform = fail
    with pytest.raises(KeyError):
        next(iter(loader))


def fork_in_the_middle(loader: arrowdl.Loader) -> None:
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(batches)  # the threads that read are not here
        except RuntimeError as error:
            code = 0 if "forked" in str(error) else 2
        del batches
        gc.collect()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    next(batches)


ENDS: list[Callable[[arrowdl.Loader], None]] = [
    break_off,
    drop_iterator,
    raise_in_the_loop,
    raise_in_the_transform,
    fork_in_the_middle,
]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_of_an_epoch(
    end: Callable[[arrowdl.Loader], None],
    shuffle: bool,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    parquet, ipc = write_files(tmp_path)
    threads_of_pyarrow = pa.io_thread_count()
    pa.set_io_thread_count(1)  # it starts them when it has much to do, not all at once
    request.addfinalizer(lambda: pa.set_io_thread_count(threads_of_pyarrow))
    sources: dict[str, Callable[[], Any]] = {
        "parquet": lambda: parquet,
        "ipc": lambda: ipc,
        "dataset": lambda: ds.dataset(parquet),
        "stream": lambda: lambda: pq.ParquetFile(parquet).iter_batches(),
        "table": lambda: TABLE,
    }

    def use(source: Callable[[], Any]) -> None:
        loader = arrowdl.Loader(
            source(), 100, columns=["id", "x"], framework="numpy", shuffle=shuffle, prefetch=3
        )
        end(loader)

    for source in sources.values():  # pyarrow starts its threads, once
        use(source)
    gc.collect()
    objects, threads = debug.live_objects(), count_threads()
    for name, source in sources.items():
        use(source)
        gc.collect()
        assert debug.live_objects() == objects, name
        # pyarrow's threads finish what they read, and then close it.
        assert comes(lambda: find_open(tmp_path) == []), name
    assert comes(lambda: count_threads() <= threads)


EPOCHS = """
import os, sys
import arrowdl

def measure():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

shuffle = sys.argv[2] == "True" and arrowdl.Shuffle(5_000)
loader = arrowdl.Loader(sys.argv[1], 100, framework="numpy", ragged="offsets", shuffle=shuffle)
def read(epochs):
    return [measure() for _ in range(epochs) if sum(len(batch["id"]) for batch in loader) == 20_000]

before, epochs = read(15), 15
for _ in range(4):
    after = read(35)
    epochs += len(after)
    growth = min(after[-10:]) - max(before)  # of 25 epochs
    # What an epoch loses grows in any 25 epochs. Free memory between used memory does not: that
    # grows at random, less and less, so later epochs decide.
    if growth < 3 * 2**20:
        break
    before = after[-15:]
print(growth, epochs)
"""


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "ipc"])
def test_the_process_does_not_grow_over_50_epochs(kind: str, shuffle: bool, tmp_path: Path) -> None:
    path = write_files(tmp_path)[kind == "ipc"]
    # AddressSanitizer, where it is, would keep what was freed.
    asan = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0"
    done = subprocess.run(
        [sys.executable, "-c", EPOCHS, path, str(shuffle)],
        env={
            **os.environ,
            "ASAN_OPTIONS": f"{asan}:thread_local_quarantine_size_kb=0",
            # pyarrow's own allocator keeps pages of threads that ended: up to 28 MB, at random.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "MALLOC_ARENA_MAX": "1",
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    growth, epochs = map(int, done.stdout.split())
    assert epochs in {50, 85, 120, 155}
    # A fifth of the data of 25 epochs is 8 MB. What allocators keep varies by 1 MB.
    assert growth < 3 * 2**20


IN_MID_EPOCH = """
import arrowdl, pyarrow as pa, pyarrow.parquet as pq

table = pa.table({"x": range(1_000), "text": [[1, 2, 3]] * 1_000})
pq.write_table(table, path, row_group_size=50)
tokens = arrowdl.Tokens(60)
loaders = [
    arrowdl.Loader(source, **{"batch_size": 8, "framework": "numpy", **options})
    for source in (table, path)
    for options in (
        {},
        {"shuffle": True},
        {"ranks": arrowdl.Ranks(splits=4)},
        {"transform": dict, "num_threads": 2},
        {"transform": dict, "num_threads": 2, "on_error": "skip"},
        {"num_workers": 1},
        {"on_error": "skip"},
        {"progress": arrowdl.Report(every=100)},
        {"batch_size": tokens, "batching": arrowdl.Buckets("text"), "ragged": "padded"},
    )
]
sources = {"table": table, "path": path}
weights = {"table": 1, "path": 1}
mix = arrowdl.Loader.mix(
    sources,
    weights=weights,
    ranks=arrowdl.Ranks(global_batch_size=8),
    framework="numpy",
)
loaders.append(mix)
iterators = [iter(loader) for loader in loaders]
for iterator in iterators:
    next(iterator)
"""


@pytest.mark.parametrize("first", ["", "import multiprocessing"])
def test_a_program_that_ends_in_mid_epoch_says_nothing(first: str, tmp_path: Path) -> None:
    """A free-threaded Python empties modules before it ends generators: of ours all, or some."""
    run_python(f"{first}\npath = {str(tmp_path / 'rows.parquet')!r}\n{IN_MID_EPOCH}")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"on_error": "skip"},
        {"batching": arrowdl.Buckets("tokens")},
        {"batching": arrowdl.Pack("tokens", 4)},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_a_dropped_loader_releases_its_source_at_once(
    kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """No cycle keeps a large table until the collector runs."""
    source: Any = pa.table({"tokens": [[i] * (i % 3 + 1) for i in range(100)]})
    if kind == "parquet":
        pq.write_table(source, tmp_path / "a.parquet")
        source = tmp_path / "a.parquet"
    gc.collect()
    gc.disable()
    try:
        loader = arrowdl.Loader(source, 4, framework="numpy", **options)
        next(iter(loader))
        read = weakref.ref(loader._source)
        del loader
        assert read() is None
    finally:
        gc.enable()
