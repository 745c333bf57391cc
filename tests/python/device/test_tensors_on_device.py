"""Arrow arrays of a device that become tensors there, beside the same arrays on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

COMPARE = """
DEVICE = globals().get("DEVICE", "cuda:1")
import dataclasses
import random
import numpy as np
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.fake_cuda import read_as_host, replace_framework
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

numpy = _frameworks.load("numpy")
put_there = []

def put(array, name, index):
    assert f"{name}:{index}" == DEVICE
    put_there.append(arrowdl.to_arrow_device(array).to(DEVICE))
    return read_as_host(put_there[-1])

there = dataclasses.replace(numpy, from_dlpack=read_as_host, from_offsets=read_as_host, put=put)
replace_framework("numpy", there)
here = dataclasses.replace(numpy)

def convert(function, *args, **options):
    try:
        return function(*args, **options)
    except (BufferError, ValueError) as error:
        return error

def same(made, expected, path=""):
    if isinstance(expected, dict):
        assert made.keys() == expected.keys()
        for name in expected:
            same(made[name], expected[name], f"{path}.{name}")
    elif isinstance(expected, tuple):
        assert len(made) == len(expected), path
        for i, pair in enumerate(zip(made, expected)):
            same(*pair, f"{path}[{i}]")
    else:
        expected = np.asarray(expected)
        assert made.dtype == expected.dtype and made.shape == expected.shape, path
        np.testing.assert_array_equal(made, expected, err_msg=path)

def compare(rows, **options):
    '''The tensors of `rows` on the device are those of the CPU, which arrowdl calls to_jax's.'''
    expected = convert(on_cpu, rows, **options)
    made = convert(arrowdl.to_numpy, rows.to(DEVICE), **options)
    if isinstance(expected, Exception):
        assert isinstance(made, type(expected)), (made, expected, options, rows.schema)
        # A framework that calls __dlpack__ gets the error there, where no field is named.
        # Without kernels, nulls of a struct are found before they are those of its fields.
        says = ("CPU", "a struct that contains the array")
        same_text = str(made) in str(expected)
        assert same_text or any(text in str(made) for text in says), (made, expected)
    else:
        assert not isinstance(made, Exception), (made, options)
        same(made, expected)

replace_framework("jax", here)
on_cpu = arrowdl.to_jax
"""

RANDOM = """
def has_views(kind):
    types = pa.types
    if kind in (pa.string_view(), pa.binary_view()):
        return True
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return has_views(kind.value_type)
    return any(has_views(kind.field(i).type) for i in range(kind.num_fields))

def draw(rng):
    kind = draw_type(rng)
    while has_views(kind):
        kind = draw_type(rng)
    return kind

def check(rng):
    kind = draw(rng)
    values = draw_values(rng, kind, rng.randrange(14), rng.choice([0, 0.3, 1]))
    rows = arrowdl.from_arrow(lay_out(rng, kind, values))
    ragged = rng.choice(["jagged", "padded", "offsets"])
    compare(rows, nulls=rng.choice(["fill", "mask", "raise", "nan"]), ragged=ragged)

