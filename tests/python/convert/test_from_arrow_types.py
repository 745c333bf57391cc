"""Arrow to tensor: every row of the type map, at every offset."""

from __future__ import annotations

import sys
from itertools import pairwise, permutations, product
from typing import Any

import arrowdl
import jax
import ml_dtypes
import nanoarrow as na
import numpy as np
import pyarrow as pa
import pytest
from helpers.arrays import (
    address_of,
    as_extension,
    data_address,
    expected,
    fixed_size_list,
    numbers,
)
from helpers.optional import torch

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
NUMBERS = [*INTEGERS, *UNSIGNED, *FLOATS]

TEMPORALS = [
    (pa.date32(), "int32"),
    (pa.date64(), "int64"),
    (pa.time32("s"), "int32"),
    (pa.time32("ms"), "int32"),
    (pa.time64("us"), "int64"),
    (pa.time64("ns"), "int64"),
    *((pa.timestamp(unit), "int64") for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", tz="Europe/Berlin"), "int64"),
    *((pa.duration(unit), "int64") for unit in ("s", "ms", "us", "ns")),
]

TO_ANY = [arrowdl.to_torch, arrowdl.to_numpy, arrowdl.to_jax]


def to_host(tensor: Any) -> np.ndarray:
    return np.asarray(tensor)


# ---------------------------------------------------------------- one element a row


@pytest.mark.parametrize("type", NUMBERS, ids=str)
@pytest.mark.parametrize("convert", [arrowdl.to_torch, arrowdl.to_numpy])
def test_numbers_are_read_where_they_lie(convert: Any, type: pa.DataType) -> None:
    values = numbers((10,), type.to_pandas_dtype())
    array = pa.array(values)[3:8]
    assert array.type == type
    tensor = convert(array)
    assert address_of(tensor) == data_address(array)
    assert to_host(tensor).dtype == values.dtype
    np.testing.assert_array_equal(to_host(tensor), values[3:8])


@pytest.mark.parametrize("type", NUMBERS, ids=str)
def test_jax_reads_numbers_of_every_width(type: pa.DataType) -> None:
    values = numbers((10,), type.to_pandas_dtype())
    with jax.enable_x64(True):
        tensor = arrowdl.to_jax(pa.array(values)[3:8])
        assert tensor.dtype == values.dtype
        np.testing.assert_array_equal(to_host(tensor), values[3:8])


def test_jax_without_x64_refuses_what_it_would_cut_down() -> None:
    for values in (pa.array([2**40]), pa.array([0.1]), pa.array([1], pa.uint64())):
        with pytest.raises(BufferError, match="jax_enable_x64"):
            arrowdl.to_jax(values)


def test_jax_without_x64_takes_large_offsets_that_fit() -> None:
    lists = pa.array([[1, 2], [3]], pa.large_list(pa.int32()))
    values, offsets = arrowdl.to_jax(lists)
    assert (values.tolist(), offsets.tolist()) == ([1, 2, 3], [0, 2, 3])
    padded, lengths = arrowdl.to_jax(lists, ragged="padded")
    assert (padded.tolist(), lengths.tolist()) == ([[1, 2], [3, 0]], [2, 1])


@pytest.mark.parametrize(("type", "physical"), TEMPORALS, ids=str)
def test_temporals_are_their_physical_integers(type: pa.DataType, physical: str) -> None:
    values = numbers((10,), physical) - 5
    array = pa.Array.from_buffers(type, 10, [None, pa.py_buffer(values)])[3:8]
    device_array = arrowdl.from_arrow(array)
    tensor = arrowdl.to_numpy(device_array)
    assert tensor.dtype == physical == device_array.dtype
    assert address_of(tensor) == data_address(array)
    np.testing.assert_array_equal(tensor, values[3:8])
    assert pa.array(device_array).type == type  # unit and zone stay in the schema


def test_month_intervals_are_int32() -> None:
    months = na.c_array_from_buffers(na.interval_months(), 3, [None, np.array([1, -2, 3], "i4")])
    tensor = arrowdl.to_numpy(months)
    assert tensor.dtype == np.int32
    assert tensor.tolist() == [1, -2, 3]


@pytest.mark.parametrize("offset", range(18))
def test_bits_are_unpacked_from_every_bit_offset(offset: int) -> None:
    bits = np.random.default_rng(offset).integers(0, 2, 200, dtype=bool)
    packed = pa.array(bits)
    for length in (0, 1, 7, 8, 9, 63, 64, 65, 200 - offset):
        tensor = arrowdl.to_numpy(packed.slice(offset, length))
        assert tensor.dtype == bool
        np.testing.assert_array_equal(tensor, bits[offset : offset + length])


@pytest.mark.parametrize("convert", TO_ANY)
def test_bits_become_each_frameworks_bool(convert: Any) -> None:
    tensor = convert(pa.array([True, False, True, True])[1:])
    assert tensor.dtype in (torch.bool, np.dtype(bool))
    assert to_host(tensor).tolist() == [False, True, True]


@pytest.mark.parametrize("convert", [arrowdl.to_torch, arrowdl.to_numpy])
def test_bool8_of_zeros_and_ones_is_read_in_place(convert: Any) -> None:
    storage = pa.array([1, 0, 0, 1, 1], pa.int8())
    array = pa.ExtensionArray.from_storage(pa.bool8(), storage)[1:]
    tensor = convert(array)
    assert address_of(tensor) == data_address(array)
    assert to_host(tensor).dtype == bool
    assert tensor.tolist() == [False, False, True, True]


@pytest.mark.parametrize("convert", TO_ANY)
def test_bool8_of_other_bytes_becomes_zeros_and_ones(convert: Any) -> None:
    storage = pa.array([0, 1, 2, -1, 127, -128, 0], pa.int8())
    tensor = convert(pa.ExtensionArray.from_storage(pa.bool8(), storage)[1:])
    as_bytes = to_host(tensor).view("uint8")
    assert as_bytes.tolist() == [1, 1, 1, 1, 1, 0]
    assert storage.to_pylist() == [0, 1, 2, -1, 127, -128, 0]


# ---------------------------------------------------------------- fixed-size rows


@pytest.mark.parametrize("offsets", list(product((0, 1), repeat=4)), ids=str)
def test_nested_fixed_size_lists_honour_the_offset_of_every_level(
    offsets: tuple[int, int, int, int],
) -> None:
    sizes = (2, 3, 2)
    rows = 3
    lengths = [rows]  # of each window, outermost first
    for offset, size in zip(offsets, sizes, strict=False):
        lengths.append((lengths[-1] + offset) * size)
    leaf = pa.array(np.arange(lengths[3] + offsets[3], dtype="float32"))[offsets[3] :]
    array = leaf
    for level in (2, 1, 0):
        array = fixed_size_list(array, sizes[level], offset=offsets[level], length=lengths[level])
    array.validate(full=True)
    tensor = arrowdl.to_numpy(array)
    assert tensor.shape == (rows, *sizes)
    np.testing.assert_array_equal(tensor, expected(array, "float32"))
    base = leaf.buffers()[1].address
    assert address_of(tensor) == base + 4 * int(tensor[0, 0, 0, 0])


@pytest.mark.parametrize("depth", [1, 2, 5, 20])
def test_fixed_size_lists_nest_to_any_depth(depth: int) -> None:
    array = pa.array(np.arange(3 * 2, dtype="int16"))
    array = fixed_size_list(array, 2)
    for _ in range(depth - 1):
        array = fixed_size_list(array, 1)
    tensor = arrowdl.to_torch(array)
    assert tuple(tensor.shape) == (3, *(1,) * (depth - 1), 2)
    assert tensor.flatten().tolist() == list(range(6))


@pytest.mark.parametrize("type", NUMBERS, ids=str)
def test_slices_of_fixed_size_lists_are_read_in_place(type: pa.DataType) -> None:
    values = numbers((6, 4), type.to_pandas_dtype())
    array = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 4)[2:5]
    tensor = arrowdl.to_torch(array)
    assert tensor.data_ptr() == data_address(array)
    np.testing.assert_array_equal(tensor.numpy(), values[2:5])


