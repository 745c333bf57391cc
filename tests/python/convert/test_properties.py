"""Random Arrow types and arrays, random tensors: arrowdl against pyarrow's and numpy's own reading.

Hypothesis draws the structure (types, lengths, windows, chunkings); the values come from a seeded
generator, so that an example is quick to make and the same every time.
"""

from __future__ import annotations

from typing import Any

import arrowdl
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from helpers.optional import torch
from hypothesis import given, settings
from hypothesis import strategies as st

thorough = settings(max_examples=200)

# ---------------------------------------------------------------- types

NUMBERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
]
TEMPORALS = [pa.date32(), pa.date64(), pa.time32("ms"), pa.timestamp("us"), pa.duration("ns")]
ROWS_OF_BYTES = [pa.string(), pa.large_binary(), pa.string_view(), pa.binary_view()]

elements = st.sampled_from([*NUMBERS, pa.bool_(), pa.bool8(), pa.binary(3)])


@st.composite
def fixed_shapes(draw: st.DrawFn) -> pa.DataType:
    """Draw tensor types of one to three dimensions, in any order."""
    shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    permutation = draw(st.permutations(range(len(shape))))
    value_type = draw(st.sampled_from([*NUMBERS, pa.bool_()]))
    return pa.fixed_shape_tensor(value_type, shape, permutation=permutation)


tensors = st.one_of(
    st.recursive(elements, lambda item: st.builds(pa.list_, item, st.integers(0, 3)), max_leaves=3),
    fixed_shapes(),
)
dictionaries = st.builds(
    pa.dictionary,
    st.sampled_from([pa.int8(), pa.uint16(), pa.int64()]),
    st.sampled_from([pa.string(), pa.int32(), pa.string_view()]),
)
run_ends = st.builds(
    pa.run_end_encoded,
    st.sampled_from([pa.int16(), pa.int32(), pa.int64()]),
    st.sampled_from([*NUMBERS, pa.bool_(), pa.string()]),
)
columns = st.one_of(tensors, st.sampled_from([*TEMPORALS, *ROWS_OF_BYTES]), dictionaries, run_ends)


def struct_of(fields: list[pa.DataType]) -> pa.DataType:
    return pa.struct([pa.field(f"f{i}", field) for i, field in enumerate(fields)])


def nest(item: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        *(item.map(make) for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)),
        st.lists(item, min_size=1, max_size=3).map(struct_of),
        st.builds(pa.map_, st.sampled_from([pa.int16(), pa.string(), pa.binary(3)]), item),
    )


types = st.recursive(columns, nest, max_leaves=4)


# ---------------------------------------------------------------- arrays of a type


