"""dtype=: numbers cast in C++, and what a dtype cannot hold refused with its field and row."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def draw(dtype: str, seed: int) -> Any:
    """Numbers of every size: random bits, and random bits of small numbers."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 256, 512 * np.dtype(dtype).itemsize, dtype=np.uint8)
    values = bits.view(dtype)
    if dtype in INTEGERS:
        shifts = rng.integers(0, np.dtype(dtype).itemsize * 8, len(values)).astype(dtype)
        return np.concatenate([values, values >> shifts])
    whole = rng.integers(-300, 300, 256).astype(dtype)
    return np.concatenate([values, whole, rng.normal(size=256).astype(dtype)])


def find_fitting(values: Any, to: str) -> Any:
    exact = values.astype(np.longdouble)  # has 64 bits: holds int64 and float64
    if to in INTEGERS:
        limits = np.iinfo(to)
        fits = (exact >= limits.min) & (exact <= limits.max) & (exact == np.floor(exact))
        return fits & np.isfinite(exact)
    return np.isfinite(values.astype(to)) | ~np.isfinite(exact)


@pytest.mark.parametrize("to", INTEGERS + FLOATS)
@pytest.mark.parametrize("own", INTEGERS + FLOATS)
@pytest.mark.filterwarnings("ignore:(overflow|invalid):RuntimeWarning")
def test_as_numpy_casts_what_fits(own: str, to: str) -> None:
    values = draw(own, 1)
    fits = find_fitting(values, to)
    batch = arrowdl.to_arrow_device({"x": values[fits]})
    made = arrowdl.to_numpy(batch, dtype=to)["x"]
    assert made.dtype == to
    np.testing.assert_array_equal(made, values[fits].astype(to))
    for value in values[~fits][:5]:
        with pytest.raises(ValueError, match=r'^field "x": row 0: '):
            arrowdl.to_numpy(arrowdl.to_arrow_device({"x": np.array([value])}), dtype=to)


def test_half_numbers_below_the_normal_range_as_wider_floats() -> None:
    """nanoarrow's own conversion of them is wrong."""
    bits = np.arange(1, 1024, dtype=np.uint16)
    array = arrowdl.to_arrow_device(bits.view(np.float16))
    np.testing.assert_array_equal(
        arrowdl.to_numpy(array, dtype="float32"), bits.view(np.float16).astype(np.float32)
    )
    requested = pa.field("", pa.float64()).__arrow_c_schema__()
    schema, made = array.__arrow_c_array__(requested)
    column = pa.Array._import_from_c_capsule(schema, made)
    assert column.type == pa.float64()
    np.testing.assert_array_equal(column.to_numpy(), bits.view(np.float16).astype(np.float64))


TABLE = pa.table(
    {
        "i": pa.array([1, None, 3]),
        "b": [True, False, True],
        "t": pa.array([1, 2, 3], pa.timestamp("us")),
        "l": [[1, 2], [], [3]],
        "v": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float64(), 2)),
        "s": [{"x": 1.5}] * 3,
        "k": pa.array(["p", "q", "p"]).dictionary_encode(),
        "c": ["p", "qq", ""],
    }
)


def test_one_dtype_is_for_all_numbers_and_nothing_else() -> None:
    made = arrowdl.to_numpy(TABLE, dtype="float32", nulls="fill", ragged="offsets")
    assert [made[name].dtype for name in "ibtvk"] == ["f4", "?", "i8", "f4", "i4"]
    assert made["i"].tolist() == [1, 0, 3]
    assert made["s"]["x"].dtype == made["l"][0].dtype == "f4"
    assert made["l"][1].tolist() == [0, 2, 2, 3]
    assert made["c"][0].dtype == "u1"


def test_a_dtype_by_column_is_also_for_bools_and_codes() -> None:
    dtypes = {"b": "float64", "k": "int64", "l": "int8"}
    made = arrowdl.to_numpy(TABLE, dtype=dtypes, nulls="fill", ragged="offsets")
    assert made["b"].tolist() == [1.0, 0.0, 1.0]
    assert made["b"].dtype == "f8"
    assert made["k"].dtype == "i8"
    assert made["l"][0].dtype == "i1"
    assert made["i"].dtype == "i8"
    for name in "tc":
        with pytest.raises(ValueError, match=f'field "{name}": dtype=.* leave the column out'):
            arrowdl.to_numpy(TABLE, dtype={name: "int64"}, nulls="fill", ragged="offsets")


def test_nulls_follow_their_policy_after_the_cast() -> None:
    made = arrowdl.to_numpy(TABLE.select(["i"]), dtype="float32", nulls="nan")["i"]
    np.testing.assert_array_equal(made, np.float32([1, np.nan, 3]))
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.array([7, 1 << 40]).buffers()[1]]
    )
    values, mask = arrowdl.to_numpy(hidden, dtype="int8", nulls="mask")
    assert (values[0], mask.tolist()) == (7, [True, False])


