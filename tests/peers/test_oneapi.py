"""oneAPI on the CPU, a real asynchronous device: nothing here depends on time.

A gate is a kernel that spins until the test opens it. While it is closed, what was submitted behind
it has not happened, so whatever returns then has not waited.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# The runtime looks for its devices when it is loaded. A second copy of the library under another
# name, beside the files that it reads, is a second device.
_LIBRARY = Path(sys.prefix) / "lib" / "libintelocl.so"
_COPY = _LIBRARY.with_name("libintelocl_second.so")
if not _COPY.exists():
    shutil.copy(_LIBRARY.resolve(), _COPY)
os.environ["OCL_ICD_FILENAMES"] = f"{_LIBRARY}:{_COPY}"
warnings.filterwarnings("ignore", category=DeprecationWarning, message="dpctl.tensor")

import arrowdl  # noqa: E402
import dpctl  # noqa: E402
import dpctl.memory  # noqa: E402
import dpctl.program  # noqa: E402
import dpctl.tensor as dpt  # noqa: E402
import numpy as np  # noqa: E402
from arrowdl import debug  # noqa: E402

ROWS = 64

SOURCE = """
kernel void gate(global volatile int *is_open) {
    while (atomic_add(is_open, 0) == 0) {}
}
kernel void fill(global float *target, float value) {
    target[get_global_id(0)] = value;
}
"""


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    before = debug.live_objects()
    yield
    gc.collect()
    settle()
    assert debug.live_objects() == before


def settle() -> None:
    """Waits until deferred releases are done: with every gate open they end by themselves."""
    wait = threading.Event()
    while debug.pending_releases() > 0:
        wait.wait(0.001)


class Gate:
    """Holds back what a queue is given after it, until `open`."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self.program = dpctl.program.create_program_from_source(queue, SOURCE)
        self.memory = dpctl.memory.MemoryUSMHost(64, queue=queue)
        self.flag = np.frombuffer(self.memory, dtype="int32")
        self.flag[0] = 0
        self.event = queue.submit_async(self.kernel("gate"), [self.memory], [1])
        queue.submit_barrier([self.event])

    def kernel(self, name: str) -> Any:
        return self.program.get_sycl_kernel(name)

    def fill(self, array: Any, value: float) -> None:
        """`array` gets `value` once the gate is open."""
        arguments = [array.usm_data, ctypes.c_float(value)]
        self.queue.submit_async(self.kernel("fill"), arguments, [array.size])

    def is_closed(self) -> bool:
        return self.flag[0] == 0

    def open(self) -> None:
        self.flag[0] = 1

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
        self.queue.wait()


def make_queue(order: str = "in order", device: int = 0) -> Any:
    property = "in_order" if order == "in order" else 0
    return dpctl.SyclQueue(dpctl.get_devices()[device], property=property)


@pytest.fixture(params=["in order", "out of order"])
def queue(request: pytest.FixtureRequest) -> Any:
    return make_queue(request.param)


def zeros(queue: Any) -> Any:
    array = dpt.zeros(ROWS, dtype="f4", sycl_queue=queue)
    queue.wait()
    return array


def values_of(array: Any) -> np.ndarray:
    return np.asarray(dpt.asnumpy(array))


def test_there_are_two_devices() -> None:
    assert len(dpctl.get_devices()) == 2


def test_import_returns_before_the_data_exists(queue: Any) -> None:
    tensor = zeros(queue)
    with Gate(queue) as gate:
        gate.fill(tensor, 7.0)
        array = arrowdl.to_arrow_device(tensor)
        assert gate.is_closed()
        assert array.device == arrowdl.Device("oneapi", 0)
        assert isinstance(array.sync_event, int)
        assert not array.ready()
        gate.open()
        array.synchronize()
        assert array.ready()
        assert values_of(tensor).tolist() == [7.0] * ROWS


def test_the_event_is_a_sycl_event(queue: Any) -> None:
    tensor = zeros(queue)
    with Gate(queue) as gate:
        array = arrowdl.to_arrow_device(tensor)
        again = arrowdl.from_arrow(array.__arrow_c_device_array__())
        assert again.sync_event == array.sync_event
        del array
        gc.collect()
        assert not again.ready()
        gate.open()
        again.synchronize()
        assert again.ready()


def test_a_consumer_without_a_stream_sees_finished_data(queue: Any) -> None:
    tensor = zeros(queue)
    with Gate(queue) as gate:
        gate.fill(tensor, 3.0)
        array = arrowdl.to_arrow_device(tensor)
        seen = []
        consumer = threading.Thread(
            target=lambda: seen.append(values_of(dpt.from_dlpack(array)).tolist())
        )
        consumer.start()  # waits on the host, with the GIL free for this thread
        assert seen == []
        gate.open()
        consumer.join()
        assert seen == [[3.0] * ROWS]


def test_a_consumers_queue_waits_instead_of_the_host(queue: Any) -> None:
    tensor = zeros(queue)
    other = make_queue()
    with Gate(queue) as gate:
        gate.fill(tensor, 2.0)
        array = arrowdl.to_arrow_device(tensor)
        capsule = array.__dlpack__(stream=other)
        copy = dpctl.memory.MemoryUSMHost(ROWS * 4, queue=other)
        event = other.memcpy_async(copy, tensor.usm_data, ROWS * 4)
        assert gate.is_closed()
        assert event.execution_status != dpctl.event_status_type.complete
        gate.open()
        event.wait()
        assert np.frombuffer(copy, "f4").tolist() == [2.0] * ROWS
        del capsule


