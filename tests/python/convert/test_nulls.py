"""Nulls are never implicit: every policy, at every level, however the producer wrote them."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.arrays import address_of, as_extension, data_address, fixed_size_list
from helpers.arrow import MadeArray, MadeSchema
from helpers.optional import torch

CONVERTERS = [arrowdl.to_torch, arrowdl.to_numpy, arrowdl.to_jax]
FLOATS = pa.array([1, None, 3, None, 5], pa.float32())


def level_cases() -> dict[str, tuple[pa.Array, list[Any]]]:
    """Arrays with nulls at one level or two, and the mask that they stand for."""
    whole = pa.array(range(6), pa.float32())
    holes = pa.array([0, None, 2, 3, 4, None], pa.float32())
    pairs = [True, True]
    return {
        "elements": (holes, [True, False, True, True, True, False]),
        "rows of a list": (
            fixed_size_list(whole, 2, valid=[True, False, True]),
            [pairs, [False, False], pairs],
        ),
        "elements of a list": (
            fixed_size_list(holes, 2),
            [[True, False], pairs, [True, False]],
        ),
        "both": (
            fixed_size_list(holes, 2, valid=[True, False, True]),
            [[True, False], [False, False], [True, False]],
        ),
        "the middle of three": (
            fixed_size_list(fixed_size_list(whole, 1, valid=[True] * 3 + [False] + [True] * 2), 2),
            [[[True], [True]], [[True], [False]], [[True], [True]]],
        ),
        "all of three": (
            fixed_size_list(
                fixed_size_list(holes, 1, valid=[False] + [True] * 5), 2, valid=[True, True, False]
            ),
            [[[False], [False]], [[True], [True]], [[False], [False]]],
        ),
    }


LEVELS = level_cases()


@pytest.mark.parametrize("case", LEVELS)
@pytest.mark.parametrize("consume", [np.from_dlpack, torch.from_dlpack, np.asarray, *CONVERTERS])
def test_a_null_at_any_level_is_refused_unless_asked_for(consume: Any, case: str) -> None:
    with pytest.raises(BufferError, match='nulls="fill"'):
        consume(arrowdl.from_arrow(LEVELS[case][0]))


@pytest.mark.parametrize("case", LEVELS)
@pytest.mark.parametrize("convert", CONVERTERS)
def test_fill_puts_zeros_and_nan_puts_nan(convert: Any, case: str) -> None:
    array, mask = LEVELS[case]
    values = np.arange(6, dtype="float32").reshape(np.shape(mask))
    filled = np.asarray(convert(array, nulls="fill"))
    np.testing.assert_array_equal(filled, np.where(mask, values, 0))
    with_nan = np.asarray(convert(array, nulls="nan"))
    np.testing.assert_array_equal(with_nan, np.where(mask, values, np.nan))
    assert filled.dtype == with_nan.dtype == np.float32


@pytest.mark.parametrize("case", LEVELS)
@pytest.mark.parametrize("convert", CONVERTERS)
def test_mask_is_true_where_a_value_is_valid(convert: Any, case: str) -> None:
    array, expected_mask = LEVELS[case]
    values, mask = convert(array, nulls="mask")
    mask = np.asarray(mask)
    assert mask.dtype == bool
    assert mask.tolist() == expected_mask
    expected = np.arange(6, dtype="float32").reshape(mask.shape)
    np.testing.assert_array_equal(np.asarray(values)[mask], expected[mask])


@pytest.mark.parametrize("case", LEVELS)
@pytest.mark.parametrize("start", [1, 2])
def test_nulls_outside_the_window_do_not_count(case: str, start: int) -> None:
    array, mask = LEVELS[case]
    window = arrowdl.from_arrow(array)[start:]
    np.testing.assert_array_equal(arrowdl.to_numpy(window, nulls="mask")[1], mask[start:])
    whole_rows = [i for i, row in enumerate(mask) if np.all(row)]
    for i in whole_rows:
        arrowdl.to_numpy(array[i : i + 1])  # no null in this row: not refused


@pytest.mark.parametrize("start", range(17))
def test_validity_is_read_from_its_bit_offset(start: int) -> None:
    valid = np.random.default_rng(5).integers(0, 2, 100, dtype=bool)
    array = pa.array(np.arange(100), pa.int32(), mask=~valid)[start : start + 70]
    device_array = arrowdl.from_arrow(array)
    assert device_array.null_count == array.null_count
    _, mask = arrowdl.to_numpy(device_array, nulls="mask")
    np.testing.assert_array_equal(mask, valid[start : start + 70])
    np.testing.assert_array_equal(
        arrowdl.to_numpy(device_array, nulls="fill"),
        np.where(valid, np.arange(100), 0)[start : start + 70],
    )
    np.testing.assert_array_equal(arrowdl.to_numpy(device_array.validity), mask)


@pytest.mark.parametrize("nulls", ["fill", "nan"])
def test_without_nulls_no_policy_copies(nulls: str) -> None:
    array = FLOATS.drop_null()
    assert address_of(arrowdl.to_torch(array, nulls=nulls)) == data_address(array)
    with_bitmap = FLOATS[4:]
    assert with_bitmap.null_count == 0
    assert address_of(arrowdl.to_torch(with_bitmap, nulls=nulls)) == data_address(with_bitmap)


def test_under_mask_the_values_are_read_where_they_lie() -> None:
    values, _ = arrowdl.to_torch(FLOATS, nulls="mask")
    assert address_of(values) == data_address(FLOATS)


def test_fill_does_not_write_to_the_producers_memory() -> None:
    before = FLOATS.buffers()[1].to_pybytes()
    arrowdl.to_torch(FLOATS, nulls="nan")
    assert FLOATS.buffers()[1].to_pybytes() == before


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None]),
        pa.array([True, None]),
        pa.array([b"ab", None], pa.binary(2)),
        pa.array(["x", None]).dictionary_encode(),
    ],
    ids=["int64", "bool", "fixed_size_binary", "dictionary"],
)
def test_nan_is_refused_where_there_is_none(array: pa.Array) -> None:
    with pytest.raises(BufferError, match="floating point"):
        arrowdl.to_numpy(array, nulls="nan")
    assert arrowdl.to_numpy(array, nulls="fill")[1].tolist() in (0, False, [0, 0])


NANS = ["float16", "float32", "float64", "bfloat16", "complex64", "complex128"]
NANS += [name for name in dir(torch) if name.startswith("float8_")]


@pytest.mark.parametrize("name", NANS)
def test_every_floating_type_has_its_nan(name: str) -> None:
    dtype = getattr(torch, name)
    width = dtype.itemsize
    valid = [True, False]
    if name in ("float16", "float32", "float64"):
        array = arrowdl.from_arrow(pa.array([0, None], getattr(pa, name)()))
    elif name.startswith("complex"):
        parts = pa.array(np.zeros(4, f"float{width * 4}"))
        storage = fixed_size_list(parts, 2, valid=valid)
        array = as_extension(storage, f"arrowdl.{name}")
    else:
        storage = pa.array([bytes(width), None], pa.binary(width))
        array = as_extension(storage, f"arrowdl.{name}")
    tensor = arrowdl.to_torch(array, nulls="nan")
    assert tensor.dtype is dtype
    wide = tensor.to(torch.complex128 if dtype.is_complex else torch.float32)
    assert wide.isnan().tolist() == [False, True]
    if dtype.is_complex:
        assert bool(tensor[1].real.isnan())
        assert bool(tensor[1].imag.isnan())


def test_fill_is_refused_where_there_is_no_zero() -> None:
    array = as_extension(pa.array([b"\x7f", None], pa.binary(1)), "arrowdl.float8_e8m0fnu")
    with pytest.raises(BufferError, match="zeros"):
        arrowdl.to_torch(array, nulls="fill")


def test_a_null_inside_a_complex_number_is_refused() -> None:
    array = as_extension(
        fixed_size_list(pa.array([1, None, 3, 4], pa.float32()), 2), "arrowdl.complex64"
    )
    for nulls in ("raise", "fill", "mask"):
        with pytest.raises(BufferError, match="inside a complex number"):
            arrowdl.to_torch(array, nulls=nulls)
    assert arrowdl.to_torch(array[1:]).tolist() == [3 + 4j]


# ---------------------------------------------------------------- structs


def make_struct(**options: Any) -> pa.StructArray:
    fields = {
        "plain": pa.array([1, 2, 3, 4], pa.int32()),
        "holes": pa.array([1, None, 3, 4], pa.float64()),
        "bits": pa.array([True, True, False, True]),
        "rows": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.int8(), 2)),
        "codes": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
    }
    return pa.StructArray.from_arrays(list(fields.values()), list(fields), **options)


STRUCT = make_struct(mask=pa.array([False, False, True, False]))


def test_nulls_of_a_struct_are_nulls_of_every_field() -> None:
    tensors = arrowdl.to_numpy(STRUCT, nulls="mask")
    masks = {name: mask for name, (_, mask) in tensors.items()}
    for name in ("plain", "bits", "codes"):
        assert masks[name].tolist() == [True, True, False, True], name
    assert masks["holes"].tolist() == [True, False, False, True]
    assert masks["rows"].tolist() == [[True] * 2, [True] * 2, [False] * 2, [True] * 2]


def test_nulls_of_a_struct_are_filled_in_every_field() -> None:
    tensors = arrowdl.to_torch(STRUCT, nulls="fill")
    assert tensors["plain"].tolist() == [1, 2, 0, 4]
    assert tensors["holes"].tolist() == [1, 0, 0, 4]
    assert tensors["bits"].tolist() == [True, True, False, True]
    assert tensors["rows"].tolist() == [[1, 2], [3, 4], [0, 0], [7, 8]]
    assert tensors["codes"].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("window", [slice(1, None), slice(2, 4), slice(0, 2)], ids=str)
def test_nulls_of_a_sliced_struct_stay_with_their_rows(window: slice) -> None:
    for array in (STRUCT[window], arrowdl.from_arrow(STRUCT)[window]):
        values, mask = arrowdl.to_numpy(array, nulls="mask")["holes"]
        assert mask.tolist() == [True, False, False, True][window]
        assert values[mask].tolist() == [
            value for value, valid in zip([1, 2, 3, 4], mask_of(window), strict=True) if valid
        ]


def mask_of(window: slice) -> list[bool]:
    inside = [True, False, False, True][window]
    start = window.start or 0
    return [start <= i < start + len(inside) and inside[i - start] for i in range(4)]


def test_a_field_under_a_null_struct_is_refused_by_name() -> None:
    with pytest.raises(BufferError, match=r'field "plain".*nulls'):
        arrowdl.to_torch(STRUCT)
    with pytest.raises(BufferError, match="nulls"):
        np.from_dlpack(arrowdl.from_arrow(STRUCT)["plain"])


def test_fields_below_two_null_structs_take_the_nulls_of_both() -> None:
    inner = pa.StructArray.from_arrays(
        [pa.array([1, 2, None, 4, 5])], ["x"], mask=pa.array([True, False, False, False, False])
    )
    outer = pa.StructArray.from_arrays(
        [inner], ["inner"], mask=pa.array([False, True, False, False, False])
    )
    _, mask = arrowdl.to_numpy(outer[0:4], nulls="mask")["inner"]["x"]
    assert mask.tolist() == [False, False, False, True]
    _, mask = arrowdl.to_numpy(outer[1:], nulls="mask")["inner"]["x"]
    assert mask.tolist() == [False, False, True, True]


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 9, 63])
def test_folding_is_right_at_every_bit_offset(offset: int) -> None:
    rng = np.random.default_rng(offset)
    outer, inner = rng.integers(0, 2, (2, 200), dtype=bool)
    child = pa.array(np.arange(203), pa.int16(), mask=np.concatenate([[False] * 3, ~inner]))[3:]
    struct = pa.StructArray.from_arrays([child], ["x"], mask=pa.array(~outer))
    for array in (struct[offset:], arrowdl.from_arrow(struct)[offset:]):
        field = arrowdl.from_arrow(array)["x"]
        values, mask = arrowdl.to_numpy(field, nulls="mask")
        np.testing.assert_array_equal(mask, (outer & inner)[offset:])
        np.testing.assert_array_equal(values, np.arange(3, 203)[offset:])
        assert field.null_count == np.count_nonzero(~mask)
        assert pa.array(field).to_pylist() == [
            value if valid else None for value, valid in zip(values.tolist(), mask, strict=True)
        ]


FOLDED = {
    "bits": pa.array([True, False, True, True]),
    "string": pa.array(["a", "bc", "", "def"]),
    "string_view": pa.array(["a", "bc" * 20, "", "def" * 20], pa.string_view()),
    "list": pa.array([[1], [2, 3], [], [4]]),
    "list_view": pa.array([[1], [2, 3], [], [4]], pa.list_view(pa.int8())),
    "fixed_size_list": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.int8(), 2)),
    "struct": pa.array([{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}]),
    "dictionary": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
}


@pytest.mark.parametrize("case", FOLDED)
@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_folded_field_of_any_layout_stays_readable(case: str, start: int) -> None:
    child = FOLDED[case]
    long = pa.concat_arrays([child] * 5)
    mask = pa.array([i % 3 == 0 for i in range(20)])
    struct = pa.StructArray.from_arrays([long], ["x"], mask=mask)[start * 5 :]
    field = pa.array(arrowdl.from_arrow(struct)["x"])
    field.validate(full=True)
    assert field.to_pylist() == [row and row["x"] for row in struct.to_pylist()]


def test_stack_under_a_mask_has_a_mask_of_its_shape() -> None:
    table = pa.table({"a": FLOATS, "b": pa.array([[1, 2]] * 5, pa.list_(pa.float32(), 2))})
    values, mask = arrowdl.to_numpy(table, stack=True, nulls="mask")
    assert values.shape == mask.shape == (5, 3)
    np.testing.assert_array_equal(mask[:, 0], [True, False, True, False, True])
    assert mask[:, 1:].all()
    filled = arrowdl.to_numpy(table, stack=True, nulls="fill")
    np.testing.assert_array_equal(filled, np.where(mask, values, 0))
    assert np.isnan(arrowdl.to_numpy(table, stack=True, nulls="nan")).sum() == 2
    with pytest.raises(BufferError, match=r'field "a".*nulls'):
        arrowdl.to_numpy(table, stack=True)


# ---------------------------------------------------------------- ragged rows

LISTS = pa.array([[1, 2], None, [3]], pa.list_(pa.float32()))


def lists_with_values_under_the_null() -> pa.Array:
    """Legal, and what a reader of offsets alone gets wrong."""
    bitmap = pa.array([True, False, True]).buffers()[1]
    offsets = pa.py_buffer(np.array([0, 2, 5, 6], "int32"))
    return pa.Array.from_buffers(
        LISTS.type, 3, [bitmap, offsets], children=[pa.array([1, 2, 9, 9, 9, 3], pa.float32())]
    )


def list_views_with_values_under_the_null() -> pa.Array:
    bitmap = pa.array([True, False, True]).buffers()[1]
    offsets = pa.py_buffer(np.array([0, 2, 5], "int32"))
    sizes = pa.py_buffer(np.array([2, 3, 1], "int32"))
    return pa.Array.from_buffers(
        pa.list_view(pa.float32()),
        3,
        [bitmap, offsets, sizes],
        children=[pa.array([1, 2, 9, 9, 9, 3], pa.float32())],
    )


def views_with_bytes_under_the_null() -> pa.Array:
    array = pa.array(["ab", "xx", "c"], pa.string_view())
    bitmap = pa.array([True, False, True]).buffers()[1]
    return pa.Array.from_buffers(array.type, 3, [bitmap, array.buffers()[1]])


@pytest.mark.parametrize(
    "make", [lists_with_values_under_the_null, list_views_with_values_under_the_null]
)
@pytest.mark.parametrize("start", [0, 1])
def test_a_null_row_is_empty_whatever_lies_under_it(make: Any, start: int) -> None:
    array = make()[start:]
    rows = [row or [] for row in array.to_pylist()]
    assert [row.tolist() for row in arrowdl.to_torch(array, nulls="fill").unbind()] == rows
    (values, offsets), mask = arrowdl.to_numpy(array, nulls="mask")
    assert [row.tolist() for row in np.split(values, offsets[1:-1])] == rows
    assert mask.tolist() == [True, False, True][start:]
    padded, lengths = arrowdl.to_numpy(array, nulls="fill", ragged="padded")
    assert lengths.tolist() == [len(row) for row in rows]
    assert padded.tolist() == [row + [0] * (padded.shape[1] - len(row)) for row in rows]


def test_a_null_string_view_is_empty_whatever_lies_under_it() -> None:
    (values, offsets), mask = arrowdl.to_numpy(views_with_bytes_under_the_null(), nulls="mask")
    assert values.tobytes() == b"abc"
    assert offsets.tolist() == [0, 2, 2, 3]
    assert mask.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "array",
    [LISTS, pa.array(["a", None]), pa.array([[1], None], pa.large_list_view(pa.int8()))],
    ids=["list", "string", "list view"],
)
def test_null_rows_are_refused_under_raise_and_nan(array: pa.Array) -> None:
    with pytest.raises(BufferError, match='nulls="fill"'):
        arrowdl.to_torch(array)
    with pytest.raises(BufferError, match="null rows"):
        arrowdl.to_numpy(array, nulls="nan")
    arrowdl.to_torch(array[:1])  # the null lies outside of the window


def test_null_elements_of_lists_follow_the_policy() -> None:
    array = pa.array([[1, None], [], [None, 4]], pa.list_(pa.float32()))
    with pytest.raises(BufferError, match="nulls"):
        arrowdl.to_torch(array)
    assert arrowdl.to_numpy(array, nulls="fill")[0].tolist() == [1, 0, 0, 4]
    assert np.isnan(arrowdl.to_numpy(array, nulls="nan")[0]).tolist() == [
        False,
        True,
        True,
        False,
    ]
    padded, _ = arrowdl.to_numpy(array, nulls="fill", ragged="padded")
    assert padded.tolist() == [[1, 0], [0, 0], [0, 4]]
    with pytest.raises(BufferError, match="elements"):
        arrowdl.to_numpy(array, nulls="mask")  # the mask is of rows: elements must be whole
    assert arrowdl.to_numpy(array[1:2])[0].tolist() == []


def test_null_elements_under_a_null_row_do_not_count() -> None:
    bitmap = pa.array([True, False]).buffers()[1]
    offsets = pa.py_buffer(np.array([0, 1, 3], "int32"))
    array = pa.Array.from_buffers(
        LISTS.type, 2, [bitmap, offsets], children=[pa.array([1, None, 3], pa.float32())]
    )
    (values, _), mask = arrowdl.to_numpy(array, nulls="mask")
    assert values.tolist() == [1]
    assert mask.tolist() == [True, False]


# ---------------------------------------------------------------- as producers write them


def made(format: str, *args: Any, **options: Any) -> arrowdl.DeviceArray:
    children = options.get("children", ())
    schema = MadeSchema(format, children=[MadeSchema(child[0]) for child in children])
    options["children"] = [MadeArray(*child[1:]) for child in children]
    array = MadeArray(*args, **options)
    return arrowdl.from_arrow((schema.capsule(), array.capsule()))


BITMAP = np.array([0b00001011], "uint8")
INTS = np.array([10, 20, 30, 40, 50, 60], "int32")


@pytest.mark.parametrize("null_count", [-1, 1])
def test_an_uncounted_null_is_counted(null_count: int) -> None:
    array = made("i", 4, [BITMAP, INTS], null_count=null_count)
    assert array.null_count == 1
    with pytest.raises(BufferError, match="nulls"):
        np.from_dlpack(array)
    assert arrowdl.to_numpy(array, nulls="fill").tolist() == [10, 20, 0, 40]


def test_uncounted_nulls_may_be_none() -> None:
    array = made("i", 2, [BITMAP, INTS], null_count=-1)
    assert array.null_count == 0
    assert np.from_dlpack(array).tolist() == [10, 20]
    without_bitmap = made("i", 2, [None, INTS], null_count=-1)
    assert without_bitmap.null_count == 0
    assert without_bitmap.validity is None
    assert np.from_dlpack(without_bitmap).tolist() == [10, 20]


def test_uncounted_nulls_are_counted_from_the_offset_on() -> None:
    array = made("i", 3, [np.array([0b00011110], "uint8"), INTS], null_count=-1, offset=1)
    assert array.null_count == 0
    assert np.from_dlpack(array).tolist() == [20, 30, 40]
    array = made("i", 3, [np.array([0b00011011], "uint8"), INTS], null_count=-1, offset=1)
    assert array.null_count == 1
    assert arrowdl.to_numpy(array, nulls="fill").tolist() == [20, 0, 40]


def test_a_null_count_of_zero_makes_the_bitmap_meaningless() -> None:
    array = made("i", 4, [BITMAP, INTS], null_count=0)
    assert array.null_count == 0
    assert np.from_dlpack(array).tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize("null_count", [-1, 0])
def test_uncounted_nulls_of_a_child_are_counted(null_count: int) -> None:
    child = ("i", 6, [np.array([0b00110111], "uint8"), INTS])
    schema = MadeSchema("+w:2", children=[MadeSchema(child[0])])
    element = MadeArray(*child[1:], null_count=null_count)
    array = MadeArray(3, [None], null_count=null_count, children=[element])
    device_array = arrowdl.from_arrow((schema.capsule(), array.capsule()))
    assert device_array.null_count == 0  # of rows
    if null_count == 0:
        assert np.from_dlpack(device_array).tolist() == [[10, 20], [30, 40], [50, 60]]
        return
    with pytest.raises(BufferError, match="nulls"):
        np.from_dlpack(device_array)
    assert np.from_dlpack(device_array[0:1]).tolist() == [[10, 20]]
    assert np.from_dlpack(device_array[2:]).tolist() == [[50, 60]]


EMPTY = {
    "int32": ("i", [None, None]),
    "bool": ("b", [None, None]),
    "fixed_size_binary": ("w:3", [None, None]),
    "string": ("u", [None, None, None]),
    "large_binary": ("Z", [None, None, None]),
    "timestamp": ("tsu:UTC", [None, None]),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("case", EMPTY)
@pytest.mark.parametrize("null_count", [-1, 0])
@pytest.mark.parametrize("convert", CONVERTERS)
def test_an_empty_array_may_leave_its_buffers_null(
    convert: Any, case: str, null_count: int
) -> None:
    format, buffers = EMPTY[case]
    array = made(format, 0, buffers, null_count=null_count)
    assert len(array) == 0
    assert array.null_count == 0
    for nulls in ("raise", "fill", "mask"):
        convert(array, nulls=nulls)


@pytest.mark.parametrize("format", ["+l", "+L", "+vl", "+vL"])
@pytest.mark.parametrize("ragged", ["jagged", "padded"])
def test_an_empty_list_array_may_leave_its_buffers_null(format: str, ragged: str) -> None:
    buffers = [None] * (3 if "v" in format else 2)
    array = made(format, 0, buffers, children=[("i", 0, [None, None])])
    values, ends = arrowdl.to_numpy(array, ragged=ragged)
    assert values.size == 0
    assert ends.tolist() == ([0] if ragged == "jagged" else [])
    arrowdl.to_torch(array, ragged=ragged)


@pytest.mark.parametrize("list_size", [0, 3])
@pytest.mark.parametrize("length", [0, 2])
def test_fixed_size_lists_of_no_rows_or_no_elements_keep_their_shape(
    list_size: int, length: int
) -> None:
    values = np.zeros(6, "int32") if list_size * length else None
    array = made(
        f"+w:{list_size}", length, [None], children=[("i", list_size * length, [None, values])]
    )
    for tensor in (arrowdl.to_torch(array), arrowdl.to_numpy(array), arrowdl.to_jax(array)):
        assert tuple(tensor.shape) == (length, list_size)


ZERO_LENGTH = [
    pa.array([], pa.int8()),
    pa.array([], pa.bool_()),
    pa.array([], pa.binary(4)),
    pa.array([], pa.list_(pa.list_(pa.float32(), 3), 2)),
    pa.array([], pa.list_(pa.bool_())),
    pa.array([], pa.large_string()),
    pa.array([], pa.string_view()),
    pa.array([], pa.dictionary(pa.int8(), pa.string())),
    pa.array([], pa.struct([pa.field("a", pa.int8()), pa.field("b", pa.list_(pa.int8()))])),
    pa.array([], pa.run_end_encoded(pa.int32(), pa.float32())),
    pa.array([], pa.map_(pa.int8(), pa.int8())),
    pa.array([], pa.list_view(pa.int8())),
]


@pytest.mark.parametrize("array", ZERO_LENGTH, ids=lambda array: str(array.type))
@pytest.mark.parametrize("nulls", ["raise", "fill", "mask"])
def test_no_rows_of_any_type_convert(array: pa.Array, nulls: str) -> None:
    assert len(arrowdl.from_arrow(array)) == 0
    arrowdl.to_numpy(array, nulls=nulls)
    if not pa.types.is_map(array.type):  # torch has no ragged rows of pairs
        arrowdl.to_torch(array, nulls=nulls)
        arrowdl.to_torch(array, nulls=nulls, ragged="padded")


@pytest.mark.parametrize(
    "type", [pa.list_(pa.string()), pa.map_(pa.int8(), pa.int8()), pa.list_(pa.list_(pa.int8()))]
)
@pytest.mark.parametrize("rows", [0, 1])
def test_rows_of_elements_that_are_no_tensor_cannot_be_padded(type: Any, rows: int) -> None:
    array = pa.array([[]] * rows, type)
    with pytest.raises(BufferError, match=r'ragged="padded".*use ragged="offsets"'):
        arrowdl.to_numpy(array, ragged="padded")


def test_no_rows_in_the_middle_of_an_array_convert() -> None:
    for array in (FLOATS, LISTS, STRUCT, pa.array(["a", "b", "c"])):
        assert len(arrowdl.from_arrow(array)[2:2]) == 0
        arrowdl.to_numpy(arrowdl.from_arrow(array)[2:2])


@pytest.mark.parametrize("nulls", ["zero", None, b"0", True, False])
def test_an_unknown_policy_is_refused(nulls: Any) -> None:
    with pytest.raises(ValueError, match=r"nulls=.*'raise', 'fill', 'nan', 'mask'"):
        arrowdl.to_torch(FLOATS, nulls=nulls)