@pytest.mark.parametrize("type", [pa.float32(), pa.int8(), pa.float64()], ids=str)
@pytest.mark.parametrize("inner", [0, 1, 7])
@pytest.mark.parametrize("outer", [slice(None), slice(2, 5), slice(3, 3), slice(6, 6)], ids=str)
def test_offsets_of_vectors_and_of_their_values_add_up(
    type: pa.DataType, inner: int, outer: slice
) -> None:
    values = pa.array(range(inner + 24), type)[inner:]
    array = pa.FixedSizeListArray.from_arrays(values, 4)[outer]
    tensor = arrowdl.to_torch(array)
    assert tensor.shape == (len(array), 4)
    assert tensor.tolist() == array.to_pylist()
    if len(array) > 0:
        assert tensor.data_ptr() == data_address(array)


def test_nulls_of_vectors_and_of_their_values_are_seen() -> None:
    values = pa.array([1.0, 2.0, None, 4.0, 5.0, 6.0])
    with_null_value = pa.FixedSizeListArray.from_arrays(values, 2)
    with_null_row = pa.array([[1.0, 2.0], None, [5.0, 6.0]], pa.list_(pa.float64(), 2))
    for array in with_null_value, with_null_row:
        with pytest.raises(BufferError, match="nulls"):
            arrowdl.to_torch(array)
        assert arrowdl.to_torch(array[2:]).tolist() == [[5.0, 6.0]]
    no_values = pa.array([[], []], pa.list_(pa.float32(), 0))
    assert arrowdl.to_torch(no_values).shape == (2, 0)


@pytest.mark.parametrize("outer", [0, 1])
@pytest.mark.parametrize("inner", [0, 1, 2])
@pytest.mark.parametrize("leaf", [0, 1, 5, 8, 11])
def test_bits_in_nested_fixed_size_lists_are_read_from_their_bit_offset(
    outer: int, inner: int, leaf: int
) -> None:
    bits = pa.array(np.random.default_rng(leaf).integers(0, 2, 60, dtype=bool))[leaf:]
    middle = fixed_size_list(bits, 3, offset=inner, length=10)
    array = fixed_size_list(middle, 2, offset=outer, length=4)
    tensor = arrowdl.to_torch(array)
    assert tuple(tensor.shape) == (4, 2, 3)
    assert tensor.tolist() == array.to_pylist()


@pytest.mark.parametrize("outer", [0, 1])
@pytest.mark.parametrize("inner", [0, 2])
@pytest.mark.parametrize("leaf", [0, 3])
def test_bool8_in_nested_fixed_size_lists_is_bool_in_place(
    outer: int, inner: int, leaf: int
) -> None:
    storage = pa.array(np.random.default_rng(7).integers(0, 2, 60, dtype="int8"))
    bools = pa.ExtensionArray.from_storage(pa.bool8(), storage)[leaf:]
    array = fixed_size_list(
        fixed_size_list(bools, 3, offset=inner, length=10), 2, offset=outer, length=4
    )
    tensor = arrowdl.to_numpy(array)
    assert tensor.dtype == bool
    assert address_of(tensor) == storage.buffers()[1].address + leaf + 3 * inner + 6 * outer
    np.testing.assert_array_equal(tensor, expected(array, bool))


@pytest.mark.parametrize("width", [1, 3, 16])
def test_fixed_size_binary_is_rows_of_bytes_in_place(width: int) -> None:
    rows = [bytes([i] * width) for i in range(5)]
    array = pa.array(rows, pa.binary(width))[1:4]
    tensor = arrowdl.to_torch(array)
    assert tensor.dtype == torch.uint8
    assert tensor.data_ptr() == array.buffers()[1].address + width
    assert [bytes(row.tolist()) for row in tensor] == rows[1:4]


def test_fixed_size_binary_nests() -> None:
    array = pa.FixedSizeListArray.from_arrays(pa.array([b"abc", b"def"] * 3, pa.binary(3)), 2)[1:]
    tensor = arrowdl.to_numpy(array)
    assert tensor.shape == (2, 2, 3)
    assert tensor.tobytes() == b"abcdef" * 2


# ---------------------------------------------------------------- fixed_shape_tensor

PHYSICAL = (2, 3, 5)


def shape_tensor_type(permutation: tuple[int, ...] | None, value: Any = None) -> pa.DataType:
    return pa.fixed_shape_tensor(value or pa.int32(), PHYSICAL, permutation=permutation)


