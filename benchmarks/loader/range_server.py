"""A server of files on the loopback with a latency and a bandwidth, as an object store has them.

It answers ``HEAD`` and ``GET`` with a range, and lists what is below a prefix, in the ways of
HTTP and of S3's REST interface with path-style addresses:
``pyarrow.fs.S3FileSystem(anonymous=True, endpoint_override=...)`` reads it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

_CHUNK = 2**18  # bytes that a connection sends before another one has its turn
# An idle line saves up so much, so that late wake-ups on a busy machine cost nothing.
_SAVED_SECONDS = 0.02
_TIMES_LATE = 20
_RANGE = re.compile(rb"(?mi)^range: *bytes=(\d*)-(\d*)")
ADMIN = "/-/"  # what is below asks for the counts


class Link:
    """The line that all connections share: `bandwidth` bytes a second, 0 for no limit.

    A share `stragglers` of the requests, drawn from a fixed seed, is answered much later.
    """

    def __init__(self, latency: float, bandwidth: float, stragglers: float = 0.0) -> None:
        self.latency = latency
        self._bandwidth = bandwidth
        self._stragglers = stragglers
        self._random = random.Random(0)
        self._lock = threading.Lock()
        self._free = 0.0
        self.requests = self.nbytes = 0

    def count(self) -> float:
        """Count a request; return its latency."""
        with self._lock:
            self.requests += 1
            is_late = self._random.random() < self._stragglers
        return self.latency * (_TIMES_LATE if is_late else 1)

    def wait(self, nbytes: int) -> None:
        """Wait until `nbytes` more may be sent."""
        with self._lock:
            self.nbytes += nbytes
            if not self._bandwidth:
                return
            self._free = (
                max(self._free, time.monotonic() - _SAVED_SECONDS) + nbytes / self._bandwidth
            )
            free = self._free
        if (left := free - time.monotonic()) > 0:
            time.sleep(left)


def serve(root: Path, link: Link) -> None:
    """Serve the files below `root` until the standard input ends; print the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer_all, args=(connection, root, link), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


def _answer_all(connection: socket.socket, root: Path, link: Link) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pending = b""
    with connection:
        while True:
            while b"\r\n\r\n" not in pending:
                try:
                    received = connection.recv(65_536)
                except ConnectionError:
                    return
                if not received:
                    return
                pending += received
            head, _, pending = pending.partition(b"\r\n\r\n")
            try:
                _answer(connection, head, root, link)
            except (BrokenPipeError, ConnectionResetError):
                return


def _answer(connection: socket.socket, head: bytes, root: Path, link: Link) -> None:
    method, target, _ = head.split(b" ", 2)
    path = unquote(urlsplit(target.decode()).path)
    if path.startswith(ADMIN):
        text = f"{link.requests} {link.nbytes}".encode()
        _send_head(connection, "200 OK", [f"Content-Length: {len(text)}"])
        connection.sendall(text)
        return
    time.sleep(link.count())
    file = root / path.lstrip("/")
    query = parse_qs(urlsplit(target.decode()).query)
    if "list-type" in query:
        text = _list(file, query.get("prefix", [""])[0]).encode()
        _send_head(connection, "200 OK", [f"Content-Length: {len(text)}"])
        connection.sendall(text)
        return
    if not file.is_file():
        _send_head(connection, "404 Not Found", ["Content-Length: 0"])
        return
    with file.open("rb", buffering=0) as opened:
        found = os.fstat(opened.fileno())
        begin, end = _find_range(head, found.st_size)
        is_part = (begin, end) != (0, found.st_size)
        fields = [
            f"Content-Length: {end - begin}",
            f'ETag: "{found.st_mtime_ns:x}-{found.st_size:x}"',
            f"Last-Modified: {formatdate(found.st_mtime, usegmt=True)}",
            "Accept-Ranges: bytes",
        ]
        if is_part:
            fields.append(f"Content-Range: bytes {begin}-{end - 1}/{found.st_size}")
        _send_head(connection, "206 Partial Content" if is_part else "200 OK", fields)
        while method == b"GET" and begin < end:
            count = min(_CHUNK, end - begin)
            link.wait(count)
            while count:
                sent = os.sendfile(connection.fileno(), opened.fileno(), begin, count)
                begin, count = begin + sent, count - sent


def _list(bucket: Path, prefix: str) -> str:
    """Return an answer of ListObjectsV2 with all files below a directory."""
    files = sorted(path for path in (bucket / prefix).rglob("*") if path.is_file())
    entries = []
    for path in files:
        found = path.stat()
        time = datetime.fromtimestamp(int(found.st_mtime), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        entries.append(
            f"<Contents><Key>{path.relative_to(bucket)}</Key><LastModified>{time}</LastModified>"
            f'<ETag>"{found.st_mtime_ns:x}"</ETag><Size>{found.st_size}</Size></Contents>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
        f"<KeyCount>{len(files)}</KeyCount><IsTruncated>false</IsTruncated>{''.join(entries)}"
        "</ListBucketResult>"
    )


def _send_head(connection: socket.socket, status: str, fields: list[str]) -> None:
    connection.sendall("\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode())


def _find_range(head: bytes, size: int) -> tuple[int, int]:
    match = _RANGE.search(head)
    if match is None:
        return 0, size
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1 if last else size)


class Server:
    """A running server, as `start_server` makes it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.address = f"127.0.0.1:{port}"

    def count(self) -> tuple[int, int]:
        """Return how many requests were answered, and the bytes that were sent."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"GET {ADMIN} HTTP/1.1\r\n\r\n".encode())
            with connection.makefile("rb") as reply:
                while reply.readline().strip():
                    pass
                connection.shutdown(socket.SHUT_WR)
                requests, nbytes = reply.read().split()
        return int(requests), int(nbytes)


@contextmanager
def start_server(
    root: Path, latency: float, bandwidth: float, stragglers: float = 0.0
) -> Iterator[Server]:
    """Serve the files below `root` from a process of its own.

    Parameters
    ----------
    root : pathlib.Path
    latency : float
        Seconds before the answer to each request.
    bandwidth : float
        Bytes a second of all connections together; 0 for no limit.
    stragglers : float
        The share of requests that are answered 20 times later.
    """
    numbers = map(str, (latency, bandwidth, stragglers))
    command = [sys.executable, __file__, str(root), *numbers]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Server(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("latency", type=float)
    parser.add_argument("bandwidth", type=float)
    parser.add_argument("stragglers", type=float, nargs="?", default=0.0)
    given = parser.parse_args()
    serve(given.root, Link(given.latency, given.bandwidth, given.stragglers))
