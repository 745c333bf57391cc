"""The calls around streams that GPU libraries really make, on the fake CUDA driver.

A consumer's kernel waits at a gate while its tensor, and the array, are dropped. The memory must
hold its values until the kernel has read them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

LIBRARIES = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import pyarrow as pa
from helpers.arrow import ArrowDeviceArray
from helpers.capsules import capsule_address
from helpers.gpu_libraries import (
    AcceleratorStream, Cupy, CupyEvent, TorchStream, Xla, data_of, torch_from_dlpack)

SIZE = 16
EXPECTED = list(range(SIZE))

def make():
    array = arrowdl.from_arrow(pa.array(EXPECTED, pa.uint8())).to("cuda:0")
    array.synchronize()
    settle()  # the copy has given back what it held
    return array

def finish():
    settle()
    assert cuda.misuses() == 0
    assert debug.abandoned_releases() == 0
    assert debug.live_objects() == 0
"""


@pytest.fixture
def run(on_fake_cuda: Callable[[str], None]) -> Callable[[str], None]:
    return lambda code: on_fake_cuda(LIBRARIES + code)


def test_torch_eager_and_a_stream_that_the_caller_names(run: Callable[[str], None]) -> None:
    run("""
for current in TorchStream(cuda.make_stream()), TorchStream(0):  # a stream of its pool, the default
    array = make()
    consumed = torch_from_dlpack(array, current)
    other = cuda.make_stream()
    array.record_stream(TorchStream(other))
    with cuda.gate(other), cuda.gate(current.cuda_stream or 1):
        reads = [cuda.read(stream, data_of(consumed), SIZE)
                 for stream in (current.cuda_stream or 1, other)]
        del array, consumed
        assert debug.pending_releases() >= 1
    settle()
    assert [list(read) for read in reads] == [EXPECTED, EXPECTED]
finish()
""")


def test_torch_captures_a_graph(run: Callable[[str], None]) -> None:
    """torch.cuda.graph captures in the global mode on a stream of torch's pool."""
    run("""
array, late = make(), make()
stream, producer = TorchStream(cuda.make_stream()), cuda.make_stream()
dropped = make()
foreign = cuda.allocate(SIZE)

class Freed:  # a library whose deleter calls cudaFree
    __cuda_array_interface__ = {
        "shape": (SIZE,), "typestr": "|u1", "data": (foreign, False), "version": 3, "stream": None}
    def __del__(self):
        with cuda.context(0):
            cuda.call("cuMemFree_v2", ctypes.c_void_p(foreign))

freed = arrowdl.to_arrow_device(Freed())
freed.record_stream(producer)
with cuda.gate(producer):
    pending = arrowdl.to_arrow_device(
        cuda.tensor(cuda.allocate(SIZE), (4,), stream=producer))
    del freed  # waits for the producer
    with cuda.capture(stream.cuda_stream):
        consumed = torch_from_dlpack(array, stream)  # is ready: nothing to wait for
        dropped.record_stream(stream)
        del dropped
        refused(BufferError, "captured into a graph", lambda: torch_from_dlpack(pending, stream))
with cuda.capture(cuda.make_stream()):
    settle()  # the foreign memory is freed during a capture
del array, consumed, late, pending
finish()
""")


def test_cupy_destroys_a_stream_with_its_object(run: Callable[[str], None]) -> None:
    run("""
cupy = Cupy(cuda)
cuda.reuse_handles()
array = make()
with cupy.stream() as stream:
    handle = stream.ptr
    consumed = cupy.from_dlpack(array)
del stream
read = cuda.read(handle, data_of(consumed), SIZE)
other = cuda.make_stream()
assert other != handle, "its stream is destroyed while arrowdl has its handle"
gate = cuda.gate(handle)
gate.__enter__()
late = cuda.read(handle, data_of(consumed), SIZE)
del array, consumed
assert debug.pending_releases() == 1
gate.__exit__(None, None, None)
settle()
assert list(read) == list(late) == EXPECTED
assert cuda.make_stream() == handle, "and destroyed in the end"
refused(BufferError, "is not a stream", lambda: make().wait(CupyEvent(cuda)))
finish()
""")