def test_minus_one_waits_for_nothing(queue: Any) -> None:
    tensor = zeros(queue)
    with Gate(queue) as gate:
        array = arrowdl.to_arrow_device(tensor)
        capsule = array.__dlpack__(stream=-1, max_version=(1, 0))
        assert gate.is_closed()
        del capsule


def test_wait_orders_a_queue(queue: Any) -> None:
    tensor = zeros(queue)
    other = make_queue("out of order")
    with Gate(queue) as gate:
        gate.fill(tensor, 5.0)
        array = arrowdl.to_arrow_device(tensor)
        array.wait(other)
        event = other.submit_barrier()
        assert event.execution_status != dpctl.event_status_type.complete
        gate.open()
        event.wait()
        assert values_of(tensor).tolist() == [5.0] * ROWS


def test_a_given_stream_is_the_one_that_is_recorded() -> None:
    producer, elsewhere = make_queue(), make_queue()
    tensor = zeros(producer)
    with Gate(elsewhere) as gate:
        assert arrowdl.to_arrow_device(tensor).synchronize() is None  # its own queue is idle
        array = arrowdl.to_arrow_device(tensor, stream=elsewhere)
        assert not array.ready()
        gate.open()
        array.synchronize()


@pytest.mark.parametrize("pending", ["x", "y"])
def test_a_struct_waits_for_all_its_fields(pending: str) -> None:
    queues = {"x": make_queue(), "y": make_queue()}
    tensors = {name: zeros(queue) for name, queue in queues.items()}
    with Gate(queues[pending]) as gate:
        struct = arrowdl.to_arrow_device(tensors)
        assert not struct.ready()
        gate.open()
        struct.synchronize()
        assert struct.field("x").ready()
        assert struct.field("y").ready()


@pytest.mark.parametrize("stream", [0, 1.5, "queue", object()])
def test_what_is_no_queue_is_refused(stream: Any) -> None:
    array = arrowdl.to_arrow_device(zeros(make_queue()))
    with pytest.raises(BufferError, match="is no stream of oneapi:0"):
        array.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="is no stream of oneapi:0"):
        array.wait(stream)
    with pytest.raises(TypeError, match="needed, got None"):
        array.record_stream(None)


def test_a_capsule_does_not_say_its_queue() -> None:
    queue = make_queue()
    with pytest.raises(BufferError, match="pass stream=queue"):
        arrowdl.to_arrow_device(zeros(queue).__dlpack__())
    array = arrowdl.to_arrow_device(zeros(queue).__dlpack__(), stream=queue)
    assert array.sync_event is not None


def test_the_second_device() -> None:
    queue = make_queue(device=1)
    tensor = zeros(queue)
    with Gate(queue) as gate:
        gate.fill(tensor, 4.0)
        array = arrowdl.to_arrow_device(tensor)
        assert array.device == arrowdl.Device("oneapi", 1)
        gate.open()
        assert values_of(dpt.from_dlpack(array)).tolist() == [4.0] * ROWS


# ---------------------------------------------------------------- giving memory back


def test_memory_is_kept_until_the_work_that_reads_it_is_done() -> None:
    producer, consumer = make_queue(), make_queue()
    tensor = zeros(producer)
    before = debug.live_objects()
    array = arrowdl.to_arrow_device(tensor)
    with Gate(consumer) as gate:
        array.wait(consumer)
        del array
        gc.collect()
        assert gate.is_closed()
        assert debug.pending_releases() == 1
        gate.open()
        settle()
    assert debug.live_objects() == before


def test_memory_is_given_back_at_once_when_nothing_is_pending() -> None:
    queue = make_queue()
    array = arrowdl.to_arrow_device(zeros(queue))
    array.record_stream(queue)
    queue.wait()
    del array
    gc.collect()
    settle()


def test_a_blocking_release_waits_on_the_host() -> None:
    producer, consumer = make_queue(), make_queue()
    array = arrowdl.to_arrow_device(zeros(producer))
    arrowdl.set_blocking_release(True)
    try:
        with Gate(consumer) as gate:
            array.wait(consumer)
            opener = threading.Timer(0.05, gate.open)
            opener.start()
            array.release()
            assert not gate.is_closed()
            opener.join()
        assert debug.pending_releases() == 0
    finally:
        arrowdl.set_blocking_release(False)


def test_many_rounds_and_none_wrong() -> None:
    queues = [make_queue("in order"), make_queue("out of order")]
    other = make_queue()
    copy = dpctl.memory.MemoryUSMHost(ROWS * 4, queue=other)
    view = np.frombuffer(copy, "f4")
    wrong = 0
    for round in range(1000):
        queue = queues[round % 2]
        tensor = zeros(queue)
        with Gate(queue) as gate:
            gate.fill(tensor, float(round))
            array = arrowdl.to_arrow_device(tensor)
            memory = tensor.usm_data
            capsule = array.__dlpack__(stream=other)
            event = other.memcpy_async(copy, memory, ROWS * 4)
            assert gate.is_closed()
            del array, capsule
            gate.open()
            event.wait()
            wrong += int((view != round).any())
    assert wrong == 0


def test_a_forked_child_leaves_the_device_alone() -> None:
    code = f"""
import os, warnings; warnings.simplefilter("ignore")
os.environ["OCL_ICD_FILENAMES"] = {str(_LIBRARY)!r}
import arrowdl, dpctl, dpctl.tensor as dpt
queue = dpctl.SyclQueue()
array = arrowdl.to_arrow_device(dpt.zeros(8, sycl_queue=queue))
array.record_stream(queue)
child = os.fork()
if child == 0:
    try:
        array.synchronize()
    except RuntimeError as error:
        assert "forked" in str(error)
        del array
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
array.synchronize()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