class Maker:
    """Arrays of any type above: every node lies behind an offset, and has nulls with garbage
    underneath."""

    def __init__(self, seed: int, null_share: float) -> None:
        self.random = np.random.default_rng(seed)
        self.null_share = null_share

    def make(self, type: pa.DataType, length: int) -> pa.Array:
        before, after = self.random.integers(0, 3, 2).tolist()
        return self.build(type, before + length + after).slice(before, length)

    def nulls(self, length: int) -> pa.Array | None:
        if self.random.random() >= self.null_share:
            return None
        return pa.array(self.random.random(length) < self.null_share)

    def build(self, type: pa.DataType, length: int) -> pa.Array:
        if isinstance(type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(type, self.build(type.storage_type, length))
        if pa.types.is_struct(type):
            children = [self.make(field.type, length) for field in type]
            return pa.StructArray.from_arrays(children, fields=list(type), mask=self.nulls(length))
        if pa.types.is_fixed_size_list(type):
            return self.fixed_size_lists(type, length)
        if pa.types.is_map(type):
            return self.maps(type, length)
        if pa.types.is_list(type) or pa.types.is_large_list(type):
            return self.lists(type, length)
        if pa.types.is_list_view(type) or pa.types.is_large_list_view(type):
            return self.list_views(type, length)
        if pa.types.is_dictionary(type):
            return self.dictionary(type, length)
        if pa.types.is_run_end_encoded(type):
            return self.runs(type, length)
        return self.flat(type, length)

    def flat(self, type: pa.DataType, length: int) -> pa.Array:
        nulls = self.nulls(length)
        mask = None if nulls is None else nulls.to_numpy(zero_copy_only=False)
        values = self.random.integers(0, 100, length)
        if pa.types.is_boolean(type):
            return pa.array(values % 2 == 0, mask=mask)
        if type in NUMBERS:
            return pa.array(values.astype(type.to_pandas_dtype()), mask=mask)
        if type in TEMPORALS:
            physical = pa.int32() if type.bit_width == 32 else pa.int64()
            days = values * (86_400_000 if type == pa.date64() else 1)
            return pa.array(days.astype(physical.to_pandas_dtype()), mask=mask).view(type)
        if pa.types.is_fixed_size_binary(type):
            rows = [bytes([value] * type.byte_width) for value in values]
        else:
            rows = [b"x" * (value % 20) + b"%d" % value for value in values]
        rows = [None if mask is not None and mask[i] else row for i, row in enumerate(rows)]
        return pa.array(rows, type)

    def fixed_size_lists(self, type: pa.DataType, length: int) -> pa.Array:
        child = self.make(type.value_type, length * type.list_size)
        nulls = self.nulls(length)
        valid = None if nulls is None else pc.invert(nulls).buffers()[1]
        return pa.Array.from_buffers(type, length, [valid], -1, 0, [child])

    def lists(self, type: pa.DataType, length: int) -> pa.Array:
        sizes = self.random.integers(0, 4, length)
        start = int(self.random.integers(0, 3))
        ends = np.cumsum([start, *sizes])
        child = self.make(type.value_type, int(ends[-1]) + int(self.random.integers(0, 3)))
        is_large = pa.types.is_large_list(type)
        make = pa.LargeListArray if is_large else pa.ListArray
        offsets = pa.array(ends, pa.int64() if is_large else pa.int32())
        return make.from_arrays(offsets, child, type=type, mask=self.nulls(length))

    def maps(self, type: pa.DataType, length: int) -> pa.Array:
        """As lists of entries, of which neither the keys nor the entries have nulls."""
        lists = self.lists(pa.list_(type.item_type), length)
        items = lists.values
        keys = Maker(int(self.random.integers(2**32)), 0.0).make(type.key_type, len(items))
        entries = pa.StructArray.from_arrays(
            [keys, items], fields=[type.key_field, type.item_field]
        )
        return pa.Array.from_buffers(type, length, lists.buffers()[:2], -1, 0, [entries])

    def list_views(self, type: pa.DataType, length: int) -> pa.Array:
        child = self.make(type.value_type, 6)
        is_large = pa.types.is_large_list_view(type)
        make = pa.LargeListViewArray if is_large else pa.ListViewArray
        index = pa.int64() if is_large else pa.int32()
        starts, sizes = self.random.integers(0, 4, (2, length))
        offsets, lengths = pa.array(starts, index), pa.array(sizes, index)
        return make.from_arrays(offsets, lengths, child, type=type, mask=self.nulls(length))

    def dictionary(self, type: pa.DataType, length: int) -> pa.Array:
        words = self.random.permutation(8)[:5].tolist()
        if type.value_type != pa.int32():
            words = [f"word {word}" for word in words]
        nulls = self.nulls(length)
        mask = None if nulls is None else nulls.to_numpy(zero_copy_only=False)
        codes = self.random.integers(0, 5, length).astype(type.index_type.to_pandas_dtype())
        values = pa.array(words, type.value_type)
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), values)

    def runs(self, type: pa.DataType, length: int) -> pa.Array:
        sizes = self.random.integers(1, 4, length + 1)
        ends = pa.array(np.cumsum(sizes), type.run_end_type)
        values = self.flat(type.value_type, length + 1)
        return pa.RunEndEncodedArray.from_arrays(ends, values).slice(0, length)


makers = st.builds(Maker, st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 0.7]))
lengths = st.integers(0, 20)


# ---------------------------------------------------------------- pyarrow's reading


def without_runs(array: pa.Array) -> pa.Array:
    return pa.array(array.to_pylist(), array.type.value_type)