def shape_tensors(rows: int, permutation: tuple[int, ...] | None) -> pa.Array:
    flat = pa.array(np.arange(rows * 30, dtype="int32"))
    storage = pa.FixedSizeListArray.from_arrays(flat, 30)
    return pa.ExtensionArray.from_storage(shape_tensor_type(permutation), storage)


@pytest.mark.parametrize("permutation", [None, *permutations(range(3))], ids=str)
@pytest.mark.parametrize("start", [0, 2])
def test_a_permutation_is_a_matter_of_strides(
    permutation: tuple[int, ...] | None, start: int
) -> None:
    array = shape_tensors(4, permutation)[start:]
    axes = (0, *(p + 1 for p in permutation or range(3)))
    logical = np.arange(120, dtype="int32").reshape(4, *PHYSICAL).transpose(axes)[start:]
    for tensor in (arrowdl.to_numpy(array), arrowdl.to_torch(array).numpy()):
        assert address_of(tensor) == data_address(array)
        assert tensor.strides == logical.strides
        np.testing.assert_array_equal(tensor, logical)
    np.testing.assert_array_equal(arrowdl.to_jax(array), logical)


@pytest.mark.parametrize("permutation", list(permutations(range(3))), ids=str)
def test_a_permutation_holds_inside_fixed_size_lists(permutation: tuple[int, ...]) -> None:
    array = fixed_size_list(shape_tensors(7, permutation)[1:], 2, offset=1, length=2)
    axes = (0, 1, *(p + 2 for p in permutation))
    logical = np.arange(90, 210, dtype="int32").reshape(2, 2, *PHYSICAL).transpose(axes)
    np.testing.assert_array_equal(arrowdl.to_numpy(array), logical)
    np.testing.assert_array_equal(arrowdl.to_torch(array).numpy(), logical)


def test_permutations_nest() -> None:
    flat = pa.array(np.arange(2 * 6 * 6, dtype="int32"))
    inner_type = pa.fixed_shape_tensor(pa.int32(), (2, 3), permutation=(1, 0))
    inner = pa.ExtensionArray.from_storage(inner_type, pa.FixedSizeListArray.from_arrays(flat, 6))
    outer = as_extension(
        fixed_size_list(inner, 6),
        "arrow.fixed_shape_tensor",
        '{"shape":[3,2],"permutation":[1,0]}',
    )
    logical = np.arange(72).reshape(2, 3, 2, 2, 3).transpose(0, 2, 1, 4, 3)
    np.testing.assert_array_equal(arrowdl.to_numpy(outer), logical)


@pytest.mark.parametrize("value", [pa.bool_(), pa.bool8()], ids=str)
def test_permuted_booleans_are_right(value: pa.DataType) -> None:
    bits = np.random.default_rng(3).integers(0, 2, 90, dtype=bool)
    child = pa.array(bits)
    if isinstance(value, pa.BaseExtensionType):
        child = pa.ExtensionArray.from_storage(value, pa.array(bits.astype("int8") * 3))
    metadata = '{"shape":[2,3,5],"permutation":[2,0,1]}'
    array = as_extension(fixed_size_list(child, 30), "arrow.fixed_shape_tensor", metadata)[1:]
    logical = bits.reshape(3, *PHYSICAL).transpose(0, 3, 1, 2)[1:]
    np.testing.assert_array_equal(arrowdl.to_numpy(array), logical)


def test_nulls_are_filled_under_a_permutation() -> None:
    flat = pa.array([None if i % 7 == 0 else i for i in range(60)], pa.int32())
    storage = pa.FixedSizeListArray.from_arrays(flat, 30)
    array = pa.ExtensionArray.from_storage(shape_tensor_type((2, 0, 1)), storage)
    physical = np.array([0 if i % 7 == 0 else i for i in range(60)]).reshape(2, *PHYSICAL)
    logical = physical.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(arrowdl.to_numpy(array, nulls="fill"), logical)
    values, mask = arrowdl.to_numpy(array, nulls="mask")
    valid = np.arange(60).reshape(2, *PHYSICAL).transpose(0, 3, 1, 2) % 7 != 0
    np.testing.assert_array_equal(mask, valid)
    np.testing.assert_array_equal(np.where(mask, values, 0), logical)


def test_a_fixed_shape_tensor_of_no_dimensions_is_one_value_a_row() -> None:
    storage = fixed_size_list(pa.array([1.0, 2.0, 3.0]), 1)
    array = as_extension(storage, "arrow.fixed_shape_tensor", '{"shape":[]}')
    assert array.shape == (3,)
    assert arrowdl.to_numpy(array).tolist() == [1.0, 2.0, 3.0]


# ---------------------------------------------------------------- types that Arrow lacks

FLOAT8 = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
TORCH_FLOAT8 = [name for name in FLOAT8 if hasattr(torch, name)]


def small_floats(name: str, count: int = 6) -> tuple[arrowdl.DeviceArray, np.ndarray]:
    values = np.array([0.5, 1, 2, 4, 8, 0.25][:count]).astype(getattr(ml_dtypes, name))
    width = values.itemsize
    rows = [values[i : i + 1].tobytes() for i in range(count)]
    return as_extension(pa.array(rows, pa.binary(width)), f"arrowdl.{name}"), values


@pytest.mark.parametrize("name", ["bfloat16", *TORCH_FLOAT8])
def test_torch_takes_small_floats_under_their_own_type(name: str) -> None:
    array, values = small_floats(name)
    assert array.dtype == name
    tensor = arrowdl.to_torch(array[1:])
    assert tensor.dtype is getattr(torch, name)
    assert tensor.float().tolist() == values[1:].astype("float32").tolist()


@pytest.mark.parametrize("name", ["bfloat16", *FLOAT8])
def test_jax_takes_small_floats_under_their_own_type(name: str) -> None:
    array, values = small_floats(name)
    tensor = arrowdl.to_jax(array[1:])
    assert tensor.dtype == values.dtype
    assert to_host(tensor).astype("float32").tolist() == values[1:].astype("float32").tolist()


