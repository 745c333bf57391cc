"""Streams whose source reads the stream itself, and what arrives while one waits for its turn."""

from __future__ import annotations

import subprocess
import sys

IN_TURN = """
import arrowdl
import pyarrow as pa

batch = pa.record_batch({"x": [1, 2]})

def source():
    yield batch
    yield reader.read_next_batch()

reader = pa.RecordBatchReader.from_stream(arrowdl.from_arrow_stream(source()))
reader.read_next_batch()
try:
    reader.read_next_batch()
except (OSError, RuntimeError) as error:
    assert "being read by this thread" in str(error), error
    print("raised")
"""

INTERRUPTED = """
import os, signal, threading
import arrowdl
import pyarrow as pa

batch = pa.record_batch({"x": [1, 2]})
inside, go_on = threading.Event(), threading.Event()

def source():
    yield batch
    inside.set()
    go_on.wait()
    yield batch

stream = arrowdl.from_arrow_stream(source())
next(stream)
reader = threading.Thread(target=lambda: next(stream))
reader.start()
inside.wait()
signal.setitimer(signal.ITIMER_REAL, 0.2)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    next(stream)
except KeyboardInterrupt:
    print("raised")
go_on.set()
reader.join()
"""


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_source_that_reads_its_own_export_is_told() -> None:
    assert run(IN_TURN) == "raised\n"


def test_a_wait_for_another_reader_can_be_interrupted() -> None:
    assert run(INTERRUPTED) == "raised\n"
