"""paddle: the exchange API, and a reader that drops byte_offset."""

from __future__ import annotations

import gc

import arrowdl
import numpy as np
import paddle
import pyarrow as pa
import pytest

NUMERIC = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.fixture(autouse=True)
def _nothing_leaks():
    before = arrowdl._core.live_objects()
    yield
    gc.collect()
    assert arrowdl._core.live_objects() == before


@pytest.mark.parametrize("dtype", NUMERIC)
def test_tensor_to_arrow(dtype):
    tensor = paddle.to_tensor([0, 1, 2, 100], dtype=dtype)
    assert pa.array(arrowdl.to_arrow_device(tensor)).to_pylist() == [0, 1, 2, 100]


def test_tensor_to_arrow_is_zero_copy():
    tensor = paddle.arange(1000, dtype="int64")
    array = arrowdl.to_arrow_device(tensor)
    assert pa.array(array).buffers()[1].address == tensor.data_ptr()


def test_tensor_that_needs_a_gradient_is_refused():
    tensor = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    with pytest.raises((BufferError, RuntimeError)):
        tensor.__dlpack__()
    with pytest.raises(BufferError, match="grad"):
        arrowdl.to_arrow_device(tensor)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_arrow_to_tensor(dtype):
    array = arrowdl.from_arrow(pa.array([0, 1, 2, 100]).cast(pa.from_numpy_dtype(np.dtype(dtype))))
    tensor = paddle.from_dlpack(array)
    assert str(tensor.dtype).endswith(dtype)
    assert tensor.numpy().tolist() == [0, 1, 2, 100]


def test_slice_is_read_where_it_starts():
    array = arrowdl.from_arrow(pa.array(range(100), pa.int32()))[10:20]
    assert paddle.from_dlpack(array).numpy().tolist() == list(range(10, 20))


def test_bfloat16_and_uint16_stay_apart():
    halves = arrowdl.to_arrow_device(paddle.to_tensor([1.5, -2.0], dtype="bfloat16"))
    assert halves.dtype == "bfloat16"
    back = paddle.from_dlpack(halves)
    assert back.dtype == paddle.bfloat16
    assert back.astype("float32").numpy().tolist() == [1.5, -2.0]


def test_fixed_size_list_is_one_tensor():
    array = pa.FixedSizeListArray.from_arrays(pa.array(range(12), pa.float32()), 4)
    tensor = paddle.from_dlpack(arrowdl.from_arrow(array))
    assert tensor.shape == [3, 4]
    assert tensor.numpy().tolist() == np.arange(12).reshape(3, 4).tolist()
