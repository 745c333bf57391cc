"""S3 (moto 5.2) through a proxy with faults, and the web by fsspec: rows are those of the files."""

from __future__ import annotations

import http.server
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow.dataset as ds
import pytest
from arrowdl.loader import Retries
from helpers.fault_proxy import Schedule, run_proxy
from helpers.options import group
from helpers.random_cases import check_cases
from helpers.s3_server import KEYS, S3Server, make_options
from helpers.stores import IPC, PARQUET, ROWS, dump

ALL = list(range(3 * ROWS))
FILES = {f"bucket/{path}": data for path, data in {**PARQUET, **IPC}.items()}
PATIENT = Retries(tries=400, deadline=60.0, first_wait=0.001, most_wait=0.02)
HELPERS = str(Path(__file__).parents[1] / "python")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.put(FILES)
    yield server
    server.kill()


@pytest.fixture
def proxy(server: S3Server) -> Iterator[Any]:
    with run_proxy(server.port) as proxy:
        yield proxy


def load(source: Any, port: int, **options: Any) -> arrowdl.Loader:
    options = {"storage_options": make_options(port), "retries": PATIENT, **options}
    return arrowdl.Loader(source, 16, framework="numpy", columns=["id"], **group(**options))


def read(source: Any, port: int, **options: Any) -> list[int]:
    loader = load(source, port, **options)
    try:
        return [i for batch in loader for i in batch["id"].tolist()]
    finally:
        loader.close()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("s3://bucket/b", ALL),
        ("s3://bucket/b/*/*.parquet", ALL),
        ("s3://bucket/**/*.arrow", ALL),
        (["s3://bucket/b/k=2/2.parquet", "s3://bucket/b/k=0/"], ALL[80:] + ALL[:40]),
    ],
)
def test_objects_prefixes_and_patterns(server: S3Server, source: Any, expected: list[int]) -> None:
    assert read(source, server.port) == expected


@pytest.mark.parametrize(
    "key",
    [
        *("a b.parquet", "a%20b.parquet", "a%b.parquet", "a+b.parquet", "a#b.parquet"),
        *("ü-日本.parquet", "a?b.parquet", "a[1].parquet", "a*b.parquet", "a&b=1.parquet"),
        *("a'b\".parquet", "d ?/f.parquet", "k=a%2Fb/f.parquet", "k=x y/l=1+1/f.parquet"),
    ],
)
def test_keys_of_any_characters(server: S3Server, key: str) -> None:
    folder = f"odd/{key.encode().hex()}"
    server.put({f"{folder}/{key}": dump(700)})
    for source in (f"s3://{folder}/{key}", f"s3://{folder}/", f"s3://{folder}/**/*.parquet"):
        loader = load(source, server.port)
        assert read(source, server.port, plan=loader.plan()) == list(range(700, 740))


@pytest.mark.parametrize(
    ("code", "status"),
    [("ExpiredToken", 400), ("AccessDenied", 403), ("RequestTimeTooSkewed", 403)],
)
def test_credentials_that_expire_in_mid_epoch(proxy: Any, code: str, status: int) -> None:
    """The refusal is final and has advice; a new Loader goes on from the state."""
    loader = load("s3://bucket/b", proxy.server_port)
    answer = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
    # From a file on, which nothing may have read ahead before.
    proxy.refused, proxy.refusal = "2.parquet", (status, answer)
    batches = iter(loader)
    rows = next(batches)["id"].tolist()
    failures = []
    try:
        for batch in batches:
            rows += batch["id"].tolist()
    except OSError as error:
        failures = ["".join(traceback.format_exception(error))]
    (text,) = failures
    assert "credentials are wrong or have expired" in text
    assert KEYS["secret_key"] not in text
    proxy.refused, proxy.refusal = "", None
    again = load("s3://bucket/b", proxy.server_port)
    again.load_state_dict(loader.state_dict())
    assert rows + [i for batch in again for i in batch["id"].tolist()] == ALL


