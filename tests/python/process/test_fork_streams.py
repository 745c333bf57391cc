"""A DeviceStream in a forked child, while a thread of the parent reads it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading, warnings
import pyarrow as pa, arrowdl
warnings.simplefilter("ignore")
reading, go_on = threading.Event(), threading.Event()

def arrays():
    yield pa.array([1])
    reading.set()
    go_on.wait()
    yield pa.array([2])

stream = arrowdl.from_arrow_stream(arrays())
rest = []
next(stream)
thread = threading.Thread(target=lambda: rest.extend(stream))
thread.start()
reading.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    said = []
    for use in (lambda: next(stream), lambda: stream.rebatch(2), stream.close):
        try:
            use()
        except RuntimeError as error:
            said.append("forked from: make the stream in the process that reads it" in str(error))
    os._exit(0 if said == [True] * 3 else 1)
_, status = os.waitpid(child, 0)
go_on.set()
thread.join()
assert [len(array) for array in rest] == [1]
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_stream_that_the_parent_reads_is_refused_in_the_child() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], timeout=120, check=False)
    assert done.returncode == 0
