"""Foreign code calls what we export with the interpreter lock held, or without: none of our waits
may keep it from those who are waited for.

Every test runs in a process of its own, which ends itself where it hangs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import arrowdl
import pytest
from helpers.processes import run_python
from helpers.streams import ADAPTORS

PREAMBLE = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import sys
import threading
import arrowdl
import pyarrow as pa
from arrowdl import debug
from helpers.streams import Reader, every_stream, make_batches, running, yield_batches

sys.setswitchinterval(1e-4)  # threads that want the lock get it soon
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return lambda code: run_python(PREAMBLE + code)


def test_every_adaptor_is_here() -> None:
    """What a new method makes is to be read, and released, as the streams of the others."""
    stub = ast.parse((Path(arrowdl.__file__).parent / "_core.pyi").read_text())
    (cls,) = (
        node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "DeviceStream"
    )
    made = {
        method.name
        for method in cls.body
        if isinstance(method, ast.FunctionDef)
        and method.returns is not None
        and ast.unparse(method.returns) == "DeviceStream"
    }
    assert made - {"__iter__"} <= set(ADAPTORS)


caller = pytest.mark.parametrize("caller", ["with the lock", "without the lock"])


@caller
def test_every_adaptor_is_read_to_its_end(run: Callable[[str], None], caller: str) -> None:
    run(f"""
for method in ("__arrow_c_stream__", "__arrow_c_device_stream__"):
    for name, lengths, stream in every_stream():
        print(method, name, flush=True)
        reader = Reader(stream, method, {caller!r})
        assert reader.read_schema().startswith("+s")
        assert list(reader) == lengths
        assert reader.read_next() is None
        reader.close()
del stream, reader
assert debug.live_objects() == 0
""")


@caller
def test_every_adaptor_is_released_in_the_middle(run: Callable[[str], None], caller: str) -> None:
    run(f"""
with running(lambda: sum(range(1000))):
    for method in ("__arrow_c_stream__", "__arrow_c_device_stream__"):
        for name, lengths, stream in every_stream():
            print(method, name, flush=True)
            reader = Reader(stream, method, {caller!r})
            assert reader.read_next() == lengths[0]
            reader.close()
""")


@caller
def test_the_source_waits_for_another_thread_of_python(
    run: Callable[[str], None], caller: str
) -> None:
    run(f"""
def gated():
    for batch in make_batches():
        opened.acquire()
        yield batch

opened = threading.Semaphore(1)  # stream() takes the first at once
for prefetch in (False, True):
    stream = arrowdl.from_arrow_stream(gated())
    reader = Reader(stream.prefetch() if prefetch else stream, "__arrow_c_stream__", {caller!r})
    with running(opened.release):
        assert list(reader) == [3] * 5
    reader.close()
""")


@caller
def test_a_failure_of_python_code_is_the_last_error(
    run: Callable[[str], None], caller: str
) -> None:
    run(f"""
def failing():
    yield from make_batches(2)
    raise ValueError("the disk is gone")

reader = Reader(arrowdl.from_arrow_stream(failing()).prefetch(), "__arrow_c_stream__", {caller!r})
lengths = []
try:
    for length in reader:
        lengths.append(length)
except RuntimeError as error:
    assert "the disk is gone" in str(error)
assert lengths == [3, 3]
reader.close()
""")


def test_two_threads_that_count_on_the_lock_take_turns(run: Callable[[str], None]) -> None:
    run("""
def read():
    lengths.extend(reader)

for _ in range(20):
    lengths = []
    stream = arrowdl.from_arrow_stream(iter(make_batches(50))).rebatch(2).prefetch()
    reader = Reader(stream, "__arrow_c_stream__", "with the lock")
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == [2] * 75
    reader.close()
""")


def test_a_release_waits_for_nobody_inside(run: Callable[[str], None]) -> None:
    run("""
def gated():
    yield from make_batches(1)
    entered.set()
    opened.wait()
    yield from make_batches(1)

entered, opened = threading.Event(), threading.Event()
reader = Reader(arrowdl.from_arrow_stream(gated()), "__arrow_c_stream__", "with the lock")
assert reader.read_next() == 3
late = []
thread = threading.Thread(target=lambda: late.append(reader.read_next()))
thread.start()
entered.wait()
reader.close()
opened.set()
thread.join()
assert late == [3]
del reader, thread
assert debug.live_objects() == 0
""")


CONSUMERS = {
    "nanoarrow": """
import nanoarrow
count = lambda stream: len(nanoarrow.ArrayStream(stream).read_all())
""",
    "arro3": """
from arro3.core import RecordBatchReader, Table
count = lambda stream: Table.from_arrow(stream).num_rows
count_batches = lambda stream: RecordBatchReader.from_arrow(stream).read_all().num_rows
""",
    "polars": """
import polars
count = lambda stream: len(polars.DataFrame(stream))
count_batches = lambda stream: len(polars.scan_arrow_c_stream(stream).collect())
""",
    "pandas": """
import pandas
count = lambda stream: len(pandas.DataFrame.from_arrow(stream))
""",
    "duckdb": """
import duckdb
count = lambda stream: len(duckdb.sql("select * from stream").fetchall())
count_batches = lambda stream: len(duckdb.from_arrow(stream).limit(10**6).fetchall())
""",
    "pyarrow": """
