"""Arrays in GPU memory go to other processes through multiprocessing, on the fake drivers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from helpers.fake_cuda import PREAMBLE

RECEIVER = """
import concurrent.futures, copy, multiprocessing, os, pickle, sys
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler
import pyarrow as pa
from helpers import receivers
from helpers.receivers import Receiver, count_descriptors, eventually, held, values

context = multiprocessing.get_context("spawn")

def make(rows, device="cuda:0"):
    return arrowdl.from_arrow(rows if isinstance(rows, pa.Array) else pa.array(rows)).to(device)
"""


@pytest.fixture
def run(on_fake_cuda: Callable[[str], None]) -> Callable[[str], None]:
    return lambda code: on_fake_cuda(RECEIVER + code)


def test_rows_of_every_kind_arrive(run: Callable[[str], None]) -> None:
    run("""
receiver = Receiver(context)
kinds = {
    "int32": pa.array(range(100), pa.int32()),
    "nulls": pa.array([None if i % 3 == 0 else i for i in range(100)]),
    "bits": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(100)]),
    "no rows": pa.array([], pa.float32()),
    "only nulls": pa.array([None] * 20, pa.float64()),
    "strings": pa.array([None if i % 7 == 0 else "é" * (i % 9) for i in range(100)]),
    "lists": pa.array([None if i % 4 == 0 else [i, None, -i] for i in range(50)]),
    "lists of lists": pa.array([[[1], [], [2, 3]], None, []] * 20),
    "fixed size lists": pa.array([[i, None] for i in range(50)], pa.list_(pa.int16(), 2)),
    "structs": pa.array([None if i % 6 == 0 else {"a": i, "b": [str(i)]} for i in range(50)]),
    "dictionary": pa.array(["x", "y", None, "x"] * 20).dictionary_encode(),
    "timestamps": pa.array(range(50), pa.timestamp("us", "UTC")),
    "map": pa.array([[("a", i), ("b", None)] for i in range(20)], pa.map_(pa.utf8(), pa.int64())),
}
for name, rows in kinds.items():
    for device in ("cuda:0", "cuda:1", "rocm:0"):
        whole = make(rows, device)
        for part in (slice(None), slice(8, None), slice(3, 11)):
            received, found, is_ready = receiver.ask("read", whole[part])
            expected = values(whole[part])
            assert received.equals(expected) and received.type == rows.type, (name, device, part)
            assert found == (device[:4], int(device[5])) and is_ready
del whole
receiver.ask("keep", {"in": [make([1, 2])]})  # within other objects, as multiprocessing pickles
assert receiver.ask("drop")
receiver.end()
assert eventually(held, []) and cuda.misuses() == 0
""")


def test_sending_leaves_nothing_behind(run: Callable[[str], None]) -> None:
    run("""
arrowdl.config.staging_limit = 0  # keeps no pinned memory
receiver = Receiver(context)
array = make(range(10))
receiver.ask("read", array)
mine, its = count_descriptors(), receiver.ask("count")
objects = debug.live_objects()
allocations = cuda.library.arrowdl_fake_allocations()
for i in range(1000):
    receiver.ask("keep", array[i % 10:])
    if i % 100 == 0:
        assert receiver.ask("drop")
assert receiver.ask("drop")
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for copied in pool.map(lambda _: pickle.loads(ForkingPickler.dumps(array)), range(32)):
        assert values(copied).to_pylist() == list(range(10))
del copied
assert eventually(count_descriptors, mine) and eventually(lambda: receiver.ask("count"), its)
assert eventually(debug.live_objects, objects)
assert eventually(cuda.library.arrowdl_fake_allocations, allocations)
assert eventually(held, [])
receiver.end()
""")


def test_what_was_received_is_sent_on(run: Callable[[str], None]) -> None:
    """To a third process, back, or to itself."""
    run("""
first, second = Receiver(context), Receiver(context)
array = make([1, 2, 3])
first.ask("keep", array)
second.ask("keep", array)
expected = values(array)
del array
assert eventually(held, [])
for receiver in (first, second):
    assert receiver.ask("read kept").equals(expected)
back = first.ask("send on", make([1, 2, 3]))
assert values(back).to_pylist() == [2, 3] and back.device == arrowdl.Device("cuda:0")
received, _, _ = second.ask("read", back)
assert received.to_pylist() == [2, 3]
mine = pickle.loads(ForkingPickler.dumps(back))
del back
assert values(mine).to_pylist() == [2, 3]
first.end(), second.end()
""")


def test_a_receiver_that_is_killed_holds_nothing(run: Callable[[str], None]) -> None:
    run("""
