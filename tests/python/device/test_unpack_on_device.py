"""Bits and nulls on a device: by the frameworks' own operations, and end to end on fake drivers.

The kernels themselves are tested in tests/cpp/backends/kernels_test.cpp and tests/gpu.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrowdl import _frameworks
from helpers.random_cases import choose_examples
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]

NAMES = ["torch", "jax", "numpy"]
DTYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32)]
DTYPES += ["float16", "float32", "complex64", "bool"]


def as_framework(name: str, array: np.ndarray[Any, Any]) -> Any:
    if name == "numpy":
        return array
    if name == "torch":
        import torch

        return torch.from_numpy(array)
    import jax

    return jax.numpy.asarray(array)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=choose_examples(25, 200))
@given(data=st.binary(min_size=1, max_size=40), repeat=st.integers(1, 5), draw=st.data())
def test_random_bits_become_bytes(name: str, data: bytes, repeat: int, draw: st.DataObject) -> None:
    offset = draw.draw(st.integers(0, 7))
    length = draw.draw(st.integers(0, len(data) * 8 - offset))
    packed = np.frombuffer(data, np.uint8).copy()
    expected = np.unpackbits(packed, bitorder="little")[offset : offset + length]
    made = _frameworks.load(name).unpack_bits(as_framework(name, packed), offset, length, repeat)
    assert type(made) is type(as_framework(name, packed))
    result = np.asarray(made)
    assert result.dtype == bool
    np.testing.assert_array_equal(result, np.repeat(expected, repeat).astype(bool))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nulls_are_filled(name: str, dtype: str) -> None:
    for item in [0, float("nan")] if np.dtype(dtype).kind in "fc" else [0]:
        check_fill(_frameworks.load(name).fill, name, dtype, item)


def check_fill(fill: Any, name: str, dtype: str, item: float) -> None:
    values = np.arange(1, 6).astype(dtype)
    valid = np.array([True, False, True, True, False])
    filled = fill(as_framework(name, values), as_framework(name, valid), item)
    assert filled.dtype == as_framework(name, values).dtype
    part = complex(item, item) if values.dtype.kind == "c" else item
    expected = np.where(valid, values, np.asarray(part).astype(dtype))
    np.testing.assert_array_equal(np.asarray(filled), expected)
    np.testing.assert_array_equal(values, np.arange(1, 6).astype(dtype), err_msg="pure")


@pytest.mark.parametrize("name", NAMES)
def test_flat_values_are_arranged(name: str) -> None:
    framework = _frameworks.load(name)
    flat = np.arange(24, dtype=np.int32)
    arranged = framework.arrange(as_framework(name, flat), [2, 3, 4], [0, 2, 1])
    np.testing.assert_array_equal(np.asarray(arranged), flat.reshape(2, 3, 4).transpose(0, 2, 1))
    valid = framework.all_valid(as_framework(name, flat))
    np.testing.assert_array_equal(np.asarray(valid), np.ones(24, bool))


def test_torch_fills_what_numpy_has_no_name_for() -> None:
    import torch

    valid = torch.tensor([True, False])
    for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint64):
        values = torch.ones(2).to(dtype)
        filled = _frameworks.load("torch").fill(values, valid, 0)
        assert filled.dtype == dtype
        assert filled.float().tolist() == [1, 0]


# CUDA has arrowdl's kernels, ROCm the framework's operations: both say what the CPU says.
ON_A_DEVICE = """
import dataclasses
import numpy as np
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

numpy = _frameworks.load("numpy")
stand_in = dataclasses.replace(numpy, from_dlpack=read_as_host)
rows = range(70)
pairs = [None if i % 7 == 3 else [None if i % 5 == k else float(i + k) for k in range(3)]
         for i in rows]
images = pa.ExtensionArray.from_storage(
    pa.fixed_shape_tensor(pa.int16(), [3, 2], permutation=[1, 0]),
    pa.array([None if i % 4 == 1 else [i, 1, 2, 3, 4, 5] for i in rows],
             pa.list_(pa.int16(), 6)))
