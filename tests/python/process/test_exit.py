"""The interpreter ends while threads are inside of arrowdl: the process ends as it should.

Until Python 3.13 a thread that asks for the interpreter lock by then is ended wherever it is, by a
forced unwind of its stack: cpp/bindings/support/park.cpp. What pyarrow's own frames make of that is
pyarrow's (version 26: its RecordBatchReader aborts the process where it is dropped by such a
thread), so that threads here do not use up readers of pyarrow in a loop.
The same holds for torch 2.13 and JAX 0.10, where a thread is in their own code (``tensor + 1`` in a
loop): to_torch and to_jax are not called in a loop here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.processes import run_python

# A thread is in Python code that `call` has arrowdl run, and waits there. Modules are dropped when
# the interpreter is finalising: then it goes on, and asks for the lock.
INSIDE = """
import faulthandler, os, sys, threading, time
faulthandler.dump_traceback_later(60, exit=True)
import arrowdl
import numpy as np
import pyarrow as pa

class Last:
    def __del__(self, goes_on=threading.Lock(), linger=time.sleep, write=os.write):
        write(1, b"ends")
        goes_on.release()
        linger(0.1)  # the end of the thread cannot be observed

goes_on = Last.__del__.__defaults__[0]
goes_on.acquire()
is_inside = threading.Event()

def block(goes_on=goes_on, is_inside=is_inside):
    is_inside.set()
    goes_on.acquire()

batch = pa.record_batch({"a": [1, 2, 3]})
"""

START = """
threading.Thread(target=call, daemon=True).start()
is_inside.wait()
sys.modules["last"] = Last()
"""

CALLS = {
    "to_arrow_device": """
class Tensor:
    __dlpack_device__ = lambda self: (1, 0)
    def __dlpack__(self, **_):
        block()

call = lambda: arrowdl.to_arrow_device(Tensor())
""",
    "from_arrow": """
class Array:
    def __arrow_c_array__(self, _=None):
        block()

call = lambda: arrowdl.from_arrow(Array())
""",
    "to_numpy": """
class Batch:
    def __arrow_c_array__(self, _=None):
        block()

call = lambda: arrowdl.to_numpy(Batch())
""",
    "an iterator": """
def batches():
    yield batch
    block()

call = lambda: list(arrowdl.from_arrow_stream(batches()))
""",
    "prefetch": """
def batches():
    yield batch
    block()

call = lambda: list(arrowdl.from_arrow_stream(batches()).prefetch())
""",
    "an exported stream": """
def batches():
    yield batch
    block()

call = lambda: pa.RecordBatchReader.from_stream(arrowdl.from_arrow_stream(batches())).read_all()
""",
    "an exported stream that prefetches": """
def batches():
    yield batch
    block()

ahead = lambda: arrowdl.from_arrow_stream(batches()).prefetch()
call = lambda: pa.RecordBatchReader.from_stream(ahead()).read_all()
""",
    "a destructor": """
def batches():
    try:
        yield batch
        yield batch
    finally:
        block()

def call():
    stream = arrowdl.from_arrow_stream(batches())
    next(stream)
    stream.close()
""",
    "a deleter": """
class Watched(np.ndarray):
    def __del__(self, block=block):
        block()

def call():
    array = arrowdl.to_arrow_device(np.arange(3).view(Watched))
    view = np.from_dlpack(array)
    del array
    del view
""",
    "a conversion that fails": """
class Array:
    def __arrow_c_array__(self, _=None):
        try:
            raise ValueError
        finally:
            block()

def call():
    try:
        arrowdl.to_numpy(Array())
    except ValueError:
        pass
""",
    "a Loader": """
def batches():
    yield batch
    block()

call = lambda: list(arrowdl.Loader(batches, 1, framework="numpy"))
""",
}


# Where a prefetching thread is inside of Python code for ever, the exit waits for it for 5 seconds.
PATIENT = {"prefetch", "an exported stream that prefetches", "a Loader"}


@pytest.mark.parametrize(
    "call",
    [pytest.param(call, marks=[pytest.mark.slow] * (call in PATIENT)) for call in CALLS],
)
def test_the_interpreter_ends_while_a_thread_is_inside_of(call: str) -> None:
    assert run_python(INSIDE + CALLS[call] + START) == "ends"


# Threads that call all the time, and the end at any moment.
LOOPS = """
import faulthandler, random, threading, time
faulthandler.dump_traceback_later(60, exit=True)
import arrowdl
import numpy as np
import pyarrow as pa

rng = random.Random({seed})
table = pa.table({{"a": np.arange(1000), "b": np.arange(1000.0)}})
batch = table.to_batches()[0]