@pytest.mark.parametrize(
    ("column", "row"),
    [
        (pa.array([1, 2, 300]), 2),
        (pa.array([[1], [], [2, 300]]), 2),
        (pa.array([[1], [], [2, 300]], pa.large_list(pa.int64())), 2),
        (pa.array([[1, 2], [300, 4]], pa.list_(pa.int64(), 2)), 1),
        (pa.array([[[1]], [[2], [3, 300]]]), 1),
        (pa.chunked_array([[1, 2], [300]]), 2),
    ],
)
def test_the_row_of_the_batch_is_named(column: Any, row: int) -> None:
    table = pa.table({"x": column})
    with pytest.raises(ValueError, match=rf"row {row}: 300 is beyond the range of uint8"):
        arrowdl.to_numpy(table, dtype="uint8", ragged="offsets")
    assert arrowdl.to_numpy(table, dtype="uint16", ragged="offsets")


def test_columns_of_several_types_as_one_matrix() -> None:
    table = TABLE.select(["i", "b", "v", "k"])
    with pytest.raises(BufferError, match=r"cast them with dtype=, as in dtype=\"float32\""):
        arrowdl.to_numpy(table, stack=True, nulls="fill")
    made = arrowdl.to_numpy(table, stack=True, nulls={"i": "nan"}, dtype="float32")
    assert made.dtype == "f4"
    expected = [[1, 1, 1, 2, 0], [np.nan, 0, 1, 2, 1], [3, 1, 1, 2, 0]]
    np.testing.assert_array_equal(made, np.float32(expected))
    values, mask = arrowdl.to_numpy(table, stack=True, nulls="mask", dtype="float16")
    assert (values.dtype, mask.sum()) == ("f2", 14)
    with pytest.raises(ValueError, match="mask of the whole matrix"):
        arrowdl.to_numpy(table, stack=True, nulls={"i": "mask"}, dtype="float32")


@pytest.mark.parametrize("name", ["nulls", "ragged", "dtype", "pad_value", "max_length"])
def test_a_mapping_with_an_unknown_column(name: str) -> None:
    values: dict[str, Any] = {
        "nulls": "fill",
        "ragged": "padded",
        "dtype": "int8",
        "pad_value": 1,
        "max_length": 1,
    }
    options: dict[str, Any] = {"ragged": "padded"} | {name: {"z": values[name]}}
    with pytest.raises(ValueError, match=f'{name}= names "z", and the columns are "i", "b"'):
        arrowdl.to_numpy(TABLE.select(["i", "b"]), **options)


def test_dtypes_of_frameworks() -> None:
    torch = pytest.importorskip("torch")
    array = arrowdl.from_arrow(pa.array([1, 2]))
    for dtype in (np.float32, np.dtype("float32"), torch.float32, "float32"):
        assert arrowdl.to_numpy(array, dtype=dtype).dtype == "f4"
    assert arrowdl.to_torch(array, dtype=torch.bfloat16).dtype == torch.bfloat16
    doubles = torch.randn(1000, dtype=torch.float64).float()
    made = arrowdl.to_torch(arrowdl.to_arrow_device(doubles), dtype="bfloat16")
    assert torch.equal(made, doubles.bfloat16())
    for dtype in (float, "complex64", "float8_e5m2", "double"):
        with pytest.raises(ValueError, match="not a dtype that numbers are cast to"):
            arrowdl.to_numpy(array, dtype=dtype)


def test_a_cast_is_a_copy() -> None:
    array = arrowdl.from_arrow(pa.array([1, 2]))
    with pytest.raises(BufferError, match="numbers have to be cast"):
        arrowdl.to_numpy(array, dtype="int8", copy=False)
    assert arrowdl.to_numpy(array, dtype="int64", copy=False).tolist() == [1, 2]
    made = arrowdl.to_numpy(array, dtype="int8", copy=True)
    made[0] = 5
    assert made.tolist() == [5, 2]


def test_padding() -> None:
    table = pa.table({"l": [[1, 2, 3], [], None], "c": ["ab", "c", ""]})
    made = arrowdl.to_numpy(
        table,
        nulls="fill",
        ragged={"l": "padded", "c": "padded"},
        pad_value={"l": -100},
        max_length={"l": 2},
        pad_to_multiple=4,
    )
    rows, lengths = made["l"]
    assert rows.tolist() == [[1, 2, -100, -100], [-100] * 4, [-100] * 4]
    assert lengths.tolist() == [2, 0, 0]
    assert made["c"][0].tolist() == [[97, 98, 0, 0], [99, 0, 0, 0], [0] * 4]
    lists = pa.array([[True], []])
    assert arrowdl.to_numpy(lists, ragged="padded", pad_value=True)[0].tolist() == [[True], [True]]
    for column, value in ((pa.array([[1]], pa.list_(pa.uint8())), -1), (lists, 2), (lists, 0.5)):
        with pytest.raises(ValueError, match=f"pad_value={value} is not a value of"):
            arrowdl.to_numpy(column, ragged="padded", pad_value=value)
    with pytest.raises(ValueError, match='give ragged="padded" too'):
        arrowdl.to_numpy(lists, max_length=1)
    with pytest.raises(TypeError, match="expected an int, a float or a bool"):
        arrowdl.to_numpy(lists, ragged="padded", pad_value="x")
