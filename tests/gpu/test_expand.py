"""Bits and nulls on the GPU: by arrowdl's kernels, on the stream of whoever reads."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.gpu import Spin, torch

pytestmark = pytest.mark.cuda

ROWS = range(1000)
ARRAYS: dict[str, pa.Array] = {
    "bits": pa.array([i % 3 == 0 for i in ROWS]),
    "bits with nulls": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in ROWS]),
    "int8": pa.array([None if i % 5 == 0 else i % 100 for i in ROWS], pa.int8()),
    "float16": pa.array([None if i % 5 == 0 else i % 100 for i in ROWS], pa.float32()).cast(
        pa.float16()
    ),
    "float32": pa.array([None if i % 7 == 0 else i for i in ROWS], pa.float32()),
    "int64": pa.array([None if i % 2 == 0 else i for i in ROWS], pa.int64()),
    "lists": pa.array(
        [None if i % 7 == 3 else [None if i % 5 == k else i + k for k in range(3)] for i in ROWS],
        pa.list_(pa.float64(), 3),
    ),
    "no rows": pa.array([], pa.bool_()),
}


def compare(there: Any, here: Any) -> None:
    assert there.is_cuda
    assert there.dtype == here.dtype
    torch.testing.assert_close(there.cpu(), here, rtol=0, atol=0, equal_nan=True)


@pytest.mark.sanitize
@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("nulls", ["fill", "nan", "mask"])
@pytest.mark.parametrize("start", [0, 3, 8])
def test_the_gpu_says_what_the_cpu_says(name: str, nulls: Any, start: int) -> None:
    array = ARRAYS[name].slice(start)
    if nulls == "nan" and not pa.types.is_floating(getattr(array.type, "value_type", array.type)):
        pytest.skip(f"{array.type} has no NaN")
    here = arrowdl.to_torch(array, nulls=nulls)
    there = arrowdl.to_torch(arrowdl.from_arrow(array).to("cuda"), nulls=nulls)
    if nulls == "mask":
        compare(there[1], here[1])
        here, there = here[0].where(here[1], 0), there[0].where(there[1], 0)
    compare(there, here)


STRUCTS = pa.StructArray.from_arrays(
    [ARRAYS[name] for name in ("float32", "bits with nulls", "lists")],
    ["x", "flag", "pair"],
    mask=pa.array([i % 11 == 2 for i in ROWS]),
)


@pytest.mark.sanitize
@pytest.mark.parametrize("nulls", ["fill", "mask"])
@pytest.mark.parametrize("start", [0, 3, 8])
def test_structs_give_their_nulls_to_their_fields(nulls: Any, start: int) -> None:
    array = STRUCTS.slice(start)
    here = arrowdl.to_torch(array, nulls=nulls)
    there = arrowdl.to_torch(arrowdl.from_arrow(array).to("cuda"), nulls=nulls)
    assert there.keys() == here.keys()
    for name, expected in here.items():
        made = there[name]
        if nulls == "mask":
            compare(made[1], expected[1])
            made, expected = made[0].where(made[1], 0), expected[0].where(expected[1], 0)
        compare(made, expected)


def test_a_field_is_made_without_a_wait(side: Any, other: Any) -> None:
    pinned = arrowdl.from_arrow(STRUCTS).to("cuda_host")
    pinned.synchronize()
    arrowdl.to_torch(pinned.to("cuda"), nulls="fill")  # the driver has compiled the kernels
    torch.cuda.synchronize()
    spin = Spin(side)
    late = pinned.to("cuda", stream=side)
    field = late["x"]
    with torch.cuda.stream(other):
        made = arrowdl.to_torch(field, nulls="fill")
        assert spin.is_running(), "the call has waited"
        made = made.clone()
    other.synchronize()
    compare(made, arrowdl.to_torch(STRUCTS, nulls="fill")["x"])


def test_nobody_waits(side: Any, other: Any) -> None:
    pinned = arrowdl.from_arrow(ARRAYS["bits with nulls"]).to("cuda_host")
    pinned.synchronize()
    arrowdl.to_torch(pinned.to("cuda"), nulls="mask")  # the driver has compiled the kernels
    torch.cuda.synchronize()
    spin = Spin(side)
    late = pinned.to("cuda", stream=side)
    with torch.cuda.stream(other):
        values, mask = arrowdl.to_torch(late, nulls="mask")
        assert spin.is_running(), "the call has waited"
        values, mask = values.clone(), mask.clone()
    other.synchronize()
    expected = arrowdl.to_torch(ARRAYS["bits with nulls"], nulls="mask")
    compare(mask, expected[1])
    compare(values & mask, expected[0] & expected[1])


def test_a_large_column(side: Any) -> None:
    bits = np.random.default_rng(1).integers(0, 2, 20_000_003).astype(bool)
    with torch.cuda.stream(side):
        made = arrowdl.to_torch(arrowdl.from_arrow(pa.array(bits)).to("cuda"))
        np.testing.assert_array_equal(made.cpu().numpy(), bits)


def test_cupy_takes_them() -> None:
    cupy = pytest.importorskip("cupy")
    bits = arrowdl.from_arrow(ARRAYS["bits"]).to("cuda")
    assert cupy.from_dlpack(bits).get().tolist() == ARRAYS["bits"].to_pylist()
