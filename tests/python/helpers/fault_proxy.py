"""An HTTP proxy in front of a store, which delays, resets, truncates, throttles and answers 500.

It may be the store as well, of files in memory: as much of S3 and of the web as is read.
"""

from __future__ import annotations

import hashlib
import http.client
import random
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "server", "date"}
FAULTS = ("delay", "reset", "truncate", "500", "503", "429", "outage")
# Answers with fewer bytes than were asked for, which end properly: by their length, by that and the
# range that they name, by the end of their chunks, or by that of the connection.
SHORT = ("short", "short range", "short chunks", "short connection", "nothing")
_OUTAGE = 4  # requests that are answered 500 in a row
_Answer = tuple[int, list[tuple[str, str]], bytes, object]  # of the store


class Schedule:
    """Which fault each request gets, drawn from a seed.

    Attributes
    ----------
    seen : Counter of str
        Requests by fault; "" for none.
    """

    def __init__(self, seed: int, share: float, faults: tuple[str, ...] = FAULTS) -> None:
        self._random = random.Random(seed)
        self._share = share
        self._faults = faults
        self._lock = threading.Lock()
        self._outage = 0
        self.seen: Counter[str] = Counter()

    def draw(self) -> str:
        with self._lock:
            fault = self._draw()
            self.seen[fault] += 1
            return fault

    def _draw(self) -> str:
        if self._outage:
            self._outage -= 1
            return "500"
        if self._random.random() >= self._share:
            return ""
        fault = self._random.choice(self._faults)
        if fault == "outage":
            self._outage = self._random.randrange(_OUTAGE)
            return "500"
        return fault


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.schedule.draw()
        self.server.requests[self.command] += 1
        with self.server.at_work():
            self._give(body, fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _give(self, body: bytes, fault: str) -> None:
        if self.server.refusal is not None and self.server.refused in self.path:
            status, text = self.server.refusal
            # A type without a body, as of HEAD, ends pyarrow's client of Azure by an abort.
            kind = [("Content-Type", "application/xml")] if self.command != "HEAD" else []
            self._answer(status, kind, text)
            return
        if fault == "delay":
            self.server.pause.wait(0.02)
        if fault == "hang":
            self.server.pause.wait()
        if fault in ("reset", "hang"):
            self._reset()
        elif fault.isdecimal():
            self._answer(int(fault), [("Retry-After", "0")], b"<Error/>")
        else:
            self._forward(body, fault)

    def _forward(self, body: bytes, fault: str) -> None:
        asked = (self.command, self.path, self.headers.get("Range"))
        answers = self.server.answers
        if answers is None or (given := answers.get(asked)) is None:
            try:
                given = self._ask(body)
            except OSError:  # the store is down
                self._reset()
                return
            if answers is not None and self.command in ("GET", "HEAD"):
                answers[asked] = given
        status, headers, data, _ = given
        if fault in SHORT and self.command == "GET":
            self._answer_short(status, headers, data, fault)
        elif fault == "drip" and self.command == "GET":
            self._drip(status, headers, data)
        else:
            self._answer(*given, is_cut=fault == "truncate")

    def _answer_short(
        self, status: int, headers: list[tuple[str, str]], data: bytes, how: str
    ) -> None:
        # A client cannot tell an empty answer from a list without objects.
        count = 0 if how == "nothing" and "list-type=" not in self.path else len(data) // 2
        if how == "short range":
            found = [text for name, text in headers if name == "Content-Range"]
            headers = [own for own in headers if own[0] != "Content-Range"]
            for text in found:
                start, size = text.split(" ")[1].split("-")[0], text.split("/")[1]
                stop = int(start) + count - 1
                headers.append(("Content-Range", f"bytes {start}-{stop}/{size}"))
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        if how == "short chunks":
            self.send_header("Transfer-Encoding", "chunked")
        elif how == "short connection":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(count))
        self.end_headers()
        if how == "short chunks":
            self.wfile.write(b"%x\r\n%s\r\n" % (count, data[:count]) if count else b"")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.wfile.write(data[:count])

    def _drip(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        """Send half of an answer, and the rest byte by byte, until the proxy ends."""
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        half = len(data) // 2
        self.wfile.write(data[:half])
        for i in range(half, len(data)):
            self.wfile.write(data[i : i + 1])
            self.wfile.flush()
            if self.server.pause.wait(0.02):
                self._reset()
                return

    def _ask(self, body: bytes) -> _Answer:
        if self.server.files is not None:
            return self._find()
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            upstream.request(self.command, self.path, body, dict(self.headers))
            response = upstream.getresponse()
            data = response.read()
        finally:
            upstream.close()
        headers = [(name, text) for name, text in response.getheaders() if name.lower() not in _HOP]
        length = len(data) if self.command != "HEAD" else response.getheader("Content-Length")
        return response.status, headers, data, length

    def _find(self) -> _Answer:
        """Answer as the store."""
        assert self.server.files is not None
        path, _, query = self.path.partition("?")
        path = unquote(path).lstrip("/")
        asked = parse_qs(query)
        if "list-type" in asked:
            return 200, [("Content-Type", "application/xml")], self._list(path, asked), None
        files = self.server.files
        if self.command == "GET" and self.server.replicas:
            files = self.server.replicas[self.server.requests["GET"] % len(self.server.replicas)]
        if (data := files.get(path)) is None:
            return 404, [], b"", None
        headers = [
            ("ETag", f'"{hashlib.sha1(data).hexdigest()}"'),
            ("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT"),
            ("Accept-Ranges", "bytes"),
        ]
        if self.command == "HEAD" or (wanted := self.headers.get("Range")) is None:
            return 200, headers, data, len(data)
        start, _, stop = wanted.removeprefix("bytes=").partition("-")
        last = min(int(stop or len(data)), len(data) - 1)
        headers.append(("Content-Range", f"bytes {start}-{last}/{len(data)}"))
        return 206, headers, data[int(start) : last + 1], None

    def _list(self, bucket: str, asked: dict[str, list[str]]) -> bytes:
        """A page of S3's list of objects; of those that the server repeats, one of many."""
        assert self.server.files is not None
        prefix, delimiter = (asked.get(name, [""])[0] for name in ("prefix", "delimiter"))
        folders, items = set(), ""
        for path, data in sorted(self.server.files.items()):
            own, _, key = path.partition("/")
            if own != bucket.strip("/") or not key.startswith(prefix):
                continue
            name, slash, _ = key[len(prefix) :].partition("/")
            if delimiter and slash:
                folders.add(f"{prefix}{name}/")
                continue
            items += (
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                "<LastModified>2025-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        items += "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        more = "<NextContinuationToken>more</NextContinuationToken>"
        is_cut = str(self.server.is_endless).lower()
        count = items.count("<Key>") + len(folders)
        return (
            '<?xml version="1.0"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<KeyCount>{count}</KeyCount><IsTruncated>{is_cut}</IsTruncated>"
            f"{more * self.server.is_endless}{items}</ListBucketResult>"
        ).encode()

    def _answer(
        self,
        status: int,
        headers: list[tuple[str, str]],
        data: bytes,
        length: object = None,
        *,
        is_cut: bool = False,
    ) -> None:
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if is_cut else data)
        if is_cut:
            self.wfile.flush()
            self._reset()

    def _reset(self) -> None:
        """Close the connection with RST."""
        self.close_connection = True
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.wfile = _Nowhere()  # type: ignore[assignment]


class _Nowhere:
    """The output of a connection that was reset."""

    closed = True

    def flush(self) -> None:
        """Nothing is left."""

    def write(self, data: bytes) -> None:
        """Drop the data."""

    def close(self) -> None:
        """It is."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, files: dict[str, bytes] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = port
        self.files = files  # of the store, by bucket and key, if this is one
        self.replicas: list[dict[str, bytes]] = []  # that answer GET in turns, HEAD is of `files`
        self.is_endless = False  # lists of objects
        self.schedule = Schedule(0, 0.0)
        self.requests: Counter[str] = Counter()
        self.pause = threading.Event()
        self.refusal: tuple[int, bytes] | None = None  # every answer
        self.refused = ""  # within the path of what is refused
        # The answers of a store without writers, by command, path and range: each is requested
        # once.
        self.answers: dict[tuple[str, str, str | None], _Answer] | None = None
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count the requests that are served at a time."""
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1

    def handle_error(self, request: object, client_address: object) -> None:
        """The client went away."""

    def shutdown_request(self, request: object) -> None:
        try:
            super().shutdown_request(request)  # type: ignore[arg-type]
        except OSError:  # it was reset
            return


@contextmanager
def run_proxy(port: int) -> Iterator[_Server]:
    """Run a proxy in front of the server at `port` of this machine; its port is ``server_port``."""
    with _run(_Server(port)) as server:
        yield server


@contextmanager
def run_store(files: dict[str, bytes]) -> Iterator[_Server]:
    """Run a store of files, by bucket and key, with the faults of a proxy."""
    with _run(_Server(0, files)) as server:
        yield server


@contextmanager
def _run(server: _Server) -> Iterator[_Server]:
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.pause.set()
            server.shutdown()
            thread.join()


@contextmanager
def start_proxy(port: int, seed: int, share: float, *faults: str) -> Iterator[int]:
    """Run a proxy in a process of its own, for clients that hold the interpreter; yield a port."""
    command = [sys.executable, __file__, str(port), str(seed), str(share), *faults]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


if __name__ == "__main__":
    _, _port, _seed, _share, *_faults = sys.argv
    with run_proxy(int(_port)) as _proxy:
        _proxy.schedule = Schedule(int(_seed), float(_share), tuple(_faults) or FAULTS)
        print(_proxy.server_port, flush=True)
        sys.stdin.read()
