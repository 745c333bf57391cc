"""Servers of the web that are wrong, and things that break: right rows, or a clear error."""

from __future__ import annotations

import gzip
import http.server
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import arrowdl
import pytest
from arrowdl.loader import Retries
from helpers.fault_proxy import Schedule, run_store
from helpers.options import group
from helpers.stores import IPC, PARQUET, ROWS, dump

ALL = list(range(3 * ROWS))
FILES = {**PARQUET, **IPC}
QUICK = Retries(tries=4, first_wait=0.001, most_wait=0.01)
PATIENT = Retries(tries=400, first_wait=0.001, most_wait=0.01)
HELPERS = str(Path(__file__).parents[1] / "python")


class Odd(http.server.BaseHTTPRequestHandler):
    """Files with ranges and ETags; the server's `bend` may change an answer.

    It takes the handler, the status, the headers and the data, and returns the last three.
    """

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        server, path = self.server, unquote(self.path.partition("?")[0].lstrip("/"))
        with server.lock:
            server.count += 1
        if path.endswith("/") or not path:
            self._answer(200, {"Content-Type": "text/html"}, server.list(path))
            return
        data = server.files.get(path)
        if data is None:
            self._answer(404, {}, b"")
            return
        size, status = len(data), 200
        headers = {"ETag": f'"{hash(data):x}"', "Accept-Ranges": "bytes"}
        self.whole = data
        if wanted := self.headers.get("Range"):
            start, _, stop = wanted.removeprefix("bytes=").partition("-")
            data, status = data[int(start) : int(stop) + 1], 206
            headers["Content-Range"] = f"bytes {start}-{stop}/{size}"
        self._answer(*server.bend(self, status, headers, data))

    do_HEAD = do_GET

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, text in ({"Content-Length": str(len(data))} | headers).items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        if "Connection" in headers or headers.get("Content-Length", str(len(data))) != str(
            len(data)
        ):
            self.close_connection = True


class OddServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Odd)
        self.files: dict[str, bytes] = dict(FILES)
        self.count = 0
        self.lock = threading.Lock()
        self.links: list[str] = []  # of all pages, beside their own
        self.straighten()

    def straighten(self) -> None:
        self.bend: Callable[..., Any] = lambda handler, *answer: answer

    def handle_error(self, request: object, client_address: object) -> None:
        """The client went away."""

    def list(self, folder: str) -> bytes:
        """A page of links, as servers of folders make."""
        below = {
            path[len(folder) :].split("/")[0] for path in self.files if path.startswith(folder)
        }
        names = [own + "/" * (folder + own not in self.files) for own in sorted(below)]
        links = ["?C=M;O=A", "../", *(quote(own, safe="/=") for own in names), *self.links]
        return "".join(f'<a href="{own}">{own}</a>' for own in links).encode()


@pytest.fixture
def web() -> Iterator[OddServer]:
    with OddServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def name(server: OddServer, path: str = "") -> str:
    return f"http://127.0.0.1:{server.server_port}/{path}"


def list_files(server: OddServer, kind: str = "parquet") -> list[str]:
    return [name(server, path) for path in FILES if path.endswith(kind)]


def load(source: Any, **options: Any) -> arrowdl.Loader:
    options = {"columns": ["id"], "retries": QUICK, **options}
    return arrowdl.Loader(source, 16, framework="numpy", **group(**options))


def read(source: Any, **options: Any) -> list[int]:
    loader = load(source, **options)
    return [i for batch in loader for i in batch["id"].tolist()]


# ---- what is found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("b/k=1/", ALL[40:80]),
        ("c/*.arrow", ALL),
        ("c/", ALL),
    ],
)
def test_folders_and_patterns_of_the_web(web: OddServer, source: str, expected: list[int]) -> None:
    assert read(name(web, source)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("b/*/*.parquet", ALL),
        ("b/k=[01]/*.parquet", ALL[:80]),
        ("b/", ALL),
        ("**/*.arrow", ALL),
        ("b/**", ALL),
    ],
)
def test_patterns_over_folders_of_folders(web: OddServer, source: str, expected: list[int]) -> None:
    assert read(name(web, source)) == expected