@pytest.mark.parametrize("name", ["complex64", "complex128"])
@pytest.mark.parametrize("convert", [arrowdl.to_torch, arrowdl.to_numpy])
def test_complex_numbers_are_read_in_place_at_any_offset(convert: Any, name: str) -> None:
    values = (numbers((6,), name) + 1) * (1 + 2j)
    parts = pa.array(np.concatenate([values.real[:1], values.view(values.real.dtype)]))[1:]
    storage = fixed_size_list(parts, 2, offset=1, length=4)
    array = as_extension(storage, f"arrowdl.{name}")
    tensor = convert(array)
    assert array.dtype == name
    assert address_of(tensor) == data_address(parts) + values.itemsize
    assert to_host(tensor).dtype == values.dtype
    np.testing.assert_array_equal(to_host(tensor), values[1:5])


def test_a_matrix_of_small_floats_nests() -> None:
    rows = [bytes([i, 0x3F]) for i in range(6)]
    storage = pa.array(rows, pa.binary(2))
    keys = {"ARROW:extension:name": "arrowdl.bfloat16", "ARROW:extension:metadata": ""}
    item = pa.field("item", storage.type, metadata=keys)
    array = pa.Array.from_buffers(pa.list_(item, 3), 2, [None], children=[storage])
    tensor = arrowdl.to_torch(array)
    assert tensor.dtype is torch.bfloat16
    assert tuple(tensor.shape) == (2, 3)
    assert tensor.view(torch.uint8).numpy().tobytes() == b"".join(rows)


def test_an_unknown_extension_is_read_as_its_storage() -> None:
    array = as_extension(pa.array([1, 2, 3], pa.int16()), "example.units", "metres")
    assert arrowdl.to_numpy(array).tolist() == [1, 2, 3]
    assert array.schema.metadata[b"ARROW:extension:metadata"] == b"metres"


# ---------------------------------------------------------------- dictionaries

INDEX_TYPES = [*INTEGERS, *UNSIGNED]


@pytest.mark.parametrize("index", INDEX_TYPES, ids=str)
def test_a_dictionary_array_is_its_indices_in_place(index: pa.DataType) -> None:
    codes = pa.array([2, 0, 1, 1, 2], index)
    array = pa.DictionaryArray.from_arrays(codes, ["x", "y", "z"])[1:]
    tensor = arrowdl.to_numpy(array)
    assert tensor.dtype == index.to_pandas_dtype()
    assert address_of(tensor) == data_address(codes) + index.bit_width // 8
    assert tensor.tolist() == [0, 1, 1, 2]


def test_a_dictionary_stays_at_hand() -> None:
    array = arrowdl.from_arrow(pa.array(["b", "a", "b", "c"]).dictionary_encode()[1:])
    assert pa.array(array.dictionary).to_pylist() == ["b", "a", "c"]
    assert arrowdl.to_numpy(array.indices).tolist() == [1, 0, 2]
    assert array.indices.schema.dictionary is None


def test_nulls_of_a_dictionary_array_are_nulls_of_its_indices() -> None:
    array = pa.array(["b", None, "b", "c"]).dictionary_encode()
    with pytest.raises(BufferError, match="nulls"):
        arrowdl.to_numpy(array)
    values, mask = arrowdl.to_numpy(array, nulls="mask")
    assert mask.tolist() == [True, False, True, True]
    assert values[mask].tolist() == [0, 0, 1]


# ---------------------------------------------------------------- ragged rows

ROWS = [[1, 2], [], [3], [4, 5, 6], [7]]
LIST_TYPES = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


def make_lists(make: Any) -> pa.Array:
    return pa.array(ROWS, make(pa.int32()))


@pytest.mark.parametrize("make", LIST_TYPES)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_lists_become_jagged_tensors(make: Any, start: int) -> None:
    tensor = arrowdl.to_torch(make_lists(make)[start:])
    assert tensor.is_nested
    assert tensor.layout is torch.jagged
    assert tensor.dtype is torch.int32
    assert [row.tolist() for row in tensor.unbind()] == ROWS[start:]


@pytest.mark.parametrize("make", LIST_TYPES)
@pytest.mark.parametrize("start", [0, 1, 3])
@pytest.mark.parametrize("convert", [arrowdl.to_numpy, arrowdl.to_jax])
def test_lists_become_values_and_offsets(convert: Any, make: Any, start: int) -> None:
    values, offsets = convert(make_lists(make)[start:4])
    flat = [value for row in ROWS[start:4] for value in row]
    assert values.tolist() == flat
    ends = np.cumsum([0, *(len(row) for row in ROWS[start:4])])
    assert offsets.tolist() == ends.tolist()


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_values_and_offsets_of_a_list_are_read_in_place(make: Any) -> None:
    array = make_lists(make)
    values, offsets = arrowdl.to_numpy(array[:3])
    assert address_of(values) == data_address(array.values)
    assert address_of(offsets) == array.buffers()[1].address
    assert values.tolist() == [1, 2, 3]  # only what the window refers to
    assert offsets.dtype == ("int32" if make is pa.list_ else "int64")


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_values_of_a_later_slice_are_read_in_place(make: Any) -> None:
    array = make_lists(make)
    values, offsets = arrowdl.to_numpy(array[2:])
    assert address_of(values) == data_address(array.values) + 2 * 4
    assert offsets.tolist() == [0, 1, 4, 5]


def test_values_of_a_jagged_tensor_are_read_in_place() -> None:
    array = make_lists(pa.large_list)
    tensor = arrowdl.to_torch(array)
    assert tensor.values().data_ptr() == data_address(array.values)
    assert tensor.offsets().data_ptr() == array.buffers()[1].address


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_a_list_whose_values_have_an_offset_is_right(make: Any) -> None:
    values = pa.array(range(100, 110), pa.int16())[3:]
    cls = pa.ListArray if make is pa.list_ else pa.LargeListArray
    array = cls.from_arrays([0, 2, 2, 5, 7], values)
    for start in range(4):
        rows = [row.tolist() for row in arrowdl.to_torch(array[start:]).unbind()]
        assert rows == array[start:].to_pylist()


VIEWS = {
    "gaps": ([0, 4, 8], [2, 2, 2]),
    "overlaps": ([0, 1, 2], [4, 4, 4]),
    "backwards": ([7, 4, 0], [3, 3, 4]),
    "empty rows out of place": ([5, 9, 0], [2, 0, 3]),
    "contiguous": ([2, 4, 5], [2, 1, 5]),
    "all empty": ([0, 3, 10], [0, 0, 0]),
}


