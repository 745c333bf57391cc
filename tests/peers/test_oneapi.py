"""oneAPI on the CPU, a real asynchronous device: nothing here depends on time.

A gate is a kernel that spins until the test opens it. While it is closed, what was submitted behind
it has not happened, so whatever returns then has not waited.
"""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import os
import shutil
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

# The runtime looks for its devices when it is loaded. A second copy of the library under another
# name, beside the files that it reads, is a second device.
_LIBRARY = Path(sys.prefix) / "lib" / "libintelocl.so"
_COPY = _LIBRARY.with_name("libintelocl_second.so")
if not _COPY.exists():
    shutil.copy(_LIBRARY.resolve(), _COPY)
os.environ["OCL_ICD_FILENAMES"] = f"{_LIBRARY}:{_COPY}"
os.environ["OCL_ICD_VENDORS"] = str(_LIBRARY.with_name("no-vendors"))  # not the system's besides
warnings.filterwarnings("ignore", category=DeprecationWarning, message="dpctl.tensor")

import arrowdl  # noqa: E402
import dpctl  # noqa: E402
import dpctl.memory  # noqa: E402
import dpctl.program  # noqa: E402
import numpy as np  # noqa: E402
from arrowdl import _core, debug  # noqa: E402
from helpers.frames import STRING, USE_BITMASK, USE_NAN, MadeColumn, MadeFrame  # noqa: E402

try:  # dpctl 0.22 has no arrays: they are dpnp's
    import dpnp.tensor as dpt
except ImportError:
    import dpctl.tensor as dpt

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


_programs: dict[Any, Any] = {}


def compile_once(queue: Any) -> Any:
    """Return the kernels for the context of `queue`: they take 60 ms to compile."""
    context = queue.sycl_context
    if context not in _programs:
        _programs[context] = dpctl.program.create_program_from_source(queue, SOURCE)
    return _programs[context]


