"""Requests to a store before the first batch: how many, and how many wait for others."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._storage import footers, handlers
from arrowdl.loader._storage.fsspec_files import FsspecHandler
from arrowdl.loader._storage.handlers import read_end
from arrowdl.loader._storage.readers import Stamp
from arrowdl.loader._storage.stores import Store, StoresHandler
from arrowdl.loader._storage.threads import FOOTERS_AT_ONCE
from fsspec import AbstractFileSystem
from helpers.stores import MemoryStore, dump

from benchmarks.loader.range_server import start_server

QUIET_SECONDS = 0.2  # of a round, whose requests have begun then


def are_others_at_rest() -> bool:
    """Whether no other thread runs, or could run on a machine that is less busy."""
    own = str(threading.get_native_id())
    for task in Path("/proc/self/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            if task.parent.name != own and task.read_text().rsplit(")", 1)[1].split()[0] in "RD":
                return False
    return True


class RoundStore(AbstractFileSystem):
    """Files of one content. Requests are answered together, when no other one begins."""

    protocol = "rounds"
    cachable = False

    def __init__(self, files: int, content: bytes) -> None:
        super().__init__()
        self.names = [f"n/{i:04d}.parquet" for i in range(files)]
        self.content = content
        self.etag: str | None = "x"
        self.listed_etag: str | None = "x"
        self.written: Any = "2024-01-01T00:00:00+00:00"
        self.rounds: list[list[tuple[str, str]]] = []
        self.waiting: list[tuple[str, str]] = []
        self._changed = threading.Condition()
        self._ends = threading.Event()

    def __enter__(self) -> RoundStore:
        threading.Thread(target=self._answer, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        with self._changed:
            self._ends.set()
            self._changed.notify_all()

    def _answer(self) -> None:
        while not self._ends.is_set():
            with self._changed:
                number = len(self.waiting)
            time.sleep(QUIET_SECONDS)
            with self._changed:
                if number == len(self.waiting) > 0 and are_others_at_rest():
                    self.rounds.append(self.waiting)
                    self.waiting = []
                    self._changed.notify_all()

    def _ask(self, kind: str, path: str) -> None:
        with self._changed:
            rounds = len(self.rounds)
            self.waiting.append((kind, path))
            self._changed.wait_for(lambda: self._ends.is_set() or len(self.rounds) > rounds)

    def _describe(self, path: str) -> dict[str, Any]:
        told = {"ETag": self.etag, "LastModified": self.written}
        return {"name": path, "type": "file", "size": len(self.content), **told}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        self._ask("info", path)
        if path in self.names:
            return self._describe(path)
        return {"name": path, "type": "directory", "size": 0}

    def find(self, path: str, **_: Any) -> dict[str, Any]:
        self._ask("list", path)
        return {name: self._describe(name) | {"ETag": self.listed_etag} for name in self.names}

    def cat_file(self, path: str, start: Any = None, end: Any = None, **_: Any) -> bytes:
        self._ask("read", path)
        return self.content[start:end]


def count_rounds(files: int, content: bytes) -> list[list[tuple[str, str]]]:
    """Return the requests of each round trip before the first batch."""
    with RoundStore(files, content) as store:
        loader = arrowdl.Loader(
            "n", 10, framework="numpy", storage=arrowdl.Storage(filesystem=store)
        )
        batches = iter(loader)
        next(batches)
        rounds = list(store.rounds)
    batches.close()
    loader.close()
    return rounds


def find_fewest(files: int, content: bytes, expected: int) -> list[list[tuple[str, str]]]:
    """A busy machine may begin a request of a round too late: the fewest of some runs count."""
    runs = []
    for _ in range(4):
        runs.append(count_rounds(files, content))
        if len(runs[-1]) <= expected:
            break
    return min(runs, key=len)


@pytest.mark.parametrize(("rows", "expected"), [(40, 5), (4, 4)])
def test_the_first_batch_comes_after_few_round_trips(rows: int, expected: int) -> None:
    """What it is, a list, the footers, rows unless they are beside the footer, a comparison."""
    rounds = find_fewest(5, dump(0, rows=rows), expected)
    assert len(rounds) == expected
    assert rounds[:2] == [[("info", "n")], [("list", "n")]]
    assert Counter(rounds[2]) == Counter(
        [("info", "n/0000.parquet"), *(("read", f"n/{i:04d}.parquet") for i in range(5))]
    )


def test_footers_of_many_files_are_under_way_at_a_time() -> None:
    files = 2 * FOOTERS_AT_ONCE + 3
    rounds = find_fewest(files, dump(0, rows=4), 6)
    assert len(rounds) == 6
    assert [len(requests) for requests in rounds[2:5]] == [FOOTERS_AT_ONCE, FOOTERS_AT_ONCE, 4]
    reads = Counter(path for requests in rounds for kind, path in requests if kind == "read")
    assert set(reads.values()) == {1}


def make_store(files: int, rows: int = 4) -> MemoryStore:
    return MemoryStore({f"n/{i:04d}.parquet": dump(rows * i, rows=rows) for i in range(files)})


def load(store: MemoryStore, source: Any = "n") -> arrowdl.Loader:
    storage = arrowdl.Storage(filesystem=store.open())
    return arrowdl.Loader(source, 10, framework="numpy", columns=["id"], storage=storage)


def open_store(files: int = 5) -> RoundStore:
    """Return a store that answers at once."""
    store = RoundStore(files, dump(0, rows=4))
    with store:
        return store


def load_rounds(store: RoundStore) -> arrowdl.Loader:
    storage = arrowdl.Storage(filesystem=store)
    return arrowdl.Loader("n", 10, framework="numpy", columns=["id"], storage=storage)


def test_a_listed_file_costs_one_request() -> None:
    store = open_store(100)
    loader = load_rounds(store)
    kinds = Counter(kind for kind, _ in store.waiting)
    assert kinds == {"info": 2, "list": 1, "read": 100}  # of the folder, and of the first file
    assert [int(i) for batch in loader for i in batch["id"]] == [0, 1, 2, 3] * 100
    assert sum(kind == "read" for kind, _ in store.waiting) == 100


# A clock that is ahead: the test may run long after this line.
@pytest.mark.parametrize("written", [None, datetime(2126, 11, 30, tzinfo=UTC)])
def test_a_file_is_opened_unless_its_time_tells_it_from_others(written: Any) -> None:
    """One that was just written may be written again within the same second."""
    store = open_store()
    store.written = written
    load_rounds(store)
    assert Counter(store.waiting)["info", "n/0003.parquet"] == 1


@pytest.mark.parametrize("end", [64, 2**16])
def test_rows_are_those_of_footers_of_any_length(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footers, "_END_BYTES", end)
    store = make_store(5, rows=40)
    loader = load(store)
    assert store.requests["read", "n/0003.parquet"] == 1 + (end == 64)
    assert [int(i) for batch in loader for i in batch["id"]] == list(range(200))


def test_a_file_that_is_written_after_its_listing_is_an_error() -> None:
    store = make_store(5)
    other = dump(999, rows=4)
    assert len(other) == len(store.files["n/0003.parquet"])

    def rewrite(kind: str, path: str) -> None:
        if kind == "open":
            store.files["n/0003.parquet"] = other
            store.times["n/0003.parquet"] = 100

    store.fault = rewrite
    with pytest.raises(OSError, match=r"0003\.parquet' has changed since it was listed"):
        list(load(store))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100, dump(0, rows=4)[:-1]])
def test_a_file_without_a_footer_is_named(content: bytes) -> None:
    store = make_store(5)
    store.files["n/0003.parquet"] = content
    with pytest.raises((OSError, ValueError)) as caught:
        load(store)
    assert "0003.parquet" in f"{caught.value}{getattr(caught.value, '__notes__', '')}"


def test_a_file_whose_footer_cannot_be_read_is_named() -> None:
    store = make_store(5)

    def refuse(kind: str, path: str) -> None:
        if kind == "read" and "0003" in path:
            raise PermissionError("no")

    store.fault = refuse
    with pytest.raises(PermissionError, match="no"):
        load(store)


def test_columns_that_some_files_lack() -> None:
    """As in local files: the footers of all files decide on the columns of the first batch."""
    store = make_store(4)
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(16, 26), "more": range(10)}), sink)
    store.files["n/0004.parquet"] = sink.getvalue()
    storage = arrowdl.Storage(filesystem=store.open())
    loader = arrowdl.Loader("n", 10, columns=["id", "more"], nulls="fill", storage=storage)
    assert np.concatenate([batch["more"] for batch in loader]).tolist() == [0] * 16 + [*range(10)]


@pytest.mark.parametrize(
    ("etag", "listed", "requests"),
    [("x", "x", 0), ('W/"x"', "x", 0), ("x", None, 4), ("x", "another kind", 4), (None, None, 0)],
)
def test_the_etags_of_states_are_those_of_the_list(
    etag: str | None, listed: str | None, requests: int
) -> None:
    """If they are those of the first file's opening; else each file is asked for it once."""
    store = open_store()
    store.etag, store.listed_etag = etag, listed
    loader = load_rounds(store)
    before = len(store.waiting)
    state = loader.state_dict()["files"]
    assert bool(state[1]) is (etag is not None)
    assert len(store.waiting) == before + requests
    assert loader.state_dict()["files"] == state
    assert len(store.waiting) == before + requests
    store.listed_etag = None  # its openings have the same ones
    assert load_rounds(store).state_dict()["files"] == state
    assert [int(i) for batch in loader for i in batch["id"]] == [0, 1, 2, 3] * 5


