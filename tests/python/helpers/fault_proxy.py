"""An HTTP proxy in front of a store, which delays, resets, truncates, throttles and answers 500."""

from __future__ import annotations

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

_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "server", "date"}
FAULTS = ("delay", "reset", "truncate", "500", "503", "429", "outage")
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
        if fault == "reset":
            self._reset()
        elif fault.isdecimal():
            self._answer(int(fault), [("Retry-After", "0")], b"<Error/>")
        else:
            self._forward(body, is_cut=fault == "truncate")

    def _forward(self, body: bytes, *, is_cut: bool) -> None:
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
        self._answer(*given, is_cut=is_cut)

    def _ask(self, body: bytes) -> _Answer:
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
        """Nobody reads it."""

    def close(self) -> None:
        """It is."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = port
        self.schedule = Schedule(0, 0.0)
        self.requests: Counter[str] = Counter()
        self.pause = threading.Event()
        self.refusal: tuple[int, bytes] | None = None  # every answer
        self.refused = ""  # within the path of what is refused
        # Of a store that nobody writes to, by command, path and range: it is asked for each once.
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
    with _Server(port) as server:
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
