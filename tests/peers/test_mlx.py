"""mlx: legacy capsules whatever it is asked for; it copies what it takes."""

from __future__ import annotations

import gc

import arrowdl
import mlx.core as mx
import numpy as np
import pyarrow as pa
import pytest

NUMERIC = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NUMERIC += ["float16", "float32"]


@pytest.fixture(autouse=True)
def _nothing_leaks():
    before = arrowdl._core.live_objects()
    yield
    gc.collect()
    assert arrowdl._core.live_objects() == before


@pytest.mark.parametrize("dtype", NUMERIC)
def test_array_to_arrow(dtype):
    source = mx.array([0, 1, 2, 100], dtype=getattr(mx, dtype))
    assert pa.array(arrowdl.to_arrow_device(source)).to_pylist() == [0, 1, 2, 100]


def test_lazy_array_is_evaluated_first():
    source = mx.arange(6).reshape(2, 3) * 2
    array = arrowdl.to_arrow_device(source)
    assert np.from_dlpack(array).tolist() == [[0, 2, 4], [6, 8, 10]]


# Only to Arrow: mlx 0.32 takes whatever calls itself bfloat16 for a NumPy array.
def test_bfloat16_keeps_its_type():
    array = arrowdl.to_arrow_device(mx.array([1.5, -2.0], dtype=mx.bfloat16))
    assert array.dtype == "bfloat16"


@pytest.mark.parametrize("dtype", NUMERIC)
def test_arrow_to_array(dtype):
    array = arrowdl.from_arrow(pa.array([0, 1, 2, 100]).cast(pa.from_numpy_dtype(np.dtype(dtype))))
    target = mx.array(array)
    assert target.dtype == getattr(mx, dtype)
    assert target.tolist() == [0, 1, 2, 100]


def test_slice_is_read_where_it_starts():
    array = arrowdl.from_arrow(pa.array(range(100), pa.int32()))[10:20]
    assert mx.array(array).tolist() == list(range(10, 20))