receiver = Receiver(context)
array = make(range(1000))
receiver.ask("keep", array)
try:
    receiver.ask("die")
except (EOFError, ConnectionResetError):
    pass
receiver.process.join()
assert eventually(held, [])
assert values(array).to_pylist() == list(range(1000))
del array
assert eventually(held, [])
after = Receiver(context)
assert after.ask("read", make([7]))[0].to_pylist() == [7]
after.end()
""")


def test_a_sender_that_is_killed_leaves_what_was_received(run: Callable[[str], None]) -> None:
    run("""
mine, its = context.Pipe()
sender = context.Process(target=receivers.send_and_die, args=(its, 1000))
sender.start()
its.close()
received = mine.recv()
mine.send("go on")
sender.join()
assert sender.exitcode == -9
refused(RuntimeError, f"process {sender.pid} sent an array in GPU memory", mine.recv)
assert values(received).to_pylist() == list(range(1000))
del received
assert eventually(held, [])
""")


def test_what_nobody_receives_can_be_given_up(run: Callable[[str], None]) -> None:
    """Also an array that is unpickled twice, since each message is for one receiver, and one whose
    message cannot be pickled further."""
    run("""
message = ForkingPickler.dumps(make([1]))
assert eventually(held, ["fake-cuda-memory-0"])
assert values(pickle.loads(message)).to_pylist() == [1]
assert eventually(held, [])
sys.excepthook = lambda *error: None  # the sender's thread says that it knows no such array
refused(RuntimeError, "an array is received once", lambda: pickle.loads(message))
message = ForkingPickler.dumps(make([1]))
refused(Exception, "pickle", lambda: ForkingPickler.dumps([make([2]), lambda: 0]))
settle()
assert eventually(held, ["fake-cuda-memory-0"] * 2)
resource_sharer.stop()
assert eventually(held, [])
refused(RuntimeError, "has to live until the array is received", lambda: pickle.loads(message))
""")


def test_a_message_leaves_when_its_rows_are_ready(run: Callable[[str], None]) -> None:
    run("""
import threading
stream = cuda.make_stream()
memory = cuda.allocate(16)
source = make(pa.array([1, 2, 3, 4], pa.int32()))
source.synchronize()
address = source.__cuda_array_interface__["data"][0]
waits = cuda.library.arrowdl_fake_host_waits
before, opened = waits(), []

def open_gate():  # once the sender waits
    while waits() == before:
        time.sleep(0.001)
    opened.append(True)
    cuda.library.arrowdl_fake_open_gate(gate)

gate = cuda.library.arrowdl_fake_close_gate_on(0, stream)
cuda.library.arrowdl_fake_enqueue_copy(0, stream, memory, address, 16)
array = arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=stream))
threading.Thread(target=open_gate, daemon=True).start()
assert not array.is_ready()
message = ForkingPickler.dumps(array)
assert opened == [True]
assert values(pickle.loads(message)).to_pylist() == [1, 2, 3, 4]
""")


def test_the_receiver_finds_the_gpu_whatever_its_number(run: Callable[[str], None]) -> None:
    run("""
array, other = make([1, 2], "cuda:1"), make([1, 2], "cuda:0")
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
receiver = Receiver(context)
received, device, _ = receiver.ask("read", array)
assert received.to_pylist() == [1, 2] and device == ("cuda", 0)
for says in ("memory of the GPU 0000:01:00.0", "this process has 0000:02:00.0"):
    refused(BufferError, says, lambda: receiver.ask("read", other))
receiver.end()
""")


def test_each_send_has_the_rows_of_its_time(run: Callable[[str], None]) -> None:
    """An array may share its memory with a tensor that is written in place."""
    run("""
stream = cuda.make_stream()
memory = cuda.allocate(16)
array = arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=stream))
for rows in ([1, 2, 3, 4], [5, 6, 7, 8]):
    source = make(pa.array(rows, pa.int32()))
    source.synchronize()
    address = source.__cuda_array_interface__["data"][0]
    cuda.library.arrowdl_fake_enqueue_copy(0, stream, memory, address, 16)
    cuda.synchronize(stream)
    assert values(pickle.loads(ForkingPickler.dumps(array))).to_pylist() == rows
""")


def test_the_process_ends_while_the_gpu_works(on_fake_cuda: Callable[[str], None]) -> None:
    """The end of a mapping waits for the device, and that of the process does not."""
    code = """