class Gate:
    """Holds back what a queue is given after it, until `open`."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self.program = compile_once(queue)
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
        assert not array.is_ready()
        gate.open()
        array.synchronize()
        assert array.is_ready()
        assert values_of(tensor).tolist() == [7.0] * ROWS


def test_the_event_is_a_sycl_event(queue: Any) -> None:
    tensor = zeros(queue)
    with Gate(queue) as gate:
        array = arrowdl.to_arrow_device(tensor)
        again = arrowdl.from_arrow(array.__arrow_c_device_array__())
        assert again.sync_event == array.sync_event
        del array
        gc.collect()
        assert not again.is_ready()
        gate.open()
        again.synchronize()
        assert again.is_ready()


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
        assert not array.is_ready()
        gate.open()
        array.synchronize()


@pytest.mark.parametrize("pending", ["x", "y"])
def test_a_struct_waits_for_all_its_fields(pending: str) -> None:
    queues = {"x": make_queue(), "y": make_queue()}
    tensors = {name: zeros(queue) for name, queue in queues.items()}
    with Gate(queues[pending]) as gate:
        struct = arrowdl.to_arrow_device(tensors)
        assert not struct.is_ready()
        gate.open()
        struct.synchronize()
        assert struct.field("x").is_ready()
        assert struct.field("y").is_ready()


@pytest.mark.parametrize("stream", [0, 1.5, "queue", object()])
def test_what_is_no_queue_is_refused(stream: Any) -> None:
    array = arrowdl.to_arrow_device(zeros(make_queue()))
    with pytest.raises(BufferError, match="is not a stream of oneapi:0"):
        array.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="is not a stream of oneapi:0"):
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


# ---------------------------------------------------------------- __sycl_usm_array_interface__


class Interface:
    """An object with the interface of `array` and nothing better, some entries replaced.

    dpctl's own property waits for its queue, so it is read once: before a gate is closed.
    """

    def __init__(self, array: Any, **entries: Any) -> None:
        self.array = array
        self.__sycl_usm_array_interface__ = {**array.__sycl_usm_array_interface__, **entries}


def test_the_interface_is_imported_before_the_data_exists(queue: Any) -> None:
    tensor = zeros(queue)
    interface = Interface(tensor)
    with Gate(queue) as gate:
        gate.fill(tensor, 7.0)
        array = arrowdl.to_arrow_device(interface)
        assert gate.is_closed()
        assert array.device == arrowdl.Device("oneapi", 0)
        assert not array.is_ready()
        gate.open()
        array.synchronize()
        assert values_of(tensor).tolist() == [7.0] * ROWS


SYCLOBJ: dict[str, Callable[[Any], Any]] = {
    "queue": lambda queue: queue,
    "queue in a capsule": lambda queue: queue._get_capsule(),
    "context": lambda queue: queue.sycl_context,
    "context in a capsule": lambda queue: queue.sycl_context._get_capsule(),
    "device": lambda queue: queue.sycl_device,
    "filter string": lambda queue: queue.sycl_device.filter_string,
}


@pytest.mark.parametrize("kind", SYCLOBJ)
@pytest.mark.parametrize("device", [0, 1])
def test_every_kind_of_syclobj(kind: str, device: int) -> None:
    queue = make_queue(device=device)
    tensor = dpt.arange(ROWS, dtype="f4", sycl_queue=queue)
    queue.wait()
    array = arrowdl.to_arrow_device(Interface(tensor, syclobj=SYCLOBJ[kind](queue)))
    assert array.device == arrowdl.Device("oneapi", device)
    assert values_of(dpt.from_dlpack(array)).tolist() == list(range(ROWS))


@pytest.mark.parametrize("kind", ["queue", "queue in a capsule"])
def test_the_queue_of_the_interface_is_the_one_that_is_recorded(kind: str) -> None:
    queue = make_queue()
    tensor = Interface(zeros(queue), syclobj=SYCLOBJ[kind](queue))
    with Gate(queue):
        assert not arrowdl.to_arrow_device(tensor).is_ready()


def test_the_work_of_an_interface_may_be_elsewhere() -> None:
    queue, elsewhere = make_queue(), make_queue()
    tensor = Interface(zeros(queue), syclobj=queue.sycl_context)
    with Gate(elsewhere):
        arrowdl.to_arrow_device(tensor).synchronize()  # a context names no queue
        assert not arrowdl.to_arrow_device(tensor, stream=elsewhere).is_ready()


def test_strides_and_offsets_of_an_interface_are_in_elements() -> None:
    base = dpt.reshape(dpt.arange(24, dtype="i4"), (4, 6))
    base.sycl_queue.wait()
    for tensor in (
        base[1:],
        base[2:, :][:, :],
        dpt.permute_dims(dpt.reshape(base, (4, 2, 3)), (0, 2, 1)),
    ):
        array = arrowdl.to_arrow_device(Interface(tensor))
        assert values_of(dpt.from_dlpack(array)).tolist() == values_of(tensor).tolist()
    with pytest.raises(BufferError, match="copy"):
        arrowdl.to_arrow_device(Interface(base[:, ::2]), copy=False)
    for strided in Interface(base[:, ::2]), base[:, ::2]:
        array = arrowdl.to_arrow_device(strided)
        assert values_of(dpt.from_dlpack(array)).tolist() == values_of(base)[:, ::2].tolist()


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_types_there_and_back(dtype: str) -> None:
    tensor = dpt.zeros(3, dtype=dtype)
    tensor.sycl_queue.wait()
    array = arrowdl.to_arrow_device(Interface(tensor))
    assert array.dtype == tensor.dtype.name
    back = dpt.asarray(array)
    assert back.dtype == tensor.dtype
    assert back.usm_data._pointer == tensor.usm_data._pointer


def test_the_object_of_an_interface_lives_as_long_as_the_array() -> None:
    tensor = Interface(zeros(make_queue()))
    gone = weakref.ref(tensor)
    array = arrowdl.to_arrow_device(tensor)
    part = array[3:]
    del tensor, array
    gc.collect()
    assert gone() is not None
    del part
    gc.collect()
    settle()
    assert gone() is None


def test_no_elements() -> None:
    tensor = dpt.zeros((0, 3), dtype="f4")
    array = arrowdl.to_arrow_device(Interface(tensor))
    assert (array.shape, array.device) == ((0, 3), arrowdl.Device("oneapi", 0))
    array = arrowdl.to_arrow_device(Interface(tensor, data=(0, False)))
    assert (array.shape, array.sync_event) == ((0, 3), None)
    with pytest.raises(AttributeError, match="without rows"):  # dpctl takes no address of 0
        array.__sycl_usm_array_interface__  # noqa: B018
    assert dpt.asarray(arrowdl.to_arrow_device(zeros(make_queue()))[:0]).shape == (0,)


@pytest.mark.parametrize("make", ["MemoryUSMDevice", "MemoryUSMShared", "MemoryUSMHost"])
def test_memory_of_dpctl_is_on_its_device(make: str) -> None:
    """By the buffer protocol it would be the CPU's, ready or not."""
    queue = make_queue()
    memory = getattr(dpctl.memory, make)(16, queue=queue)
    array = arrowdl.to_arrow_device(memory)
    assert (array.device.name, array.dtype, len(array)) == ("oneapi", "uint8", 16)