def test_the_list_of_a_url_has_etags() -> None:
    inner = fs.PyFileSystem(FsspecHandler(open_store()))
    handler = StoresHandler([Store("rounds://n", inner, len("rounds://"))])
    assert handler.find_listed_etag("rounds://n/0003.parquet") is None
    handler.get_file_info_selector(fs.FileSelector("rounds://n", recursive=True))
    assert handler.find_listed_etag("rounds://n/0003.parquet") == "x"


def test_the_etags_that_a_list_lacks_are_asked_for_at_a_time() -> None:
    with RoundStore(9, dump(0, rows=4)) as store:
        store.listed_etag = None
        loader = load_rounds(store)
        before = len(store.rounds)
        loader.state_dict()
        # The first one of them tells whether the store has any.
        rounds = store.rounds[before:]
        assert sum(map(len, rounds)) == 8
        assert len(rounds) < 8


def test_an_object_of_s3_costs_one_request(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    path = tmp_path / "b/a.parquet"
    path.write_bytes(dump(0))
    size = path.stat().st_size
    with start_server(tmp_path, 0, 0) as server:
        s3 = fs.S3FileSystem(
            anonymous=True, scheme="http", region="us-east-1", endpoint_override=server.address
        )
        _, data = read_end(s3, "b/a.parquet", 2**16, Stamp(size, 10**9))
        assert server.count()[0] == 1
    assert path.read_bytes().endswith(data)
    assert data.endswith(b"PAR1")


@pytest.mark.parametrize("unknown", [b"", b"\x05\x90\x03\x02"], ids=["known", "a field more"])
def test_the_end_of_a_file_is_kept_as_the_file_has_it(unknown: bytes, tmp_path: Path) -> None:
    """pyarrow writes a footer again, without the fields that it does not know."""
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"id": range(9)}), path)
    data = path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    longer = footer[:-1] + unknown + footer[-1:]
    data = data[: -8 - len(footer)] + longer + len(longer).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(data)
    stamp = Stamp(len(data))
    _, end = handlers._read_s3_footer(fs.LocalFileSystem(), str(path), 300, stamp)
    assert data.endswith(end)
    assert len(end) == (300 if unknown else len(footer) + 8)