def test_a_number_is_a_stream_until_the_consumer_deletes_its_tensor(
    run: Callable[[str], None],
) -> None:
    """cuda.core's StridedMemoryView(array, stream_ptr), warp and nvmath pass numbers, too."""
    run("""
cuda.reuse_handles()
for version in (1, 0), None:
    array = make()
    stream = cuda.make_stream()
    consumed = array.__dlpack__(stream=stream, max_version=version)
    gate = cuda.gate(stream)
    gate.__enter__()
    read = cuda.read(stream, data_of(consumed), SIZE)
    del consumed
    cuda.destroy_stream(stream)  # its work goes on
    stuck = cuda.make_stream()
    assert stuck == stream, "the number means another stream now"
    with cuda.gate(stuck):
        del array
        assert debug.pending_releases() == 1
        gate.__exit__(None, None, None)
        settle()  # waits for the work of the first stream alone
    assert list(read) == EXPECTED
    cuda.destroy_stream(stuck)
finish()
""")


@pytest.mark.parametrize("drops", ["at once", "when it has computed"])
def test_jax_computes_on_a_stream_that_it_does_not_name(
    run: Callable[[str], None], drops: str
) -> None:
    run(f"""
xla = Xla(cuda)
for round in range(6):  # it has four streams to wait with
    array = make()
    with cuda.gate(xla.compute_stream):
        consumed = xla.from_dlpack(array)
        result = xla.compute(data_of(consumed), SIZE)
        del array
        if {drops == "at once"}:  # XLA's older client
            del consumed
            while xla.probes <= round:
                time.sleep(0.001)
            assert debug.pending_releases() == 1
    if {drops != "at once"}:
        cuda.synchronize(xla.compute_stream)
        del consumed
    settle()
    assert xla.probes == round + 1
    assert list(result) == EXPECTED
finish()
""")


def test_jax_that_has_not_started_is_left_alone(run: Callable[[str], None]) -> None:
    run("""
xla = Xla(cuda)
array, stream = make(), TorchStream(cuda.make_stream())
consumed = torch_from_dlpack(array, stream)
assert not xla.is_started
del array, consumed
settle()
xla.is_started = True
array = make()
consumed = torch_from_dlpack(array, stream)
del array, consumed
settle()
assert xla.probes == 0
finish()
""")


def test_jax_has_what_its_double_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax
    from arrowdl._frameworks import jax_streams

    (device, *_) = jax.devices("cpu")
    monkeypatch.setitem(jax_streams._PLATFORMS, 1, "cpu")
    assert jax_streams._find_device(1, 0) is device
    assert jax_streams._find_device(2, 0) is None
    assert callable(device.get_stream_for_external_ready_events)
    assert not jax_streams.is_stream(1, 0, 5)  # the CPU has no streams
    with pytest.raises(Exception, match="WaitUntilBufferReadyOnStream"):
        jax_streams.order_after_compute(1, 0, 5)


