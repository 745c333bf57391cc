"""CuPy, JAX and numba, by DLPack and by the CUDA array interface; doctor; the exchange API."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from arrowdl import _core, debug
from helpers.capsules import capsule_address
from helpers.dlpack import DLManagedTensorVersioned
from helpers.fake_cuda import HasInterface
from helpers.gpu import ROWS, Spin, fill_late, finish, read_on, settle, torch

pytestmark = pytest.mark.cuda

SEVENS = [7.0] * ROWS


@pytest.fixture(scope="module")
def cupy(_gpu: None) -> Any:
    module = pytest.importorskip("cupy")
    (module.zeros(ROWS, "f4") + 1).get()  # its kernels are compiled on first use
    return module


@pytest.fixture(scope="module")
def numba_cuda(_gpu: None) -> Any:
    module = pytest.importorskip("numba.cuda")
    if not module.is_available():
        pytest.skip("numba finds no GPU")
    return module


def take_late(tensor: Any, stream: Any) -> tuple[arrowdl.DeviceArray, Spin]:
    spin = fill_late(tensor, 7.0, stream)
    with torch.cuda.stream(stream):
        return arrowdl.to_arrow_device(tensor), spin


# ---------------------------------------------------------------- CuPy


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8", "f2", "f4", "f8", "?", "c8"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_cupy_there_and_back(cupy: Any, dtype: str, shape: tuple[int, ...]) -> None:
    values = cupy.arange(6).astype(dtype).reshape(shape)
    array = arrowdl.to_arrow_device(values)
    assert array.device == arrowdl.Device("cuda", 0)
    for back in cupy.from_dlpack(array), cupy.asarray(array):
        assert (back.dtype, back.shape) == (values.dtype, values.shape)
        assert back.data.ptr == values.data.ptr
        assert cupy.array_equal(back, values)


def test_the_work_of_cupys_current_stream_is_recorded(cupy: Any, tensor: Any, side: Any) -> None:
    stream = cupy.cuda.ExternalStream(side.cuda_stream)
    view = cupy.from_dlpack(tensor)
    spin = fill_late(tensor, 7.0, side)
    with stream:
        array = arrowdl.to_arrow_device(view)
    assert spin.is_running()
    assert not array.is_ready()
    array.synchronize()
    assert view.tolist() == SEVENS


def test_cupys_current_stream_waits(cupy: Any, tensor: Any, side: Any) -> None:
    array, spin = take_late(tensor, side)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        consumed = cupy.from_dlpack(array)
        assert spin.is_running()
        assert not stream.done
        assert cupy.asnumpy(consumed).tolist() == SEVENS


def test_streams_of_cupy_are_streams(cupy: Any, tensor: Any, side: Any) -> None:
    array, spin = take_late(tensor, side)
    for stream in cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream.null, cupy.cuda.Stream.ptds:
        capsule = array.__dlpack__(stream=stream)
        array.wait(stream)
        array.record_stream(stream)
        del capsule
    assert spin.is_running()
    arrowdl.to_arrow_device(tensor, stream=cupy.cuda.Stream(non_blocking=True)).synchronize()
    assert spin.is_running()


def test_the_array_interface_of_cupy_is_read(cupy: Any, tensor: Any, side: Any) -> None:
    view = cupy.from_dlpack(tensor)
    fill_late(tensor, 7.0, side)
    with cupy.cuda.ExternalStream(side.cuda_stream):
        entries = view.__cuda_array_interface__
    assert entries["stream"] == side.cuda_stream
    array = arrowdl.to_arrow_device(HasInterface(entries))
    assert not array.is_ready()
    assert cupy.asnumpy(cupy.from_dlpack(array)).tolist() == SEVENS


def test_the_array_interface_orders_cupy(cupy: Any, tensor: Any, side: Any) -> None:
    array, spin = take_late(tensor, side)
    with cupy.cuda.Stream(non_blocking=True):
        consumed = cupy.asarray(array)  # waits for the stream of the interface, on the host
        assert cupy.asnumpy(consumed).tolist() == SEVENS
    assert not spin.is_running()
    assert array.__cuda_array_interface__["stream"] is None


def test_the_array_interface_does_not_wait(tensor: Any, side: Any) -> None:
    array, spin = take_late(tensor, side)
    entries = array.__cuda_array_interface__
    assert spin.is_running()
    ours = torch.cuda.ExternalStream(entries["stream"])
    assert finish(ours, read_on(ours, tensor)) == SEVENS
    assert entries["data"] == (tensor.data_ptr(), True)
    assert (entries["shape"], entries["typestr"], entries["version"]) == ((ROWS,), "<f4", 3)


def test_pinned_and_managed_memory_of_cupy(cupy: Any) -> None:
    memory = cupy.cuda.alloc_pinned_memory(16)
    pinned = np.frombuffer(memory, np.float32, 4)
    pinned[:] = 5
    entries = pinned.__array_interface__ | {"version": 3, "stream": None}
    described = HasInterface(entries)
    described.memory = memory
    array = arrowdl.to_arrow_device(described)
    assert array.device.name == "cuda_host"
    assert np.asarray(array).tolist() == [5.0] * 4
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        managed = cupy.full(4, 6, "f4")
    described = HasInterface(managed.__cuda_array_interface__)
    described.memory = managed
    array = arrowdl.to_arrow_device(described)
    assert array.device.name == "cuda_managed"
    assert arrowdl.to_numpy(array).tolist() == [6.0] * 4


def test_memory_of_cupys_pool_is_not_written_anew(cupy: Any) -> None:
    """Its pool hands a block out again at once, as torch's does."""
    produce, consume = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    late = torch.cuda.ExternalStream(consume.ptr)
    seen = cupy.zeros(200, "f4")
    cupy.cuda.Device().synchronize()
    for round in range(200):
        with produce:
            array = arrowdl.to_arrow_device(cupy.full(1 << 18, round, "f4"))
        with consume:
            consumed = cupy.from_dlpack(array)
            Spin(late, 50e-6)
            seen[round] = consumed.max()
        del array, consumed
        with produce:
            cupy.full(1 << 18, -1, "f4")
    cupy.cuda.Device().synchronize()
    assert seen.tolist() == list(range(200))