received = pickle.loads(ForkingPickler.dumps(make([1])))
settle()
cuda.library.arrowdl_fake_close_gate_on(0, cuda.make_stream())
"""
    whole = PREAMBLE + RECEIVER + code
    subprocess.run([sys.executable, "-c", whole], check=True, timeout=60)


def test_arguments_and_queues(run: Callable[[str], None]) -> None:
    run("""
array = make([4, None, 5])
for method in ("spawn", "forkserver"):
    one = multiprocessing.get_context(method)
    mine, its = one.Pipe()
    process = one.Process(target=receivers.read_argument, args=(array, its))
    process.start()
    its.close()
    assert mine.recv().to_pylist() == [4, None, 5], method
    process.join()
queue, event = context.Queue(), context.Event()
process = context.Process(target=receivers.send_by_queue, args=(queue, event))
process.start()
received = queue.get(timeout=60)["rows"]
event.set()
process.join()
assert values(received).to_pylist() == [1, None, 3]
""")


def test_what_cannot_be_sent_says_so(run: Callable[[str], None]) -> None:
    run("""
host, array = arrowdl.from_arrow(pa.array([1])), make([1])
refused(TypeError, "send pyarrow.array(arr) instead", lambda: pickle.dumps(host))
refused(TypeError, "send pyarrow.array(arr) instead", lambda: ForkingPickler.dumps(host))
for device in ("cuda_host:0", "cuda_managed:0"):
    other = host.to(device)
    refused(TypeError, "send pyarrow.array(arr) instead", lambda: ForkingPickler.dumps(other))
refused(TypeError, "on cuda:0 cannot be pickled", lambda: pickle.dumps(array))
assert copy.deepcopy(array).device == array.device
cuda.library.arrowdl_fake_set_sharing(0)
refused(BufferError, "copy the array to the CPU first", lambda: ForkingPickler.dumps(array))
cuda.library.arrowdl_fake_set_sharing(1)
import resource
message = ForkingPickler.dumps(array)
assert eventually(receivers.is_sharer_waiting, True)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
refusals = []
for more in range(4):  # too few for the memory, its descriptor, or a duplicate
    taken = [os.dup(0) for _ in range(more)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max([2, *taken]) + 1, hard))
    for descriptor in taken:
        os.close(descriptor)
    try:
        ForkingPickler.dumps(array)
    except OSError as error:
        assert "raise the limit (ulimit -n)" in str(error), error
        refusals.append(more)
    if more == 0:
        refused(OSError, "raise the limit (ulimit -n)", lambda: pickle.loads(message))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
assert refusals == [0, 1], refusals
released = make([1])
released.release()
refused(TypeError, "cannot be pickled", lambda: ForkingPickler.dumps(released))
assert values(pickle.loads(message)).to_pylist() == [1]
""")


def test_a_forked_child_neither_sends_nor_receives(run: Callable[[str], None]) -> None:
    run("""
array = make([1])
assert values(pickle.loads(ForkingPickler.dumps(array))).to_pylist() == [1]
of_parent = arrowdl._core.make_shared_copy(array)
os.close(of_parent[1])
assert eventually(held, [])
child = os.fork()
if child == 0:
    try:
        refused(RuntimeError, "fork", lambda: ForkingPickler.dumps(array))
        refused(RuntimeError, "fork", lambda: arrowdl._core.open_shared_copy(*of_parent))
        os._exit(0)
    except BaseException as error:
        print(error, flush=True)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert held() == [] and cuda.misuses() == 0
assert values(pickle.loads(ForkingPickler.dumps(array))).to_pylist() == [1]
""")


def test_multiprocessing_is_imported_with_the_first_array_on_a_gpu(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda("""
import subprocess, sys
code = '''
import sys, arrowdl, pyarrow as pa
array = arrowdl.from_arrow(pa.array([1]))
assert "arrowdl._processes" not in sys.modules
on_gpu = array.to("cuda:0")
assert "arrowdl._processes" in sys.modules
'''
subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
""")


@pytest.mark.slow
def test_torch_multiprocessing(run: Callable[[str], None]) -> None:
    """Its queues pickle as multiprocessing's do."""
    run("""
import torch.multiprocessing
context = torch.multiprocessing.get_context("spawn")
queue, event = context.Queue(), context.Event()
process = context.Process(target=receivers.send_by_queue, args=(queue, event))
process.start()
received = queue.get(timeout=60)["rows"]
event.set()
process.join()
assert values(received).to_pylist() == [1, None, 3]
""")