@pytest.mark.parametrize("guard", ["disallow", "disallow_explicit"])
def test_the_user_s_transfer_guard_does_not_hold_memory(
    monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    """Under a guard the release of what JAX has used failed, and the memory was never released."""
    import jax
    from arrowdl._frameworks import jax_streams

    monkeypatch.setitem(jax_streams._PLATFORMS, 1, "cpu")
    monkeypatch.setattr(jax_streams, "_probes", {})
    jax.devices("cpu")
    jax.config.update("jax_transfer_guard", guard)
    try:
        with pytest.raises(Exception, match="WaitUntilBufferReadyOnStream"):  # the CPU has none
            jax_streams.order_after_compute(1, 0, 5)
    finally:
        jax.config.update("jax_transfer_guard", "allow")


def test_a_batch_that_jax_drops_is_asked_for_once(run: Callable[[str], None]) -> None:
    """A computation of JAX for each column would cost the training its step time."""
    run("""
xla = Xla(cuda)
columns = {f"c{i}": pa.array(EXPECTED, pa.uint8()) for i in range(50)}
batch = arrowdl.from_arrow(pa.record_batch(columns)).to("cuda:0")
batch.synchronize()
settle()
consumed = [xla.from_dlpack(batch[name]) for name in columns]
with cuda.gate(xla.compute_stream):
    results = [xla.compute(data_of(one), SIZE) for one in consumed]
    del consumed, batch
    while not xla.probes:
        time.sleep(0.001)
    assert debug.pending_releases() == 50
settle()
assert all(list(result) == EXPECTED for result in results)
assert xla.probes <= 2, xla.probes  # the first column may come before the others
finish()
""")


def test_numba_writes_none_for_its_default_stream(run: Callable[[str], None]) -> None:
    run("""
memory = cuda.allocate(16)
entries = cuda.tensor(memory, (4,), stream=None).__cuda_array_interface__
for module, waits in ("numba.cuda.cudadrv.devicearray", True), ("cuda.stf", True), ("rmm", False):
    made = type("DeviceNDArray", (), {"__module__": module, "__cuda_array_interface__": entries})()
    with cuda.gate(1):
        array = arrowdl.to_arrow_device(made)
        assert array.is_ready() is not waits
    array.synchronize()
""")


@pytest.mark.parametrize("how", ["array", "array stream", "stream"])
def test_libcudf_releases_without_naming_a_stream(run: Callable[[str], None], how: str) -> None:
    """from_arrow_device makes its stream, the legacy default one, wait for the event. The owner
    calls release without a stream while its kernels run."""
    run(f"""
how = {how!r}
table = pa.table({{"a": pa.array(EXPECTED, pa.uint8())}})
batch = arrowdl.from_arrow(table).to("cuda:0")
batch.synchronize()
settle()
if how == "array":
    schema, exported = batch.__arrow_c_device_array__()
    device_array = ArrowDeviceArray.from_address(capsule_address(exported))
    memory = device_array.array.children[0].contents.buffers[1]
else:
    from arrowdl import _core
    from helpers.streams import ArrowDeviceArrayStream
    source = _core.chain([batch]) if how == "stream" else batch
    capsule = source.__arrow_c_device_stream__()
    stream = ArrowDeviceArrayStream.from_address(capsule_address(capsule))
    exported = ArrowDeviceArray()
    get_next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(stream.get_next)
    assert get_next(ctypes.addressof(stream), ctypes.addressof(exported)) == 0
    memory = exported.array.children[0].contents.buffers[1]
with cuda.gate(1):
    read = cuda.read(1, memory, SIZE)
    if how == "array":
        del exported, schema, device_array
    else:
        release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        release(ctypes.cast(exported.array.release, ctypes.c_void_p).value)(
            ctypes.addressof(exported.array))
        del capsule, stream, source
    del batch
    assert debug.pending_releases() == 1
settle()
assert list(read) == EXPECTED
finish()
""")


def test_libcudf_gives_an_event_and_frees_without_waiting(run: Callable[[str], None]) -> None:
    """to_arrow_device records sync_event on its stream; its release gives the columns back to RMM,
    which may hand the memory out at once."""
    run("""
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema

memory, theirs = cuda.allocate(SIZE), cuda.make_stream()
source = (ctypes.c_ubyte * SIZE)(*EXPECTED)
event = ctypes.c_void_p(cuda.make("cuEventCreate", 2))

with cuda.gate(theirs):
    cuda.library.arrowdl_fake_enqueue_copy(0, theirs, memory, ctypes.addressof(source), SIZE)
    with cuda.context(0):
        cuda.call("cuEventRecord", event, ctypes.c_void_p(theirs))
    column = MadeArray(SIZE, [None, memory])
    exported = MadeDeviceArray(column, (2, 0), ctypes.addressof(event))
    array = arrowdl.from_arrow((MadeSchema("C").capsule(), exported.capsule()))
    assert not array.is_ready()
    ours = TorchStream(cuda.make_stream())
    consumed = torch_from_dlpack(array, ours)
    read = cuda.read(ours.cuda_stream, data_of(consumed), SIZE)
    del array, consumed
    assert debug.pending_releases() == 1
    assert column.released == 0, "its event and its memory are in use"
settle()
assert column.released == 1
assert list(read) == EXPECTED
finish()
""")


def test_streams_know_their_device(run: Callable[[str], None]) -> None:
    run("""
from types import SimpleNamespace

array = make()
memory = data_of(array.__dlpack__(stream=-1, max_version=(1, 0)))
class Core:  # cuda.core's default stream
    device = SimpleNamespace(device_id=1)
    def __cuda_stream__(self):
        return 0, 1

for other in TorchStream(0, 1), AcceleratorStream(1, index=1), Core():
    for use in (lambda: array.__dlpack__(stream=other),
                lambda: arrowdl.from_arrow(pa.array([1])).to("cuda:0", stream=other)):
        refused(BufferError, "is the default stream of cuda:1", use)
    array.wait(other)
    array.record_stream(other)
for same in TorchStream(0, 0), TorchStream(cuda.make_stream(1), 1), AcceleratorStream(0):
    array.wait(same)
with cuda.gate(1, device=1):
    read = cuda.read(1, memory, SIZE, device=1)
    del array
    while debug.pending_releases() > 1: time.sleep(0.001)
    time.sleep(0.01)
    assert debug.pending_releases() == 1, "device 1 reads it"
settle()
assert list(read) == EXPECTED
finish()
""")


def test_only_streams_are_streams(run: Callable[[str], None]) -> None:
    run("""
from types import SimpleNamespace

array = make()
class Newer:
    def __cuda_stream__(self):
        return 1, 5
class Odd:
    __cuda_stream__ = 5

refused(BufferError, "version 1 of __cuda_stream__", lambda: array.wait(Newer()))
refused(TypeError, "expected (version, handle)", lambda: array.wait(Odd()))
for thing in CupyEvent(cuda), SimpleNamespace(ptr=5), SimpleNamespace(handle=5), 1.5, "1":
    refused(BufferError, "is not a stream of cuda:0", lambda: array.record_stream(thing))
import tvm_ffi
for name, accepted in ("cuda", True), ("rocm", False), ("cpu", False):
    context = tvm_ffi.StreamContext(tvm_ffi.device(name, 0), cuda.make_stream())
    if accepted:
        array.record_stream(context)
        context.stream = ctypes.c_void_p(context.stream)
        array.record_stream(context)
    else:
        refused(BufferError, "is not a stream of cuda:0", lambda: array.record_stream(context))
xpu = AcceleratorStream(5, "xpu")
refused(BufferError, "is not a stream of cuda:0", lambda: array.record_stream(xpu))
stream = cuda.make_stream()
array.record_stream(AcceleratorStream(stream))
with cuda.gate(stream):
    del array
    assert debug.pending_releases() == 1
finish()
""")


def test_a_deleter_waits_for_nothing(run: Callable[[str], None]) -> None:
    """A consumer may delete its tensor on any thread, with any lock held."""
    run("""
arrowdl.config.release_limit = 0
stream = TorchStream(cuda.make_stream())
arrays = [make() for _ in range(3)]
tensors = [torch_from_dlpack(array, stream) for array in arrays]
with cuda.gate(stream.cuda_stream):
    del arrays, tensors  # would hang
    assert debug.pending_releases() == 3
finish()
""")