def element_type(type: pa.DataType) -> tuple[Any, tuple[int, ...]]:
    """numpy's dtype of the elements, and the shape of one row."""
    if pa.types.is_fixed_size_list(type):
        dtype, inner = element_type(type.value_type)
        return dtype, (type.list_size, *inner)
    if isinstance(type, pa.BaseExtensionType) or pa.types.is_boolean(type):
        return np.dtype(bool), ()
    if pa.types.is_fixed_size_binary(type):
        return np.dtype("uint8"), (type.byte_width,)
    return np.dtype(type.to_pandas_dtype()), ()


def fill_row(row: Any, type: pa.DataType, valid: Any, zero: Any) -> Any:
    """`row` as nested lists, `valid(value)` for a value and `zero` all over a null."""
    if row is None:
        _, shape = element_type(type)
        return np.full(shape, zero).tolist()
    if pa.types.is_fixed_size_list(type):
        return [fill_row(item, type.value_type, valid, zero) for item in row]
    if pa.types.is_fixed_size_binary(type):
        return [valid(byte) for byte in row]
    return valid(row)


def read_tensor(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Values with zeros for nulls, and the mask."""
    dtype, shape = element_type(array.type)
    if isinstance(array.type, pa.FixedShapeTensorType):
        order = [0, *(axis + 1 for axis in array.type.permutation)]
        whole = (len(array), *array.type.shape)
        values, mask = (part.reshape(whole).transpose(order) for part in read_tensor(array.storage))
        return values, mask
    rows = array.to_pylist()
    values = [fill_row(row, array.type, lambda value: value, 0) for row in rows]
    mask = [fill_row(row, array.type, lambda _: True, False) for row in rows]
    whole = (len(array), *shape)
    return np.array(values, dtype).reshape(whole), np.array(mask, bool).reshape(whole)


def is_tensor(type: pa.DataType) -> bool:
    while pa.types.is_fixed_size_list(type):
        type = type.value_type
    return (
        type in NUMBERS
        or pa.types.is_boolean(type)
        or pa.types.is_fixed_size_binary(type)
        or isinstance(type, pa.BaseExtensionType)
    )


def entries_of(array: pa.MapArray) -> pa.Array:
    """`array` as lists of structs."""
    fields = [array.type.key_field, array.type.item_field]
    entries = pa.StructArray.from_arrays([array.keys, array.items], fields=fields)
    type = pa.list_(pa.field("entries", entries.type, nullable=False))
    return pa.Array.from_buffers(type, len(array), array.buffers()[:2], -1, array.offset, [entries])


def physical(array: pa.Array) -> pa.Array:
    """What the converters read of an array: indices, physical integers, decoded runs."""
    if pa.types.is_dictionary(array.type):
        return array.indices
    if pa.types.is_run_end_encoded(array.type):
        return without_runs(array)
    if pa.types.is_map(array.type):
        return entries_of(array)
    if array.type in TEMPORALS:
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array


def fields_of(array: pa.StructArray) -> dict[str, pa.Array]:
    """Fields of the window, null where the struct is."""
    fields = {}
    for i, field in enumerate(array.type):
        if pa.types.is_run_end_encoded(field.type):
            valid = array.is_valid().to_pylist()
            rows = zip(array.field(i).to_pylist(), valid, strict=True)
            rows = [row if is_valid else None for row, is_valid in rows]
            fields[field.name] = pa.array(rows, field.type.value_type)
        else:
            fields[field.name] = flatten(array)[i]
    return fields


def ends_of(sizes: pa.Array) -> list[int]:
    return np.cumsum([0, *(size or 0 for size in sizes.to_pylist())]).tolist()


def flatten(array: pa.Array) -> pa.Array:
    """The rows of all lists. pyarrow 26 flattens no list views of nested extension types."""
    try:
        return array.flatten()
    except pa.ArrowNotImplementedError:
        ranges = zip(
            array.offsets.to_pylist(), array.sizes.to_pylist(), array.is_valid(), strict=True
        )
        rows = [
            array.values.slice(offset, size)
            for offset, size, is_valid in ranges
            if is_valid.as_py()
        ]
        return pa.concat_arrays([array.values.slice(0, 0), *rows])


def check_filled(result: Any, array: pa.Array) -> None:
    """`result` is to_numpy(array, nulls="fill")."""
    array = physical(array)
    if pa.types.is_struct(array.type):
        fields = fields_of(array)
        assert list(result) == list(fields)
        for name, field in fields.items():
            check_filled(result[name], field)
    elif is_tensor(array.type):
        values, _ = read_tensor(array)
        assert result.dtype == values.dtype
        np.testing.assert_array_equal(result, values)
    elif array.type in ROWS_OF_BYTES or array.type in (pa.binary(), pa.large_string()):
        values, offsets = result
        rows = array.cast(pa.large_string() if "string" in str(array.type) else pa.large_binary())
        flat = [row.as_buffer().to_pybytes() for row in rows if row.is_valid]
        assert values.tobytes() == b"".join(flat)
        assert offsets.tolist() == ends_of(pc.binary_length(rows))
    else:
        values, offsets = result
        assert offsets.tolist() == ends_of(pc.list_value_length(array))
        check_filled(values, flatten(array))


def has_null(array: pa.Array) -> bool:
    """At any level that a converter reads."""
    array = physical(array)
    if array.null_count > 0:
        return True
    if isinstance(array.type, pa.BaseExtensionType):
        return has_null(array.storage)
    if pa.types.is_struct(array.type):
        return any(has_null(field) for field in fields_of(array).values())
    if pa.types.is_nested(array.type):
        return has_null(flatten(array))
    return False


# ---------------------------------------------------------------- Arrow to tensor


@given(types, makers, lengths)
@thorough
def test_any_array_is_read_as_pyarrow_reads_it(
    type: pa.DataType, maker: Maker, length: int
) -> None:
    array = maker.make(type, length)
    array.validate(full=True)
    check_filled(arrowdl.to_numpy(array, nulls="fill"), array)
    if has_null(array):
        with pytest.raises(BufferError, match="null"):
            arrowdl.to_numpy(array)
    else:
        check_filled(arrowdl.to_numpy(array), array)


@given(types, makers, lengths, st.integers(0, 20), st.integers(0, 20))
@thorough
def test_any_window_is_that_of_pyarrow(
    type: pa.DataType, maker: Maker, length: int, start: int, stop: int
) -> None:
    array = maker.make(type, length)
    window = arrowdl.from_arrow(array)[start:stop]
    rows = array[start:stop] if stop > start else array[:0]
    assert len(window) == len(rows)
    check_filled(arrowdl.to_numpy(window, nulls="fill"), rows)
    back = pa.array(window)
    back.validate(full=True)
    assert back.type == array.type
    assert back.to_pylist() == rows.to_pylist()
    if not pa.types.is_run_end_encoded(type):  # run ends have no nulls of their own
        assert window.null_count == rows.null_count
    assert window.nbytes >= 0


@given(types, makers, st.lists(st.integers(0, 6), max_size=4))
@thorough
def test_any_chunks_are_gathered(type: pa.DataType, maker: Maker, sizes: list[int]) -> None:
    chunks = pa.chunked_array([maker.make(type, size) for size in sizes], type)
    gathered = pa.array(arrowdl.from_arrow(chunks))
    gathered.validate(full=True)
    assert gathered.type == type
    assert gathered.to_pylist() == chunks.to_pylist()


@given(tensors, makers, lengths)
@thorough
def test_any_mask_covers_the_nulls_of_every_level(
    type: pa.DataType, maker: Maker, length: int
) -> None:
    array = maker.make(type, length)
    values, mask = read_tensor(array)
    read_values, read_mask = arrowdl.to_numpy(array, nulls="mask")
    np.testing.assert_array_equal(read_mask, mask)
    np.testing.assert_array_equal(read_values[mask], values[mask])
    torch_values, torch_mask = arrowdl.to_torch(array, nulls="mask")
    np.testing.assert_array_equal(torch_mask.numpy(), mask)
    np.testing.assert_array_equal(torch_values.numpy()[mask], values[mask])


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data(), st.booleans(), st.integers(0, 3)
)
@thorough
def test_any_permutation_is_numpys_transpose(
    shape: list[int], data: st.DataObject, is_bool: bool, rows: int
) -> None:
    permutation = data.draw(st.permutations(range(len(shape))))
    size = int(np.prod(shape))
    physical_values = np.arange((rows + 2) * size).reshape(rows + 2, *shape)
    value_type = pa.bool_() if is_bool else pa.int32()
    flat = physical_values.ravel() % 3 == 0 if is_bool else physical_values.ravel().astype("int32")
    type = pa.list_(value_type, size)
    storage = pa.Array.from_buffers(type, rows, [None], 0, 1, [pa.array(flat, value_type)])
    tensor_type = pa.fixed_shape_tensor(value_type, shape, permutation=permutation)
    array = pa.ExtensionArray.from_storage(tensor_type, storage)
    logical = flat.reshape(rows + 2, *shape).transpose(0, *(p + 1 for p in permutation))
    np.testing.assert_array_equal(arrowdl.to_numpy(array), logical[1 : rows + 1])


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 5]), st.booleans()), min_size=1, max_size=9),
    makers,
    lengths,
)
@thorough
def test_any_fields_are_stacked_as_numpy_stacks_them(
    widths: list[tuple[int, bool]], maker: Maker, length: int
) -> None:
    fields = [
        pa.list_(pa.float32(), width) if is_list else pa.float32() for width, is_list in widths
    ]
    struct = maker.make(struct_of(fields), length)
    parts = [read_tensor(field) for field in fields_of(struct).values()]
    filled, valid = (
        np.hstack([part[i].reshape(length, int(np.prod(part[i].shape[1:]))) for part in parts])
        for i in (0, 1)
    )
    np.testing.assert_array_equal(arrowdl.to_numpy(struct, stack=True, nulls="fill"), filled)
    values, mask = arrowdl.to_numpy(struct, stack=True, nulls="mask")
    np.testing.assert_array_equal(mask, valid)
    np.testing.assert_array_equal(values[mask], filled[mask])


# ---------------------------------------------------------------- tensors, there and back

DTYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
]


@st.composite
def strided(draw: st.DrawFn) -> np.ndarray:
    """Any shape, behind an offset, transposed, with gaps, backwards, with broadcast dimensions."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -2, 0])) for _ in shape]
    base = [extent * abs(step) + 2 for extent, step in zip(shape, steps, strict=True)]
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    values = (np.arange(np.prod(base, dtype=int)) % 100).reshape(base).astype(dtype)
    window = values
    for axis, (extent, step) in enumerate(zip(shape, steps, strict=True)):
        start = draw(st.sampled_from([0, 1]))
        rows = window.swapaxes(0, axis)[start:]
        if step == 0:
            rows = np.broadcast_to(rows[0], (extent, *rows.shape[1:]))
        else:
            rows = rows[: extent * abs(step) : abs(step)][:: np.sign(step)]
        window = rows.swapaxes(0, axis)
    window = window.transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()) and window.ndim < 4:
        window = np.broadcast_to(window, (draw(st.integers(0, 3)), *window.shape))
    return window