@pytest.mark.parametrize("make", [pa.ListViewArray, pa.LargeListViewArray])
@pytest.mark.parametrize("case", VIEWS)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("child_offset", [0, 2])
def test_list_views_with_gaps_and_overlaps_are_right(
    make: Any, case: str, start: int, child_offset: int
) -> None:
    offsets, sizes = VIEWS[case]
    child = pa.array(range(10 + child_offset), pa.int64())[child_offset:]
    index = pa.int32() if make is pa.ListViewArray else pa.int64()
    array = make.from_arrays(pa.array(offsets, index), pa.array(sizes, index), child)[start:]
    array.validate(full=True)
    assert [row.tolist() for row in arrowdl.to_torch(array).unbind()] == array.to_pylist()
    values, ends = arrowdl.to_numpy(array)
    assert [v.tolist() for v in np.split(values, ends[1:-1])] == array.to_pylist()


STRINGS = ["grün", "", "a", "a string longer than twelve bytes", "ein zweiter, ebenso langer"]
STRING_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
]


@pytest.mark.parametrize("type", STRING_TYPES, ids=str)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_strings_and_binary_are_ragged_bytes(type: pa.DataType, start: int) -> None:
    array = pa.array([text.encode() for text in STRINGS], pa.binary()).cast(type)[start:]
    rows = [text.encode() for text in STRINGS[start:]]
    tensor = arrowdl.to_torch(array)
    assert tensor.dtype is torch.uint8
    assert [bytes(row.tolist()) for row in tensor.unbind()] == rows
    for convert in (arrowdl.to_numpy, arrowdl.to_jax):
        values, offsets = convert(array)
        data = to_host(values).tobytes()
        assert [data[a:b] for a, b in pairwise(offsets.tolist())] == rows


@pytest.mark.parametrize("type", [pa.string(), pa.large_binary()], ids=str)
def test_bytes_of_strings_are_read_in_place(type: pa.DataType) -> None:
    array = pa.array(["ab", "cde", "f"]).cast(type)
    values, offsets = arrowdl.to_numpy(array)
    assert address_of(values) == array.buffers()[2].address
    assert address_of(offsets) == array.buffers()[1].address


@pytest.mark.parametrize("make", LIST_TYPES)
@pytest.mark.parametrize("convert", TO_ANY)
def test_padded_lists_come_with_their_lengths(convert: Any, make: Any) -> None:
    padded, lengths = convert(make_lists(make)[1:], ragged="padded")
    assert padded.tolist() == [[0, 0, 0], [3, 0, 0], [4, 5, 6], [7, 0, 0]]
    assert lengths.tolist() == [0, 1, 3, 1]
    assert to_host(padded).dtype == np.int32


@pytest.mark.parametrize("type", STRING_TYPES, ids=str)
def test_padded_strings_come_with_their_lengths(type: pa.DataType) -> None:
    padded, lengths = arrowdl.to_numpy(pa.array(["ab", "", "c"]).cast(type), ragged="padded")
    assert padded.tolist() == [[97, 98], [0, 0], [99, 0]]
    assert lengths.tolist() == [2, 0, 1]


def test_rows_of_inner_dimensions_are_padded_whole() -> None:
    array = pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int8(), 2)))
    padded, lengths = arrowdl.to_torch(array, ragged="padded")
    assert padded.tolist() == [[[1, 2], [0, 0]], [[0, 0], [0, 0]], [[3, 4], [5, 6]]]
    assert lengths.tolist() == [1, 0, 2]


def test_jagged_rows_of_inner_dimensions_keep_them() -> None:
    array = pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int8(), 2)))
    tensor = arrowdl.to_torch(array)
    assert [row.tolist() for row in tensor.unbind()] == array.to_pylist()


def test_lists_of_booleans_are_unpacked() -> None:
    array = pa.array([[True], [False, True, True], [], [False]])[1:]
    assert [row.tolist() for row in arrowdl.to_torch(array).unbind()] == array.to_pylist()


def test_lists_of_lists_are_values_within_values() -> None:
    array = pa.array([[[1], [2, 3]], [], [[], [4]]], pa.list_(pa.list_(pa.int32())))[1:]
    (values, inner), outer = arrowdl.to_numpy(array)
    assert values.tolist() == [4]
    assert inner.tolist() == [0, 0, 1]
    assert outer.tolist() == [0, 0, 2]
    with pytest.raises(BufferError, match="one ragged dimension"):
        arrowdl.to_torch(array)


def test_lists_of_structs_are_dicts_of_values() -> None:
    array = pa.array([[{"a": 1, "b": 2.5}], [], [{"a": 3, "b": 4.5}]])
    values, offsets = arrowdl.to_numpy(array)
    assert {name: column.tolist() for name, column in values.items()} == {
        "a": [1, 3],
        "b": [2.5, 4.5],
    }
    assert offsets.tolist() == [0, 1, 1, 2]


def test_lists_of_dictionaries_are_lists_of_indices() -> None:
    values = pa.array(["x", "y", "x"]).dictionary_encode()
    array = pa.ListArray.from_arrays([0, 1, 3], values)
    flat, offsets = arrowdl.to_numpy(array)
    assert flat.tolist() == [0, 1, 0]
    assert offsets.tolist() == [0, 1, 3]


def test_maps_are_lists_of_keys_and_values() -> None:
    array = pa.array([[(1, 1.5)], [], [(2, 2.5), (3, 3.5)]], pa.map_(pa.int8(), pa.float32()))[1:]
    values, offsets = arrowdl.to_numpy(array)
    assert values["key"].tolist() == [2, 3]
    assert values["value"].tolist() == [2.5, 3.5]
    assert offsets.tolist() == [0, 0, 2]


# ---------------------------------------------------------------- variable_shape_tensor