count = lambda stream: pa.table(stream).num_rows
count_batches = lambda stream: pa.RecordBatchReader.from_stream(stream).read_all().num_rows
""",
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_adaptor_is_read_by(run: Callable[[str], None], consumer: str) -> None:
    run(f"""
{CONSUMERS[consumer]}
doors = [count, globals().get("count_batches")]
for door in filter(None, doors):
    with running(lambda: sum(range(1000))):
        for name, lengths, stream in every_stream():
            print(name, flush=True)
            assert door(stream) == sum(lengths)
""")


ON_A_DEVICE = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import sys
import threading
import pyarrow as pa
from helpers.streams import Reader

sys.setswitchinterval(1000)  # who has the lock keeps it until it waits
"""


@caller
def test_copies_to_a_device_wait_for_pinned_memory(
    on_fake_cuda: Callable[[str], None], caller: str
) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
arrowdl.config.staging_limit = 0  # one block at a time, and the device has it
stream = cuda.make_stream()
ids = arrowdl.from_arrow(pa.array(range(1000)))
reader = Reader(arrowdl.from_arrow_stream(pa.table({{"a": range(1000)}})).to("cuda:0"),
                "__arrow_c_device_stream__", {caller!r})
closed, wanted = threading.Event(), threading.Event()

def hold():
    with cuda.gate(stream):
        held = ids.to("cuda:0", stream=stream)
        closed.set()
        wanted.wait()

holder = threading.Thread(target=hold)
holder.start()
closed.wait()
wanted.set()
assert list(reader) == [1000]
reader.close()
holder.join()
""")


@caller
def test_arrays_of_a_device_are_released_when_their_streams_are_done(
    on_fake_cuda: Callable[[str], None], caller: str
) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
arrowdl.config.release_limit = 0
stream = cuda.make_stream()
closed, wanted = threading.Event(), threading.Event()

arrays = [arrowdl.from_arrow(pa.array(range(100))).to("cuda:0") for _ in range(4)]
for array in arrays:
    array.synchronize()
    array.record_stream(stream)
del array

def used():
    while arrays:
        yield arrays.pop()

def hold():
    with cuda.gate(stream):
        closed.set()
        wanted.wait()

reader = Reader(arrowdl.from_arrow_stream(used()), "__arrow_c_device_stream__", {caller!r})
holder = threading.Thread(target=hold)
holder.start()
closed.wait()
wanted.set()
assert list(reader) == [100] * 4  # one may wait for the device, not two
reader.close()
holder.join()
settle()
assert debug.live_objects() == 0
""")


@caller
def test_the_exchange_api_names_streams(run: Callable[[str], None], caller: str) -> None:
    run(f"""
import ctypes
from helpers.capsules import capsule_address
from helpers.streams import CALLERS

class Api(ctypes.Structure):  # dlpack.h: a header (version, prev_api), then the functions
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev", ctypes.c_void_p),
                *((name, ctypes.c_void_p) for name in ("allocate", "from_object", "to_object",
                                                       "to_tensor", "current_work_stream"))]

api = Api.from_address(capsule_address(arrowdl.DeviceArray.__dlpack_c_exchange_api__))
assert api.major == 1
Function = CALLERS[{caller!r}](ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)
ask = Function(api.current_work_stream)
stream = ctypes.c_void_p(1)
assert ask(1, 0, ctypes.byref(stream)) == 0 and stream.value is None
try:
    assert ask(99, 0, ctypes.byref(stream)) == -1 and "without" in {caller!r}
except BufferError as error:
    assert "99" in str(error)
""")


LONG = {
    "stack": "arrowdl.to_numpy(batch, stack=True)",
    "copy": "arrowdl.to_numpy(numbers, copy=True)",
    "fill": "arrowdl.to_numpy(nulls, nulls='fill')",
    "pad": "arrowdl.to_numpy(lists, ragged='padded')",
    "dlpack": "arrowdl.from_arrow(numbers).__dlpack__(max_version=(1, 0), copy=True)",
    "to Arrow": "arrowdl.to_arrow_device(numbers.to_numpy(), copy=True)",
    "to Arrow, with strides": "arrowdl.to_arrow_device(numbers.to_numpy().reshape(1000, -1).T)",
}


@pytest.mark.parametrize("name", LONG)
def test_other_threads_run_while_much_is_copied(run: Callable[[str], None], name: str) -> None:
    pytest.importorskip("numpy")
    run(f"""
import numpy as np

numbers = pa.array(np.arange(4_000_000.0))
batch = pa.record_batch({{"a": numbers, "b": numbers}})
nulls = pa.array(np.arange(4_000_000.0), mask=np.arange(4_000_000) % 5 == 0)
lists = pa.ListArray.from_arrays(np.arange(0, 4_000_001, 10, dtype="i4"), numbers)
sys.setswitchinterval(1000)  # who has the lock keeps it until it is given up
wanted, seen = threading.Event(), []

def see():
    wanted.wait()
    seen.append(True)

other = threading.Thread(target=see)
other.start()
wanted.set()
while not seen:  # the other thread may be slow to wake up
    {LONG[name]}
other.join()
""")


def test_an_array_that_is_released_while_it_is_copied_stays(run: Callable[[str], None]) -> None:
    pytest.importorskip("numpy")
    run("""
import numpy as np

sys.setswitchinterval(1000)  # it is released while it is copied, not before
for _ in range(20):
    array = arrowdl.from_arrow(pa.array(np.arange(1_000_000.0)))
    wanted = threading.Event()

    def release():
        wanted.wait()
        array.release()

    other = threading.Thread(target=release)
    other.start()
    wanted.set()
    assert np.from_dlpack(array, copy=True)[-1] == 999_999.0
    other.join()
""")