def test_cupy_may_drop_a_stream_before_its_arrays(cupy: Any, tensor: Any, side: Any) -> None:
    """CuPy destroys a stream with its object, and passes its number."""
    array, _ = take_late(tensor, side)
    with cupy.cuda.Stream(non_blocking=True):
        consumed = cupy.from_dlpack(array)
        total = consumed.sum()
    cupy.cuda.Device().synchronize()
    del array, consumed
    assert debug.abandoned_releases() == 0
    assert float(total) == 7.0 * ROWS


# ---------------------------------------------------------------- JAX


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float16", "float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_jax_there_and_back(jax: Any, dtype: str, shape: tuple[int, ...]) -> None:
    values = jax.numpy.arange(6).astype(dtype).reshape(shape)
    array = arrowdl.to_arrow_device(values)
    assert array.device == arrowdl.Device("cuda", 0)
    for back in jax.dlpack.from_dlpack(array), arrowdl.to_jax(array):
        assert (back.dtype, back.shape, back.devices()) == (values.dtype, shape, values.devices())
        assert back.unsafe_buffer_pointer() == values.unsafe_buffer_pointer()
        assert jax.numpy.array_equal(back, values)


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "int4", "uint2"])
def test_packed_values_of_jax_there_and_back(jax: Any, dtype: str) -> None:
    values = (jax.numpy.arange(8) % 4).reshape(2, 4).astype(dtype)
    array = arrowdl.to_arrow_device(values)
    assert (array.dtype, array.shape) == (dtype, (2, 4))
    back = arrowdl.to_jax(array)
    assert back.dtype == values.dtype
    assert jax.numpy.array_equal(back.astype("float32"), values.astype("float32"))
    if dtype == "float4_e2m1fn":
        pairs = arrowdl.to_torch(array)
        assert pairs.is_cuda
        assert pairs.view(torch.uint8).tolist() == values.view("uint8").tolist()