def test_links_that_leave_the_folder_are_left_out(web: OddServer) -> None:
    """A client makes "../" of "%2e%2e/" when it asks."""
    web.files["up.parquet"] = web.files["c/up.parquet"] = dump(900)
    host = name(web)
    up = ("../up.parquet", "%2e%2e/up.parquet", ".%2E/up.parquet", "x/../../up.parquet")
    web.links = [*up, *(f"{host}b/{own}" for own in up), "/up.parquet", f"{host}c/up.parquet"]
    assert read(name(web, "b/k=1/")) == ALL[40:80]
    assert read(name(web, "b/k=1/*.parquet")) == ALL[40:80]
    web.links = [name(web, "b/k=1/1.parquet"), "/b/k=1/1.parquet"]
    assert read(name(web, "b/k=1/")) == ALL[40:80]


@pytest.mark.parametrize(
    "name_of_file", ["a b", "a%20b", "a+b", "a#b", "a?b", "ü-日本", "a[1]", "a&b=1", "a;b", "a~'b"]
)
def test_characters_of_names_are_those_of_urls(web: OddServer, name_of_file: str) -> None:
    """A URL has "%", "#" and "?" of a name escaped, as a server's page of links has."""
    web.files = {f"odd/{name_of_file}.parquet": dump(700)}
    escaped = quote(name_of_file)
    for source in (f"odd/{escaped}.parquet", "odd/", "odd/*.parquet"):
        assert read(name(web, source)) == list(range(700, 740))


def test_a_server_that_is_not_there_is_told_apart_from_a_missing_file(web: OddServer) -> None:
    with pytest.raises(FileNotFoundError, match="no file at"):
        load(name(web, "b/none.parquet"))
    with pytest.raises(OSError, match=r"failed 2 times.*Connector\w*Error: .*127\.0\.0\.1:1 "):
        load("http://127.0.0.1:1/a.parquet", retries=Retries(tries=2, first_wait=0.0))


# ---- answers that are wrong