class Array:
    def __arrow_c_array__(self, requested_schema=None):
        sum(range(50))
        return batch.__arrow_c_array__()

def use():
{body}

def loop():
    while True:
        use()

use()
for _ in range({threads}):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(rng.random() * 0.1)
"""

BODIES = {
    "to_numpy": "    arrowdl.to_numpy(batch)",
    "to_numpy of Python objects": "    arrowdl.to_numpy(Array())",
    "to_arrow_device": "    arrowdl.to_arrow_device({'a': np.arange(10), 'b': np.arange(10.0)})",
    "from_arrow": "    arrowdl.from_arrow(table['a']), arrowdl.from_arrow(Array())",
    "streams": "    list(arrowdl.from_arrow_stream(Array() for _ in range(5)).rebatch(300))",
    "prefetch": "    list(arrowdl.from_arrow_stream(Array() for _ in range(5)).prefetch())",
    "a Loader of a table": "    list(arrowdl.Loader(table, 100, framework='numpy', shuffle=True))",
}

QUEUE = """
import faulthandler, queue, random, threading
faulthandler.dump_traceback_later(60, exit=True)
import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = random.Random({seed})
table = pa.table({{"a": np.arange(20_000), "b": np.arange(20_000.0)}})
batches = queue.Queue(2)
if {is_file}:
    pq.write_table(table, {path!r}, row_group_size=500)

def fill():
    while True:
        for batch in arrowdl.Loader({path!r} if {is_file} else table, 20, framework="numpy"):
            batches.put(batch)

threading.Thread(target=fill, daemon=True).start()
for _ in range(rng.randrange(1, 900)):
    batches.get()
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("body", BODIES)
def test_the_interpreter_ends_at_any_moment_of(body: str, seed: int) -> None:
    run_python(LOOPS.format(seed=seed, body=BODIES[body], threads=3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("is_file", [False, True], ids=["table", "file"])
def test_the_interpreter_ends_while_a_queue_is_filled(
    is_file: bool, seed: int, tmp_path: Path
) -> None:
    run_python(QUEUE.format(seed=seed, is_file=is_file, path=str(tmp_path / "rows.parquet")))


# The thread was stopped with its turn at the stream; who is left wants to read it.
READ = """
def batches():
    yield batch
    block()
    yield batch

stream = arrowdl.from_arrow_stream(batches())
read = {read}
read()
call = read

class Reads:
    def __del__(self, last=Last(), read=read, write=os.write):
        last.__del__()
        try:
            read()
        except (RuntimeError, OSError) as error:
            write(1, b" and says so")

threading.Thread(target=call, daemon=True).start()
is_inside.wait()
sys.modules["reads"] = Reads()
"""

READS = {
    "a stream": "stream.__next__",
    "an exported stream": "pa.RecordBatchReader.from_stream(stream).read_next_batch",
    "an exported stream, with the lock": "__import__('nanoarrow').c_array_stream(stream).get_next",
}


@pytest.mark.parametrize("read", READS)
def test_nobody_waits_for_a_stopped_thread_that_reads(read: str) -> None:
    assert run_python(INSIDE + READ.format(read=READS[read])).startswith("ends and says so")


TRAINING = """
import atexit, os, threading, time
atexit.register(time.sleep, 0.5)  # is called after what arrowdl registers
import arrowdl
import pyarrow as pa

table = pa.table({"a": range(2_000_000)})
begun = threading.Event()

def train():
    for batch in arrowdl.Loader(table, 8, framework="numpy", shuffle=True, prefetch=3):
        begun.set()
    os.write(1, b"the epoch ended")

threading.Thread(target=train, daemon=True).start()
begun.wait()
"""


@pytest.mark.slow
def test_an_epoch_of_a_daemon_thread_does_not_end_with_the_process() -> None:
    """Its native thread does: the training would take that for the end of the rows."""
    assert run_python(TRAINING) == ""


JOINED = """
import atexit
threads = []
atexit.register(lambda: threads[0].join())  # is called after what arrowdl registers
import sys, threading
from arrowdl.loader import _iterate
import arrowdl
import pyarrow as pa

_iterate._MOST_SECONDS = 0.5
table = pa.table({"a": range(2_000_000)})
begun = threading.Event()

def train():
    try:
        for batch in arrowdl.Loader(table, 8, framework="numpy", shuffle=True, prefetch=3):
            begun.set()
    except RuntimeError as error:
        print(error, flush=True)

threads.append(threading.Thread(target=train, daemon=True))
threads[0].start()
begun.wait()
"""


@pytest.mark.slow
def test_a_process_that_waits_for_a_daemon_thread_ends() -> None:
    assert "before its last row" in run_python(JOINED)