@pytest.mark.parametrize("how", ["from_dlpack", "to_jax"])
def test_jax_sees_what_was_written(jax: Any, tensor: Any, side: Any, how: str) -> None:
    array, spin = take_late(tensor, side)
    consumed = (jax.dlpack.from_dlpack if how == "from_dlpack" else arrowdl.to_jax)(array)
    assert spin.is_running()  # jax names its stream
    assert np.asarray(consumed + 0).tolist() == SEVENS


def test_the_work_of_jax_is_waited_for(jax: Any, side: Any) -> None:
    @jax.jit
    def work(x: Any) -> Any:
        return jax.lax.fori_loop(0, 200, lambda _, y: y @ x, x)

    eye = jax.numpy.eye(2048)
    expected = np.asarray(work(eye))
    array = arrowdl.to_arrow_device(work(eye))
    with torch.cuda.stream(side):
        consumed = torch.from_dlpack(array)
    seen = read_on(side, consumed)
    side.synchronize()
    assert np.array_equal(seen.numpy(), expected)


def test_jax_to_torch_many_rounds(jax: Any, side: Any) -> None:
    """Arrays of jax are dropped while torch still reads them."""
    seen = torch.zeros(200, device="cuda")
    torch.cuda.synchronize()
    for round in range(200):
        array = arrowdl.to_arrow_device(jax.numpy.full(1 << 18, float(round)))
        with torch.cuda.stream(side):
            consumed = torch.from_dlpack(array)
            Spin(side, 50e-6)
            seen[round].copy_(consumed.max())
        del array, consumed
    side.synchronize()
    assert seen.tolist() == list(range(200))


def test_jax_computes_after_it_has_dropped_an_array(jax: Any, side: Any) -> None:
    """JAX calls the deleter when a step is enqueued; its compute stream is not the one it names."""

    @jax.jit
    def late(x: Any, y: Any) -> Any:
        y = jax.lax.fori_loop(0, 50, lambda _, z: z @ z * 1e-3, y)
        return x.max() + 0 * y[0, 0]

    eye = jax.numpy.eye(2048)
    late(jax.numpy.ones(1 << 18), eye).block_until_ready()
    before, seen = debug.live_objects(), list[Any]()
    for round in range(50):
        with torch.cuda.stream(side):
            source = torch.full((1 << 18,), float(round), device="cuda")
            array = arrowdl.to_arrow_device(source)
        del source
        consumed = jax.dlpack.from_dlpack(array)
        seen.append(late(consumed, eye))
        del array, consumed
        with torch.cuda.stream(side):
            torch.full((1 << 18,), -1.0, device="cuda")
    assert [float(one) for one in seen] == [float(round) for round in range(50)]
    settle(before)
    assert debug.live_objects() == before


def test_jax_computes_on_rows_at_any_address(jax: Any) -> None:
    array = arrowdl.from_arrow(pa.array(range(64), pa.int32())).to("cuda")
    add = jax.jit(lambda x: x + 1)
    for start in range(6):
        expected = list(range(start + 1, 65))
        assert add(jax.dlpack.from_dlpack(array[start:])).tolist() == expected
        assert add(arrowdl.to_jax(array[start:])).tolist() == expected


def test_a_copy_for_jax_may_be_donated(jax: Any) -> None:
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    values = pa.array([None if i % 3 == 0 else float(i) for i in range(64)], pa.float32())
    array = arrowdl.from_arrow(values).to("cuda")
    for start in 0, 3:
        rows = array[start:]
        expected = [1 if x is None else x + 1 for x in values[start:].to_pylist()]
        assert add(arrowdl.to_jax(rows, nulls="fill", copy=True)).tolist() == expected
        assert pa.array(rows.to("cpu")).equals(values[start:])


def test_arrow_data_to_jax_on_the_gpu(jax: Any) -> None:
    batch = pa.record_batch({"x": pa.array([1, 2], pa.float32()), "y": pa.array([3, 4], "int32")})
    arrays = arrowdl.to_jax(arrowdl.from_arrow(batch).to("cuda"))
    assert {next(iter(array.devices())).platform for array in arrays.values()} == {"gpu"}
    assert [np.asarray(array).tolist() for array in arrays.values()] == [[1, 2], [3, 4]]