check_cases(check, 250)
put_there.clear()
gc.collect()
settle()
assert debug.live_objects() == 0
"""


@pytest.mark.parametrize("device", ["cuda:1", "rocm:1"])
def test_random_arrays_become_the_tensors_of_the_cpu(
    on_fake_gpus: Callable[[str], None], device: str
) -> None:
    on_fake_gpus(f'DEVICE = "{device}"' + COMPARE + RANDOM)


def test_random_arrays_go_through_the_host_without_kernels(
    on_fake_cuda: Callable[[str], None],
) -> None:
    """HIP without hiprtc."""
    on_fake_cuda('DEVICE = "rocm:1"' + COMPARE + RANDOM)


@pytest.mark.parametrize("device", ["cuda:1", "rocm:1"])
def test_padded_lists(on_fake_cuda: Callable[[str], None], device: str) -> None:
    """By kernels, and on ROCm through the host."""
    on_fake_cuda(f"""DEVICE = "{device}"
{COMPARE}
rows = [[1, 2, 3], None, [], [4], [5, 6, 7, 8, 9]] * 7
items = [pa.int8(), pa.float16(), pa.float32(), pa.int64(), pa.bool_(), pa.list_(pa.int16(), 2)]
for item in items:
    lists = [None if row is None else [[x, -x] for x in row] if pa.types.is_fixed_size_list(item)
             else [x % 2 == 0 for x in row] if item == pa.bool_() else row for row in rows]
    if item == pa.float16():
        lists = [None if row is None else [np.float16(x) for x in row] for row in lists]
    for kind in (pa.list_(item), pa.large_list(item)):
        array = arrowdl.from_arrow(pa.array(lists, kind))
        for window in (array, array[3:17], array[:0], array[2:3]):
            for options in ({{}}, {{"max_length": 2}}, {{"pad_to_multiple": 4}}, {{"pad_value": 1}},
                            {{"max_length": 3, "pad_to_multiple": 2, "pad_value": 7}}):
                if item == pa.bool_() and options.get("pad_value") == 7:
                    continue
                for nulls in ("fill", "mask"):
                    compare(window, ragged="padded", nulls=nulls, **options)
""")


@pytest.mark.parametrize("device", ["cuda:1", "rocm:1"])
def test_casts_and_shapes_go_through_the_host(
    on_fake_cuda: Callable[[str], None], device: str
) -> None:
    on_fake_cuda(f"""DEVICE = "{device}"
{COMPARE}
numbers = pa.array([1, None, 300, 4], pa.int32())
lists = pa.array([[1, 2], [], None, [70_000]], pa.list_(pa.int32()))
nested = pa.array([[[1], []], None, [[2, 3]], []], pa.list_(pa.list_(pa.int16())))
runs = pa.RunEndEncodedArray.from_arrays(pa.array([3, 4], pa.int32()), pa.array([5, 6]))
table = pa.record_batch({{"n": numbers, "l": lists, "d": nested, "r": runs,
                          "f": pa.array([0.5, None, 2, 3])}})
masked = pa.StructArray.from_arrays(
    table.columns[:4], names=["n", "l", "d", "r"], mask=pa.array([False, True, False, True]))
for dtype in ("float32", "int64", "uint8", "int32"):
    for rows in (numbers, lists, nested, runs, table, masked):
        array = arrowdl.from_arrow(rows)
        for window in (array, array[1:3]):
            for ragged in ("offsets", "padded"):
                compare(window, dtype=dtype, nulls="fill", ragged=ragged)
            compare(window, dtype=dtype, nulls="fill", stack=True)
    compare(arrowdl.from_arrow(table), dtype={{"n": dtype}}, nulls="fill", ragged="offsets")
    compare(arrowdl.from_arrow(table.select(["n", "f"])), dtype=dtype, nulls="mask", stack=True)
shapes = pa.StructArray.from_arrays([
    pa.array([[1, 2], [3], None], pa.list_(pa.int32())),
    pa.FixedSizeListArray.from_arrays(pa.array([2, 1, 0], pa.int32()), 1)], ["data", "shape"])
schema = pa.schema([pa.field("x", shapes.type, metadata={{
    "ARROW:extension:name": "arrow.variable_shape_tensor", "ARROW:extension:metadata": "{{}}"}})])
variable = arrowdl.from_arrow(pa.RecordBatch.from_arrays([shapes], schema=schema)).field("x")
compare(variable, nulls="fill")
compare(variable, nulls="mask", ragged="offsets")
there = arrowdl.from_arrow(numbers).to(DEVICE)
refused(BufferError, "without a copy", lambda: arrowdl.to_numpy(there, dtype="int8", copy=False))
""")


def test_bits_and_runs_are_exported_through_the_host(on_fake_cuda: Callable[[str], None]) -> None:
    """By __dlpack__, whose consumer may name a stream, or order itself (-1)."""
    on_fake_cuda("""