ARRAYS = {
    "bools": pa.array([None if i % 3 == 0 else i % 2 == 0 for i in rows]),
    "whole_bools": pa.array([i % 3 == 0 for i in rows]),
    "ints": pa.array([None if i % 5 == 0 else i for i in rows], pa.int64()),
    "floats": pa.array([None if i % 5 == 0 else i for i in rows], pa.float32()),
    "pairs": pa.array(pairs, pa.list_(pa.float64(), 3)),
    "flags": pa.array([None if i % 7 == 3 else [True, None, i % 2 == 0] for i in rows],
                      pa.list_(pa.bool_(), 3)),
    "images": images,
    "codes": pa.array(["a", None, "b", "a"] * 20).dictionary_encode(),
    "none": pa.array([], pa.bool_()),
}
ints = pa.array([None if i % 5 == 0 else i for i in rows], pa.int32())
absent = pa.array([i % 6 == 1 for i in rows])
places = [None if i % 4 == 2 else {"x": None if i % 3 == 0 else i / 2, "ok": i % 2 == 0,
                                   "at": {"y": [i, None]}} for i in rows]
places[7]["at"] = None
STRUCTS = {
    "places": pa.array(places, pa.struct({
        "x": pa.float64(), "ok": pa.bool_(),
        "at": pa.struct({"y": pa.list_(pa.float32(), 2)})})),
    "one level": pa.StructArray.from_arrays([ints], ["i"], mask=absent),
    "whole inside": pa.StructArray.from_arrays([pa.array(list(rows))], ["i"], mask=absent),
    "no nulls": pa.StructArray.from_arrays([pa.array(list(rows))], ["i"]),
}

def flatten(fields, path=()):
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from flatten(value, (*path, name))
        else:
            yield (*path, name), value

def check(device):
    for name, whole in ARRAYS.items():
        for array in (whole, whole.slice(11, 40), whole[:0]):
            there = arrowdl.from_arrow(array).to(device)
            for nulls in ("fill", "nan", "mask", "raise", 1):
                compare(name, array, there, nulls)

def check_structs(device):
    for name, whole in STRUCTS.items():
        for array in (whole, whole.slice(11, 40), whole[:0]):
            there = arrowdl.from_arrow(array).to(device)
            for nulls in ("fill", "nan", "mask", "raise", 1):
                compare_structs(name, array, there, nulls)

def compare_structs(name, array, there, nulls):
    try:
        made = dict(flatten(arrowdl.to_torch(array, nulls=nulls)))
    except BufferError:
        refused(BufferError, "", lambda: arrowdl.to_numpy(there, nulls=nulls))
        return
    result = dict(flatten(arrowdl.to_numpy(there, nulls=nulls)))
    assert result.keys() == made.keys()
    for path, expected in made.items():
        got = result[path] if nulls == "mask" else (result[path],)
        expected = expected if nulls == "mask" else (expected,)
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(one, other.numpy(), err_msg=f"{name} {path} {nulls}")
            assert one.dtype == other.numpy().dtype and one.shape == tuple(other.shape)

def read(obj, nulls, framework):
    replace_framework("numpy", framework)
    try:
        return arrowdl.to_numpy(obj, nulls=nulls)
    except BufferError as error:
        return str(error)

def compare(name, array, there, nulls):
    expected = here(array, nulls)
    result = arrowdl.to_numpy(there, nulls=nulls) if not isinstance(expected, str) else None
    if result is None:
        refused(BufferError, "", lambda: arrowdl.to_numpy(there, nulls=nulls))
        return
    pairs = zip(result, expected) if nulls == "mask" else [(result, expected)]
    for got, wanted in pairs:
        assert got.dtype == wanted.dtype and got.shape == wanted.shape, (name, nulls)
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name} {nulls}")
        assert got.flags.c_contiguous == wanted.flags.c_contiguous or got.size == 0

def here(array, nulls):
    try:
        made = arrowdl.to_torch(array, nulls=nulls)
    except BufferError as error:
        return str(error)
    return tuple(one.numpy() for one in made) if nulls == "mask" else made.numpy()

