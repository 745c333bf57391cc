"""torch on real streams: the host does not wait, and each reader sees what was written before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import pytest
from arrowdl import debug
from helpers.gpu import ROWS, Spin, fill_late, finish, read_on, settle, torch

pytestmark = pytest.mark.cuda

SEVENS = [7.0] * ROWS


def take_late(tensor: Any, stream: Any) -> tuple[arrowdl.DeviceArray, Spin]:
    """`tensor` as an array, whose values come on `stream` after a while."""
    spin = fill_late(tensor, 7.0, stream)
    with torch.cuda.stream(stream):
        return arrowdl.to_arrow_device(tensor), spin


# ---------------------------------------------------------------- tensor to Arrow


@pytest.mark.parametrize("which", ["default", "side"])
def test_import_returns_while_the_stream_is_at_work(tensor: Any, side: Any, which: str) -> None:
    stream = side if which == "side" else torch.cuda.default_stream()
    array, spin = take_late(tensor, stream)
    assert spin.is_running()
    assert not stream.query()
    assert not array.is_ready()
    assert array.sync_event is not None
    assert array.device == arrowdl.Device("cuda", 0)
    array.synchronize()
    assert array.is_ready()
    assert not spin.is_running()
    assert tensor.tolist() == SEVENS


STREAMS: dict[str, Callable[[Any], Any]] = {
    "handle": lambda stream: stream.cuda_stream,
    "torch stream": lambda stream: stream,
    "external stream": lambda stream: torch.cuda.ExternalStream(stream.cuda_stream),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_a_named_stream_is_the_one_that_is_recorded(tensor: Any, side: Any, kind: str) -> None:
    spin = fill_late(tensor, 7.0, side)
    arrowdl.to_arrow_device(tensor).synchronize()  # the current stream is idle
    array = arrowdl.to_arrow_device(tensor, stream=STREAMS[kind](side))
    assert spin.is_running()
    assert not array.is_ready()


def test_a_capsule_is_of_the_default_stream_unless_one_is_named(tensor: Any, side: Any) -> None:
    spin = Spin(side)
    array = arrowdl.to_arrow_device(tensor.__dlpack__(), stream=side)
    assert spin.is_running()
    assert not array.is_ready()


def test_a_struct_waits_for_all_its_fields(tensor: Any, side: Any) -> None:
    late = torch.zeros_like(tensor)
    torch.cuda.synchronize()
    struct = arrowdl.to_arrow_device({"x": tensor, "y": take_late(late, side)[0]})
    assert not struct.is_ready()
    struct.synchronize()
    assert late.tolist() == SEVENS


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "bool", "float16"])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (0,), (2, 3, 4)])
def test_types_and_shapes_there_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    tensor = torch.ones(shape, device="cuda").to(getattr(torch, dtype))
    back = torch.from_dlpack(arrowdl.to_arrow_device(tensor))
    assert (back.dtype, back.shape, back.device) == (tensor.dtype, tensor.shape, tensor.device)
    assert torch.equal(back, tensor)
    assert back.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "float8_e4m3fn"])
def test_types_that_arrow_lacks_there_and_back(dtype: str) -> None:
    tensor = torch.ones(5, device="cuda").to(getattr(torch, dtype))
    back = arrowdl.to_torch(arrowdl.to_arrow_device(tensor))
    assert (back.dtype, back.data_ptr()) == (tensor.dtype, tensor.data_ptr())


def test_what_needs_a_copy_is_refused_on_a_device(tensor: Any) -> None:
    with pytest.raises(BufferError, match=r"contiguous|copy"):
        arrowdl.to_arrow_device(tensor[::2], copy=False)
    with pytest.raises(BufferError, match="requires grad"):
        arrowdl.to_arrow_device(tensor.clone().requires_grad_())


# ---------------------------------------------------------------- Arrow to tensor

CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "from_dlpack": torch.from_dlpack,
    "to_torch": arrowdl.to_torch,
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_on_another_stream_sees_what_was_written(
    tensor: Any, side: Any, other: Any, consumer: str
) -> None:
    array, spin = take_late(tensor, side)
    with torch.cuda.stream(other):
        consumed = CONSUMERS[consumer](array)
    assert not other.query()  # it waits, and the host has not
    assert spin.is_running()
    assert consumed.data_ptr() == tensor.data_ptr()
    assert finish(other, read_on(other, consumed)) == SEVENS


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_on_the_default_stream(tensor: Any, side: Any, consumer: str) -> None:
    array, spin = take_late(tensor, side)
    consumed = CONSUMERS[consumer](array)
    assert spin.is_running()
    default = torch.cuda.default_stream()
    assert finish(default, read_on(default, consumed)) == SEVENS


def test_the_event_goes_on_to_arrow_consumers(tensor: Any, side: Any, other: Any) -> None:
    array, spin = take_late(tensor, side)
    again = arrowdl.from_arrow(array.__arrow_c_device_array__())
    assert again.sync_event == array.sync_event
    del array
    again.wait(other)
    assert spin.is_running()
    assert finish(other, read_on(other, tensor)) == SEVENS


def test_part_of_a_struct_carries_its_event(tensor: Any, side: Any, other: Any) -> None:
    array, _ = take_late(tensor, side)
    batch = arrowdl.to_arrow_device({"x": array})
    with torch.cuda.stream(other):
        seen = read_on(other, arrowdl.to_torch(batch)["x"][3:])
    assert finish(other, seen) == SEVENS[3:]


# ---------------------------------------------------------------- __dlpack__(stream=)

PER_THREAD = 2


def test_no_stream_is_safe_without_one(tensor: Any, side: Any) -> None:
    array, spin = take_late(tensor, side)
    capsule = array.__dlpack__(stream=None)
    assert not spin.is_running()  # the host had to wait
    assert array.is_ready()
    del capsule


def test_minus_one_waits_for_nothing(tensor: Any, side: Any, other: Any) -> None:
    array, spin = take_late(tensor, side)
    capsule = array.__dlpack__(stream=-1, max_version=(1, 0))
    assert spin.is_running()
    assert other.query()
    del capsule


STREAM_VALUES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    # what is passed, and the stream to look at
    "legacy default": lambda _: (1, torch.cuda.default_stream()),
    "per-thread default": lambda _: (PER_THREAD, torch.cuda.ExternalStream(PER_THREAD)),
    "handle": lambda stream: (stream.cuda_stream, stream),
    "torch stream": lambda stream: (stream, stream),
    "torch default stream": lambda _: (torch.cuda.default_stream(), torch.cuda.default_stream()),
}


@pytest.mark.parametrize("kind", STREAM_VALUES)
@pytest.mark.parametrize("max_version", [None, (1, 0)], ids=["legacy", "versioned"])
def test_every_stream_is_ordered(
    tensor: Any, side: Any, other: Any, kind: str, max_version: tuple[int, int] | None
) -> None:
    passed, stream = STREAM_VALUES[kind](other)
    array, spin = take_late(tensor, side)
    capsule = array.__dlpack__(stream=passed, max_version=max_version)
    assert spin.is_running()
    assert finish(stream, read_on(stream, tensor)) == SEVENS
    del capsule


@pytest.mark.parametrize(
    "stream", [0, -2, 1.5, "side", object()], ids=["0", "-2", "float", "str", "object"]
)
def test_what_is_no_stream_is_refused(tensor: Any, stream: Any) -> None:
    array = arrowdl.to_arrow_device(tensor)
    for use in (
        lambda: array.__dlpack__(stream=stream),
        lambda: array.wait(stream),
        lambda: array.record_stream(stream),
    ):
        with pytest.raises(BufferError, match="is not a stream of cuda:0"):
            use()
    with pytest.raises(BufferError, match="is not a stream of cuda:0"):
        arrowdl.to_arrow_device(tensor, stream=stream)


def test_the_cpu_asks_for_a_copy_or_gets_nothing(tensor: Any) -> None:
    array = arrowdl.to_arrow_device(tensor)
    copied = np.from_dlpack(array, device="cpu")
    assert copied.tolist() == tensor.tolist()
    with pytest.raises(BufferError, match="allow it with copy=None"):
        np.from_dlpack(array, device="cpu", copy=False)
    with pytest.raises(BufferError):
        array.__arrow_c_array__()


# ---------------------------------------------------------------- wait, record_stream, release


def test_wait_orders_a_stream(tensor: Any, side: Any, other: Any) -> None:
    array, spin = take_late(tensor, side)
    array.wait(other)
    assert spin.is_running()
    assert finish(other, read_on(other, tensor)) == SEVENS


@pytest.mark.parametrize("name", ["wait", "record_stream"])
def test_memory_is_kept_while_a_stream_may_read_it(tensor: Any, other: Any, name: str) -> None:
    before = debug.live_objects()
    array = arrowdl.to_arrow_device(tensor)
    getattr(array, name)(other)
    spin = Spin(other)
    del array
    assert spin.is_running()
    assert debug.pending_releases() == 1
    other.synchronize()
    settle(before)
    assert debug.live_objects() == before


def test_memory_is_given_back_soon_when_nothing_is_pending(tensor: Any, other: Any) -> None:
    spin = Spin(torch.cuda.Stream())
    before = debug.live_objects()
    array = arrowdl.to_arrow_device(tensor)
    array.record_stream(other)
    array.release()
    settle(before)
    assert spin.is_running()
    assert debug.live_objects() == before


def test_a_blocking_release_waits_on_the_host(tensor: Any, other: Any) -> None:
    array = arrowdl.to_arrow_device(tensor)
    array.record_stream(other)
    spin = Spin(other)
    arrowdl.config.blocking_release = True
    try:
        array.release()
    finally:
        arrowdl.config.blocking_release = False
    assert not spin.is_running()
    assert debug.pending_releases() == 0


# ---------------------------------------------------------------- graphs


def test_a_capture_is_refused_and_not_broken(tensor: Any, side: Any, other: Any) -> None:
    ready = arrowdl.to_arrow_device(tensor)
    late = torch.zeros_like(tensor)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # waits for all streams, first
        pending, _ = take_late(late, side)
        stream = torch.cuda.current_stream()
        tensor.add_(1)
        for use in (
            lambda: arrowdl.to_arrow_device(tensor),
            lambda: arrowdl.to_arrow_device(tensor, stream=stream),
            lambda: pending.wait(stream),
            lambda: torch.from_dlpack(pending),
            lambda: ready.to("cpu", stream=stream),
        ):
            with pytest.raises(BufferError, match="captured into a graph"):
                use()
        tensor.add_(1)
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert tensor.tolist() == [4.0] * ROWS


def test_other_streams_work_on_while_one_is_captured(tensor: Any, side: Any, other: Any) -> None:
    array, spin = take_late(tensor, side)
    captured = torch.zeros_like(tensor)
    torch.cuda.synchronize()
    assert not spin.is_running()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured.add_(1)
        array.wait(other)
        array.record_stream(side)
        assert array.is_ready()
        array.release()  # asks about events, which a careless capture would not survive
        captured.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert captured.tolist() == [2.0] * ROWS


def test_memory_that_a_captured_stream_reads_waits_for_the_end_of_it(tensor: Any) -> None:
    array = arrowdl.to_arrow_device(tensor)
    target = torch.zeros_like(tensor)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        array.record_stream(torch.cuda.current_stream())
        target.add_(1)
        array.release()
        assert debug.pending_releases() == 1
    graph.replay()
    torch.cuda.synchronize()
    assert target.tolist() == [1.0] * ROWS


# ---------------------------------------------------------------- several GPUs


def test_the_second_gpu(two_gpus: None) -> None:
    tensor = torch.zeros(ROWS, device="cuda:1")
    torch.cuda.synchronize(1)
    with torch.cuda.device(1):
        stream = torch.cuda.Stream()
        spin = fill_late(tensor, 7.0, stream)
        with torch.cuda.stream(stream):
            array = arrowdl.to_arrow_device(tensor)
        assert spin.is_running()
        assert array.device == arrowdl.Device("cuda", 1)
        assert torch.from_dlpack(array).tolist() == SEVENS


def test_a_stream_of_another_gpu_may_read(two_gpus: None, tensor: Any) -> None:
    array = arrowdl.to_arrow_device(tensor)
    with torch.cuda.device(1):
        stream = torch.cuda.Stream()
        array.record_stream(stream)
        spin = Spin(stream)
    del array
    assert spin.is_running()
    assert debug.pending_releases() == 1


def test_the_current_gpu_stays_the_current_one(two_gpus: None) -> None:
    with torch.cuda.device(1):
        arrowdl.to_arrow_device(torch.zeros(ROWS, device="cuda:0")).to("cpu")
        assert torch.cuda.current_device() == 1
        assert torch.zeros(1, device="cuda").get_device() == 1