def test_columns_filters_shuffles_and_workers(server: S3Server, tmp_path: Path) -> None:
    for path, data in PARQUET.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    for options in (
        {"filter": ds.field("k") == 1},
        {"filter": ds.field("id") > 70, "num_workers": 2},
        {"shuffle": True, "seed": 3, "splits": 4, "num_workers": 2},
    ):
        local = arrowdl.Loader(
            tmp_path / "b", 16, framework="numpy", columns=["id"], **group(**options)
        )
        rows = [i for batch in local for i in batch["id"].tolist()]
        local.close()
        assert read("s3://bucket/b", server.port, **options) == rows


def test_random_faults_of_the_network(server: S3Server, proxy: Any, tmp_path: Path) -> None:
    """Rows are those of a store without faults, whatever the order and the cache; or an error."""
    orders: list[dict[str, Any]] = [{}, {"shuffle": True, "seed": 3}]
    orders += [{"shuffle": True, "splits": 4}, {"shuffle": True, "buffer_size": 30}]
    sources = ["s3://bucket/b", "s3://bucket/c/*.arrow"]
    expected = {
        (source, i): read(source, server.port, **options)
        for source in sources
        for i, options in enumerate(orders)
    }
    assert all(sorted(rows) == ALL for rows in expected.values())
    proxy.answers = {}

    def check(random: random.Random) -> None:
        source, order = random.choice(sources), random.randrange(len(orders))
        options = dict(orders[order])
        if random.random() < 0.3:
            options |= {"cache": tmp_path / str(random.random()), "cache_bytes": 10**6}
        proxy.schedule = Schedule(random.randrange(2**32), random.choice([0.05, 0.2, 0.4]))
        tries = random.choice([2, 400, 400])
        retries = Retries(tries=tries, deadline=60.0, first_wait=0.001, most_wait=0.01)
        try:
            rows, failure = read(source, proxy.server_port, retries=retries, **options), ""
        except OSError as error:
            rows, failure = [], str(error)
        if failure and tries == 2:
            assert "failed 2 times" in failure
        else:
            assert (rows, failure) == (expected[source, order], "")

    check_cases(check, 100)


@pytest.mark.parametrize("fault", ["reset", "truncate", "500", "503", "429"])
def test_tries_do_not_multiply(proxy: Any, fault: str) -> None:
    """pyarrow's S3 client tries nothing again itself."""
    proxy.schedule = Schedule(0, 1.0, (fault,))
    retries = Retries(tries=3, first_wait=0.001)
    with pytest.raises(OSError, match=r"asking for 's3://bucket/b' failed 3 times"):
        load("s3://bucket/b", proxy.server_port, retries=retries)
    # A prefix is asked for by HEAD and, since HEAD has nothing to truncate, by GET. After a reset,
    # curl itself repeats what it sent on a kept connection, once.
    most = 2 * 3 if fault in ("truncate", "reset") else 3
    assert 3 <= proxy.requests.total() <= most


def test_an_object_that_changed_is_an_error(server: S3Server) -> None:
    server.put({"changing/a.parquet": dump(0), "changing/b.parquet": dump(ROWS)})
    loader = load("s3://changing", server.port)
    server.put({"changing/b.parquet": dump(7)})
    with pytest.raises(OSError, match=r"'s3://changing/b.parquet' has changed .*ETag \S+ before"):
        list(loader)


def test_the_server_is_killed_and_comes_back() -> None:
    server = S3Server()
    server.put(FILES)
    again: list[S3Server] = []

    def restart() -> None:
        again.append(S3Server())
        again[0].put(FILES)
        proxy.port = again[0].port

    with run_proxy(server.port) as proxy:
        loader = load("s3://bucket/b", proxy.server_port)
        batches = iter(loader)
        rows = next(batches)["id"].tolist()
        server.kill()
        thread = threading.Thread(target=restart)
        thread.start()
        try:
            rows += [i for batch in batches for i in batch["id"].tolist()]
        finally:
            thread.join()
            again[0].kill()
        assert rows == ALL
        with pytest.raises(OSError, match="failed 2 times"):
            load("s3://bucket/b", proxy.server_port, retries=Retries(tries=2, first_wait=0.0))


