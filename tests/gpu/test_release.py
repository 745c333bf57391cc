"""Memory whose owner would write to it while others still read it.

torch's allocator hands a block out again as soon as its tensor is dropped, to the stream that it
was made on. A reader on another stream is late here: it spins first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import debug
from helpers.fake_cuda import HasInterface
from helpers.gpu import Spin, settle, torch

pytestmark = pytest.mark.cuda

SIZE = 1 << 20
ROUNDS = 300
SHORT = 1e-3


def make(stream: Any, value: float) -> Any:
    with torch.cuda.stream(stream):
        return torch.full((SIZE,), value, device="cuda")


def read_late(stream: Any, tensor: Any, into: Any, seconds: float = SHORT) -> None:
    Spin(stream, seconds)
    with torch.cuda.stream(stream):
        into.copy_(tensor)


def test_without_arrowdl_the_same_steps_read_what_came_later(side: Any, other: Any) -> None:
    """So that the tests below say something: torch's own tensors are not kept for `other`."""
    seen = torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    source = make(side, 1.0)
    address = source.data_ptr()
    other.wait_stream(side)
    read_late(other, source, seen, seconds=0.2)
    del source
    again = make(side, -1.0)
    assert again.data_ptr() == address
    torch.cuda.synchronize()
    assert seen[0].item() == -1.0


@pytest.mark.parametrize("how", ["wait", "record_stream", "from_dlpack", "to_torch"])
def test_a_lent_tensor_is_not_written_anew(side: Any, other: Any, how: str) -> None:
    seen = torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    before = debug.live_objects()
    source = make(side, 1.0)
    address = source.data_ptr()
    with torch.cuda.stream(side):
        array = arrowdl.to_arrow_device(source)
    consumed = consume(array, source, other, how)
    del source
    read_late(other, consumed, seen, seconds=0.2)
    del array, consumed
    assert debug.pending_releases() == 1
    assert make(side, -1.0).data_ptr() != address
    other.synchronize()
    settle(before)
    assert seen.eq(1.0).all().item()
    assert debug.live_objects() == before


def consume(array: arrowdl.DeviceArray, source: Any, stream: Any, how: str) -> Any:
    """A tensor to read on `stream`: by DLPack, or by its address alone, of which arrowdl knows
    only what `wait` and `record_stream` say."""
    if how in CONSUMERS:
        with torch.cuda.stream(stream):
            return CONSUMERS[how](array)
    if how == "record_stream":
        array.synchronize()
    getattr(array, how)(stream)
    return borrow(source)


def borrow(tensor: Any) -> Any:
    """A tensor over the same memory that does not keep it: a reader outside of torch."""

    entries = {**tensor.__cuda_array_interface__, "version": 2}
    return torch.as_tensor(HasInterface(entries), device="cuda")


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "from_dlpack": torch.from_dlpack,
    "to_torch": arrowdl.to_torch,
}


@pytest.mark.sanitize
@pytest.mark.parametrize("how", ["from_dlpack", "to_torch"])
def test_readers_that_drop_early_many_rounds(side: Any, other: Any, how: str) -> None:
    """The deleter runs while the reader's work is queued, and the block is asked for at once."""
    seen = torch.zeros(ROUNDS, device="cuda")
    torch.cuda.synchronize()
    for round in range(ROUNDS):
        source = make(side, float(round))
        with torch.cuda.stream(side):
            array = arrowdl.to_arrow_device(source)
        del source
        with torch.cuda.stream(other):
            consumed = CONSUMERS[how](array)
            Spin(other, 50e-6)
            seen[round].copy_(consumed.max())
        del array, consumed
        make(side, -1.0)
    torch.cuda.synchronize()
    assert seen.tolist() == [float(round) for round in range(ROUNDS)]