@pytest.mark.parametrize(
    ("entries", "error", "says"),
    [
        ({"version": 2}, BufferError, "version 2"),
        ({"syclobj": None}, ValueError, "no 'syclobj'"),
        ({"syclobj": object()}, BufferError, "does not find the memory"),
        ({"syclobj": "no:such:device"}, BufferError, "does not find the memory"),
        ({"offset": -1}, ValueError, "'offset' is -1"),
        ({"offset": 2**62}, ValueError, "'offset' is"),
        ({"data": (4096, False)}, BufferError, "does not find the memory"),
        ({"strides": (1, 1)}, ValueError, "'strides' has 2 entries"),
    ],
)
def test_a_wrong_interface_is_refused(
    entries: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        arrowdl.to_arrow_device(Interface(zeros(make_queue()), **entries))


def test_memory_of_another_context_is_refused() -> None:
    device = dpctl.get_devices()[0]
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    with pytest.raises(BufferError, match="another SYCL context"):
        arrowdl.to_arrow_device(Interface(dpt.zeros(3, sycl_queue=queue)))


def test_the_interface_waits_as_dpctls_own_does(queue: Any) -> None:
    """Its consumers do not: dpctl's property waits for its queue for that reason."""
    tensor = zeros(queue)
    given: list[dict[str, Any]] = []
    with Gate(queue) as gate:
        gate.fill(tensor, 7.0)
        array = arrowdl.to_arrow_device(tensor)
        consumer = threading.Thread(target=lambda: given.append(array.__sycl_usm_array_interface__))
        consumer.start()  # waits on the host, with the GIL free for this thread
        assert given == []
        gate.open()
        consumer.join()
        assert array.is_ready()
    (entries,) = given
    assert isinstance(entries["syclobj"], dpctl.SyclQueue)
    assert entries["data"] == (tensor.__sycl_usm_array_interface__["data"][0], True)
    assert (entries["shape"], entries["strides"], entries["offset"]) == ((ROWS,), None, 0)
    assert (entries["typestr"], entries["version"]) == ("<f4", 1)


def test_what_dpctl_makes_of_the_interface() -> None:
    tensor = dpt.reshape(dpt.arange(24, dtype="i4"), (4, 2, 3))
    array = arrowdl.to_arrow_device(dpt.permute_dims(tensor, (0, 2, 1)))[1:]
    assert array.__sycl_usm_array_interface__["strides"] == (6, 1, 3)
    consumed = dpt.asarray(array)
    assert values_of(consumed).tolist() == values_of(tensor)[1:].transpose(0, 2, 1).tolist()
    assert not consumed.flags.writable
    assert consumed.sycl_queue == dpt.zeros(1).sycl_queue  # so that both can be computed with
    memory = dpctl.memory.as_usm_memory(array)
    assert (memory.nbytes, memory.sycl_device) == (18 * 4, tensor.sycl_device)
    assert isinstance(dpt.usm_ndarray((18,), "i4", buffer=memory), dpt.usm_ndarray)


def test_the_array_is_kept_while_its_interface_is_used() -> None:
    array = arrowdl.to_arrow_device(zeros(make_queue()))
    consumed = dpt.asarray(array)
    before = debug.live_objects()
    del array
    gc.collect()
    assert debug.live_objects() == before
    queue = consumed.sycl_queue
    with Gate(queue):
        del consumed
        gc.collect()
        assert debug.pending_releases() == 1  # the queue is known to read it
    settle()


def test_what_has_no_interface_says_so() -> None:
    tensor = zeros(make_queue())
    array = arrowdl.to_arrow_device(tensor)
    assert hasattr(array, "__sycl_usm_array_interface__")
    assert not hasattr(array, "__cuda_array_interface__")
    bits = arrowdl.to_arrow_device({"x": tensor})
    assert not hasattr(bits, "__sycl_usm_array_interface__")
    assert not hasattr(arrowdl.to_arrow_device(np.arange(3)), "__sycl_usm_array_interface__")


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
    arrowdl.config.blocking_release = True
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
        arrowdl.config.blocking_release = False


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
import arrowdl, dpctl, {dpt.__name__} as dpt
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


# ---------------------------------------------------------------- copies


def test_a_copy_to_the_device_returns_before_it_is_done(queue: Any) -> None:
    source = np.arange(ROWS, dtype="f4")
    with Gate(queue) as gate:
        copied = arrowdl.to_arrow_device(source).to("oneapi:0", stream=queue)
        assert gate.is_closed()
        assert copied.device == arrowdl.Device("oneapi", 0)
        assert not copied.is_ready()
        gate.open()
        copied.synchronize()
    assert values_of(dpt.from_dlpack(copied)).tolist() == source.tolist()


def test_the_source_stays_until_it_is_copied(queue: Any) -> None:
    source = np.arange(ROWS, dtype="f4")
    alive = weakref.ref(source)
    array = arrowdl.to_arrow_device(source)
    del source
    with Gate(queue) as gate:
        copied = array.to("oneapi:0", stream=queue)
        del array
        gc.collect()
        assert alive() is not None
        assert debug.pending_releases() > 0
        gate.open()
        settle()
    assert alive() is None
    assert values_of(dpt.from_dlpack(copied)).tolist() == list(range(ROWS))


def test_a_copy_that_nobody_kept_is_written_to_its_end(queue: Any) -> None:
    with Gate(queue) as gate:
        arrowdl.to_arrow_device(np.arange(ROWS)).to("oneapi:0", stream=queue)
        assert debug.pending_releases() > 0, "the memory is there until the copy is done"
        gate.open()


def test_a_copy_to_the_cpu_waits_for_the_data(queue: Any) -> None:
    tensor = zeros(queue)
    with Gate(queue) as gate:
        gate.fill(tensor, 7.0)
        array = arrowdl.to_arrow_device(tensor)
        opener = threading.Timer(0.05, gate.open)  # on a thread that needs the GIL
        opener.start()
        copied = array.to("cpu")
        assert not gate.is_closed()
        opener.join()
    assert copied.sync_event is None
    assert arrowdl.to_numpy(copied).tolist() == [7.0] * ROWS


def test_structs_go_round_by_both_devices() -> None:
    fields = {"x": np.arange(ROWS, dtype="f8"), "y": np.ones((ROWS, 3), dtype="i2")}
    mask = np.arange(ROWS) % 3 > 0
    array = arrowdl.to_arrow_device(fields)[5:50]
    nulls = arrowdl.to_arrow_device(fields["x"], mask=mask)[5:50]
    again = array.to("oneapi:0").to("oneapi:1").to("cpu")
    result = arrowdl.to_numpy(again)
    for name, values in fields.items():
        assert (result[name] == values[5:50]).all()
    on_device = nulls.to("oneapi:0")
    assert on_device.null_count == nulls.null_count
    back, valid = arrowdl.to_numpy(on_device.to("cpu"), nulls="mask")
    assert valid.tolist() == mask[5:50].tolist()
    assert back[valid].tolist() == fields["x"][5:50][valid].tolist()


def test_a_queue_of_the_source_may_run_the_copy(queue: Any) -> None:
    tensor = zeros(queue)
    array = arrowdl.to_arrow_device(tensor)
    assert arrowdl.to_numpy(array.to("cpu", stream=queue)).tolist() == [0.0] * ROWS


def test_a_consumer_on_the_cpu_gets_a_copy_that_is_there(queue: Any) -> None:
    tensor = zeros(queue)
    with Gate(queue) as gate:
        gate.fill(tensor, 7.0)
        array = arrowdl.to_arrow_device(tensor)[1:]
        opener = threading.Timer(0.05, gate.open)
        opener.start()
        copied = np.from_dlpack(array, device="cpu")
        opener.join()
    assert copied.tolist() == [7.0] * (ROWS - 1)
    assert copied.flags.writeable, "nobody shares it"
    assert array.__dlpack__(dl_device=(1, 0)), "a legacy capsule as well"
    with pytest.raises(BufferError, match="allow it with copy=None"):
        np.from_dlpack(array, device="cpu", copy=False)
    with pytest.raises(BufferError, match="copies to the CPU alone"):
        array.__dlpack__(dl_device=(14, 1))


def test_a_queue_of_another_context_is_refused() -> None:
    device = dpctl.get_devices()[0]
    other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    array = arrowdl.to_arrow_device(np.arange(ROWS))
    for queue in (other, make_queue(device=1)):
        with pytest.raises(BufferError, match="default context"):
            array.to("oneapi:0", stream=queue)


def test_copied_memory_is_given_back() -> None:
    array = arrowdl.to_arrow_device(np.zeros(1 << 20, dtype="u1"))
    for _ in range(200):
        array.to("oneapi:0").to("cpu")
    settle()


# ---------------------------------------------------------------- the interchange protocol


class UsmBuffer:
    """A buffer of a frame in memory that is not for the host."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.sycl_queue = array.sycl_queue  # where the work is that DLPack does not speak of

    @property
    def ptr(self) -> int:
        raise AssertionError("the address was asked for")

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def usm_column(queue: Any, dtype: Any, **buffers: Any) -> Any:
    """A column over buffers that are said to lie on the CPU, moved to the device."""
    column = MadeColumn(buffers.pop("data"), dtype=dtype, **buffers)
    for name, buffer in column.buffers.items():
        if buffer is not None:
            moved = dpt.asarray(buffer[0].data, sycl_queue=queue)
            column.buffers[name] = (UsmBuffer(moved), buffer[1])
    queue.wait()
    return column


def usm_columns(queue: Any) -> dict[str, Any]:
    bitmap = np.full(ROWS // 8, 0b11111110, "uint8")
    text = np.frombuffer(b"ab" * ROWS, "uint8")
    offsets = np.arange(0, 2 * ROWS + 1, 2, dtype="int32")
    numbers = np.zeros(ROWS, "f4")
    masked = {"null": (USE_BITMASK, 0), "validity": bitmap}
    string = (STRING, 8, "u", "=")
    return {
        "x": usm_column(queue, None, data=numbers, **masked),
        "s": usm_column(queue, string, data=text, size=ROWS, offsets=offsets),
    }


def test_a_frame_of_usm_buffers_is_taken_before_its_data_exists(queue: Any) -> None:
    columns = usm_columns(queue)
    with Gate(queue) as gate:
        gate.fill(columns["x"].buffers["data"][0].array, 7.0)
        array = arrowdl.from_arrow(MadeFrame(columns), copy=False)
        assert gate.is_closed()
        assert array.device.name == "oneapi"
        assert not array.is_ready()
        gate.open()
        copied = array.to("cpu")
    assert copied.field("x").null_count == ROWS // 8
    values, mask = arrowdl.to_numpy(copied.field("x"), nulls="mask")
    assert values[mask].tolist() == [7.0] * (ROWS - ROWS // 8)
    assert len(copied.field("s").values) == 2 * ROWS


def test_a_buffer_that_does_not_say_its_queue_is_refused() -> None:
    columns = usm_columns(make_queue())
    del columns["x"].buffers["data"][0].sycl_queue
    with pytest.raises(BufferError, match=r'column "x".*does not name the queue'):
        arrowdl.from_arrow(MadeFrame(columns))


def test_nulls_among_the_values_become_a_bitmap() -> None:
    """By way of the host."""
    values = np.where(np.arange(ROWS) % 5 == 2, np.nan, np.arange(ROWS)).astype("f4")

    def make(*, copy: bool | None = None, data: np.ndarray = values) -> Any:
        column = usm_column(make_queue(), None, data=data, null=(USE_NAN, None))
        return arrowdl.from_arrow(MadeFrame({"x": column}), copy=copy).field("x")

    array = make()
    assert array.device.name == "oneapi"
    assert array.null_count == np.isnan(values).sum()
    made, valid = arrowdl.to_numpy(array.to("cpu"), nulls="mask")
    np.testing.assert_array_equal(valid, ~np.isnan(values))
    np.testing.assert_array_equal(made[valid], values[valid])
    assert make(copy=False, data=np.zeros(ROWS, "f4")).null_count == 0
    with pytest.raises(BufferError, match="copy=False: its 13 nulls are marked by NaN"):
        make(copy=False)


# ---------------------------------------------------------------- bits and nulls


@pytest.fixture(scope="module")
def dpctl_as_framework() -> None:
    """dpctl.tensor in the place of a framework: its own operations, on the device."""
    from arrowdl import _frameworks
    from arrowdl._frameworks.numpy_like import make_operations

    def put(array: np.ndarray, name: str, index: int) -> Any:
        assert name == "oneapi"
        return dpt.asarray(array, sycl_queue=make_queue(device=index))

    framework = dataclasses.replace(
        _frameworks.load("numpy"),
        from_dlpack=from_any_dlpack,
        from_offsets=from_any_dlpack,
        put=put,
        **make_operations(dpt),
    )
    # The core keeps what it has loaded: jax is not used in this process.
    sys.modules["arrowdl._frameworks.jax"] = SimpleNamespace(FRAMEWORK=framework)


def from_any_dlpack(tensor: Any) -> Any:
    """dpctl's arrays of its devices, numpy's of the CPU."""
    is_on_host = tensor.__dlpack_device__()[0] == arrowdl.DeviceType.cpu
    return (np if is_on_host else dpt).from_dlpack(tensor)


@pytest.mark.usefixtures("dpctl_as_framework")
def test_the_frameworks_operations_unpack_bits_and_nulls() -> None:
    bits = np.arange(100) % 3 == 0
    mask = np.arange(100) % 7 != 2
    numbers = np.arange(100, dtype="f4")
    images = np.arange(600, dtype="i4").reshape(100, 2, 3).transpose(0, 2, 1)
    for values in (bits, numbers, images):
        array = arrowdl.to_arrow_device(values, mask=mask, bool_as="bits").to("oneapi")
        for rows in (slice(None), slice(13, 77)):
            there = array[rows]
            expected, valid = values[rows], mask[rows]
            whole = np.broadcast_to(valid.reshape(-1, *[1] * (values.ndim - 1)), expected.shape)
            filled = arrowdl.to_jax(there, nulls="fill")
            assert isinstance(filled, dpt.usm_ndarray)
            np.testing.assert_array_equal(values_of(filled), np.where(whole, expected, 0))
            kept, made = arrowdl.to_jax(there, nulls="mask")
            np.testing.assert_array_equal(values_of(made), whole)
            np.testing.assert_array_equal(values_of(kept)[whole], expected[whole])
    with pytest.raises(BufferError, match="has nulls"):
        arrowdl.to_jax(array)


def test_fields_have_the_nulls_of_their_struct() -> None:
    """oneAPI has no kernels of arrowdl's: the host combines the bitmaps."""
    numbers = np.arange(100)
    of_x, of_rows = numbers % 3 != 0, numbers % 7 != 2
    x = arrowdl.to_arrow_device(numbers, mask=of_x)
    here = arrowdl.to_arrow_device({"x": x, "y": numbers}, mask=of_rows)
    there = here.to("oneapi")
    for rows in slice(None), slice(13, 77), slice(5, 5):
        for name, valid in ("x", of_x & of_rows), ("y", of_rows):
            made = there[rows][name]
            assert made.device.type == arrowdl.DeviceType.oneapi
            values, mask = arrowdl.to_numpy(made.to("cpu"), nulls="mask")
            np.testing.assert_array_equal(mask, valid[rows])
            np.testing.assert_array_equal(values[mask], numbers[rows][valid[rows]])


def test_a_stream_of_torch_accelerator_is_its_queue() -> None:
    """torch.accelerator.current_stream() is a torch.Stream. Source of its native_handle:
    getStreamNativeHandle in c10/xpu/impl/XPUGuardImpl.h."""

    class Stream:
        def __init__(self, queue: Any, kind: str) -> None:
            self.native_handle, self.device = queue.addressof_ref(), SimpleNamespace(type=kind)

    queue = make_queue()
    array = arrowdl.to_arrow_device(np.arange(8)).to("oneapi", stream=Stream(queue, "xpu"))
    array.wait(Stream(queue, "xpu"))
    array.record_stream(Stream(queue, "xpu"))
    np.testing.assert_array_equal(arrowdl.to_numpy(array.to("cpu")), np.arange(8))
    with pytest.raises(BufferError, match="is not a stream of oneapi:0"):
        array.wait(Stream(queue, "cuda"))


# ---------------------------------------------------------------- by way of the host


def compare(made: Any, expected: Any) -> None:
    """Tensors of the device, in tuples too, have the values of those of the CPU."""
    if isinstance(expected, tuple):
        for pair in zip(made, expected, strict=True):
            compare(*pair)
        return
    assert isinstance(made, dpt.usm_ndarray)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(values_of(made), expected)


def make_lists(width: str = "i4", values: Any = None) -> Any:
    offsets = np.array([0, 3, 3, 4, 9, 9, 12], width)
    values = np.arange(12, dtype="f4") if values is None else values
    return _core.make_list(arrowdl.to_arrow_device(values), arrowdl.to_arrow_device(offsets))


@pytest.mark.usefixtures("dpctl_as_framework")
@pytest.mark.parametrize("ragged", ["jagged", "padded", "offsets"])
@pytest.mark.parametrize("device", ["oneapi:0", "oneapi:1"])
def test_lists_become_tensors(ragged: str, device: str) -> None:
    mask = np.array([True, False, True, True, True, False])
    nested = _core.make_list(make_lists(), arrowdl.to_arrow_device(np.array([0, 2, 6], "i4")))
    bools = make_lists("i8", np.arange(12) % 3 == 0)
    for lists in (make_lists(), make_lists("i8"), bools, make_lists(values=np.ones((12, 2)))):
        for here in (lists, _core.apply_mask(lists, mask), lists[1:4]):
            for nulls in ("fill", "mask"):
                made = arrowdl.to_jax(here.to(device), ragged=ragged, nulls=nulls)
                compare(made, arrowdl.to_numpy(here, ragged=ragged, nulls=nulls))
    if ragged != "padded":
        (rows, inner), outer = arrowdl.to_jax(nested.to(device), ragged=ragged)
        (here_rows, here_inner), here_outer = arrowdl.to_numpy(nested, ragged=ragged)
        compare((rows, inner, outer), (here_rows, here_inner, here_outer))
    there = make_lists().to(device)
    assert values_of(dpt.from_dlpack(there.offsets)).tolist() == [0, 3, 3, 4, 9, 9, 12]
    with pytest.raises(BufferError, match="without a copy"):
        arrowdl.to_jax(there, ragged=ragged, copy=False)


@pytest.mark.usefixtures("dpctl_as_framework")
def test_strings_become_bytes(queue: Any) -> None:
    there = arrowdl.from_arrow(MadeFrame(usm_columns(queue))).field("s")
    for ragged in ("offsets", "padded"):
        compare(
            arrowdl.to_jax(there, ragged=ragged), arrowdl.to_numpy(there.to("cpu"), ragged=ragged)
        )


def make_columns() -> dict[str, Any]:
    rows = np.arange(20)
    return {
        "x": arrowdl.to_arrow_device(rows / 2, mask=rows % 3 != 1),
        "pair": arrowdl.to_arrow_device(np.stack([rows, -rows], 1).astype("f8")),
        "y": arrowdl.to_arrow_device(rows.astype("f8"), mask=rows % 4 != 1),
    }


@pytest.mark.usefixtures("dpctl_as_framework")
@pytest.mark.parametrize("nulls", ["fill", "nan", "mask"])
def test_fields_are_stacked(nulls: str) -> None:
    struct = arrowdl.to_arrow_device(make_columns(), mask=np.arange(20) % 7 != 3)
    for here in (struct, struct[3:11]):
        for options in ({}, {"dtype": "float32"}):
            made = arrowdl.to_jax(here.to("oneapi"), stack=True, nulls=nulls, **options)
            compare(made, arrowdl.to_numpy(here, stack=True, nulls=nulls, **options))


@pytest.mark.usefixtures("dpctl_as_framework")
def test_numbers_are_cast() -> None:
    here = arrowdl.to_arrow_device(np.arange(300), mask=np.arange(300) % 3 != 1)
    for rows in (slice(None), slice(5, 100)):
        made = arrowdl.to_jax(here.to("oneapi")[rows], nulls="fill", dtype="float32")
        compare(made, arrowdl.to_numpy(here[rows], nulls="fill", dtype="float32"))
    with pytest.raises(ValueError, match="row 257"):
        arrowdl.to_jax(here.to("oneapi"), nulls="fill", dtype="uint8")


def test_bits_are_exported() -> None:
    bits = np.arange(100) % 3 == 0
    there = arrowdl.to_arrow_device(bits, bool_as="bits").to("oneapi")
    for rows in slice(None), slice(13, 77):
        assert values_of(dpt.from_dlpack(there[rows])).tolist() == bits[rows].tolist()
    with pytest.raises(BufferError, match="copy"):
        there.__dlpack__(copy=False)


def test_nulls_of_windows_are_counted() -> None:
    mask = np.arange(200) % 3 != 1
    there = arrowdl.to_arrow_device(np.arange(200), mask=mask).to("oneapi")
    for start, stop in ((0, 200), (0, 1), (1, 2), (5, 199), (9, 9)):
        assert there[start:stop].null_count == (~mask[start:stop]).sum()
    assert values_of(dpt.from_dlpack(there[2:4])).tolist() == [2, 3]  # nulls="raise", and none


TENSORS: dict[str, Callable[[Any], Any]] = {
    "strided": lambda array: array[:, ::2],
    "reversed": lambda array: array[::-1],
    "columns first": lambda array: array.T,
    "rows left out": lambda array: array[1::2, 1:],
    "dense": lambda array: array,
}


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("dtype", ["?", "i1", "f4", "i8", "c16"])
def test_tensors_become_dense(kind: str, dtype: str) -> None:
    numbers = (np.arange(42).reshape(6, 7) % 5).astype(dtype)
    there = TENSORS[kind](dpt.asarray(numbers))
    there.sycl_queue.wait()
    here = TENSORS[kind](numbers)
    mask = np.arange(2 * len(here)) % 3 != 1
    options = [{}, {"copy": True}, {"layout": "list"}, {"bool_as": "bits"}]
    for option in options:
        made = arrowdl.to_arrow_device(there, **option)
        expected = arrowdl.to_arrow_device(here, **option)
        assert (made.device.name, str(made.type)) == ("oneapi", str(expected.type))
        back = arrowdl.to_numpy(made.to("cpu"))
        np.testing.assert_array_equal(back, arrowdl.to_numpy(expected))
        masked = arrowdl.to_arrow_device(there, mask=dpt.asarray(mask)[::2], **option)
        assert masked.device.name == "oneapi"
        assert masked.null_count == (~mask[::2]).sum()
        _, valid = arrowdl.to_numpy(masked.to("cpu"), nulls="mask")
        np.testing.assert_array_equal(valid.reshape(len(here), -1).any(axis=1), mask[::2])


def test_broadcast_tensors_become_dense() -> None:
    there = dpt.broadcast_to(dpt.arange(3, dtype="i4"), (5, 3))
    there.sycl_queue.wait()
    array = arrowdl.to_arrow_device(there)
    assert values_of(dpt.from_dlpack(array)).tolist() == [[0, 1, 2]] * 5
    one = dpt.broadcast_to(dpt.asarray(7, dtype="i4"), (4,))
    assert values_of(dpt.from_dlpack(arrowdl.to_arrow_device(one))).tolist() == [7] * 4


def test_a_copy_on_the_device_has_its_own_memory(queue: Any) -> None:
    tensor = zeros(queue)
    copied = arrowdl.to_arrow_device(tensor, copy=True)
    tensor[:] = 5.0
    queue.wait()
    assert values_of(dpt.from_dlpack(copied)).tolist() == [0.0] * ROWS


def test_rows_are_joined_cut_shuffled_and_taken() -> None:
    number = _core.read_row_numbers
    mask = np.array([True, False, True, True, True, False])
    struct = _core.make_struct(
        ["i", "x", "l"],
        [
            arrowdl.to_arrow_device(np.arange(6)),
            arrowdl.to_arrow_device(np.arange(6.0), mask=mask),
            make_lists(),
        ],
    )
    parts = [struct, struct[2:5], struct[:0], struct[4:]]
    there = [part.to("oneapi:1") for part in parts]

    def same(made: Any, expected: Any) -> None:
        assert made.device == arrowdl.Device("oneapi", 1)
        pair = [
            arrowdl.to_numpy(rows, nulls="fill", ragged="padded")
            for rows in (made.to("cpu"), expected)
        ]
        for name in ("i", "x"):
            np.testing.assert_array_equal(pair[0][name], pair[1][name])
        for one, two in zip(pair[0]["l"], pair[1]["l"], strict=True):
            np.testing.assert_array_equal(one, two)

    same(_core.concatenate(there), _core.concatenate(parts))
    changes: list[Callable[[Any], Any]] = [
        lambda stream: stream.rebatch(4),
        lambda stream: stream.shuffle(5, 3),
        lambda stream: stream.shuffle(100, 7).slice(2, 6).rebatch(5, drop_last=True),
    ]
    for change in changes:
        made = list(change(_core.chain(there)))
        for pair in zip(made, change(_core.chain(parts)), strict=True):
            same(*pair)
    rows = [_core.number_rows(arrays, number([0, 6, 9, 9], 99)) for arrays in (there, parts)]
    for numbers in ([10, 0, 7, 0], [2, 3], []):
        taken, expected = (_core.take_rows(one, number(numbers, 11))[0] for one in rows)
        same(taken, expected)


def test_a_copy_to_the_host_follows_the_work_on_the_data(queue: Any) -> None:
    tensor = zeros(queue)
    made: list[Any] = []
    with Gate(queue) as gate:
        gate.fill(tensor, 7.0)
        strided = tensor[::2]
        thread = threading.Thread(target=lambda: made.append(arrowdl.to_arrow_device(strided)))
        thread.start()
        assert made == []
        gate.open()
        thread.join()
    assert values_of(dpt.from_dlpack(made[0])).tolist() == [7.0] * (ROWS // 2)


def test_what_was_copied_by_way_of_the_host_is_released() -> None:
    """While the device may still copy from the memory of the host."""
    before = debug.live_objects()
    two = arrowdl.to_arrow_device(np.arange(ROWS)).to("oneapi")
    for _ in range(100):
        joined = _core.concatenate([two, two])
        del joined
    settle()
    del two
    gc.collect()
    settle()
    assert debug.live_objects() == before