import ctypes
import pyarrow as pa
from helpers.fake_cuda import read_as_host
bits = pa.array([True, False, True] * 5)
runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int16()), pa.array([1.5, 2.5]))
pairs = pa.array([[True, False], [False, True]], pa.list_(pa.bool_(), 2))
for rows, expected in ((bits, bits.to_pylist()), (runs, [1.5, 1.5, 2.5, 2.5, 2.5]),
                       (pairs, pairs.to_pylist())):
    there = arrowdl.from_arrow(rows).to("rocm:1")
    for first in (0, 1):
        made = read_as_host(there[first:])
        assert made.tolist() == expected[first:]
        assert made.flags.writeable == (rows is not runs)  # its own copy
    capsule = there.__dlpack__(stream=-1)
    refused(BufferError, "copy", lambda: there.__dlpack__(copy=False))
""")


@pytest.mark.parametrize("device", ["cuda:1", "rocm:1"])
@pytest.mark.parametrize("kernels", [True, False])
def test_matrices(request: pytest.FixtureRequest, device: str, *, kernels: bool) -> None:
    run = request.getfixturevalue("on_fake_gpus" if kernels else "on_fake_cuda")
    run(f"""DEVICE = "{device}"
{COMPARE}
rows = range(50)
def column(kind, step):
    return pa.array([None if i % step == 1 else i for i in rows], kind)
images = pa.ExtensionArray.from_storage(
    pa.fixed_shape_tensor(pa.float32(), [2, 3], permutation=[1, 0]),
    pa.array([[i, 1, 2, 3, 4, 5] for i in rows], pa.list_(pa.float32(), 6)))
TABLES = [
    {{"x": column(pa.float32(), 3), "y": column(pa.float32(), 99), "z": column(pa.float32(), 5)}},
    {{"i": column(pa.int16(), 4)}},
    {{"a": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in rows]),
      "b": pa.array([i % 3 == 0 for i in rows])}},
    {{"x": column(pa.float32(), 3), "pairs": pa.array([[i, 2.0] for i in rows],
      pa.list_(pa.float32(), 2)), "images": images, "none": pa.array([[]] * 50,
      pa.list_(pa.float32(), 0))}},
    {{"x": column(pa.float32(), 3), "i": column(pa.int32(), 3)}},
    {{"text": pa.array(["a"] * 50)}},
]
for columns in TABLES:
    absent = pa.array([i % 7 == 2 for i in rows])
    plain = pa.RecordBatch.from_pydict(columns).to_struct_array()
    masked = pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=absent)
    for table in (plain, masked):
        array = arrowdl.from_arrow(table)
        for window in (array, array[5:9], array[:0]):
            for nulls in ("fill", "nan", "mask", "raise"):
                compare(window, stack=True, nulls=nulls)
""")


def test_frameworks_wait_on_their_own_stream(on_fake_cuda: Callable[[str], None]) -> None:
    """The exchange API names the stream: the padded rows are ready there."""
    on_fake_cuda(f"""{COMPARE}
from helpers.fake_cuda import StandInFramework
framework = StandInFramework(cuda)
replace_framework("torch", dataclasses.replace(numpy, tensor_type=framework.tensor_type))
lists = arrowdl.from_arrow(pa.array([[1, 2], [3], []], pa.list_(pa.int32()))).to("cuda")
with cuda.gate(framework.stream):
    values, lengths = arrowdl.to_torch(lists, ragged="padded")
    assert not cuda.is_idle(framework.stream)
while not cuda.is_idle(framework.stream):
    time.sleep(0.001)
assert values.tolist() == [[1, 2], [3, 0], [0, 0]] and lengths.tolist() == [2, 1, 0]
""")