@pytest.mark.sanitize
def test_arrow_readers_many_rounds(side: Any, other: Any) -> None:
    seen = torch.zeros(ROUNDS, device="cuda")
    torch.cuda.synchronize()
    for round in range(ROUNDS):
        with torch.cuda.stream(side):
            batch = arrowdl.to_arrow_device({"x": make(side, float(round))})
        taken = arrowdl.from_arrow(batch.__arrow_c_device_array__())
        del batch
        with torch.cuda.stream(other):
            seen[round].copy_(torch.from_dlpack(taken["x"][SIZE // 2 :]).min())
        taken.release()
        make(side, -1.0)
    torch.cuda.synchronize()
    assert seen.tolist() == [float(round) for round in range(ROUNDS)]


def test_streams_of_several_threads_many_rounds() -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        produce, consume = torch.cuda.Stream(), torch.cuda.Stream()
        seen = torch.zeros(ROUNDS, device="cuda")
        torch.cuda.current_stream().synchronize()
        expected = [float(number * ROUNDS + round) for round in range(ROUNDS)]
        for round, value in enumerate(expected):
            source = make(produce, value)
            with torch.cuda.stream(produce):
                array = arrowdl.to_arrow_device(source)
            del source
            with torch.cuda.stream(consume):
                seen[round].copy_(torch.from_dlpack(array).max())
            del array
            make(produce, -1.0)
        consume.synchronize()
        if seen.tolist() != expected:
            wrong.append(f"thread {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_more_releases_than_may_wait(side: Any, other: Any) -> None:
    """Who drops memory does not wait; a copy does, so that memory stays bounded."""
    tensor = torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    spin = Spin(other)
    for _ in range(2000):
        array = arrowdl.to_arrow_device(tensor)
        array.record_stream(other)
        del array
    assert spin.is_running()
    assert debug.pending_releases() > 1024
    arrowdl.from_arrow(pa.array([1])).to("cuda")
    assert debug.pending_releases() <= 1024


def test_a_consumer_of_the_device_interface_names_no_stream(side: Any) -> None:
    """As libcudf: it waits for the event, computes on the default stream, and calls release."""
    seen = torch.zeros(SIZE, device="cuda")
    torch.cuda.synchronize()
    source = make(side, 1.0)
    address, borrowed = source.data_ptr(), borrow(source)
    with torch.cuda.stream(side):
        array = arrowdl.to_arrow_device(source)
    exported = array.__arrow_c_device_array__()
    default = torch.cuda.default_stream()
    default.wait_stream(side)
    read_late(default, borrowed, seen, seconds=0.2)
    del source, array, exported
    assert debug.pending_releases() == 1
    assert make(side, -1.0).data_ptr() != address
    torch.cuda.synchronize()
    assert seen.eq(1.0).all().item()


def test_an_array_that_is_ready_is_used_in_a_capture(tensor: Any) -> None:
    array = arrowdl.to_arrow_device(tensor)
    array.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = torch.from_dlpack(array) * 2
    tensor.fill_(3.0)
    graph.replay()
    torch.cuda.synchronize()
    assert doubled.eq(6.0).all().item()


def test_a_stream_that_arrowdl_keeps_alive(tensor: Any) -> None:
    """The object of a stream lives as long as its handle may be asked."""
    stream = torch.cuda.Stream()
    spin = Spin(stream)
    array = arrowdl.to_arrow_device(tensor)
    array.record_stream(stream)
    del stream, array
    assert spin.is_running()
    assert debug.pending_releases() == 1


def test_memory_of_a_copy_goes_back_after_its_readers(side: Any, other: Any) -> None:
    """The same for memory that arrowdl allocated itself."""
    seen = torch.zeros(SIZE, device="cuda")
    host = arrowdl.to_arrow_device(torch.ones(SIZE).pin_memory())
    torch.cuda.synchronize()
    copied = host.to("cuda")
    with torch.cuda.stream(other):
        consumed = torch.from_dlpack(copied)
    read_late(other, consumed, seen, seconds=0.2)
    del copied, consumed
    assert debug.pending_releases() >= 1
    twos = arrowdl.to_arrow_device(torch.full((SIZE,), 2.0).pin_memory())
    later = [twos.to("cuda") for _ in range(4)]
    torch.cuda.synchronize()
    assert seen.eq(1.0).all().item()
    assert all(torch.from_dlpack(array).eq(2.0).all().item() for array in later)
