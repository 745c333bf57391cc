"""Files of stores: URLs, file systems, retries, changed files, ends; the store is a double."""

from __future__ import annotations

import io
import logging
import pickle
import ssl
import threading
import traceback
import urllib.error
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pytest
from arrowdl.loader import Retries
from arrowdl.loader._storage.retrying_handler import RetryingHandler
from fsspec.implementations.memory import MemoryFileSystem
from helpers.options import group
from helpers.processes import run_python
from helpers.random_cases import check_cases
from helpers.stores import IPC, PARQUET, ROWS, MemoryStore, dump

QUICK = Retries(tries=6, first_wait=0.0, most_wait=0.0)
ALL = list(range(3 * ROWS))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore({**PARQUET, **IPC})


def load(source: Any, store: MemoryStore | None = None, **options: Any) -> arrowdl.Loader:
    if store is not None:
        options = {"filesystem": store.open(), "retries": QUICK, **options}
    return arrowdl.Loader(source, 16, framework="numpy", columns=["id"], **group(**options))


def read(source: Any, store: MemoryStore | None = None, **options: Any) -> list[int]:
    loader = load(source, store, **options)
    try:
        return [i for batch in loader for i in batch["id"].tolist()]
    finally:
        loader.close()


@pytest.fixture
def bucket() -> Iterator[str]:
    """A URL of fsspec's file system in memory."""
    name = uuid.uuid4().hex
    memory = fsspec.filesystem("memory")
    for path, data in {**PARQUET, **IPC}.items():
        with memory.open(f"/{name}/{path}", "wb") as file:
            file.write(data)
    yield f"memory://{name}"
    memory.rm(f"/{name}", recursive=True)


# ---- what is found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("b", ALL),
        ("b/", ALL),
        ("b/k=1", ALL[40:80]),
        ("b/k=1/1.parquet", ALL[40:80]),
        ("b/*", ALL),
        ("b/k=[12]/*.parquet", ALL[40:]),
        ("b/**/*.parquet", ALL),
        ("b/**", ALL),
        (["b/k=2/2.parquet", "b/k=0"], ALL[80:] + ALL[:40]),
        ("c", ALL),
        ("c/?.arrow", ALL),
        (["c/1.arrow", "c/0.arrow"], ALL[40:80] + ALL[:40]),
    ],
)
def test_files_directories_and_patterns(
    source: Any, expected: list[int], store: MemoryStore, bucket: str
) -> None:
    store.files |= {"b/_SUCCESS": b"", "b/.x/a.parquet": b"", "b/_delta/b.parquet": b""}
    assert read(source, store) == expected
    urls = [f"{bucket}/{path}" for path in ([source] if isinstance(source, str) else source)]
    assert read(urls if isinstance(source, list) else urls[0]) == expected


@pytest.mark.parametrize("name", ["a[1].parquet", "a?.parquet", "a*.parquet", "a[1]/b.parquet"])
def test_a_name_with_the_characters_of_a_pattern_is_that_file(
    name: str, store: MemoryStore, tmp_path: Path
) -> None:
    """As on a local disk, where the file comes first, too."""
    files = {f"d/{name}": dump(700), "d/a1.parquet": dump(0), "d/a1/b.parquet": dump(40)}
    store.files |= files
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    memory = fsspec.filesystem("memory")
    box = uuid.uuid4().hex
    for path, data in files.items():
        memory.pipe(f"/{box}/{path}", data)
    for own in {name, name.split("/")[0]}:
        assert read(f"d/{own}", store) == list(range(700, 740))
        assert store.count("list") == (1 if own.endswith("parquet") else 2)
        store.requests.clear()
        assert read(f"memory://{box}/d/{own}") == list(range(700, 740))
        assert read(str(tmp_path / "d" / own)) == list(range(700, 740))