@given(strided(), st.sampled_from(["auto", "fixed_shape_tensor", "list"]))
@thorough
def test_any_tensor_comes_back_from_arrow(tensor: np.ndarray, layout: Any) -> None:
    array = arrowdl.to_arrow_device(tensor, layout=layout)
    expected = tensor.reshape(1) if tensor.ndim == 0 else tensor
    back = arrowdl.to_numpy(array)
    assert (back.shape, back.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(back, expected)
    column = pa.array(array)
    column.validate(full=True)
    through_pyarrow = arrowdl.to_numpy(column)
    if through_pyarrow.dtype != expected.dtype:  # pyarrow dropped a complex extension
        through_pyarrow = np.ascontiguousarray(through_pyarrow).view(tensor.dtype)[..., 0]
    np.testing.assert_array_equal(through_pyarrow, expected)


@given(strided())
@thorough
def test_any_tensor_is_shared_or_refused_without_a_copy(tensor: np.ndarray) -> None:
    try:
        array = arrowdl.to_arrow_device(tensor, copy=False)
    except BufferError:
        return
    back = arrowdl.to_numpy(array)
    np.testing.assert_array_equal(back, tensor.reshape(back.shape))
    assert back.size == 0 or back.ctypes.data == tensor.ctypes.data
    copied = arrowdl.to_numpy(arrowdl.to_arrow_device(tensor, copy=True))
    assert not np.shares_memory(copied, tensor)
    np.testing.assert_array_equal(copied, back)


@given(strided(), st.data())
@thorough
def test_any_tensor_of_torch_comes_back(tensor: np.ndarray, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(tensor.ndim)))
    source = torch.from_numpy(tensor.copy()).permute(order)
    back = torch.from_dlpack(arrowdl.to_arrow_device(source))
    assert back.dtype is source.dtype
    assert torch.equal(back, source.reshape(back.shape))
    if source.numel() > 0 and list(order[:1]) in ([], [0]):  # rows stay outermost
        assert back.data_ptr() == source.data_ptr()


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=3), st.integers(0, 3))
@thorough
def test_any_view_of_torch_comes_back(dimensions: list[tuple[int, int, int]], offset: int) -> None:
    """Extents, strides and starts of any kind: overlapping, unordered, zero."""
    shape, strides, starts = zip(*dimensions, strict=True) if dimensions else ((), (), ())
    view = torch.arange(64).as_strided(shape, strides, offset)
    for axis, start in enumerate(starts):
        view = view.narrow(axis, min(start, view.shape[axis]), max(0, view.shape[axis] - start))
    back = torch.from_dlpack(arrowdl.to_arrow_device(view))
    assert torch.equal(back, view.reshape(back.shape))
    assert tuple(back.shape) == (tuple(view.shape) or (1,))