replace_framework("numpy", stand_in)
"""


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1", "rocm:0"])
def test_a_device_says_what_the_cpu_says(on_fake_cuda: Callable[[str], None], device: str) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
check("{device}")
settle()
assert debug.live_objects() == 0 or gc.collect() or debug.live_objects() == 0
""")


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1", "rocm:0"])
def test_structs_give_their_nulls_to_their_fields(
    on_fake_cuda: Callable[[str], None], device: str
) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
check_structs("{device}")
settle()
assert debug.live_objects() == 0 or gc.collect() or debug.live_objects() == 0
""")


def test_a_field_has_the_nulls_of_its_struct(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
here = arrowdl.from_arrow(STRUCTS["one level"].slice(3))
field = here.to("cuda:0")["i"]
assert field.sync_event is not None
assert pa.array(field.to("cpu")).to_pylist() == pa.array(here["i"]).to_pylist()
lists = pa.StructArray.from_arrays([pa.array([[1], [2]])], ["l"], mask=pa.array([False, True]))
there = arrowdl.from_arrow(lists).to("rocm:0")
refused(BufferError, "numpy's arrays are on the CPU",  # which has no way back to the device
        lambda: arrowdl.to_numpy(there, nulls="fill"))
""")


NO_KERNELS = """
def check_fields(device):
    for name, whole in STRUCTS.items():
        for start in 0, 3, 11, len(whole):
            array = whole.slice(start, 40)
            windows = arrowdl.from_arrow(whole).to(device)[start:start + 40], \\
                arrowdl.from_arrow(array).to(device)
            for there in windows:
                for field in array.type:
                    if field.type == pa.struct([]) or pa.types.is_struct(field.type):
                        continue
                    made = there[field.name]
                    assert str(made.device) == str(there.device)
                    assert pa.array(made.to("cpu")).to_pylist() == \\
                        pa.array(arrowdl.from_arrow(array)[field.name]).to_pylist(), (name, start)
"""


@pytest.mark.parametrize("device", ["rocm:0", "cuda:1", "cuda_managed:0"])
def test_fields_have_the_nulls_of_their_struct_without_kernels(
    on_fake_cuda: Callable[[str], None], device: str
) -> None:
    """ROCm without its compiler, CUDA whose PTX does not load, managed memory that only the GPU may
    touch: the host combines the bitmaps."""
    on_fake_cuda(f"""{ON_A_DEVICE}
{NO_KERNELS}
cuda.library.arrowdl_fake_set_concurrent_managed(0)
cuda.library.arrowdl_fake_set_module_status(222)
check_fields("{device}")
settle()
assert debug.live_objects() == 0 or gc.collect() or debug.live_objects() == 0
""")


def test_dlpack_copies_on_the_device(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
bools = arrowdl.from_arrow(pa.array([True, False, True])).to("cuda:0")
assert read_as_host(bools).tolist() == [True, False, True]
refused(BufferError, "without a copy", lambda: bools.__dlpack__(copy=False))
nulls = arrowdl.from_arrow(pa.array([1, None], pa.int32())).to("cuda:0")
refused(BufferError, "has nulls", nulls.__dlpack__)
there = arrowdl.from_arrow(pa.array([True])).to("rocm:0")
assert read_as_host(there).tolist() == [True]  # by way of the host
refused(BufferError, "without a copy", lambda: there.__dlpack__(copy=False))
""")


def test_the_library_carries_what_the_kernels_compile_to() -> None:
    if shutil.which("nvcc") is None or shutil.which("ptxas") is None:
        pytest.skip("no CUDA toolkit here")
    made = (ROOT / "cpp/src/backends/kernels/kernels.ptx").read_text()
    found = subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True)
    release = made.splitlines()[0].rpartition("CUDA ")[2].partition(":")[0]
    if f"release {release}" not in found.stdout:
        pytest.skip(f"this toolkit is not CUDA {release}, which made the file")
    check = [sys.executable, "tools/make_ptx.py", "--check"]
    # AddressSanitizer, where these tests run under it, is not for NVIDIA's compiler.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(check, cwd=ROOT, check=False, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