def ignore_ranges(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    return 200, {"ETag": headers["ETag"]}, handler.whole


def redirect(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    if "there=" in handler.path:
        return status, headers, data
    return 302, {"Location": f"{handler.path}?there=1"}, b""


def compress(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    """As a proxy that compresses for those that accept it, and marks the ETag."""
    if handler.command == "HEAD" or "gzip" not in handler.headers.get("Accept-Encoding", ""):
        return status, headers, data
    tag = f'W/{headers["ETag"][:-1]}-gzip"'
    headers = headers | {"Content-Encoding": "gzip", "ETag": tag}
    return status, headers, gzip.compress(data)


def mark(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    """As a proxy that sometimes marks the ETag as that of a compressed answer."""
    if handler.server.count % 2:
        return status, headers, data
    return status, headers | {"ETag": f'W/{headers["ETag"][:-1]}-gzip"'}, data


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("bend", [ignore_ranges, redirect, compress, mark])
def test_odd_answers_with_the_right_bytes(
    web: OddServer, bend: Callable[..., Any], kind: str
) -> None:
    web.bend = bend
    assert read(list_files(web, kind)) == ALL
    assert read(list_files(web, kind), columns=None) == ALL


def make_liar(change: int) -> Callable[..., Any]:
    def lie(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
        """The length of the file is wrong wherever it is told."""
        size = len(handler.whole) + change
        if status == 206:
            first, _, _ = headers["Content-Range"].partition("/")
            return status, headers | {"Content-Range": f"{first}/{size}"}, data
        return status, headers | {"Content-Length": str(size)}, data

    return lie


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("change", [-1_000, -1, 1, 1_000, 10**6])
def test_a_length_that_is_a_lie_is_an_error(web: OddServer, change: int, kind: str) -> None:
    web.bend = make_liar(change)
    with pytest.raises((OSError, ValueError)) as caught:
        read(list_files(web, kind))
    notes = getattr(caught.value, "__notes__", ())
    assert kind in "".join([str(caught.value), *notes])
    web.straighten()
    loader = load(list_files(web, kind))
    web.bend = make_liar(change)
    with pytest.raises((OSError, ValueError), match=r"has changed|failed|bytes"):
        list(loader)


@pytest.mark.parametrize("change", [-1, 1, 5_000])
def test_ranges_of_the_wrong_length_are_an_error(web: OddServer, change: int) -> None:
    loader = load(list_files(web))

    def bend(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
        data = data + bytes(change) if change > 0 else data[:change]
        return status, headers, data if handler.command == "GET" else b""

    web.bend = lambda handler, status, headers, data: (
        bend(handler, status, headers, data) if status == 206 else (status, headers, data)
    )
    with pytest.raises(OSError, match="failed 4 times"):
        list(loader)


def test_ranges_of_another_place_are_an_error(web: OddServer) -> None:
    """The ranges have the right length: the server's Content-Range says where they are from."""
    loader = load(list_files(web))

    def shift(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
        if status != 206 or len(data) < 100:
            return status, headers, data
        content = headers["Content-Range"].removeprefix("bytes ")
        start, _, rest = content.partition("-")
        begin = max(0, int(start) - 8)
        data = handler.whole[begin : begin + len(data)]
        return status, headers | {"Content-Range": f"bytes {begin}-{rest}"}, data

    web.bend = shift
    try:
        rows = [i for batch in loader for i in batch["id"].tolist()]
    except Exception as error:
        text = "".join([str(error), *getattr(error, "__notes__", ())])
        assert "parquet" in text
    else:
        assert rows == ALL


def send_start(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    """As many bytes as were asked for, of the start of the file, as if that were the file."""
    return 200, {"ETag": headers["ETag"]}, handler.whole[: len(data)]


def send_other_range(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    """As a cache that mixes up its answers."""
    said = f"bytes 0-{len(data) - 1}/{len(handler.whole)}"
    return status, headers | {"Content-Range": said}, handler.whole[: len(data)]


def send_other_file(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    """As a replica that has another version, as large."""
    return status, headers | {"ETag": '"other"'}, bytes(255 - byte for byte in data)


def send_less(handler: Any, status: int, headers: dict[str, str], data: bytes) -> Any:
    return status, headers, data[: len(data) // 2]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("wrong", [send_start, send_other_range, send_other_file, send_less])
def test_answers_with_other_bytes_are_tried_again(
    web: OddServer, wrong: Callable[..., Any], kind: str
) -> None:
    """Each second one has as many bytes as were asked for, or says of itself that it is another."""
    count = itertools.count()
    web.bend = lambda handler, status, headers, data: (
        wrong(handler, status, headers, data)
        if status == 206 and next(count) % 2
        else (status, headers, data)
    )
    assert read(list_files(web, kind), retries=PATIENT) == ALL
    assert next(count) > 6


@pytest.mark.parametrize("what", ["an answer", "pages of links"])
def test_a_deadline_ends_what_has_no_end(
    web: OddServer, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    retries = Retries(tries=3, deadline=1.0)
    if what == "an answer":
        with run_store(FILES) as store:
            loader = load(f"http://127.0.0.1:{store.server_port}/b/k=1/1.parquet", retries=retries)
            store.schedule = Schedule(0, 1.0, ("drip",))
            with pytest.raises(
                OSError, match=r"did not end within 1 s, when [1-9]\d* of \d+ bytes"
            ):
                list(loader)
        return
    links = "".join(f'<a href="{i}/">{i}</a>' for i in range(9)).encode()
    monkeypatch.setattr(web, "list", lambda folder: links)
    with pytest.raises(OSError, match=r"did not end within 1 s, when \d+ links were found"):
        load(name(web, "b/"), retries=retries)


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_expires_in_mid_epoch(web: OddServer, status: int) -> None:
    secret = "tokenofatest"
    options = {"storage_options": {"headers": {"Authorization": f"Bearer {secret}"}}}
    loader = load(list_files(web), **options)
    # From a file on, which nothing may have read ahead before.
    web.bend = lambda handler, *answer: (status, {}, b"") if "2.parquet" in handler.path else answer
    batches = iter(loader)
    rows = next(batches)["id"].tolist()
    count = web.count
    failure = ""
    try:
        for batch in batches:
            rows += batch["id"].tolist()
    except OSError as error:
        failure = "".join(traceback.format_exception(error))
        assert str(status) in failure
    assert failure
    assert web.count - count < 100, "a refusal is final"
    assert secret not in failure
    web.straighten()
    again = load(list_files(web), **options)
    again.load_state_dict(loader.state_dict())
    rows += [i for batch in again for i in batch["id"].tolist()]
    assert rows == ALL


def test_names_that_cannot_be_resolved_for_a_while(
    web: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.bend = lambda handler, status, headers, data: (
        status,
        headers | {"Connection": "close"},
        data,
    )
    urls = [url.replace("127.0.0.1", "localhost") for url in list_files(web)]
    resolve = socket.getaddrinfo
    failures = iter(range(6))

    def fail(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == "localhost" and next(failures, None) is not None:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return resolve(host, *arguments, **options)

    loader = load(urls, retries=Retries(tries=20, first_wait=0.001, most_wait=0.01))
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert [i for batch in loader for i in batch["id"].tolist()] == ALL
    failures = iter(range(10**6))
    with pytest.raises(OSError, match="failed 4 times"):
        load(urls)


# ---- one cache of several ranks

RANK = """
import json, sys
sys.path.insert(0, sys.argv[1])
import arrowdl
_, _, cache, *urls = sys.argv
for _ in range(3):
    loader = arrowdl.Loader(
        urls,
        8,
        framework="numpy",
        columns=["id"],
        shuffle=True,
        seed=3,
        storage=arrowdl.Storage(cache=cache, cache_bytes=10**7),
    )
    print(json.dumps([i for batch in loader for i in batch["id"].tolist()]), flush=True)
"""


def test_a_rank_is_killed_while_it_fills_the_cache_of_another(
    web: OddServer, tmp_path: Path
) -> None:
    gate = threading.Event()
    asked = threading.Semaphore(0)

    def hold(handler: Any, *answer: Any) -> Any:
        if answer[0] == 206:
            asked.release()
            gate.wait(0.05)
        return answer

    web.bend = hold
    command = [sys.executable, "-c", RANK, HELPERS, str(tmp_path / "cache"), *list_files(web)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for _ in range(6):
        assert asked.acquire(timeout=60)
    os.kill(ranks[0].pid, signal.SIGKILL)
    ranks[0].communicate()
    gate.set()
    output, _ = ranks[1].communicate(timeout=120)
    assert ranks[1].returncode == 0
    epochs = [json.loads(line) for line in output.splitlines()]
    assert len(epochs) == 3
    assert all(sorted(epoch) == ALL for epoch in epochs)
    assert not list((tmp_path / "cache").glob("*.part"))
    count = web.count
    rows = read(list_files(web), cache=tmp_path / "cache", cache_bytes=10**7)
    assert rows == ALL
    assert web.count > count, "sizes and ETags are asked for"


def test_a_disk_that_fills_up(web: OddServer, tmp_path: Path) -> None:
    """As a limit of the sizes of files does."""
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n" + RANK
    )
    command = [sys.executable, "-c", script, HELPERS, str(tmp_path / "cache"), *list_files(web)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    epochs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [sorted(epoch) for epoch in epochs] == [ALL] * 3
    assert done.stderr.count("is not used, or not wholly") == 3, "one warning of each Loader"
