"""OpenCL on the CPU (PoCL), a real asynchronous device: nothing here depends on time.

A gate is a user event. Until the test opens it, what waits for it has not happened, so whatever
returns then has not waited. pyopencl may wait for an event that it drops: each one has a name.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import numpy as np
import pyopencl as cl
import pytest
import tvm_ffi
from arrowdl import debug
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema
from helpers.capsules import capsule_address
from helpers.dlpack import DLManagedTensor, MadeTensor

ROWS = 64
NBYTES = 4 * ROWS
OPENCL = (int(arrowdl.DeviceType.opencl), 0)
OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
COMPLETE = cl.command_execution_status.COMPLETE
OUT_OF_RESOURCES = -5

CONTEXT = cl.Context(cl.get_platforms()[0].get_devices()[:1])


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
    """Holds back what waits for its event, until `open` or `fail`."""

    def __init__(self, context: Any = CONTEXT) -> None:
        self.event = cl.UserEvent(context)
        self.barriers: list[Any] = []
        self.is_closed = True

    def hold(self, queue: Any) -> None:
        """Holds back all that `queue` is given from now on."""
        self.barriers.append(cl.enqueue_barrier(queue, wait_for=[self.event]))
        queue.flush()

    def open(self) -> None:
        self._set(COMPLETE)

    def fail(self, status: int = OUT_OF_RESOURCES) -> None:
        self._set(status)

    def _set(self, status: int) -> None:
        if self.is_closed:
            self.is_closed = False
            self.event.set_status(status)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()


class Memory:
    """A cl_mem of ROWS floats."""

    def __init__(self, queue: Any, value: float = 0.0) -> None:
        self.buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, NBYTES)
        filled = self.fill(queue, value)
        filled.wait()

    @property
    def handle(self) -> int:
        return int(self.buffer.int_ptr)

    def fill(self, queue: Any, value: float) -> Any:
        return cl.enqueue_fill_buffer(queue, self.buffer, np.float32(value), 0, NBYTES)

    def read(self, queue: Any) -> tuple[np.ndarray, Any]:
        """The values once the event has happened."""
        target = np.full(ROWS, np.nan, "f4")
        copied = cl.enqueue_copy(queue, target, self.buffer, is_blocking=False)
        queue.flush()
        return target, copied

    def tensor(self, **fields: Any) -> MadeTensor:
        return MadeTensor(self.handle, (ROWS,), dtype="float32", device=OPENCL, **fields)


class Producer:
    """An ArrowDeviceArray over `memory` that is there once `event` has happened."""

    def __init__(self, memory: Memory, event: Any = None, **fields: Any) -> None:
        self.cell = None if event is None else ctypes.c_void_p(event.int_ptr)
        self.made = MadeArray(ROWS, [None, memory.handle])
        self.made.kept = (memory, event, self.cell)  # until it is released
        for name, value in fields.items():
            setattr(self.made.struct, name, value)

    def array(self) -> arrowdl.DeviceArray:
        event = None if self.cell is None else ctypes.addressof(self.cell)
        array = MadeDeviceArray(self.made, OPENCL, event)
        schema = MadeSchema("f", flags=0)
        return arrowdl.c_data.import_device_array(array.address, schema.address)


def make_queue(order: str = "in order", context: Any = CONTEXT) -> Any:
    return cl.CommandQueue(context, properties=0 if order == "in order" else OUT_OF_ORDER)


@pytest.fixture(params=["in order", "out of order"])
def queue(request: pytest.FixtureRequest) -> Any:
    return make_queue(request.param)


@pytest.fixture
def memory() -> Memory:
    return Memory(make_queue())


def event_of(array: arrowdl.DeviceArray) -> Any:
    """The event that `array` carries, with a reference of its own."""
    assert array.sync_event is not None
    handle = ctypes.c_void_p.from_address(array.sync_event).value
    return cl.Event.from_int_ptr(handle, retain=True)


def data_of(capsule: Any) -> int | None:
    return DLManagedTensor.from_address(capsule_address(capsule)).dl_tensor.data


def run_elsewhere(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """`call()` on a thread, and a list that its result or its error comes to."""
    seen: list[Any] = []

    def run() -> None:
        try:
            seen.append(call())
        except Exception as error:
            seen.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, seen


# ---------------------------------------------------------------- events of anybody's


def test_import_returns_before_the_data_exists(memory: Memory) -> None:
    with Gate() as gate:
        producer = Producer(memory, gate.event)
        array = producer.array()
        assert array.device == arrowdl.Device("opencl", 0)
        assert array.sync_event == ctypes.addressof(producer.cell)
        assert not array.is_ready()
        gate.open()
        assert array.is_ready()
        array.synchronize()


def test_synchronize_waits_on_the_host(memory: Memory) -> None:
    with Gate() as gate:
        array = Producer(memory, gate.event).array()
        thread, seen = run_elsewhere(array.synchronize)  # with the GIL free for this thread
        assert seen == []
        gate.open()
        thread.join()
        assert seen == [None]


def test_the_event_of_a_queue(memory: Memory, queue: Any) -> None:
    with Gate() as gate:
        gate.hold(queue)
        filled = memory.fill(queue, 7.0)  # the queue is not flushed: arrowdl has to
        array = Producer(memory, filled).array()
        assert not array.is_ready()
        gate.open()
        array.synchronize()
        assert array.is_ready()
    values, copied = memory.read(queue)
    copied.wait()
    assert values.tolist() == [7.0] * ROWS


def test_wait_orders_a_queue(memory: Memory, queue: Any) -> None:
    producing = make_queue()
    with Gate() as gate:
        gate.hold(producing)
        filled = memory.fill(producing, 5.0)
        array = Producer(memory, filled).array()
        array.wait(queue)
        values, copied = memory.read(queue)
        assert gate.is_closed
        assert copied.command_execution_status != COMPLETE
        gate.open()
        copied.wait()
        assert values.tolist() == [5.0] * ROWS


def test_a_queue_by_its_handle(memory: Memory, queue: Any) -> None:
    with Gate() as gate:
        array = Producer(memory, gate.event).array()
        array.wait(queue.int_ptr)
        marker = cl.enqueue_marker(queue)
        queue.flush()
        assert marker.command_execution_status != COMPLETE
        gate.open()
        marker.wait()


@pytest.mark.parametrize(
    ("status", "said"),
    [(OUT_OF_RESOURCES, r"CL_OUT_OF_RESOURCES \(-5\)"), (-9999, "status -9999")],
)
def test_failed_work_is_heard_of(memory: Memory, status: int, said: str) -> None:
    before = debug.live_objects()
    with Gate() as gate:
        producer = Producer(memory, gate.event)
        array = producer.array()
        gate.fail(status)
        for use in (
            arrowdl.DeviceArray.is_ready,
            arrowdl.DeviceArray.synchronize,
            arrowdl.DeviceArray.__dlpack__,
            lambda array: array.wait(make_queue()),
            lambda array: arrowdl.to_arrow_device({"x": array}),
        ):
            with pytest.raises(RuntimeError, match=rf"work before the event on opencl:0.*{said}"):
                use(array)
        array.release()
    assert producer.made.released == 1
    assert debug.live_objects() == before


def test_work_that_fails_while_the_host_waits(memory: Memory) -> None:
    with Gate() as gate:
        array = Producer(memory, gate.event).array()
        thread, seen = run_elsewhere(array.synchronize)
        gate.fail()
        thread.join()
        assert isinstance(seen[0], RuntimeError)
        assert "CL_OUT_OF_RESOURCES" in str(seen[0])


def test_contexts_are_not_mixed(memory: Memory) -> None:
    other = cl.Context(CONTEXT.devices)
    with Gate() as gate, Gate(other) as elsewhere:
        array = Producer(memory, gate.event).array()
        with pytest.raises(BufferError, match="of two OpenCL contexts"):
            array.wait(make_queue(context=other))
        fields = {"x": array, "y": Producer(memory, elsewhere.event).array()}
        with pytest.raises(BufferError, match="of several OpenCL contexts"):
            arrowdl.to_arrow_device(fields)


@pytest.mark.parametrize("pending", ["x", "y"])
def test_a_struct_waits_for_all_its_fields(memory: Memory, pending: str) -> None:
    with Gate() as gate, Gate() as late:
        gates = {"x": gate, "y": gate, pending: late}
        struct = arrowdl.to_arrow_device(
            {name: Producer(memory, gates[name].event).array() for name in "xy"}
        )
        assert not struct.is_ready()
        gate.open()
        assert not struct.is_ready()
        late.open()
        struct.synchronize()
        assert struct.field("x").is_ready()
        assert struct.field("y").is_ready()


def test_a_struct_whose_fields_are_there_has_no_event(memory: Memory) -> None:
    with Gate() as gate:
        gate.open()
        struct = arrowdl.to_arrow_device({"x": Producer(memory, gate.event).array()})
        assert struct.sync_event is None


# ---------------------------------------------------------------- tensors


def test_a_tensor_is_taken_with_its_queue(memory: Memory, queue: Any) -> None:
    made = memory.tensor()
    capsule = made.capsule()
    with pytest.raises(BufferError, match=r"does not name the queue .*: pass stream=queue$"):
        arrowdl.to_arrow_device(capsule)
    assert made.released == 0  # the capsule is whole
    with Gate() as gate:
        gate.hold(queue)
        array = arrowdl.to_arrow_device(capsule, stream=queue)
        assert gate.is_closed
        assert not array.is_ready()
        gate.open()
        array.synchronize()
    assert data_of(array.__dlpack__()) == memory.handle


def test_an_object_with_dlpack_is_told_no_stream(memory: Memory, queue: Any) -> None:
    class Tensor:
        def __dlpack_device__(self) -> tuple[int, int]:
            return OPENCL

        def __dlpack__(self, **given: Any) -> Any:
            assert "stream" not in given
            return memory.tensor().capsule()

    with pytest.raises(BufferError, match="pass stream=queue"):
        arrowdl.to_arrow_device(Tensor())
    with Gate() as gate:
        gate.hold(queue)
        array = arrowdl.to_arrow_device(Tensor(), stream=queue)
        assert not array.is_ready()


def test_the_event_is_released_once(memory: Memory) -> None:
    queue = make_queue()
    with Gate() as gate:
        array = arrowdl.to_arrow_device(memory.tensor().capsule(), stream=queue)
        event = event_of(array)
        event.wait()
        queue.finish()
        held = event.reference_count
        del array
        gc.collect()
        assert event.reference_count == held - 1

        before = gate.event.reference_count
        array = Producer(memory, gate.event).array()
        array.is_ready()
        del array
        gc.collect()
        assert gate.event.reference_count == before  # no reference was taken


def test_a_consumers_queue_waits_instead_of_the_host(memory: Memory, queue: Any) -> None:
    producing = make_queue()
    with Gate() as gate:
        gate.hold(producing)
        filled = memory.fill(producing, 2.0)
        array = arrowdl.to_arrow_device(memory.tensor().capsule(), stream=producing)
        capsule = array.__dlpack__(stream=queue)
        values, copied = memory.read(queue)
        assert gate.is_closed
        assert copied.command_execution_status != COMPLETE
        gate.open()
        copied.wait()
        assert values.tolist() == [2.0] * ROWS
        del capsule, filled


def test_a_consumer_without_a_queue_gets_finished_data(memory: Memory) -> None:
    with Gate() as gate:
        array = Producer(memory, gate.event).array()
        thread, seen = run_elsewhere(array.__dlpack__)
        assert seen == []
        gate.open()
        thread.join()
        assert data_of(seen.pop()) == memory.handle


def test_a_consumer_by_the_exchange_api_gets_finished_data(memory: Memory) -> None:
    with Gate() as gate:
        array = Producer(memory, gate.event).array()
        thread, seen = run_elsewhere(lambda: tvm_ffi.from_dlpack(array))
        assert seen == []
        gate.open()
        thread.join()
        tensor = seen.pop()
        assert str(tensor.device) == "opencl:0"
    with pytest.raises(BufferError, match="pass stream=queue"):
        arrowdl.to_arrow_device(tensor)
    back = arrowdl.to_arrow_device(tensor, stream=make_queue())
    assert data_of(back.__dlpack__()) == memory.handle


def test_minus_one_waits_for_nothing(memory: Memory) -> None:
    with Gate() as gate:
        capsule = Producer(memory, gate.event).array().__dlpack__(stream=-1)
        assert gate.is_closed
        assert data_of(capsule) == memory.handle


def test_what_is_no_queue_is_refused(memory: Memory) -> None:
    array = Producer(memory).array()
    with Gate() as gate:
        for stream in (0, 1.5, "queue", object(), gate.event, memory.buffer, CONTEXT):
            with pytest.raises(BufferError, match="is not a stream of opencl:0"):
                array.wait(stream)
            with pytest.raises(BufferError, match="is not a stream of opencl:0"):
                array.__dlpack__(stream=stream)
            made = memory.tensor()
            capsule = made.capsule()
            with pytest.raises(BufferError, match="is not a stream of opencl:0"):
                arrowdl.to_arrow_device(capsule, stream=stream)
            assert made.released == 0
    with pytest.raises(TypeError, match="needed, got None"):
        array.record_stream(None)


# ---------------------------------------------------------------- handles, not pointers


def test_a_handle_passes_through_untouched(memory: Memory) -> None:
    queue = make_queue()
    array = Producer(memory).array()
    for exported in (array, array[:8], arrowdl.from_arrow(array.__arrow_c_device_array__())):
        capsule = exported.__dlpack__()
        assert data_of(capsule) == memory.handle
        back = arrowdl.to_arrow_device(capsule, stream=queue)
        assert len(back) == len(exported)
        assert data_of(back.__dlpack__()) == memory.handle


def test_a_slice_is_legal_until_the_handle_would_have_to_move(memory: Memory) -> None:
    rows = Producer(memory).array()[3:]
    assert len(rows) == ROWS - 3
    again = arrowdl.from_arrow(rows.__arrow_c_device_array__())
    assert len(again) == ROWS - 3
    given = Producer(memory, offset=3, length=8).array()
    for moved in (rows, again, given, given[1:]):
        with pytest.raises(BufferError, match=r"bytes into memory on opencl:0.*cannot move"):
            moved.__dlpack__()
    assert data_of(rows[:0].__dlpack__()) is None


def test_the_offset_of_nested_values_is_refused(memory: Memory) -> None:
    values = MadeArray(ROWS, [None, memory.handle])
    array = MadeDeviceArray(MadeArray(ROWS // 4, [None], children=[values]), OPENCL)
    schema = MadeSchema("+w:4", flags=0, children=[MadeSchema("f", "item", flags=0)])
    lists = arrowdl.c_data.import_device_array(array.address, schema.address)
    assert data_of(lists.__dlpack__()) == memory.handle
    with pytest.raises(BufferError, match="an offset of 32 bytes"):
        lists[2:].__dlpack__()


def test_a_byte_offset_is_refused(memory: Memory) -> None:
    made = memory.tensor(byte_offset=4)
    capsule = made.capsule()
    with pytest.raises(BufferError, match="an offset of 4 bytes into memory on opencl:0"):
        arrowdl.to_arrow_device(capsule, stream=make_queue())
    assert made.released == 1


def test_the_host_reads_no_handle(memory: Memory) -> None:
    array = Producer(memory).array()
    with pytest.raises(BufferError, match="on opencl:0 cannot be exported as host memory"):
        array.__arrow_c_array__()
    with pytest.raises(BufferError, match="cannot copy on opencl:0: an OpenCL queue and a cl_mem"):
        array.__dlpack__(dl_device=(1, 0))


# ---------------------------------------------------------------- giving memory back


def test_memory_is_kept_until_the_work_that_reads_it_is_done(memory: Memory, queue: Any) -> None:
    producer = Producer(memory)
    array = producer.array()
    with Gate() as gate:
        gate.hold(queue)
        array.record_stream(queue)
        del array
        gc.collect()
        assert producer.made.released == 0
        assert debug.pending_releases() == 1
        gate.open()
        settle()
    assert producer.made.released == 1


def test_memory_is_given_back_at_once_when_nothing_is_pending(memory: Memory) -> None:
    producer, queue = Producer(memory), make_queue()
    array = producer.array()
    array.record_stream(queue)
    queue.finish()
    del array
    gc.collect()
    settle()
    assert producer.made.released == 1


def test_a_queue_is_kept_for_the_release(memory: Memory) -> None:
    producer, queue = Producer(memory), make_queue()
    before = queue.reference_count
    array = producer.array()
    array.record_stream(queue)
    array.record_stream(queue)
    assert queue.reference_count == before + 1
    array.release()
    settle()
    assert queue.reference_count == before
    array = Producer(memory).array()
    array.record_stream(queue)
    del queue
    gc.collect()
    array.release()
    settle()


def test_many_rounds_and_none_wrong() -> None:
    queues = [make_queue("in order"), make_queue("out of order")]
    other = make_queue()
    memory = Memory(other)
    wrong = 0
    for round in range(300):
        queue = queues[round % 2]
        with Gate() as gate:
            gate.hold(queue)
            filled = memory.fill(queue, float(round))
            made = memory.tensor()
            array = arrowdl.to_arrow_device(made.capsule(), stream=queue)
            capsule = array.__dlpack__(stream=other)
            values, copied = memory.read(other)
            del array, capsule
            gc.collect(0)
            assert gate.is_closed
            assert made.released == 0
            gate.open()
            copied.wait()
            wrong += int((values != round).any())
            settle()
            assert made.released == 1
        del filled
    assert wrong == 0


# ---------------------------------------------------------------- processes


def test_doctor_lists_opencl() -> None:
    count = sum(len(platform.get_devices()) for platform in cl.get_platforms())
    text = arrowdl.doctor()
    assert f"opencl: OpenCL {cl.get_platforms()[0].version.removeprefix('OpenCL ')}" in text
    assert f", {count} device" in text


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pyopencls_own_loader_is_the_one_that_is_used() -> None:
    code = "import pyopencl, arrowdl; print(arrowdl.doctor())"
    assert "(libOpenCL-" in run_python(code)


IMPORT = f"""
import ctypes, os, sys
sys.path.insert(0, {str(__import__("helpers").__path__[0]).removesuffix("helpers")!r})
import arrowdl
before = arrowdl.doctor()  # opens the system's loader
import pyopencl as cl
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema
context = cl.Context(cl.get_platforms()[0].get_devices()[:1])
queue, event = cl.CommandQueue(context), cl.UserEvent(context)
cell = ctypes.c_void_p(event.int_ptr)
made = MadeDeviceArray(MadeArray(1, [None, 1]), {OPENCL}, ctypes.addressof(cell))
schema = MadeSchema("f")
array = arrowdl.c_data.import_device_array(made.address, schema.address)
"""


def test_two_loaders_in_one_process() -> None:
    run_python(
        IMPORT
        + """
assert "(libOpenCL.so.1)" in before
assert not array.is_ready()
array.wait(queue)
marker = cl.enqueue_marker(queue)
event.set_status(0)
marker.wait()
assert array.is_ready()
"""
    )


def test_a_forked_child_leaves_the_device_alone() -> None:
    run_python(
        IMPORT
        + """
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
event.set_status(0)
array.synchronize()
"""
    )