def test_directories_are_columns(store: MemoryStore, bucket: str) -> None:
    for loader in (
        arrowdl.Loader(
            "b",
            50,
            framework="numpy",
            storage=arrowdl.Storage(filesystem=store.open()),
            columns=["k"],
        ),
        arrowdl.Loader(f"{bucket}/b", 50, framework="numpy", columns=["k"]),
        arrowdl.Loader(f"{bucket}/b/*/*.parquet", 50, framework="numpy", columns=["k"]),
        arrowdl.Loader(
            [f"{bucket}/b/k=0/0.parquet", f"{bucket}/b/k=1", f"{bucket}/b/k=2"],
            50,
            framework="numpy",
            columns=["id"],
        ),
    ):
        (name,) = next(iter(loader))
        if name == "k":
            assert [k for batch in loader for k in batch["k"].tolist()][::ROWS] == [0, 1, 2]
    assert read(f"{bucket}/b", filter=ds.field("k") == 1) == ALL[40:80]


def test_documents_are_skipped_with_a_warning(store: MemoryStore) -> None:
    store.files["c/README.md"] = b"# text"
    with pytest.warns(UserWarning, match="skips 'c/README.md'") as caught:
        arrowdl.Loader("c", 16, storage=arrowdl.Storage(filesystem=store.open()))
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("source", ["nothing", "b/*.nothing", "b/k=1/none.parquet"])
def test_nothing_found(source: str, store: MemoryStore, bucket: str) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        read(source, store)
    with pytest.raises(FileNotFoundError, match=f"no file.*{bucket}"):
        read(f"{bucket}/{source}")


def test_stores_and_local_paths_in_one_list(bucket: str, tmp_path: Path) -> None:
    (tmp_path / "9.parquet").write_bytes(dump(900))
    other = f"memory://{uuid.uuid4().hex}"
    with fsspec.open(f"{other}/8.parquet", "wb") as file:
        file.write(dump(800))
    sources = [f"{bucket}/b/k=1", str(tmp_path), f"{other}/8.parquet"]
    expected = ALL[40:80] + list(range(900, 940)) + list(range(800, 840))
    assert read(sources) == expected


def test_a_file_system_object(bucket: str, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(PARQUET["b/k=1/1.parquet"])
    path = str(tmp_path / "a.parquet")
    for filesystem in (
        fs.LocalFileSystem(),
        fsspec.filesystem("file"),
        fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("file"))),
    ):
        assert read(path, filesystem=filesystem) == ALL[40:80]
    name = bucket.removeprefix("memory://")
    assert read(f"/{name}/b", filesystem=fsspec.filesystem("memory")) == ALL
    assert read("a.parquet", filesystem=fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))


