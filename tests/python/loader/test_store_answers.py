"""Answers of stores that end too early, drip, never end, or are of another version of a file.

The client is pyarrow's of S3; the store is a double, of files in memory.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
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
from arrowdl.loader._storage import retrying_handler, unit_ranges
from arrowdl.loader._storage.marked_reads import MarkedRead
from helpers.fault_proxy import SHORT, Schedule, run_store
from helpers.options import group
from helpers.s3_server import KEYS, make_options
from helpers.stores import IPC, PARQUET, ROWS, MemoryStore

ALL = list(range(3 * ROWS))
PATIENT = Retries(tries=400, first_wait=0.0, most_wait=0.0)
QUICK = Retries(tries=3, first_wait=0.0, most_wait=0.0)


@pytest.fixture
def store() -> Iterator[Any]:
    with run_store({f"bucket/{path}": data for path, data in {**PARQUET, **IPC}.items()}) as store:
        yield store


def load(source: Any, store: Any, **options: Any) -> arrowdl.Loader:
    given = {"storage_options": make_options(store.server_port), "retries": PATIENT, **options}
    return arrowdl.Loader(source, 16, framework="numpy", columns=["id"], **group(**given))


def read(loader: arrowdl.Loader) -> list[int]:
    return [i for batch in loader for i in batch["id"].tolist()]


# ---- too short


@pytest.mark.parametrize("folder", ["b", "c"])
@pytest.mark.parametrize("how", SHORT)
def test_answers_that_are_too_short_are_tried_again(how: str, folder: str, store: Any) -> None:
    store.schedule = Schedule(0, 0.4, (how,))
    assert read(load(f"s3://bucket/{folder}", store)) == ALL
    assert store.schedule.seen[how] > 3


def open_client(store: Any) -> fs.S3FileSystem:
    """The client that a user makes."""
    return fs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{store.server_port}",
        scheme="http",
        region="us-east-1",
        **KEYS,
    )


@pytest.mark.parametrize("kind", ["file system", "dataset", "of a metadata file"])
def test_through_the_users_client(kind: str, store: Any) -> None:
    client = open_client(store)
    if kind == "file system":
        loader = load("bucket/b", store, storage_options=None, filesystem=client)
    elif kind == "dataset":
        dataset = ds.dataset("bucket/b", filesystem=client)
        loader = load(dataset, store, storage_options=None)
    else:
        footers = []
        for path, data in PARQUET.items():
            footers.append(pq.read_metadata(io.BytesIO(data)))
            footers[-1].set_file_path(path.removeprefix("b/"))
        for footer in footers[1:]:
            footers[0].append_row_groups(footer)
        sink = io.BytesIO()
        footers[0].write_metadata_file(sink)
        store.files["bucket/b/_metadata"] = sink.getvalue()
        dataset = ds.parquet_dataset("bucket/b/_metadata", filesystem=client)
        loader = load(dataset, store, storage_options=None)
    store.schedule = Schedule(0, 0.4, SHORT)
    assert read(loader) == ALL
    assert sum(store.schedule.seen[how] for how in SHORT) > 3


@pytest.mark.parametrize("how", SHORT)
def test_in_the_end_the_error_names_the_file_and_the_range(how: str, store: Any) -> None:
    loader = load("s3://bucket/b", store, retries=QUICK)
    store.schedule = Schedule(0, 1.0, (how,))
    with pytest.raises(
        OSError,
        match=r"reading \d+ bytes of 's3://bucket/b/k=0/0.parquet' from offset \d+ failed 3 times "
        r"in .* at last with ShortReadError: the answer had some \d+ bytes, of \d+",
    ):
        read(loader)


def test_a_listing_that_is_too_short_is_tried_again(store: Any) -> None:
    store.schedule = Schedule(2, 0.5, ("short", "short chunks"))
    for _ in range(3):
        assert read(load("s3://bucket/b/**/*.parquet", store)) == ALL


@pytest.mark.parametrize("missing", [0, 1, 2, 15, 16, 17, 70_000])
@pytest.mark.parametrize("nbytes", [1, 2, 15, 16, 17, 1_000, 2**16, 200_000])
def test_every_byte_that_is_missing_is_seen(nbytes: int, missing: int) -> None:
    """Also where the last bytes are those of the mark by chance."""
    values = bytes(i * 7 % 256 for i in range(300_000))
    asked = []

    class Client:
        def get_stream(self, offset: int, nbytes: int) -> Any:
            return Stream(offset)

    class Stream:
        def __init__(self, offset: int) -> None:
            self.offset = offset

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            """Nothing is open."""

        def readinto(self, data: pa.Buffer) -> int:
            view = memoryview(data).cast("B")
            arrived = max(0, len(view) - missing)
            view[:arrived] = values[self.offset : self.offset + arrived]
            asked.append(len(view))
            return len(view)

    for offset in range(600):
        read = MarkedRead(Client(), nbytes, offset)  # type: ignore[arg-type]
        if missing:
            with pytest.raises(OSError, match="the answer had some"):
                read.read()
        else:
            assert read.read().to_pybytes() == values[offset : offset + nbytes]
    assert missing or len(asked) - 600 < 60, "few are asked for again"


# ---- other versions


def make_file(seed: int) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"id": np.random.default_rng(seed).integers(0, 2**40, 60_000)})
    pq.write_table(table, sink, write_page_checksum=True, compression="none", use_dictionary=False)
    return sink.getvalue()


def test_pages_of_several_versions_are_seen_by_their_checksums(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HEAD is answered by one replica, GET by two in turns; the client does not show ETags."""
    monkeypatch.setattr(unit_ranges, "RANGE_BYTES", 50_000)
    before, after = ({"bucket/a.parquet": make_file(seed)} for seed in range(2))
    store.files = before
    loader = load("s3://bucket/a.parquet", store, retries=QUICK)
    rows = read(loader)
    assert len(rows) == 60_000
    store.replicas = [before, after]
    with pytest.raises(OSError, match=r"CRC checksum verification failed"):
        read(loader)
    store.replicas = []
    assert read(loader) == rows


