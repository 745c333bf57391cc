"""What GPU libraries export, and what they do with arrays of arrowdl's, on the fake CUDA driver.

A producer's work waits at a gate while its tensor becomes an array: what reads the array later must
see what that work writes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

PRODUCERS = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import pyarrow as pa
from helpers.gpu_libraries import TorchStream, Xla, data_of, torch_from_dlpack
from helpers.gpu_producers import (
    CoreBuffer, CupyArray, JaxArray, NcclWork, NumbaArray, OldProducer)

EXPECTED = list(range(1, 17))
consumer = TorchStream(cuda.make_stream())
made = None

def make():
    array = arrowdl.from_arrow(pa.array(EXPECTED, pa.uint8())).to("cuda:0")
    array.synchronize()
    settle()
    return array

def check(array, open_gate):
    assert not array.is_ready(), "nobody has waited"
    consumed = torch_from_dlpack(array, consumer)
    read = cuda.read(consumer.cuda_stream, data_of(consumed), len(EXPECTED))
    assert not any(read)
    open_gate()
    cuda.synchronize(consumer.cuda_stream)
    assert list(read) == EXPECTED

def finish(producer=None):
    gc.collect()
    settle()
    assert producer is None or producer.released == 1
    assert debug.abandoned_releases() == 0
    assert debug.live_objects() == 0
"""


@pytest.fixture
def run(on_fake_cuda: Callable[[str], None]) -> Callable[[str], None]:
    return lambda code: on_fake_cuda(PRODUCERS + code)


@pytest.mark.parametrize("library", ["CuPy", "JAX", "one without streams"])
def test_a_producer_orders_its_work_before_a_stream_of_arrowdl(
    run: Callable[[str], None], library: str
) -> None:
    run(f"""
library = {library!r}
xla = Xla(cuda)
stream = {{"CuPy": cuda.make_stream(), "JAX": xla.compute_stream}}.get(library, 1)
gate = cuda.gate(stream)
gate.__enter__()
producer = (JaxArray(xla, EXPECTED) if library == "JAX" else
            (CupyArray if library == "CuPy" else OldProducer)(cuda, EXPECTED, stream))
array = arrowdl.to_arrow_device(producer)
(asked,) = producer.asked
assert asked == "nothing" or asked > 2, "a stream of arrowdl's own"
check(array, lambda: gate.__exit__(None, None, None))
del array
finish(producer)
""")


@pytest.mark.parametrize("library", ["CuPy", "cuda.core"])
def test_a_stream_that_the_caller_names_is_that_of_the_work(
    run: Callable[[str], None], library: str
) -> None:
    """cuda.core's buffers have no stream: without `stream=` their work is not ordered."""
    run(f"""
work = cuda.make_stream()
gate = cuda.gate(work)
gate.__enter__()
producer = (CupyArray if {library!r} == "CuPy" else CoreBuffer)(cuda, EXPECTED, work)
array = arrowdl.to_arrow_device(producer, stream=TorchStream(work))
assert producer.asked == [work]
check(array, lambda: gate.__exit__(None, None, None))
del array
finish(producer)
""")


def test_jax_gives_its_memory_back_after_arrows_readers(run: Callable[[str], None]) -> None:
    run("""
xla = Xla(cuda)
producer = JaxArray(xla, EXPECTED)
array = arrowdl.to_arrow_device(producer)
consumed = torch_from_dlpack(array, consumer)
with cuda.gate(consumer.cuda_stream):
    read = cuda.read(consumer.cuda_stream, data_of(consumed), len(EXPECTED))
    del array, consumed
    assert debug.pending_releases() >= 1
    assert producer.released == 0, "torch still reads it"
finish(producer)
assert list(read) == EXPECTED
""")


def test_numba_waits_and_keeps_the_array(run: Callable[[str], None]) -> None:
    run("""
array = make()
theirs = NumbaArray(cuda, array)
stream = cuda.make_stream()  # that of a kernel of numba's
array.record_stream(TorchStream(stream))
with cuda.gate(stream):
    read = cuda.read(stream, theirs.memory, len(EXPECTED))
    del array, theirs
    assert debug.pending_releases() >= 1
finish()
assert list(read) == EXPECTED
array = make()
theirs = NumbaArray(cuda, array)
with cuda.gate(1):  # its default stream, which it names in no call
    read = cuda.read(1, theirs.memory, len(EXPECTED))
    del array, theirs
    assert debug.pending_releases() >= 1
finish()
assert list(read) == EXPECTED
""")


@pytest.mark.parametrize("drops", ["before it waits", "after it waits"])
def test_the_streams_of_ddp(run: Callable[[str], None], drops: str) -> None:
    """DDP reduces on the stream of NCCL, which arrowdl does not know: the current stream, which
    arrowdl knows, waits for it."""
    run(f"""
nccl = cuda.make_stream()
array = make()
consumed = torch_from_dlpack(array, consumer)
memory = data_of(consumed)
with cuda.gate(nccl):
    work = NcclWork(cuda, nccl, consumer.cuda_stream, [consumed])
    read = work.read(memory, len(EXPECTED))
    if {drops == "before it waits"}:
        del array, consumed
        assert debug.live_objects() > 0
        work.wait()
    else:
        work.wait()
        del array, consumed
    assert debug.pending_releases() >= 1, "the current stream waits for NCCL's"
finish()
assert list(read) == EXPECTED
""")