def variable_tensors(
    tensors: list[np.ndarray], metadata: str = "", *, valid: list[bool] | None = None
) -> arrowdl.DeviceArray:
    """`tensors` in physical (C) order as arrow.variable_shape_tensor."""
    ndim = tensors[0].ndim
    data = pa.array([tensor.ravel() for tensor in tensors], pa.list_(pa.float32()))
    shape = pa.array([tensor.shape for tensor in tensors], pa.list_(pa.int32(), ndim))
    mask = None if valid is None else pa.array([not row for row in valid])
    storage = pa.StructArray.from_arrays([data, shape], ["data", "shape"], mask=mask)
    return as_extension(storage, "arrow.variable_shape_tensor", metadata)


VARIABLE = [numbers((2, 3)), numbers((4, 3)) + 100, numbers((1, 3)) + 200]


@pytest.mark.parametrize("start", [0, 1])
def test_variable_shape_tensors_become_a_nested_tensor(start: int) -> None:
    nested = arrowdl.to_torch(variable_tensors(VARIABLE)[start:])
    assert nested.layout is torch.jagged
    for row, tensor in zip(nested.unbind(), VARIABLE[start:], strict=True):
        np.testing.assert_array_equal(row.numpy(), tensor)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_that_vary_in_every_dimension_become_a_strided_nested_tensor() -> None:
    tensors = [numbers((2, 3)), numbers((4, 1)) + 50]
    nested = arrowdl.to_torch(variable_tensors(tensors))
    for row, tensor in zip(nested.unbind(), tensors, strict=True):
        np.testing.assert_array_equal(row.numpy(), tensor)


def test_the_permutation_of_variable_shape_tensors_is_honoured() -> None:
    nested = arrowdl.to_torch(variable_tensors(VARIABLE, '{"permutation":[1,0]}'))
    for row, tensor in zip(nested.unbind(), VARIABLE, strict=True):
        np.testing.assert_array_equal(row.numpy(), tensor.T)
    with pytest.raises(BufferError, match="permuted"):
        arrowdl.to_numpy(variable_tensors(VARIABLE, '{"permutation":[1,0]}'))


@pytest.mark.parametrize("convert", [arrowdl.to_numpy, arrowdl.to_jax])
def test_variable_shape_tensors_are_values_offsets_and_shapes(convert: Any) -> None:
    values, offsets, shapes = convert(variable_tensors(VARIABLE)[1:])
    assert offsets.tolist() == [0, 12, 15]
    assert shapes.tolist() == [[4, 3], [1, 3]]
    expected_values = np.concatenate([tensor.ravel() for tensor in VARIABLE[1:]])
    np.testing.assert_array_equal(values, expected_values)


def variable_of(data: list[Any], shape: list[Any], metadata: str = "") -> arrowdl.DeviceArray:
    fields = [pa.array(data, pa.list_(pa.float32())), pa.array(shape, pa.list_(pa.int32(), 2))]
    storage = pa.StructArray.from_arrays(fields, ["data", "shape"])
    return as_extension(storage, "arrow.variable_shape_tensor", metadata)


@pytest.mark.parametrize(
    ("data", "shape"),
    [([[1, 2], None], [[1, 2], [1, 2]]), ([[1, 2], [3, 4]], [[1, 2], None])],
    ids=["data", "shape"],
)
def test_a_null_in_either_field_is_a_null_row(data: Any, shape: Any) -> None:
    array = variable_of(data, shape)
    with pytest.raises(BufferError, match="null"):
        arrowdl.to_numpy(array)
    (values, offsets, shapes), mask = arrowdl.to_numpy(array, nulls="mask")
    assert (values.tolist(), offsets.tolist()) == ([1, 2], [0, 2, 2])
    assert (shapes.tolist(), mask.tolist()) == ([[1, 2], [0, 0]], [True, False])
    rows = arrowdl.to_torch(array, nulls="fill").unbind()
    assert [row.numel() for row in rows] == [2, 0]


@pytest.mark.parametrize("convert", TO_ANY)
@pytest.mark.parametrize("shape", [[7, 7], [-1, 2], [2, -1], [-1, -2], [0, 2]], ids=str)
def test_a_shape_that_contradicts_its_data_is_malformed(convert: Any, shape: list[int]) -> None:
    with pytest.raises(ValueError, match="shape of row 1"):
        convert(variable_of([[1, 2], [3, 4]], [[1, 2], shape]))


def test_a_shape_that_contradicts_uniform_shape_is_malformed() -> None:
    array = variable_of([[1, 2], [3, 4]], [[1, 2], [2, 1]], '{"uniform_shape":[1,null]}')
    with pytest.raises(ValueError, match="uniform_shape says 1"):
        arrowdl.to_numpy(array)


@pytest.mark.parametrize("convert", TO_ANY)
@pytest.mark.parametrize("nulls", ["raise", "fill", "mask"])
def test_a_null_among_dictionary_values_is_not_hidden_by_its_code(convert: Any, nulls: str) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array(["x", None]))
    if nulls == "raise":
        with pytest.raises(BufferError, match="has nulls"):
            convert(array, nulls=nulls)
    elif nulls == "fill":
        assert list(map(int, convert(array, nulls=nulls))) == [0, 0, 0]
    else:
        assert list(map(bool, convert(array, nulls=nulls)[1])) == [True, False, True]
    assert np.from_dlpack(arrowdl.from_arrow(array).indices).tolist() == [0, 1, 0]


def test_numpy_says_which_types_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # not imported
    array = arrowdl.to_arrow_device({"x": torch.ones(2, dtype=torch.bfloat16)})
    with pytest.raises(BufferError, match="numpy has no bfloat16"):
        arrowdl.to_numpy(array)


def test_no_variable_shape_tensors_are_no_rows() -> None:
    array = variable_tensors(VARIABLE)[:0]
    values, offsets, shapes = arrowdl.to_numpy(array)
    assert values.tolist() == []
    assert offsets.tolist() == [0]
    assert shapes.shape == (0, 2)
    assert len(arrowdl.to_torch(array)) == 0


def test_a_null_variable_shape_tensor_is_an_empty_row_and_masked() -> None:
    array = variable_tensors(VARIABLE, valid=[True, False, True])
    with pytest.raises(BufferError, match="null"):
        arrowdl.to_torch(array)
    (values, offsets, shapes), mask = arrowdl.to_numpy(array, nulls="mask")
    assert offsets.tolist() == [0, 6, 6, 9]
    assert shapes.tolist() == [[2, 3], [0, 0], [1, 3]]
    assert mask.tolist() == [True, False, True]
    assert values.tolist() == [*range(6), 200, 201, 202]