# ---------------------------------------------------------------- numba


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_numba_there_and_back(numba_cuda: Any, shape: tuple[int, ...]) -> None:
    values = np.arange(6, dtype="f4").reshape(shape)
    given = numba_cuda.to_device(values)
    array = arrowdl.to_arrow_device(given)
    assert (array.device, array.shape) == (arrowdl.Device("cuda", 0), shape)
    assert torch.equal(torch.from_dlpack(array).cpu(), torch.from_numpy(values))
    back = numba_cuda.as_cuda_array(array)
    assert np.array_equal(back.copy_to_host(), values)
    assert address(back) == address(given)


def address(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])


def test_numba_waits_for_the_array(numba_cuda: Any, tensor: Any, side: Any) -> None:
    array, _ = take_late(tensor, side)
    assert numba_cuda.as_cuda_array(array).copy_to_host().tolist() == SEVENS


def test_a_stream_of_numba_is_told_from_its_interface(numba_cuda: Any) -> None:
    stream = numba_cuda.stream()
    given = numba_cuda.to_device(np.arange(6, dtype="f4"), stream=stream)
    array = arrowdl.to_arrow_device(given)
    assert torch.from_dlpack(array).tolist() == list(range(6))


# ---------------------------------------------------------------- the exchange API


class ExchangeApi(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        (
            "from_py_object",
            ctypes.PYFUNCTYPE(
                ctypes.c_int,
                ctypes.py_object,
                ctypes.POINTER(ctypes.POINTER(DLManagedTensorVersioned)),
            ),
        ),
        (
            "to_py_object",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)),
        ),
        ("borrow", ctypes.c_void_p),
        (
            "current_work_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    )


def test_our_exchange_api_orders_the_stream_that_it_names(tensor: Any, side: Any) -> None:
    array, spin = take_late(tensor, side)
    api = ExchangeApi.from_address(
        capsule_address(arrowdl.DeviceArray.__dlpack_c_exchange_api__)  # type: ignore[arg-type]
    )
    stream = ctypes.c_void_p()
    assert api.current_work_stream(2, 0, ctypes.byref(stream)) == 0
    taken = ctypes.POINTER(DLManagedTensorVersioned)()
    assert api.from_py_object(array, ctypes.byref(taken)) == 0
    assert spin.is_running()
    assert taken.contents.dl_tensor.data == tensor.data_ptr()
    work = torch.cuda.ExternalStream(stream.value)
    assert finish(work, read_on(work, tensor)) == SEVENS
    taken.contents.deleter(ctypes.addressof(taken.contents))


# ---------------------------------------------------------------- doctor


def test_doctor_finds_the_driver() -> None:
    (found,) = (row for row in _core.list_backends() if "cuda" in row["types"])
    assert found["problem"] == ""
    assert found["device_count"] == torch.cuda.device_count()
    report = subprocess.run(
        [sys.executable, "-m", "arrowdl", "doctor"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    assert "cuda, cuda_host, cuda_managed: CUDA driver for CUDA" in report


# ---------------------------------------------------------------- all of them

PRODUCERS: dict[str, Callable[[Any], Any]] = {
    "torch": lambda torch: torch.ones(3, device="cuda"),
    "cupy": lambda cupy: cupy.ones(3, "f4"),
    "jax": lambda jax: jax.numpy.ones(3),
}
CONSUMERS: dict[str, Callable[[Any, Any], Any]] = {
    "torch": lambda torch, array: torch.from_dlpack(array),
    "cupy": lambda cupy, array: cupy.from_dlpack(array),
    "jax": lambda jax, array: jax.dlpack.from_dlpack(array),
}


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_library_to_every_other(
    producer: str, consumer: str, request: pytest.FixtureRequest
) -> None:
    libraries = {
        name: torch if name == "torch" else request.getfixturevalue(name)
        for name in (producer, consumer)
    }
    array = arrowdl.to_arrow_device(PRODUCERS[producer](libraries[producer]))
    consumed = CONSUMERS[consumer](libraries[consumer], array)
    assert [float(value) for value in consumed] == [1.0] * 3
