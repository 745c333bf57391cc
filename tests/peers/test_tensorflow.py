"""TensorFlow: raw legacy capsules from plain calls, in both directions."""

from __future__ import annotations

import gc

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

NUMERIC = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NUMERIC += ["float16", "float32", "float64"]


@pytest.fixture(autouse=True)
def _nothing_leaks():
    before = arrowdl._core.live_objects()
    yield
    gc.collect()
    assert arrowdl._core.live_objects() == before


@pytest.mark.parametrize("dtype", NUMERIC)
def test_tensor_to_arrow(dtype):
    tensor = tf.constant([0, 1, 2, 100], dtype=dtype)
    array = arrowdl.to_arrow_device(tensor)
    assert pa.array(array).to_pylist() == [0, 1, 2, 100]


def test_tensor_to_arrow_is_zero_copy():
    """`numpy()` of TensorFlow is a copy: two exports, both alive, show where the tensor lies."""
    tensor = tf.range(1000, dtype=tf.int64)
    first, second = (pa.array(arrowdl.to_arrow_device(tensor)) for _ in range(2))
    assert first.buffers()[1].address == second.buffers()[1].address


def test_raw_capsule_to_arrow():
    capsule = tf.experimental.dlpack.to_dlpack(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    array = arrowdl.to_arrow_device(capsule)
    assert array.shape == (2, 2)
    assert np.from_dlpack(array).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_bool_and_bfloat16_keep_their_types():
    flags = arrowdl.to_arrow_device(tf.constant([True, False, True]))
    assert flags.dtype == "bool"
    halves = arrowdl.to_arrow_device(tf.constant([1.5, -2.0], dtype=tf.bfloat16))
    assert halves.dtype == "bfloat16"
    back = tf.experimental.dlpack.from_dlpack(halves.__dlpack__())
    assert back.dtype == tf.bfloat16
    assert tf.cast(back, tf.float32).numpy().tolist() == [1.5, -2.0]


@pytest.mark.parametrize("dtype", NUMERIC)
def test_arrow_to_tensor(dtype):
    array = arrowdl.from_arrow(pa.array([0, 1, 2, 100]).cast(pa.from_numpy_dtype(np.dtype(dtype))))
    tensor = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    assert tensor.dtype == dtype
    assert tensor.numpy().tolist() == [0, 1, 2, 100]


def test_slice_is_read_where_it_starts():
    array = arrowdl.from_arrow(pa.array(range(100), pa.int32()))[10:20]
    tensor = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    assert tensor.numpy().tolist() == list(range(10, 20))


def test_refuses_what_tensorflow_asks_for_nothing():
    array = arrowdl.from_arrow(pa.array([1, None, 3]))
    with pytest.raises(BufferError, match="null"):
        array.__dlpack__()