TORCH_FLOATS = [
    *(torch.bfloat16, torch.float8_e4m3fn, torch.float8_e4m3fnuz),
    *(torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu),
]


@given(strided(), st.sampled_from(TORCH_FLOATS))
@thorough
def test_any_small_float_of_torch_comes_back(tensor: np.ndarray, dtype: torch.dtype) -> None:
    """By its bits: some are NaN."""
    bits = torch.int16 if dtype.itemsize == 2 else torch.uint8
    values = (torch.tensor(tensor.real.astype("int64")) * 2003).to(bits)
    array = arrowdl.to_arrow_device(values.view(dtype))
    for back in (torch.from_dlpack(array), arrowdl.to_torch(array)):
        assert back.dtype is dtype
        assert torch.equal(back.view(bits), values.reshape(back.shape))


ML_FLOATS = [
    *("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
]


@pytest.mark.parametrize("name", ML_FLOATS)
def test_every_small_float_of_jax_comes_back(name: str) -> None:
    """Every bit pattern of eight bits, and as many of bfloat16."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = np.dtype(f"uint{dtype.itemsize * 8}")
    values = np.arange(256, dtype=bits) * (257 if dtype.itemsize == 2 else 1)
    values = values.astype(bits).reshape(4, 8, 8)
    array = arrowdl.to_arrow_device(jnp.asarray(values.view(dtype)))
    back = arrowdl.to_jax(array)
    assert back.dtype == dtype
    np.testing.assert_array_equal(np.asarray(back).view(bits), values)


@given(strided().filter(lambda tensor: tensor.ndim > 0), st.data())
@thorough
def test_any_mask_becomes_validity(tensor: np.ndarray, data: st.DataObject) -> None:
    rows = len(tensor)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), bool)
    array = arrowdl.to_arrow_device(tensor, mask=mask)
    assert array.null_count == np.count_nonzero(~mask)
    assert pa.array(array).is_valid().to_pylist() == mask.tolist()
    _, read = arrowdl.to_numpy(array, nulls="mask")
    per_row = np.broadcast_to(mask.reshape(-1, *(1,) * (tensor.ndim - 1)), tensor.shape)
    np.testing.assert_array_equal(read, per_row)
