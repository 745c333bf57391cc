"""`DeviceArray.to` between the CPU, the GPU, pinned and managed memory."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.gpu import ROWS, Spin, fill_late, finish, read_on, torch

pytestmark = pytest.mark.cuda

SEVENS = [7.0] * ROWS
PATHS = [
    ("cuda",),
    ("cuda_host",),
    ("cuda_managed",),
    ("cuda", "cuda_host"),
    ("cuda_host", "cuda"),
    ("cuda", "cuda_managed", "cuda"),
]

ARRAYS: dict[str, pa.Array] = {
    "int32": pa.array(range(100), pa.int32()),
    "int64 with nulls": pa.array([None if i % 3 == 0 else i for i in range(100)]),
    "bits with nulls": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(100)]),
    "all null": pa.array([None] * 20, pa.float64()),
    "no rows": pa.array([], pa.float32()),
    "string": pa.array([None if i % 7 == 0 else "é" * (i % 9) for i in range(100)]),
    "large binary": pa.array([b"ab" * (i % 4) for i in range(40)], pa.large_binary()),
    "timestamp": pa.array(range(50), pa.timestamp("us", "UTC")),
    "list with nulls": pa.array([None if i % 4 == 0 else [i, None, -i] for i in range(50)]),
    "list of lists": pa.array([[[1], [], [2, 3]], None, []] * 20),
    "fixed size list": pa.array([[i, None] for i in range(50)], pa.list_(pa.int16(), 2)),
    "struct with nulls": pa.array(
        [None if i % 6 == 0 else {"a": i, "b": [str(i)] * (i % 3)} for i in range(50)]
    ),
    "dictionary": pa.array(["x", "y", None, "x"] * 20).dictionary_encode(),
    "map": pa.array([[("a", i), ("b", None)] for i in range(20)], pa.map_(pa.utf8(), pa.int64())),
    "list view": pa.array([[i] * (i % 3) for i in range(30)], pa.list_view(pa.int32())),
    "run ends": pa.RunEndEncodedArray.from_arrays([3, 50], pa.array([1.5, None])),
}


def take_late(tensor: Any, stream: Any) -> tuple[arrowdl.DeviceArray, Spin]:
    spin = fill_late(tensor, 7.0, stream)
    with torch.cuda.stream(stream):
        return arrowdl.to_arrow_device(tensor), spin


def make_pinned(values: Any) -> arrowdl.DeviceArray:
    """In pinned memory, from which a copy runs without the host."""
    pinned = arrowdl.from_arrow(pa.array(values)).to("cuda_host")
    pinned.synchronize()
    return pinned


# ---------------------------------------------------------------- values


@pytest.mark.sanitize
@pytest.mark.parametrize("path", PATHS, ids="-".join)
@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_comes_back(name: str, path: tuple[str, ...]) -> None:
    expected = ARRAYS[name]
    array = arrowdl.from_arrow(expected)
    for device in path:
        array = array.to(device)
        assert array.device == arrowdl.Device(device, 0)
    back = pa.array(array.to("cpu"))
    back.validate(full=True)
    assert back.equals(expected)


@pytest.mark.sanitize
@pytest.mark.parametrize("name", ARRAYS)
def test_windows_are_copied_alone(name: str) -> None:
    whole = ARRAYS[name]
    start, stop = len(whole) // 7, len(whole) - len(whole) // 5
    window = arrowdl.from_arrow(whole)[start:stop].to("cuda")
    assert pa.array(window.to("cpu")).equals(whole[start:stop])
    inner = window[1:-1] if len(window) > 2 else window
    assert (
        pa.array(inner.to("cpu")).to_pylist()
        == pa.array(window.to("cpu")).to_pylist()[slice(1, -1) if len(window) > 2 else slice(None)]
    )


def test_a_batch_of_columns_becomes_tensors_on_the_gpu() -> None:
    batch = pa.record_batch({"x": pa.array([1.5, 2.5]), "y": pa.array([3, 4])})
    tensors = arrowdl.to_torch(arrowdl.from_arrow(batch).to("cuda"))
    assert {name: tensor.device.type for name, tensor in tensors.items()} == dict.fromkeys(
        "xy", "cuda"
    )
    assert (tensors["x"].tolist(), tensors["y"].tolist()) == ([1.5, 2.5], [3, 4])


def test_values_of_lists_are_tensors_on_the_gpu() -> None:
    matrix = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))
    tensor = torch.from_dlpack(arrowdl.from_arrow(matrix)[1:].to("cuda"))
    assert (tensor.device.type, tensor.tolist()) == ("cuda", [[3, 4], [5, 6]])


@pytest.mark.parametrize(
    "device",
    ["cuda", "cuda:0", (2, 0), ("cuda", 0), arrowdl.Device("cuda"), "torch", "torch:0"],
    ids=str,
)
def test_the_names_of_a_device(device: Any) -> None:
    if isinstance(device, str) and device.startswith("torch"):
        device = torch.device(device.replace("torch", "cuda"))
    copied = arrowdl.from_arrow(pa.array([1.0, 2.0])).to(device)
    assert copied.device == arrowdl.Device("cuda", 0)
    assert torch.from_dlpack(copied).tolist() == [1.0, 2.0]


def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(BufferError, match="there is no cuda:99"):
        arrowdl.from_arrow(pa.array([1])).to("cuda:99")


def test_what_lies_there_is_not_copied(tensor: Any) -> None:
    array = arrowdl.to_arrow_device(tensor)
    assert torch.from_dlpack(array.to("cuda")).data_ptr() == tensor.data_ptr()
    pinned = make_pinned([1.0, 2.0])
    assert address(pinned.to("cpu")) == address(pinned)


def address(array: arrowdl.DeviceArray) -> int:
    return int(np.from_dlpack(array).__array_interface__["data"][0])


# ---------------------------------------------------------------- order


@pytest.mark.parametrize("target", ["cuda_host", "cuda_managed"])
def test_a_copy_comes_after_what_writes_its_source(tensor: Any, side: Any, target: str) -> None:
    """Whether the host waits is left open: the driver may, where it pins or maps memory."""
    array, _ = take_late(tensor, side)
    copied = array.to(target)
    copied.synchronize()
    assert arrowdl.to_numpy(copied).tolist() == SEVENS


def test_the_cpu_gets_finished_memory(tensor: Any, side: Any) -> None:
    array, spin = take_late(tensor, side)
    copied = array.to("cpu")
    assert not spin.is_running()
    assert copied.sync_event is None
    assert pa.array(copied).to_pylist() == SEVENS


def test_a_reader_in_pinned_memory_waits_by_itself(tensor: Any, side: Any) -> None:
    array, _ = take_late(tensor, side)
    pinned = array.to("cuda_host")
    assert arrowdl.to_numpy(pinned).tolist() == SEVENS
    assert pa.array(pinned.to("cpu")).to_pylist() == SEVENS


@pytest.mark.parametrize("kind", ["handle", "object"])
def test_a_given_stream_runs_the_copies(side: Any, kind: str) -> None:
    pinned = make_pinned(SEVENS)
    spin = Spin(side)
    copied = pinned.to("cuda", stream=side.cuda_stream if kind == "handle" else side)
    assert spin.is_running()
    assert not copied.is_ready()
    consumed = torch.from_dlpack(copied)
    assert spin.is_running()
    assert finish(torch.cuda.default_stream(), read_on(torch.cuda.default_stream(), consumed)) == (
        SEVENS
    )


def test_to_the_cpu_the_stream_is_the_sources(tensor: Any, side: Any) -> None:
    spin = fill_late(tensor, 7.0, side)
    array = arrowdl.to_arrow_device(tensor, stream=torch.cuda.default_stream())
    assert spin.is_running()
    assert pa.array(array.to("cpu", stream=side)).to_pylist() == SEVENS


def test_a_copy_that_blocks(side: Any) -> None:
    pinned = make_pinned(SEVENS)
    spin = Spin(side)
    copied = pinned.to("cuda", stream=side, non_blocking=False)
    assert not spin.is_running()
    assert copied.is_ready()


def test_without_a_stream_no_other_is_held_up(side: Any) -> None:
    pinned = make_pinned(SEVENS)
    spin = Spin(side)
    copied = pinned.to("cuda")
    copied.synchronize()
    assert spin.is_running()
    assert torch.from_dlpack(copied).tolist() == SEVENS


def test_the_source_may_go_while_it_is_copied(side: Any) -> None:
    for round in range(200):
        pinned = make_pinned(np.full(1 << 16, round, np.float32))
        Spin(side, 1e-4)
        copied = pinned.to("cuda", stream=side)
        del pinned
        make_pinned(np.full(1 << 16, -1, np.float32))
        assert torch.from_dlpack(copied).eq(round).all().item()


def test_pageable_memory_may_go_while_it_is_copied(side: Any) -> None:
    for round in range(50):
        array = arrowdl.from_arrow(pa.array(np.full(1 << 18, round, np.float32)))
        copied = array.to("cuda")
        del array
        assert torch.from_dlpack(copied).eq(round).all().item()


# ---------------------------------------------------------------- pinned and managed memory


def test_a_pinned_tensor_of_torch_is_host_memory() -> None:
    tensor = torch.arange(8, dtype=torch.float32).pin_memory()
    array = arrowdl.to_arrow_device(tensor)
    assert array.device.name in {"cpu", "cuda_host"}  # torch calls it both
    assert address(array) == tensor.data_ptr()
    assert torch.from_dlpack(array.to("cuda")).tolist() == list(range(8))


def test_host_libraries_read_pinned_memory() -> None:
    pinned = make_pinned([1.0, 2.0])
    assert pinned.__dlpack_device__() == (3, 0)
    assert np.from_dlpack(pinned).tolist() == [1.0, 2.0]
    assert np.asarray(pinned).tolist() == [1.0, 2.0]
    assert pa.array(pinned.to("cpu")).to_pylist() == [1.0, 2.0]  # pyarrow knows no cuda_host
    assert arrowdl.to_torch(pinned).tolist() == [1.0, 2.0]
    assert not hasattr(pinned, "__cuda_array_interface__")


def test_both_sides_read_managed_memory(side: Any) -> None:
    managed = arrowdl.from_arrow(pa.array([1.0, 2.0])).to("cuda_managed")
    assert managed.device == arrowdl.Device("cuda_managed", 0)
    with torch.cuda.stream(side):
        on_gpu = torch.as_tensor(Writable(managed), device="cuda")
        assert (on_gpu * 2).tolist() == [2.0, 4.0]
    side.synchronize()
    assert arrowdl.to_numpy(managed).tolist() == [1.0, 2.0]


class Writable:
    """torch takes no read-only array interface."""

    def __init__(self, array: arrowdl.DeviceArray) -> None:
        array.synchronize()
        entries = dict(array.__cuda_array_interface__)
        self.array = array
        self.__cuda_array_interface__ = {**entries, "data": (entries["data"][0], False)}


def test_pinned_memory_is_kept_for_the_stream_that_reads_it(side: Any) -> None:
    pinned = make_pinned(SEVENS)
    target = torch.zeros(ROWS, device="cuda")
    torch.cuda.synchronize()
    pinned.record_stream(side)
    Spin(side)
    with torch.cuda.stream(side):
        target.copy_(torch.from_numpy(np.array(pinned, copy=None)), non_blocking=True)
    del pinned
    side.synchronize()
    assert target.tolist() == SEVENS


# ---------------------------------------------------------------- several GPUs


@pytest.mark.parametrize("name", ARRAYS)
def test_between_two_gpus(two_gpus: None, name: str) -> None:
    array = arrowdl.from_arrow(ARRAYS[name]).to("cuda:0").to("cuda:1")
    assert array.device == arrowdl.Device("cuda", 1)
    assert pa.array(array.to("cpu")).equals(ARRAYS[name])


def test_a_copy_to_the_second_gpu_waits_for_the_first(two_gpus: None, side: Any) -> None:
    tensor = torch.zeros(ROWS, device="cuda:0")
    torch.cuda.synchronize()
    array, spin = take_late(tensor, side)
    copied = array.to("cuda:1")
    assert spin.is_running()
    assert torch.from_dlpack(copied).tolist() == SEVENS


# ---------------------------------------------------------------- into a framework's memory


@pytest.mark.sanitize
@pytest.mark.parametrize("nulls", ["fill", "mask"])
def test_the_memory_is_torchs_own(nulls: Any) -> None:
    array = pa.array([None if i % 3 == 0 else i for i in range(100_000)])
    before = torch.cuda.memory_allocated()
    made = arrowdl.to_torch(array, nulls=nulls, device="cuda")
    here = arrowdl.to_torch(array, nulls=nulls)
    pairs = zip(made, here, strict=True) if nulls == "mask" else [(made, here)]
    assert torch.cuda.memory_allocated() - before >= 800_000
    for there, expected in pairs:
        assert there.is_cuda
        assert torch.equal(there.cpu(), expected)


def test_pinned_memory_becomes_torchs_and_nobody_waits(other: Any) -> None:
    pinned = make_pinned(list(range(100_000)))
    spin = Spin(other)
    with torch.cuda.stream(other):
        made = arrowdl.to_torch(pinned, device="cuda")
    assert spin.is_running(), "the call has waited"
    del pinned
    other.synchronize()
    assert made.tolist() == list(range(100_000))