# ---- too late

SLOW = Retries(tries=3, deadline=1.0, first_wait=0.0)


def test_a_deadline_ends_an_answer_that_drips(store: Any) -> None:
    loader = load("s3://bucket/b", store, retries=SLOW)
    store.schedule = Schedule(0, 1.0, ("drip",))
    with pytest.raises(
        OSError,
        match=r"reading (\d+) bytes of 's3://bucket/b/k=0/0.parquet' from offset \d+ did not end "
        r"within 1 s, when some \d+ of \1 bytes had arrived; Retries\(deadline=\) may be more",
    ):
        read(loader)


def test_pyarrow_opens_nothing_while_an_answer_drips() -> None:
    ids = pa.table({"id": np.random.default_rng(0).permutation(100_000)})
    pq.write_table(ids, data := io.BytesIO())
    with run_store({"bucket/a.parquet": data.getvalue()}) as store:
        loader = load("s3://bucket/a.parquet", store, retries=SLOW)
        other = load("s3://bucket/a.parquet", store)
        store.schedule = Schedule(0, 1.0, ("drip",))
        with pytest.raises(OSError, match="did not end within 1 s"):
            read(loader)
        store.schedule = Schedule(0, 0.0)
        with pytest.raises(OSError, match="opening the file system of 's3://bucket/") as caught:
            load("s3://bucket/a.parquet", store, retries=SLOW)
        assert "a request to S3 goes on after its deadline" in caught.value.__notes__[0]
        assert read(other) == ids["id"].to_pylist()


class EndedLists(MemoryStore):
    """Some lists end after their first page: the answer for the next one was empty."""

    ended: Sequence[bool] = ()  # of each list in turn; later ones are whole

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        found = super().get_file_info_selector(selector)
        is_ended, *self.ended = (*self.ended, False)
        return found[:2] if is_ended else found