def test_an_epoch_that_failed_goes_on_where_it_was(proxy: Any) -> None:
    loader = load("s3://bucket/b", proxy.server_port, retries=Retries(tries=2, first_wait=0.0))
    batches = iter(loader)
    rows = next(batches)["id"].tolist()
    proxy.schedule = Schedule(0, 1.0, ("503",))
    failures = 0
    try:
        for batch in batches:
            rows += batch["id"].tolist()
    except OSError:
        failures = 1
    proxy.schedule = Schedule(0, 0.0)
    again = load("s3://bucket/b", proxy.server_port)
    again.load_state_dict(loader.state_dict())
    rows += [i for batch in again for i in batch["id"].tolist()]
    assert (rows, failures) == (ALL, 1)


LEFT = """
import sys
sys.path.insert(0, sys.argv[1])
import arrowdl
from helpers.s3_server import make_options
loaders = [arrowdl.Loader(
    source,
    4,
    framework="numpy",
    storage=arrowdl.Storage(options=make_options(sys.argv[2])),
)
           for source in ("s3://bucket/b", "s3://bucket/c")]
batches = [iter(loader) for loader in loaders]
for iterator in batches:
    next(iterator)
print("left")
"""


def test_a_program_ends_in_mid_epoch(proxy: Any) -> None:
    proxy.schedule = Schedule(0, 1.0, ("delay",))
    command = [sys.executable, "-c", LEFT, HELPERS, str(proxy.server_port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")


RANK = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import arrowdl
from helpers.s3_server import make_options
_, _, port, rank, world, state = sys.argv
loader = arrowdl.Loader(
    "s3://bucket/b",
    ranks=arrowdl.Ranks(int(rank), int(world), global_batch_size=8, splits=4),
    framework="numpy",
    columns=["id"],
    shuffle=True,
    storage=arrowdl.Storage(options=make_options(int(port))),
)
if state:
    loader.load_state_dict(json.loads(state))
for batch in loader:
    ids = batch["id"][:loader.valid_rows].tolist()
    print(json.dumps([ids, loader.state_dict()]), flush=True)
    sys.stdin.readline()
"""


def start_rank(server: Any, rank: int, world: int, state: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(RANK),
            HELPERS,
            str(getattr(server, "server_port", server.port)),
            str(rank),
            str(world),
            state,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def step(rank: subprocess.Popen[str]) -> Any:
    assert rank.stdout is not None
    line = rank.stdout.readline()
    return json.loads(line) if line else None


def go_on(rank: subprocess.Popen[str]) -> None:
    assert rank.stdin is not None
    rank.stdin.write("\n")
    rank.stdin.flush()


def test_a_rank_is_killed_and_others_go_on(server: S3Server) -> None:
    """One of two ranks is killed, the other reads on, and one rank resumes at the common state."""
    ranks = [start_rank(server, rank, 2) for rank in range(2)]
    rows: list[int] = []
    for i in range(5):
        results = [step(rank) for rank in ranks]
        rows += [row for ids, _ in results for row in ids]
        state = results[0][1]
        assert state == results[1][1]
        if i < 4:
            for rank in ranks:
                go_on(rank)
    killed, other = ranks
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    go_on(other)
    assert step(other) is not None
    other.kill()
    other.communicate()
    last = start_rank(server, 0, 1, json.dumps(state))
    while (result := step(last)) is not None:
        rows += result[0]
        go_on(last)
    last.communicate()
    assert last.returncode == 0
    assert sorted(rows) == ALL


def test_the_server_and_a_rank_are_killed_and_resume() -> None:
    """Both end in mid-epoch by SIGKILL; later ones have the rest of the epoch, and no row twice."""
    server = S3Server()
    server.put(FILES)
    with run_proxy(server.port) as proxy:
        rank = start_rank(proxy, 0, 1)
        rows: list[int] = []
        for _ in range(3):
            ids, state = step(rank)
            rows += ids
            go_on(rank)
        server.kill()
        os.kill(rank.pid, signal.SIGKILL)
        rank.communicate()
        again = S3Server()
        again.put(FILES)
        proxy.port = again.port
        try:
            last = start_rank(proxy, 0, 1, json.dumps(state))
            while (result := step(last)) is not None:
                rows += result[0]
                go_on(last)
            last.communicate()
        finally:
            again.kill()
    assert last.returncode == 0
    assert sorted(rows) == ALL


def test_the_example(server: S3Server, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret_key"])
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    path = Path(__file__).parents[2] / "examples/object_store.py"
    runpy.run_path(str(path))["main"]("s3://example/train")
    output = capsys.readouterr().out
    assert "4 files, planned once: True" in output
    assert "stopped after 5 steps, 35 more: True" in output
    assert "learned: True" in output


# ---- the web, by fsspec


class _Web(http.server.BaseHTTPRequestHandler):
    """Files of a dict with ranges and ETags; a signature is asked for."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def _serve(self, *, with_body: bool) -> None:
        path, _, query = self.path.partition("?")
        data = self.server.files.get(path.lstrip("/"))
        status = 404 if data is None else 200 if query == self.server.query else 403
        data = data if status == 200 else b""
        size, headers = len(data), {"ETag": f'"{hash(data)}"', "Accept-Ranges": "bytes"}
        if status == 200 and (wanted := self.headers.get("Range")):
            start, _, stop = wanted.removeprefix("bytes=").partition("-")
            data, status = data[int(start) : int(stop) + 1], 206
            headers["Content-Range"] = f"bytes {start}-{stop}/{size}"
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_body:
            self.wfile.write(data)


@pytest.fixture
def web() -> Iterator[Any]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Web) as server:
        server.daemon_threads = True
        server.files, server.query = dict(FILES), ""  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        with run_proxy(server.server_port) as proxy:
            yield server, proxy
        server.shutdown()
        thread.join()


def test_random_faults_of_the_web(web: Any) -> None:
    _, proxy = web
    urls = [f"http://127.0.0.1:{proxy.server_port}/bucket/b/k={i}/{i}.parquet" for i in range(3)]
    proxy.answers = {}

    def check(random: random.Random) -> None:
        proxy.schedule = Schedule(random.randrange(2**32), random.choice([0.05, 0.2, 0.4]))
        loader = arrowdl.Loader(
            urls, 16, framework="numpy", columns=["id"], storage=arrowdl.Storage(retries=PATIENT)
        )
        assert [i for batch in loader for i in batch["id"].tolist()] == ALL

    check_cases(check, 100)


def test_signed_urls_are_shown_without_their_signatures(web: Any) -> None:
    server, _ = web
    server.query = "X-Amz-Signature=hunter2secret"
    base = f"http://127.0.0.1:{server.server_port}/bucket/b"
    urls = [f"{base}/k={i}/{i}.parquet?{server.query}" for i in range(3)]
    loader = arrowdl.Loader(urls, 16, framework="numpy", columns=["id"], num_workers=1)
    assert [i for batch in loader for i in batch["id"].tolist()] == ALL
    loader.close()
    shown = [repr(loader), str(loader.state_dict()), str(loader.stats())]
    plan = loader.plan()
    shown += [repr(plan), str(plan.files)]
    loader = arrowdl.Loader(
        urls, 16, framework="numpy", columns=["id"], storage=arrowdl.Storage(plan=plan)
    )
    assert [i for batch in loader for i in batch["id"].tolist()] == ALL
    options: dict[str, Any] = {"on_error": "skip", "max_skipped_rows": 60}
    loader = arrowdl.Loader(urls, 16, framework="numpy", columns=["id"], **group(**options))
    server.files["bucket/b/k=1/1.parquet"] = b"other"
    list(loader)
    assert loader.stats().skipped[0].path == f"{base}/k=1/1.parquet"
    shown.append(str(loader.stats()))
    server.query = "another"  # now it is refused
    with pytest.raises(Exception, match=r"40[34]|No such file|no file|has changed") as caught:
        list(arrowdl.Loader(urls, 16))
    shown += traceback.format_exception(caught.value)
    assert not [text for text in shown if "hunter2secret" in text]