# ---------------------------------------------------------------- structs and tables

TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "vector": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)),
        "inner": pa.array([{"flag": True}, {"flag": False}, {"flag": True}]),
    }
)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("convert", TO_ANY)
@pytest.mark.parametrize(
    "source",
    [TABLE, TABLE.to_batches()[0], TABLE.to_struct_array().combine_chunks()],
    ids=["table", "batch", "struct"],
)
def test_a_struct_is_a_dict_that_nests(convert: Any, source: Any) -> None:
    tensors = convert(source)
    assert list(tensors) == ["id", "vector", "inner"]
    assert tensors["id"].tolist() == [1, 2, 3]
    assert tensors["vector"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert tensors["inner"]["flag"].tolist() == [True, False, True]


def test_fields_of_a_sliced_struct_are_the_slice() -> None:
    struct = TABLE.to_batches()[0].to_struct_array()[1:]
    tensors = arrowdl.to_torch(struct)
    assert tensors["id"].tolist() == [2, 3]
    assert tensors["id"].data_ptr() == data_address(TABLE["id"].chunk(0)) + 8
    assert tensors["vector"].tolist() == [[3, 4], [5, 6]]
    assert tensors["inner"]["flag"].tolist() == [False, True]


def test_a_struct_with_an_offset_over_children_with_offsets_is_right() -> None:
    child = pa.array(range(10), pa.int32())[3:]
    struct = pa.Array.from_buffers(
        pa.struct([pa.field("a", pa.int32())]), 4, [None], offset=2, children=[child]
    )
    assert arrowdl.to_numpy(struct)["a"].tolist() == [5, 6, 7, 8]
    assert arrowdl.to_numpy(struct[1:])["a"].tolist() == [6, 7, 8]


def test_fields_of_one_name_have_no_place_in_a_dict() -> None:
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(ValueError, match='several fields are named "a"'):
        arrowdl.to_torch(struct)


def test_a_struct_without_fields_is_an_empty_dict() -> None:
    assert arrowdl.to_numpy(pa.array([{}, {}], pa.struct([]))) == {}


@pytest.mark.parametrize("convert", TO_ANY)
def test_stack_puts_fields_side_by_side(convert: Any) -> None:
    batch = pa.record_batch(
        {
            "a": pa.array([1, 2, 3], pa.float32()),
            "b": pa.array([[10, 11], [20, 21], [30, 31]], pa.list_(pa.float32(), 2)),
            "c": pa.array([5, 6, 7], pa.float32()),
        }
    )
    matrix = convert(batch.slice(1), stack=True)
    assert matrix.tolist() == [[2, 20, 21, 6], [3, 30, 31, 7]]
    assert to_host(matrix).dtype == np.float32


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 9, 17])
@pytest.mark.parametrize("type", [pa.int8(), pa.int16(), pa.float32(), pa.float64()], ids=str)
def test_stack_is_right_for_any_number_of_columns(columns: int, type: pa.DataType) -> None:
    matrix = numbers((1000, columns), type.to_pandas_dtype())
    table = pa.table({f"c{i}": pa.array(matrix[:, i]) for i in range(columns)})
    np.testing.assert_array_equal(arrowdl.to_numpy(table[3:], stack=True), matrix[3:])


def test_stack_unpacks_bits_and_decodes_runs() -> None:
    struct = pa.StructArray.from_arrays(
        [
            pa.array([True, False, True]),
            pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([False, True])),
        ],
        ["bits", "runs"],
    )
    assert arrowdl.to_numpy(struct, stack=True).tolist() == [
        [True, False],
        [False, False],
        [True, True],
    ]
    values, mask = arrowdl.to_numpy(struct, stack=True, nulls="mask")
    assert mask.all()
    assert values.tolist() == [[True, False], [False, False], [True, True]]


def test_stack_reads_a_permuted_field_in_its_logical_order() -> None:
    storage = pa.FixedSizeListArray.from_arrays(pa.array(range(12), pa.int32()), 6)
    tensors = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), (2, 3), permutation=(1, 0)), storage
    )
    struct = pa.StructArray.from_arrays([tensors], ["t"])
    logical = np.arange(12).reshape(2, 2, 3).transpose(0, 2, 1).reshape(2, 6)
    np.testing.assert_array_equal(arrowdl.to_numpy(struct, stack=True), logical)


def test_stack_of_different_types_names_the_field() -> None:
    table = pa.table({"a": pa.array([1.0]), "b": pa.array([1.0], pa.float32())})
    with pytest.raises(BufferError, match=r'field "b".*float32.*field "a".*float64'):
        arrowdl.to_torch(table, stack=True)


def test_stack_of_something_without_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="stack=True"):
        arrowdl.to_torch(pa.array([1]), stack=True)
    with pytest.raises(BufferError, match="without fields"):
        arrowdl.to_torch(pa.array([{}], pa.struct([])), stack=True)


# ---------------------------------------------------------------- run-end encoded


@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("window", [(0, 9), (1, 7), (3, 1), (4, 5), (8, 1), (5, 0)], ids=str)
def test_runs_are_decoded_under_any_window(ends: pa.DataType, window: tuple[int, int]) -> None:
    array = pa.RunEndEncodedArray.from_arrays(
        pa.array([3, 4, 9], ends), pa.array([1.5, 2.5, 3.5], pa.float32())
    ).slice(*window)
    assert arrowdl.to_numpy(array).tolist() == array.to_pylist()
    assert arrowdl.to_torch(array).tolist() == array.to_pylist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, True]),
        pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2)),
        pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        pa.array(range(4), pa.int64())[1:],
    ],
    ids=["bits", "fixed-size lists", "fixed-size binary", "with an offset"],
)
def test_runs_of_any_fixed_width_are_decoded(values: pa.Array) -> None:
    array = pa.RunEndEncodedArray.from_arrays([2, 3, 6], values)
    row = arrowdl.to_numpy(values)
    np.testing.assert_array_equal(arrowdl.to_numpy(array), row[[0, 0, 1, 2, 2, 2]])