def test_a_list_that_ends_after_a_page_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying_handler, "_PAGE_FILES", 2)
    options: dict[str, Any] = {"framework": "numpy", "columns": ["id"], "retries": QUICK}
    for ended in ([True], [True, False, True, False], []):
        store = EndedLists(IPC)
        store.ended = ended
        assert read(arrowdl.Loader("c", 16, **group(filesystem=store.open(), **options))) == ALL
    store = EndedLists(IPC)
    store.ended = [True, False] * 3
    with pytest.raises(OSError, match="two lists of 'c' have different numbers of files"):
        arrowdl.Loader("c", 16, **group(filesystem=store.open(), **options))


def test_a_deadline_ends_a_listing(store: Any) -> None:
    store.is_endless = True
    with pytest.raises(OSError, match=r"listing 's3://bucket/b' did not end within 1 s"):
        load("s3://bucket/b/*/*.parquet", store, retries=SLOW)
    store.is_endless = False


def test_a_deadline_ends_an_opening(store: Any) -> None:
    loader = load("s3://bucket/b", store)
    plan = loader.plan()
    store.schedule = Schedule(0, 1.0, ("hang",))
    with pytest.raises(OSError, match=r"'s3://bucket/b/k=0/0.parquet' did not end within 1 s"):
        read(load("s3://bucket/b", store, plan=plan, retries=SLOW))


# ---- the end of a program

LISTING = f"""
import contextlib, sys, threading
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import arrowdl
from helpers.s3_server import make_options
from helpers.stores import MemoryStore, PARQUET

begun = threading.Event()
store = MemoryStore(PARQUET)
def hang(kind, path):
    if kind == "list":
        begun.set()
        threading.Event().wait()
store.fault = hang
options = make_options(PORT)
for source, more in (("s3://bucket/b/*", arrowdl.Storage(options=options)),
                     ("b/*", arrowdl.Storage(filesystem=store.open()))):
    def make(source=source, more=more):
        with contextlib.suppress(OSError):  # says that the program ends
            arrowdl.Loader(source, 4, storage=more)
    threading.Thread(target=make, daemon=True).start()
begun.wait()
print("left")
"""


# An epoch that is given up, or waits, while the answers drip.
DRIPPING = f"""
import contextlib, sys, threading
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import arrowdl
from helpers.s3_server import make_options

loader = arrowdl.Loader(
    "s3://bucket/b/*/*.parquet",
    4,
    storage=arrowdl.Storage(options=make_options(PORT)),
)
print("made", flush=True)
sys.stdin.readline()
def read():
    with contextlib.suppress(OSError):
        list(loader)
thread = threading.Thread(target=read, daemon=True)
thread.start()
thread.join(0.5)
print("left", flush=True)
"""


OPENING = re.compile(r"^arrowdl\.Loader reads the \w+: \d+ of \d+ files\n", re.MULTILINE)


def end(code: str, store: Any) -> tuple[int, str, str]:
    """Run a program; return its status, its output and its errors.

    Left out of the errors is how far files are opened, which a slow machine shows.
    """
    command = [sys.executable, "-c", code.replace("PORT", str(store.server_port))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        store.schedule = Schedule(0, float(first == "made\n"), ("drip",))
        try:
            out, errors = process.communicate("\n", timeout=120)
        finally:
            process.kill()
    return process.returncode, first + out, OPENING.sub("", errors)


def test_a_program_ends_while_threads_list_directories(store: Any) -> None:
    """Directories of S3, and of a file system in Python, whose answers never end."""
    store.is_endless = True
    assert end(LISTING, store) == (0, "left\n", "")


def test_a_program_ends_while_answers_drip(store: Any) -> None:
    assert end(DRIPPING, store) == (0, "made\nleft\n", "")