def test_what_does_not_fit(store: MemoryStore) -> None:
    with pytest.raises(ValueError, match=r"pass these to the object of Storage.filesystem"):
        load("b", store, storage_options={"key": "x"})
    with pytest.raises(TypeError, match=r"Storage\.filesystem=<object .*: give a file system of"):
        load("b", filesystem=object())
    with pytest.raises(TypeError, match=r"Storage\.options is a list"):
        load("memory://b", storage_options=["key"])
    with pytest.raises(ValueError, match=r"work on paths and URLs, not on Table"):
        arrowdl.Loader(pa.table({"x": [1]}), 1, storage=arrowdl.Storage(filesystem=store.open()))
    with pytest.raises(ValueError, match=r"'nosuch://b/x'.*nosuch"):
        load("nosuch://b/x")
    for url in ("s3://", "gs:///a.parquet", "az://"):
        with pytest.raises(ValueError, match="names no bucket"):
            load(url)
    with pytest.raises(ValueError, match=r'after "\?" in a URL has options'):
        load("s3://b/a?b=c.parquet", storage_options={"region": "us-east-1"})
    with pytest.raises(ValueError, match=r"S3FileSystem does not take one of Storage\.options"):
        load("s3://b/x", storage_options={"kye": "x", "region": "us-east-1"})
    logins = ["s3://a1:b1@bucket/x.parquet", "s3://c:d@bucket/y.parquet"]
    with pytest.raises(ValueError, match="different logins"):
        load(logins, storage_options={"region": "us-east-1"})
    for wrong in ({"tries": 0}, {"deadline": -1}, {"first_wait": "1"}, {"most_wait": float("nan")}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            Retries(**wrong)
    with pytest.raises(TypeError, match=r"give an arrowdl\.Retries"):
        load("b", store, retries=3)


def test_mixtures(store: MemoryStore) -> None:
    loader = arrowdl.Loader.mix(
        {"b": "b", "c": "c"},
        weights={"b": 1, "c": 1},
        storage=arrowdl.Storage(filesystem=store.open(), retries=QUICK),
        columns=["id"],
        framework="numpy",
        ranks=arrowdl.Ranks(global_batch_size=8),
    )
    assert sorted(i for batch in loader for i in batch["id"].tolist()) == sorted(ALL + ALL)


def test_workers_and_pickles_make_the_file_system_again(store: MemoryStore, bucket: str) -> None:
    for loader in (load("b", store, num_workers=1), load(f"{bucket}/c")):
        again = pickle.loads(pickle.dumps(loader))
        assert sorted(i for batch in again for i in batch["id"].tolist()) == ALL
        again.close()


# ---- requests


def test_each_footer_is_read_once(store: MemoryStore) -> None:
    store.files = {f"n/{i:03}.parquet": dump(4 * i, rows=4, group=1) for i in range(50)}
    loader = load("n", store)
    assert store.count("list") == 1
    assert {
        kind: max(n for (k, _), n in store.requests.items() if k == kind)
        for kind in ("read", "list")
    } == {"read": 1, "list": 1}
    assert loader.state_dict()["source"] == load("n", store).state_dict()["source"]


# ---- faults

PASSING = [
    TimeoutError("late"),
    ConnectionResetError("reset"),
    OSError("AWS Error SLOW_DOWN during GetObject operation: Please reduce your request rate"),
    OSError("AWS Error UNKNOWN (HTTP status 503) during GetObject operation: no body"),
    OSError(5, "Input/output error"),
    ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
    urllib.error.URLError(ConnectionResetError("reset")),
    OSError("Generic S3 error: Error performing GET: error sending request"),
]
FINAL = [
    PermissionError("no"),
    FileNotFoundError("gone"),
    OSError("AWS Error ACCESS_DENIED during GetObject operation: HTTP status 403"),
    OSError("AWS Error UNKNOWN (HTTP status 400) during GetObject operation: no body"),
    ValueError("a bug"),
    KeyError("another"),
]


def renew(error: Exception) -> Exception:
    """A new one: what is raised keeps frames, and what they have."""
    return type(error)(*error.args)


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("source", ["b", "c"])
def test_what_passes_is_tried_again(error: Exception, source: str, store: MemoryStore) -> None:
    seen: set[tuple[str, str]] = set()

    def fail_first(kind: str, path: str) -> None:
        if (kind, path) not in seen:
            seen.add((kind, path))
            raise renew(error)

    store.fault = fail_first
    assert read(source, store) == ALL
    assert len(seen) > 6


def test_an_answer_to_another_thread_gives_all_tries_back() -> None:
    handler = RetryingHandler(fs.LocalFileSystem(), Retries(tries=4, first_wait=0.0))
    tried = 0

    def fail() -> None:
        raise TimeoutError("late")

    def fail_while_another_is_answered() -> int:
        nonlocal tried
        tried += 1
        handler.call("a", "asking for 'a'", lambda: None)
        if tried < 4:
            fail()
        return tried

    with pytest.raises(OSError, match="failed 4 times"):
        handler.call("a", "opening 'a'", fail)
    with pytest.raises(OSError, match=r"opening 'a' failed 1 time .* before that, .* 4 times"):
        handler.call("a", "opening 'a'", fail)
    assert handler.call("a", "opening 'a'", fail_while_another_is_answered) == 4


def test_random_faults(store: MemoryStore) -> None:
    """Each row once, in order, whatever fails and however many bytes arrive; or an error."""

    def check(random: Any) -> None:
        share = random.choice([0.05, 0.2, 0.4])
        lock = threading.Lock()

        def fail(kind: str, path: str) -> int | None:
            with lock:
                if random.random() < share:
                    raise renew(random.choice(PASSING))
                return random.randrange(9_000) if random.random() < share / 2 else None

        source = random.choice(["b", "c", "b/*/*.parquet"])
        store.fault = fail
        retries = Retries(tries=random.choice([2, 4, 500]), first_wait=0.0)
        try:
            rows, failure = read(source, store, retries=retries), ""
        except OSError as error:
            rows, failure = [], str(error)
        if failure and retries.tries < 500:
            assert f"failed {retries.tries} times" in failure
        else:
            assert (rows, failure) == (ALL, "")

    check_cases(check, 25)


@pytest.mark.parametrize("error", FINAL)
@pytest.mark.parametrize("source", ["b", "c"])
def test_what_is_final_is_raised_at_once(error: Exception, source: str, store: MemoryStore) -> None:
    loader = load(source, store)
    store.requests.clear()
    bad = "b/k=1/1.parquet" if source == "b" else "c/1.arrow"

    def fail(kind: str, path: str) -> None:
        if kind == "open" and path == bad:
            raise renew(error)

    store.fault = fail
    with pytest.raises(type(error)) as caught:
        list(loader)
    assert str(error) in str(caught.value)
    assert any(bad in note for note in caught.value.__notes__)


@pytest.mark.parametrize("source", ["b", "c"])
def test_in_the_end_the_error_names_file_offset_and_tries(source: str, store: MemoryStore) -> None:
    loader = load(source, store)
    bad = "b/k=1/1.parquet" if source == "b" else "c/1.arrow"

    def fail(kind: str, path: str) -> None:
        if kind == "read" and path == bad:
            raise TimeoutError("late")

    store.fault = fail
    store.requests.clear()
    with pytest.raises(
        OSError,
        match=rf"reading \d+ bytes of '{bad}' from offset \d+ failed 6 "
        r"times in .* at last with TimeoutError: late",
    ) as caught:
        list(loader)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert store.requests["read", bad] < 30  # no thread starts a second series of tries


def test_a_deadline_ends_the_tries(store: MemoryStore) -> None:
    def fail(kind: str, path: str) -> None:
        raise TimeoutError("late")

    store.fault = fail
    retries = Retries(tries=1_000, deadline=5.0, first_wait=20.0, most_wait=20.0)
    with pytest.raises(OSError, match="asking for 'b' failed 1 time "):
        load("b", store, retries=retries)


def test_waits_grow_and_differ() -> None:
    retries = Retries(first_wait=1.0, most_wait=10.0)
    waits = [[retries.choose_wait(tried) for _ in range(50)] for tried in (1, 2, 3, 9)]
    for drawn, most in zip(waits, (1, 2, 4, 10), strict=True):
        assert most / 2 <= min(drawn) < max(drawn) <= most


def test_a_store_may_be_away_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a clock of its own. One warning tells that it takes long."""
    from arrowdl.loader._storage import retry_calls

    now = [0.0]

    def wait(seconds: float) -> None:
        now[0] += seconds

    def ask() -> str:
        if now[0] < away:
            raise ConnectionResetError("away")
        return "answer"

    monkeypatch.setattr(retry_calls.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(retry_calls.GATE, "sleep", wait)
    for away in (1, 60):
        now[0] = 0.0
        assert retry_calls.call_with_retries(Retries(), f"asking {away}", ask) == "answer"
    (record,) = [own for own in caplog.records if own.levelname == "WARNING"]
    assert "asking 60 failed: ConnectionResetError: away; try" in record.getMessage()
    now[0], away = 0.0, 1000
    with pytest.raises(OSError, match="asking 9 failed 20 times"):
        retry_calls.call_with_retries(Retries(deadline=1e6), "asking 9", ask)


@pytest.mark.parametrize(
    ("text", "has_advice"),
    [
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", True),
        ("AWS Error UNKNOWN (HTTP status 400) during HeadObject operation", True),
        ("AWS Error UNKNOWN (HTTP status 416) during GetObject operation", False),
    ],
)
def test_a_refusal_without_a_reason_has_advice(
    text: str, has_advice: bool, store: MemoryStore
) -> None:
    def fail(kind: str, path: str) -> None:
        raise OSError(text)

    store.fault = fail
    with pytest.raises(OSError, match="AWS Error") as caught:
        load("b", store)
    notes = [note for note in getattr(caught.value, "__notes__", ()) if "have expired" in note]
    assert len(notes) == has_advice


def test_unreadable_files_can_be_skipped(store: MemoryStore) -> None:
    def fail(kind: str, path: str) -> None:
        if path == "b/k=1/1.parquet" and kind == "open":
            raise TimeoutError("late")

    options = {"on_error": "skip", "max_skipped_rows": 60}
    loader = load("b", store, **options)
    store.fault = fail
    rows = [i for batch in loader for i in batch["id"][: loader.valid_rows].tolist()]
    assert set(rows) == set(ALL[:40] + ALL[80:])
    assert {entry.path for entry in loader.stats().skipped} == {"b/k=1/1.parquet"}
    assert "failed" in loader.stats().skipped[0].error
    loader = load("b", store, **options)  # not even its footer
    assert set(read("b", store, **options)) == set(ALL[:40] + ALL[80:])
    assert loader.stats().skipped[0].path == "b/k=1/1.parquet"


@pytest.mark.parametrize("source", ["b", "c"])
@pytest.mark.parametrize("change", ["size", "time"])
def test_a_changed_file_is_an_error(source: str, change: str, store: MemoryStore) -> None:
    loader = load(source, store)
    path = "b/k=2/2.parquet" if source == "b" else "c/2.arrow"
    if change == "size":
        store.files[path] = dump(0, "parquet" if source == "b" else "ipc", ROWS + 1)
    else:
        store.times[path] = 99
    with pytest.raises(OSError, match=f"'{path}' has changed since it was listed"):
        list(loader)


def test_a_file_that_changes_while_it_is_read_is_an_error(store: MemoryStore) -> None:
    loader = load("b/k=2/2.parquet", store)

    def change(kind: str, path: str) -> None:
        if kind == "read":
            store.times[path] = 99

    store.fault = change
    with pytest.raises(OSError, match="has changed"):
        list(loader)


def test_datasets_and_tables_are_tried_again(store: MemoryStore) -> None:
    """A pyarrow dataset, and what reads tables as one, gets the layers of paths."""
    loader = load(ds.dataset(list(PARQUET), filesystem=store.open()), retries=QUICK)
    failed: set[tuple[str, str]] = set()

    def fail_once(kind: str, path: str) -> None:
        if (kind, path) not in failed:
            failed.add((kind, path))
            raise TimeoutError("late once")

    store.fault = fail_once
    assert [i for batch in loader for i in batch["id"].tolist()] == ALL
    assert {kind for kind, _ in failed} >= {"open", "read"}


def test_a_changed_file_of_a_dataset_is_an_error(tmp_path: Path) -> None:
    """fsspec's file system in memory tells "created", which pyarrow's handler does not read."""
    memory = fsspec.filesystem("memory")
    path = f"/{uuid.uuid4().hex}/a.parquet"
    memory.pipe(path, dump(0))
    loader = load(ds.dataset(path, filesystem=memory))
    memory.pipe(path, dump(100))
    with pytest.raises(OSError, match="has changed"):
        list(loader)
    memory.rm(path)


def test_urls_of_a_given_file_system(caplog: pytest.LogCaptureFixture) -> None:
    """They have no secrets in errors, logs and plans, and a file system of the web keeps them."""
    caplog.set_level(logging.DEBUG)

    class Signed(Leaky):
        """Its own paths are whole URLs."""

        protocol = "http"
        store: dict[str, Any] = {}  # noqa: RUF012
        asked: set[str] = set()  # noqa: RUF012

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path

        def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
            Signed.asked.add(path)
            return super().cat_file(path, start, end, **kwargs)

        def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
            return {"name": path, "type": "file", "size": len(self.store[path].getvalue())}

    url = f"https://host/1.parquet?sig={SECRET}"
    web = Signed()
    web.store[url] = io.BytesIO(PARQUET["b/k=1/1.parquet"])
    loader = load(url, filesystem=web, retries=QUICK)
    assert Signed.asked == {url}
    assert [file.path for file in loader.plan().files] == ["https://host/1.parquet"]
    with pytest.raises(ValueError, match=r"two URLs are 'https://host/1.parquet' without"):
        load([url, url.replace(SECRET, "another")], filesystem=web)
    own = f"leaky://box/1.parquet?sig={SECRET}"
    shown = [str(loader.plan()), repr(loader)]
    with pytest.raises(FileNotFoundError) as missing:
        load(own, filesystem=Leaky(), retries=QUICK)
    shown.append(gather(missing.value))
    shown += [record.getMessage() for record in caplog.records if "arrowdl" in record.name]
    for text in shown:
        assert SECRET not in text


def test_chains_are_refused_with_what_to_do(bucket: str) -> None:
    url = f"simplecache::{bucket}/b/k=1/1.parquet"
    with pytest.raises(ValueError, match=r"chain of file systems.*fsspec\.url_to_fs"):
        load(url)
    filesystem, path = fsspec.url_to_fs(url)
    assert read(path, filesystem=filesystem) == ALL[ROWS : 2 * ROWS]


def test_options_by_scheme() -> None:
    """A scheme without an entry has no options, and does not get those of the others."""

    class Strict(Leaky):
        protocol = "strict"
        store: dict[str, Any] = {}  # noqa: RUF012

        def __init__(self, use_listings_cache: bool = False) -> None:
            super().__init__()

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.removeprefix("strict://").strip("/")

    fsspec.register_implementation("strict", Strict, clobber=True)
    Strict().pipe("/box/1.parquet", PARQUET["b/k=1/1.parquet"])
    loader = load("strict://box/1.parquet", storage_options={"s3": {"region": "x"}, "gs": {}})
    assert [i for batch in loader for i in batch["id"].tolist()] == ALL[ROWS : 2 * ROWS]
    with pytest.raises(TypeError):
        load("strict://box/1.parquet", storage_options={"client_kwargs": {"region": "x"}})


def test_epochs_go_on_after_an_error(store: MemoryStore) -> None:
    """No row is lost or read twice by the batches before the error and those after it."""
    loader = load("b", store)
    rows: list[int] = []

    def fail(kind: str, path: str) -> None:
        if path == "b/k=2/2.parquet":
            raise TimeoutError("late")

    store.fault = fail
    batches = iter(loader)
    rows += [i for _ in range(5) for i in next(batches)["id"].tolist()]
    with pytest.raises(OSError, match="failed 6 times"):
        next(batches)
    store.fault = lambda kind, path: None
    again = load("b", store)
    again.load_state_dict(loader.state_dict())
    rows += [i for batch in again for i in batch["id"].tolist()]
    assert rows == ALL


# ---- secrets

SECRET = "hunter2secret"


def gather(error: BaseException) -> str:
    """Everything that is shown of an error, and of what it is chained to."""
    texts = traceback.format_exception(error)
    while error is not None:
        texts += [repr(error), str(vars(error)), str(error.args)]
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(texts)


@pytest.mark.parametrize("answer", [None, "text", [1, 2], {}, 3])
def test_answers_that_are_not_bytes(answer: Any) -> None:
    class Odd(MemoryFileSystem):  # type: ignore[misc]
        store: dict[str, Any] = {"/a.parquet": io.BytesIO(PARQUET["b/k=1/1.parquet"])}  # noqa: RUF012

        def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
            return answer

        def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
            return {"name": path, "type": "file", "size": len(self.store["/a.parquet"].getvalue())}

    kind = type(answer).__name__
    with pytest.raises(TypeError, match=rf"^Odd\.cat_file\(\) returned {kind} for .*a\.parquet'"):
        load("a.parquet", filesystem=Odd(), retries=QUICK)


class Leaky(MemoryFileSystem):  # type: ignore[misc]
    """Its errors tell its options."""

    protocol = "leaky"
    store: dict[str, Any] = {}  # noqa: RUF012
    failing = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("leaky://").strip("/")

    def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
        if Leaky.failing and "1.parquet" in path:
            raise OSError(f"GET http://host/{path}?sig={SECRET} Authorization: Bearer {SECRET}")
        return super().cat_file(path, start, end, **kwargs)


def test_secrets_are_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    fsspec.register_implementation("leaky", Leaky, clobber=True)
    for i in range(3):
        with Leaky().open(f"/bucket/{i}.parquet", "wb") as file:
            file.write(PARQUET[f"b/k={i}/{i}.parquet"])
    options = {"token": SECRET, "client_kwargs": {"headers": {"Authorization": f"Bearer {SECRET}"}}}
    loader = load(
        "leaky://bucket/*.parquet",
        storage_options=options,
        on_error="skip",
        max_skipped_rows=200,
        retries=QUICK,
    )
    shown = [repr(loader), str(loader.state_dict())]
    Leaky.failing = True
    try:
        list(loader)
        shown.append(str(loader.stats()))
        assert loader.stats().skipped
        with pytest.raises(OSError, match=r"\*\*\*") as caught:
            list(load("leaky://bucket", storage_options=options, retries=QUICK))
        shown.append(gather(caught.value))
    finally:
        Leaky.failing = False
    with pytest.raises(OSError, match="failed 2 times") as caught:
        load(
            f"s3://key1234:{SECRET}@bucket/a.parquet?endpoint_override=127.0.0.1:1&scheme=http",
            retries=Retries(tries=2, first_wait=0.0),
        )
    shown.append(gather(caught.value))
    with pytest.raises(ValueError, match="does not take") as wrong:
        load("s3://b/a", storage_options={"region": "x", "secret": SECRET, "oops": SECRET})
    shown += [gather(wrong.value), caplog.text]
    for text in shown:
        assert SECRET not in text


def test_secrets_are_in_no_plan_cache_metric_or_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    fsspec.register_implementation("leaky", Leaky, clobber=True)
    for i in range(3):
        with Leaky().open(f"/box/{i}.parquet", "wb") as file:
            file.write(PARQUET[f"b/k={i}/{i}.parquet"])
    (tmp_path / "file").touch()
    for cache in (tmp_path / "cache", tmp_path / "file" / "cache"):
        loader = load(
            "leaky://box/*.parquet",
            storage_options={"token": SECRET},
            cache=cache,
            cache_bytes=10**7,
            retries=QUICK,
            on_error="skip",
            max_skipped_rows=200,
        )
        plan = loader.plan()
        plan.save(tmp_path / "plan.json")
        Leaky.failing = True
        try:
            list(loader)
            stats = loader.stats()
            assert stats.skipped
            shown = [(tmp_path / "plan.json").read_text(), str(plan), repr(plan.files)]
            shown += [str(stats), repr(loader._source), repr(cache)]
            with pytest.raises(OSError, match=r"\*\*\*") as caught:
                list(load("leaky://box/*.parquet", storage_options={"token": SECRET}, plan=plan))
            shown.append(gather(caught.value))
        finally:
            Leaky.failing = False
        for text in shown:
            assert SECRET not in text
    kept = list((tmp_path / "cache").iterdir())
    assert kept
    for path in kept:
        assert SECRET not in path.name
        assert SECRET.encode() not in path.read_bytes()
    assert "is not used" in caplog.text
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capsys.readouterr())


def test_signatures_are_taken_out_of_urls_and_texts() -> None:
    from arrowdl.loader._storage.secrets import Secrets
    from arrowdl.loader._storage.urls import describe_url, find_url_secrets

    for url, clean in (
        (f"https://h/a.parquet?sig={SECRET}&v=1", "https://h/a.parquet?v=1"),
        (f"https://h/a?X-Amz-Signature={SECRET}&X-Amz-Credential={SECRET}", "https://h/a"),
        (f"https://u:{SECRET}@h:80/a.parquet", "https://h:80/a.parquet"),
        (f"s3://key:{SECRET}@bucket/a?.parquet", "s3://bucket/a?.parquet"),
        (f"s3://b/a?secret_key={SECRET}&region=x", "s3://b/a?region=x"),
        (f"s3://key:{SECRET}/{SECRET}+/a@bucket/b/c@d.parquet", "s3://bucket/b/c@d.parquet"),
        (f"https://u:{SECRET}/1@h:80/a.parquet", "https://h:80/a.parquet"),
        ("hdfs://h:8020/a@b/c", "hdfs://h:8020/a@b/c"),
        ("s3://b/k=?/l=1/a?.parquet", "s3://b/k=?/l=1/a?.parquet"),
        (
            "abfss://box@account.dfs.core.windows.net/a",
            "abfss://box@account.dfs.core.windows.net/a",
        ),
    ):
        assert describe_url(url) == clean
        for text in (url, f"403, message='', url='{url}'"):
            assert SECRET not in find_url_secrets(url).hide(text)
            assert SECRET not in Secrets().hide(text) or "secret_key" not in url
    error = ValueError(f"of {SECRET}")
    error.__cause__ = KeyError(SECRET)
    assert SECRET not in gather(Secrets([SECRET]).clean(error))
    assert Secrets([SECRET]).clean(same := ValueError("of none")) is same


def test_escaped_secrets_and_chains_of_both_kinds() -> None:
    from arrowdl.loader._storage.secrets import Secrets

    key = "ab+cd/ef gh=="
    secrets = Secrets([key])
    forms = ["ab+cd/ef gh==", "ab%2Bcd%2Fef%20gh%3D%3D", "ab%2bcd%2fef%20gh%3d%3d"]
    for form in [*forms, "ab%2Bcd/ef%20gh%3D%3D", "ab%2Bcd%2Fef+gh%3D%3D", "ab%2bcd/ef+gh%3d%3d"]:
        assert secrets.hide(f"<{form}>") == "<***>"
    error = ValueError("of none")
    error.__cause__ = KeyError("the cause is clean")
    error.__context__ = OSError(f"its context is not: {key}")
    group = ExceptionGroup("several", [ValueError(f"one of them: {key}")])
    decoding = UnicodeDecodeError("utf-8", key.encode(), 0, 1, key)
    for leaky in (error, group, decoding):
        assert key not in gather(secrets.clean(leaky))


@pytest.mark.parametrize(
    "options",
    [
        {"token": {"type": "service_account", "private_key": SECRET}},
        {"auth": ("user", SECRET)},
        {"passphrase": SECRET},
        {"pwd": SECRET},
        {"encryption_key": SECRET.encode()},
        {"client_kwargs": {"headers": {"X-Auth": SECRET}}},
        {"headers": [("X-Own", f"Key {SECRET}")]},
        {"client_kwargs": {"auth": ["user", SECRET]}},
    ],
)
def test_secrets_are_found_by_name_and_place(options: dict[str, Any]) -> None:
    from arrowdl.loader._storage.secrets import Secrets, find_secrets

    assert SECRET not in Secrets(find_secrets(options)).hide(f"of {options}")


def test_what_is_no_secret_stays() -> None:
    from arrowdl.loader._storage.secrets import find_secrets

    options = {
        "region": "eu-central-1",
        "headers": {"Accept-Encoding": "identity", "User-Agent": "mine/1"},
        "timeout": 30,
        "anon": True,
        "token": None,
    }
    assert find_secrets(options) == []


# ---- threads and ends

SCRIPT = f"""
import sys, tempfile, threading
import arrowdl, pyarrow as pa, pyarrow.parquet as pq

with tempfile.TemporaryDirectory() as folder:
    pq.write_table(pa.table({{"x": [1]}}), f"{{folder}}/a.parquet")
    list(arrowdl.Loader(folder, 1, framework="numpy"))
names = ("fsspec", "aiohttp", "boto3", "arrowdl.loader._storage.handlers")
print([name for name in names if name in sys.modules])

sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from helpers.stores import MemoryStore, PARQUET, IPC
store = MemoryStore(PARQUET | IPC)
class Odd(Exception): pass

for source in ("b", "c"):
    for error in (Odd("odd"), KeyError("odd"), RuntimeError("odd")):
        store.fault = lambda kind, path: None
        loader = arrowdl.Loader(
            source,
            16,
            framework="numpy",
            storage=arrowdl.Storage(filesystem=store.open()),
        )
        def fault(kind, path):
            if kind == "read":
                raise error
        store.fault = fault
        try:
            list(loader)
        except type(error) as caught:
            print(type(caught).__name__)

store.fault = lambda kind, path: None
gate = threading.Event()
iterators = [
    iter(arrowdl.Loader(
        source,
        4,
        framework="numpy",
        storage=arrowdl.Storage(filesystem=store.open()),
    ))
    for source in ("b", "c")
]
for iterator in iterators:
    next(iterator)
def fault(kind, path):
    gate.wait(0.3)
    raise TimeoutError("late")
store.fault = fault
print("left")
"""


def test_errors_of_any_type_end_a_scan_and_a_program_ends_in_mid_epoch() -> None:
    """And a Loader of local files imports nothing of this."""
    assert run_python(SCRIPT).split() == ["[]", *["Odd", "KeyError", "RuntimeError"] * 2, "left"]
