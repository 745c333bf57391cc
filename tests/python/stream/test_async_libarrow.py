"""Asynchronous streams to and from Arrow C++, in the library that pyarrow contains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

pytestmark = pytest.mark.slow

PEER = Path(__file__).parents[1] / "helpers/libarrow_async.cpp"

PROGRAM = """
import asyncio, ctypes, gc, sys, threading
from functools import partial
import arrowdl, pyarrow as pa
from arrowdl import c_data, debug

peer = ctypes.CDLL(sys.argv[1])
peer.produce.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
peer.make_consumer.argtypes = [ctypes.c_uint64]
peer.make_consumer.restype = ctypes.c_void_p
peer.consume.argtypes = [ctypes.c_void_p]
peer.consume.restype = ctypes.c_int64
peer.last_error.restype = ctypes.c_char_p

def produce(stream, count, failing=-1):
    thread = threading.Thread(target=peer.produce, args=(stream.handler, count, failing))
    thread.start()  # libarrow's producer waits for requests
    return thread

async def read(count, failing=-1, depth=3, stop=None):
    stream = arrowdl.AsyncDeviceStream(depth)
    thread = produce(stream, count, failing)
    rows = []
    try:
        async for array in stream:
            rows += arrowdl.to_numpy(array)["x"].tolist()
            if len(rows) == stop:
                break
    finally:
        await stream.aclose()
        await asyncio.to_thread(thread.join)
    return rows

def export(source, queue):
    consumer = peer.make_consumer(queue)
    c_data.export_async_stream(source, consumer)
    return peer.consume(consumer)
"""

FROM = """
for count in (0, 1, 100):
    for depth in (1, 3, 200):
        assert asyncio.run(read(count, depth=depth)) == list(range(count))
try:
    asyncio.run(read(100, failing=5))
except RuntimeError as error:
    assert "made to fail" in str(error), error
else:
    raise AssertionError("no error")
for stop in range(1, 40):
    assert asyncio.run(read(100_000, depth=1 + stop % 4, stop=stop)) == list(range(stop))
"""

TO = """
schema = pa.schema({"x": pa.int64()})
for count in (0, 1, 100):
    for queue in (1, 5):
        rows = [pa.record_batch({"x": [i]}, schema=schema) for i in range(count)]
        assert export(rows or pa.table({"x": []}, schema=schema), queue) == count
def fail():
    yield pa.record_batch({"x": [1]})
    raise KeyError("gone")
assert export(arrowdl.from_arrow_stream(fail()), 2) == -1
assert b"gone" in peer.last_error(), peer.last_error()
"""


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("peer") / "libpeer.so"
    arrow = sorted(Path(pa.get_library_dirs()[0]).glob("libarrow.so.*"))[0]
    command = ["g++", "-std=c++20", "-shared", "-fPIC", f"-I{pa.get_include()}", PEER, arrow]
    done = subprocess.run(
        [*command, "-o", library], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return library


@pytest.mark.parametrize("case", [FROM, TO], ids=["from libarrow", "to libarrow"])
def test_streams_with_libarrow(peer: Path, case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + case, peer],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