def test_runs_of_null_are_nulls() -> None:
    array = pa.RunEndEncodedArray.from_arrays([2, 3, 5], pa.array([1.0, None, 3.0]))
    with pytest.raises(BufferError, match="nulls"):
        arrowdl.to_torch(array)
    assert arrowdl.to_numpy(array, nulls="fill").tolist() == [1, 1, 0, 3, 3]
    assert (
        np.isnan(arrowdl.to_numpy(array, nulls="nan")).tolist()
        == [False, False, True] + [False] * 2
    )
    assert arrowdl.to_numpy(array[2:], nulls="mask")[1].tolist() == [False, True, True]


def test_runs_of_strings_are_ragged() -> None:
    array = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["ab", "c"]))
    values, offsets = arrowdl.to_numpy(array)
    assert values.tobytes() == b"ababc"
    assert offsets.tolist() == [0, 2, 4, 5]


def test_runs_in_a_struct_with_nulls_take_them() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([1, 2], pa.int32()))
    struct = pa.StructArray.from_arrays([runs], ["r"], mask=pa.array([False, True, False]))
    with pytest.raises(BufferError, match=r'field "r".*null'):
        arrowdl.to_numpy(struct)
    assert arrowdl.to_numpy(struct, nulls="fill")["r"].tolist() == [1, 0, 2]


# ---------------------------------------------------------------- what has no reading


def unions(mode: str) -> pa.Array:
    type_ids = pa.array([0, 1], pa.int8())
    if mode == "dense":
        offsets = pa.array([0, 0], pa.int32())
        children = [pa.array([1]), pa.array(["x"])]
        return pa.UnionArray.from_dense(type_ids, offsets, children)
    return pa.UnionArray.from_sparse(type_ids, [pa.array([1, 2]), pa.array(["x", "y"])])


def parts(type: Any, width: int) -> Any:
    return na.c_array_from_buffers(type, 2, [None, np.zeros(2 * width, "uint8")])


REFUSED = {
    "dense union": (unions("dense"), "cast it to the type of one of its members"),
    "sparse union": (unions("sparse"), "cast it to the type of one of its members"),
    "decimal32": (pa.array([1], pa.decimal32(5)), 'with dtype="float64", which rounds'),
    "decimal64": (pa.array([1], pa.decimal64(5)), 'with dtype="float64", which rounds'),
    "decimal128": (pa.array([1], pa.decimal128(5)), 'with dtype="float64", which rounds'),
    "decimal256": (pa.array([1], pa.decimal256(5)), 'with dtype="float64", which rounds'),
    "null": (pa.nulls(3), "cast it to a type that has"),
    "day_time": (parts(na.interval_day_time(), 8), "cast it to an integer or floating point"),
    "month_day_nano": (
        parts(na.interval_month_day_nano(), 16),
        "cast it to an integer or floating point",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("convert", [*TO_ANY, np.from_dlpack, torch.from_dlpack])
def test_types_without_a_reading_say_what_to_cast_to(convert: Any, case: str) -> None:
    array, advice = REFUSED[case]
    with pytest.raises(BufferError, match=advice):
        convert(arrowdl.from_arrow(array))


@pytest.mark.parametrize("case", sorted(set(REFUSED) - {"day_time"}))  # unknown to pyarrow
def test_a_field_without_a_reading_is_named(case: str) -> None:
    array, advice = REFUSED[case]
    odd = pa.array(array)
    batch = pa.record_batch({"fine": [1] * len(odd), "odd one": odd})
    with pytest.raises(BufferError, match=f'field "odd one".*{advice}'):
        arrowdl.to_torch(batch)
    nested = pa.StructArray.from_arrays([batch.to_struct_array()], ["outer"])
    with pytest.raises(BufferError, match='field "outer": field "odd one"'):
        arrowdl.to_torch(nested)


RAGGED = {
    "list": (pa.array([[1], [2, 3]]), "jagged"),
    "large_list": (pa.array([[1]], pa.large_list(pa.int8())), "jagged"),
    "list_view": (pa.array([[1]], pa.list_view(pa.int8())), "jagged"),
    "string": (pa.array(["x"]), "jagged"),
    "binary_view": (pa.array([b"x"], pa.binary_view()), "jagged"),
    "struct": (pa.array([{"a": 1}]), "dict of tensors"),
    "lists of lists": (pa.array([[[1]]], pa.list_(pa.list_(pa.int8()), 1)), "list"),
}


@pytest.mark.parametrize("case", RAGGED)
@pytest.mark.parametrize("consume", [np.from_dlpack, torch.from_dlpack, jax.dlpack.from_dlpack])
def test_what_is_not_one_tensor_names_the_way(consume: Any, case: str) -> None:
    array, advice = RAGGED[case]
    with pytest.raises(BufferError, match=advice):
        consume(arrowdl.from_arrow(array))


def test_a_variable_shape_tensor_is_not_one_tensor() -> None:
    with pytest.raises(BufferError, match=r"to_torch\(\) gives a nested one"):
        np.from_dlpack(variable_tensors(VARIABLE))


def test_ragged_rows_of_fixed_number_have_no_reading() -> None:
    array = pa.array([[[1], [2, 3]]], pa.list_(pa.list_(pa.int8()), 2))
    with pytest.raises(BufferError, match="list<int8>"):
        arrowdl.to_numpy(array)


def test_an_error_of_the_framework_names_the_field() -> None:
    batch = pa.record_batch({"narrow": pa.array([1], pa.int32()), "wide": pa.array([1.0])})
    with pytest.raises(BufferError, match=r'^field "wide": jax would truncate float64 to float32'):
        arrowdl.to_jax(batch)


def test_lists_inside_fixed_size_lists_are_told_the_way_that_there_is() -> None:
    array = pa.array([[[1], [2, 3]], [[], [4]]], pa.list_(pa.list_(pa.int32()), 2))
    with pytest.raises(BufferError, match="read its `values` instead"):
        arrowdl.to_torch(array)
    inner = arrowdl.to_numpy(arrowdl.from_arrow(array).values)
    assert [part.tolist() for part in inner] == [[1, 2, 3, 4], [0, 1, 3, 3, 4]]
    with pytest.raises(BufferError, match="cast them"):
        arrowdl.to_torch(pa.array([[None, None]], pa.list_(pa.null(), 2)))
