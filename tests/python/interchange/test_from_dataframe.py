"""Frames that speak the dataframe interchange protocol alone, as Arrow data."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.interchange
import pytest
from helpers.frames import (
    BITS,
    BOOL,
    CATEGORICAL,
    DATETIME,
    INT,
    NON_NULLABLE,
    STRING,
    USE_BITMASK,
    USE_BYTEMASK,
    USE_NAN,
    USE_SENTINEL,
    MadeBuffer,
    MadeColumn,
    MadeFrame,
    OnlyDataFrame,
)
from helpers.optional import torch

CUDA = (2, 0)
NAT = np.iinfo("int64").min
NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
NUMBERS += ["float16", "float32", "float64"]


def take(column: MadeColumn, **options: Any) -> arrowdl.DeviceArray:
    return arrowdl.from_arrow(MadeFrame({"x": column}), **options).field("x")


def data_of(array: arrowdl.DeviceArray) -> int:
    """The address of the memory of the values, from its first row on."""
    if array.device.name == "cpu":
        return pa.array(array).buffers()[1].address
    return arrowdl._core.address_of(array)


# ---------------------------------------------------------------- libraries


def test_a_frame_of_pandas() -> None:
    frame = pd.DataFrame(
        {
            "int": [1, 2, 3],
            "uint": np.array([1, 2, 3], "uint8"),
            "float": [0.5, None, 2.5],
            "bool": [True, False, True],
            "string": ["a", None, ""],
            "categorical": pd.Categorical(["x", None, "y"]),
            "datetime": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
            "zoned": pd.to_datetime(["2024-01-01", None, "2024-06-03"]).tz_localize("Europe/Paris"),
            "masked": pd.array([1, None, 3], "Int16"),
            "answer": pd.array([True, None, False], "boolean"),
        }
    )
    struct_array = pa.array(arrowdl.from_arrow(OnlyDataFrame(frame)))
    direct = pa.table(frame)
    for name in frame.columns:
        taken = struct_array.field(name)
        if isinstance(taken, pa.ExtensionArray):  # bool8
            taken = taken.storage.cast(pa.bool_())
        assert taken.to_pylist() == direct[name].to_pylist(), name
    assert struct_array.type.field("zoned").type.tz == "Europe/Paris"
    assert struct_array.type.field("masked").type == pa.int16()


def test_a_table_of_pyarrow_in_slices_and_chunks() -> None:
    first = pa.table(
        {
            "n": pa.array([1, None, 3, 4], pa.int32()),
            "s": pa.array(["aa", "b", None, "d"]),
            "t": pa.array([1, 2, None, 4], pa.timestamp("ms", "UTC")),
            "c": pa.array(["x", "y", None, "y"]).dictionary_encode(),
            "l": pa.array(["aa", "b", None, "d"], pa.large_string()),
        }
    )
    for table in first, first[1:], first[3:], pa.concat_tables([first[1:], first[:2]]):
        struct_array = pa.array(arrowdl.from_arrow(OnlyDataFrame(table)))
        assert struct_array.to_pylist() == table.to_pylist()
    assert arrowdl.to_torch(OnlyDataFrame(first.select(["n"])), nulls="fill")["n"].tolist() == [
        1,
        0,
        3,
        4,
    ]


def test_numbers_of_libraries_are_shared() -> None:
    values = np.arange(5.0)
    frame = OnlyDataFrame(pd.DataFrame({"x": values}, copy=False))
    array = arrowdl.from_arrow(frame, copy=False)
    assert array.field("x").null_count == 0
    assert data_of(array.field("x")) == values.ctypes.data
    table = pa.table({"x": pa.array([1, 2, None])})
    array = arrowdl.from_arrow(OnlyDataFrame(table), copy=False)
    assert data_of(array.field("x")) == table["x"].chunk(0).buffers()[1].address
    assert pa.array(array.field("x")).to_pylist() == [1, 2, None]


def test_pandas_arrow_columns_of_int16_keep_their_type() -> None:
    """pandas 3 describes them by "S", the format of uint16; kind and bits say int16."""
    frame = pd.DataFrame({"x": pd.array([-1, 2], pd.ArrowDtype(pa.int16()))})
    assert arrowdl.from_arrow(OnlyDataFrame(frame)).field("x").type == "int16"


def test_slices_of_pandas_arrow_columns() -> None:
    """pandas 3.1 hands them out from the whole column's first row on, to any consumer; by its Arrow
    protocol, which comes first, they are where they belong."""
    whole = pd.DataFrame({"x": pd.array([1, 2, 3, 4], pd.ArrowDtype(pa.int64()))})
    wrong = [{"x": 1}, {"x": 2}]
    assert pyarrow.interchange.from_dataframe(OnlyDataFrame(whole[2:])).to_pylist() == wrong
    with pytest.warns(UserWarning, match=r"pandas\.index"):  # it counts from 2
        assert pa.array(arrowdl.from_arrow(OnlyDataFrame(whole[2:]))).to_pylist() == wrong
    assert arrowdl.to_numpy(whole[2:].reset_index(drop=True))["x"].tolist() == [3, 4]


def test_arrow_protocols_come_first() -> None:
    class Both(OnlyDataFrame):
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.table({"x": [1]}).__arrow_c_stream__(requested_schema)

        def __dataframe__(self, **_: Any) -> Any:
            raise AssertionError("asked for the frame")

    assert pa.array(arrowdl.from_arrow(Both(None))).to_pylist() == [{"x": 1}]


def test_every_function_takes_frames() -> None:
    frame = OnlyDataFrame(pd.DataFrame({"x": [1, 2], "y": [3, 4]}))
    assert arrowdl.to_torch(frame)["y"].tolist() == [3, 4]
    assert arrowdl.to_numpy(frame, stack=True).tolist() == [[1, 3], [2, 4]]
    assert arrowdl.to_arrow_device(frame).field_names == ["x", "y"]
    assert arrowdl.from_arrow(frame.__dataframe__()).field_names == ["x", "y"]


# ---------------------------------------------------------------- layouts


@pytest.mark.parametrize("by", ["dlpack", "ptr"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_are_shared(dtype: str, by: str) -> None:
    data = np.arange(4).astype(dtype)
    array = take(MadeColumn(data, offset=1, by=by), copy=False)
    assert (array.type, len(array)) == (dtype, 3)
    assert np.from_dlpack(array).tolist() == [1, 2, 3]
    assert data_of(array) == data.ctypes.data


def test_bytes_of_bool_are_bool8_and_bits_are_boolean() -> None:
    data = np.array([True, False, True])
    array = take(MadeColumn(data), copy=False)
    assert (array.type, data_of(array)) == ("arrow.bool8", data.ctypes.data)
    bits = np.array([0b1010], "uint8")
    array = take(MadeColumn(bits, dtype=BITS, size=3, offset=1), copy=False)
    assert pa.array(array).to_pylist() == [True, False, True]
    assert data_of(array) == bits.ctypes.data


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_strings_are_shared(dtype: str) -> None:
    data = np.frombuffer(b"abbccc", "uint8")
    offsets = np.array([0, 1, 3, 3, 6], dtype)
    column = MadeColumn(data, dtype=(STRING, 8, "u", "="), size=3, offset=1, offsets=offsets)
    array = take(column, copy=False)
    assert pa.array(array).to_pylist() == ["bb", "", "ccc"]
    assert array.type == ("string" if dtype == "int32" else "large_string")
    assert pa.array(array).buffers()[2].address == data.ctypes.data


@pytest.mark.parametrize(
    ("format", "bits", "expected"),
    [
        ("tsn:", 64, pa.timestamp("ns")),
        ("tss:Asia/Tokyo", 64, pa.timestamp("s", "Asia/Tokyo")),
        ("tsm:UTC+05:30", 64, pa.timestamp("ms", "+05:30")),
        ("tdD", 32, pa.date32()),
        ("tdm", 64, pa.date64()),
        ("ttm", 32, pa.time32("ms")),
        ("ttu", 64, pa.time64("us")),
        ("tDs", 64, pa.duration("s")),
    ],
)
def test_dates_and_times(format: str, bits: int, expected: pa.DataType) -> None:
    data = np.array([86_400_000, 0], f"int{bits}")
    array = take(MadeColumn(data, dtype=(DATETIME, bits, format, "=")), copy=False)
    assert pa.array(array).type == expected
    assert data_of(array) == data.ctypes.data


def categories(values: list[str]) -> dict[str, Any]:
    encoded = "".join(values).encode()
    offsets = np.cumsum([0] + [len(value.encode()) for value in values])
    data = np.frombuffer(encoded, "uint8")
    column = MadeColumn(data, dtype=(STRING, 8, "u", "="), size=len(values), offsets=offsets)
    return {"is_ordered": True, "is_dictionary": True, "categories": column}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_categories_are_a_dictionary(dtype: str) -> None:
    codes = np.array([0, 1, 1], dtype)
    made = MadeColumn(codes, categorical=categories(["lo", "hi"]))
    made.dtype = (CATEGORICAL, *made.dtype[1:])
    array = take(made, copy=False)
    assert pa.array(array).to_pylist() == ["lo", "hi", "hi"]
    assert pa.array(array).type == pa.dictionary(dtype, pa.large_string(), ordered=True)
    assert data_of(array) == codes.ctypes.data
    made.buffers["data"] = (made.buffers["data"][0], made.dtype)  # as older producers have it
    assert pa.array(take(made)).type.index_type == dtype


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({1: "hi", 0: "lo"}, pa.large_string()),
        ({0: 7, 1: 8}, pa.int64()),
        ({0: 0.5, 1: 2}, None),
        ({0: 0.5, 1: 2.5}, pa.float64()),
        ({0: "a", 2: "b"}, None),
        ({0: b"a", 1: b"b"}, None),
    ],
)
def test_categories_as_a_tuple_with_a_mapping(mapping: Any, expected: Any) -> None:
    """The protocol's first draft, of cuDF and vaex."""
    codes = np.array([1, 0], "int8")
    made = MadeColumn(codes, categorical=(False, True, mapping))
    made.dtype = (CATEGORICAL, *made.dtype[1:])
    if expected is None:
        with pytest.raises(BufferError, match=r'column "x": its categories'):
            take(made)
    else:
        array = pa.array(take(made))
        assert array.type.value_type == expected
        assert array.to_pylist() == [mapping[1], mapping[0]]


def test_methods_and_properties_of_either_kind() -> None:
    made = MadeColumn(np.arange(3))
    made.__class__ = type("Older", (MadeColumn,), {"size": 3})
    assert len(take(made)) == 3


# ---------------------------------------------------------------- nulls

FIVE = [1, None, 3, None, 5]


def with_nulls() -> dict[str, MadeColumn]:
    """Columns of FIVE, behind one row more, by every way to mark a null."""
    ints = np.array([9, 1, -7, 3, -7, 5], "int32")
    floats = np.array([np.nan, 1, np.nan, 3, -np.nan, 5])
    bits = np.array([0b101010], "uint8")  # valid: rows 1, 3 and 5
    valid = np.array([0, 1, 0, 1, 0, 1], "bool")
    return {
        "nan": MadeColumn(floats, offset=1, null=(USE_NAN, None)),
        "nan of 32 bits": MadeColumn(floats.astype("f4"), offset=1, null=(USE_NAN, None)),
        "nan of 16 bits": MadeColumn(floats.astype("f2"), offset=1, null=(USE_NAN, None)),
        "sentinel": MadeColumn(ints, offset=1, null=(USE_SENTINEL, -7)),
        "sentinel nan": MadeColumn(floats, offset=1, null=(USE_SENTINEL, float("nan"))),
        "bits": MadeColumn(ints, offset=1, null=(USE_BITMASK, 0), validity=bits),
        "bits set": MadeColumn(ints, offset=1, null=(USE_BITMASK, 1), validity=~bits),
        "bytes": MadeColumn(ints, offset=1, null=(USE_BYTEMASK, 0), validity=valid),
        "bytes set": MadeColumn(ints, offset=1, null=(USE_BYTEMASK, 1), validity=~valid),
        "bytes of 255": MadeColumn(
            ints, offset=1, null=(USE_BYTEMASK, 0), validity=valid.astype("uint8") * 255
        ),
    }


@pytest.mark.parametrize("how", with_nulls())
def test_every_kind_of_null_becomes_validity(how: str) -> None:
    column = with_nulls()[how]
    array = take(column)
    assert pa.array(array).to_pylist() == FIVE
    assert array.null_count == 2
    assert data_of(array) == column.buffers["data"][0].data.ctypes.data or how != "bits"
    if how == "bits":
        take(column, copy=False)
    else:
        with pytest.raises(BufferError, match=r"copy=False: its 2 nulls are marked by"):
            take(column, copy=False)


@pytest.mark.parametrize("how", with_nulls())
def test_without_a_null_nothing_is_copied(how: str) -> None:
    column = with_nulls()[how]
    column._size = 1
    array = take(column, copy=False)
    assert pa.array(array).to_pylist() == [1]
    assert array.null_count == 0
    column._size = 0
    assert len(take(column, copy=False)) == 0


def test_nulls_of_other_types() -> None:
    times = np.array([5, NAT])
    column = MadeColumn(times, dtype=(DATETIME, 64, "tsn:", "="), null=(USE_SENTINEL, NAT))
    assert take(column).null_count == 1
    column.describe_null = (USE_NAN, None)  # as modin 0.37 has it
    assert take(column).null_count == 1
    codes = MadeColumn(np.array([0, -1], "int8"), categorical=categories(["a"]))
    codes.dtype, codes.describe_null = (CATEGORICAL, *codes.dtype[1:]), (USE_SENTINEL, -1)
    assert pa.array(take(codes)).to_pylist() == ["a", None]
    bools = MadeColumn(
        np.array([1, 0], bool), null=(USE_BYTEMASK, 0), validity=np.array([1, 0], bool)
    )
    assert take(bools).null_count == 1


def test_a_mask_beside_a_column_without_nulls_is_ignored() -> None:
    """pyarrow has it for a slice without nulls of an array with some."""
    column = MadeColumn(np.arange(2), null=(NON_NULLABLE, None))
    column.buffers["validity"] = (MadeBuffer(np.zeros(1, "uint8")), BITS)
    assert take(column).null_count == 0


# ---------------------------------------------------------------- chunks


def test_chunks_are_gathered() -> None:
    chunks = [{"x": MadeColumn(np.arange(n))} for n in (2, 0, 3)]
    frame = MadeFrame(*chunks)
    assert arrowdl.to_numpy(frame)["x"].tolist() == [0, 1, 0, 1, 2]
    assert frame.allowed_copy is True
    with pytest.raises(BufferError, match="3 chunks"):
        arrowdl.from_arrow(frame, copy=False)
    assert frame.allowed_copy is False


def test_categories_that_differ_between_chunks_are_unified() -> None:
    first = pa.table({"c": pa.array(["a", "b"]).dictionary_encode()})
    second = pa.table({"c": pa.array(["b", None]).dictionary_encode()})
    frame = pa.concat_tables([first, second])
    taken = arrowdl.from_arrow(OnlyDataFrame(frame))
    assert pa.array(taken.field("c")).to_pylist() == ["a", "b", "b", None]


def test_a_refusal_of_the_producer_is_a_buffer_error() -> None:
    frame = OnlyDataFrame(pa.table({"x": [True, False]}))  # pyarrow 26 makes bytes of bits
    assert arrowdl.to_numpy(frame)["x"].tolist() == [True, False]
    with pytest.raises(BufferError, match="allow_copy=False"):
        arrowdl.from_arrow(frame, copy=False)


def test_copy_of_streams() -> None:
    table = pa.table({"x": pa.chunked_array([[1], [2]])})
    with pytest.raises(BufferError, match="2 chunks"):
        arrowdl.from_arrow(table, copy=False)
    assert len(arrowdl.from_arrow(table, copy=None)) == 2
    assert len(arrowdl.from_arrow(table[:1], copy=False)) == 1
    with pytest.raises(ValueError, match="copy=True"):
        arrowdl.from_arrow(table, copy=True)


# ---------------------------------------------------------------- devices


def on_cuda(data: np.ndarray, **options: Any) -> MadeColumn:
    """Said to be on a GPU: whoever reads it on the host has done wrong."""
    return MadeColumn(data, device=CUDA, **options)


def test_device_memory_is_shared_by_dlpack() -> None:
    codes = on_cuda(np.array([0, 1], "int8"), null=(USE_SENTINEL, -1), null_count=0)
    codes.dtype = (CATEGORICAL, *codes.dtype[1:])
    strings = on_cuda(
        np.frombuffer(b"abc", "uint8"), dtype=(STRING, 8, "u", "="), size=2,
        offsets=np.array([0, 1, 3], "int32"),
    )  # fmt: skip
    codes.categorical = {"is_ordered": False, "is_dictionary": True, "categories": strings}
    columns = {
        "number": on_cuda(np.arange(2, dtype="f4"), null=(USE_NAN, None), null_count=0),
        "bits": on_cuda(np.arange(2), null=(USE_BITMASK, 0), validity=np.array([1], "uint8")),
        "string": strings,
        "code": codes,
    }
    array = arrowdl.from_arrow(MadeFrame(columns), copy=False)
    assert array.device == CUDA
    for name in ("number", "bits", "string", "code"):
        column = columns[name]
        assert array.field(name).device == CUDA
        assert column.buffers["data"][0].reads == 0
    assert array.field("number").__dlpack_device__() == CUDA
    assert data_of(array.field("number")) == columns["number"].buffers["data"][0].data.ctypes.data
    assert array.field("code").dictionary.type == "string"


@pytest.mark.parametrize("null_count", [1, None])
@pytest.mark.parametrize("how", [how for how in with_nulls() if how != "bits"])
def test_nulls_that_the_host_would_have_to_read(how: str, null_count: int | None) -> None:
    model = with_nulls()[how]
    validity = model.buffers["validity"]
    column = on_cuda(
        model.buffers["data"][0].data,
        offset=1,
        null=model.describe_null,
        null_count=null_count,
        validity=None if validity is None else validity[0].data,
    )
    with pytest.raises(BufferError, match=r'column "x": its nulls are marked by.*cuda:0'):
        take(column)
    column.null_count = 0
    assert take(column).device == CUDA


def test_an_address_on_a_device_is_not_read() -> None:
    column = on_cuda(np.arange(3), by="ptr")
    with pytest.raises(BufferError, match="on cuda:0 has no working __dlpack__"):
        take(column)
    assert column.buffers["data"][0].reads == 0


def test_pinned_memory_may_be_read_by_its_address() -> None:
    column = MadeColumn(np.arange(3), device=(3, 0), by="ptr")
    array = take(column)
    assert array.device.name == "cuda_host"
    assert data_of(array) == column.buffers["data"][0].data.ctypes.data


def test_buffers_on_several_devices() -> None:
    column = on_cuda(np.arange(3), null=(USE_BITMASK, 0))
    column.buffers["validity"] = (MadeBuffer(np.array([7], "uint8")), BITS)
    with pytest.raises(ValueError, match="are on cpu:0 and on cuda:0"):
        take(column)


# ---------------------------------------------------------------- what is refused


def changed(**parts: Any) -> MadeColumn:
    column = MadeColumn(np.arange(4))
    for name, value in parts.items():
        setattr(column, name, value)
    return column


@pytest.mark.parametrize(
    ("column", "error", "says"),
    [
        (changed(dtype=(INT, 64, "l", ">")), BufferError, "byte order is '>'"),
        (changed(dtype=(INT, 128, "l", "=")), BufferError, "supported are int"),
        (changed(dtype=(24, 64, "z", "=")), BufferError, "supported are int"),
        (changed(dtype=(DATETIME, 64, "tdD", "=")), BufferError, "64 bits in the format 'tdD'"),
        (changed(dtype=(DATETIME, 64, "tiM", "=")), BufferError, "Arrow has none"),
        (changed(dtype=(INT, 32, "i", "=")), ValueError, "tensor of int64"),
        (changed(dtype=(2, 64, "g", "=")), ValueError, "says one dimension of float64"),
        (changed(_size=5), ValueError, "has 32 bytes; 5 rows from row 0 on need 40"),
        (changed(offset=1, _size=4), ValueError, "need 40"),
        (changed(_size=-1), ValueError, "length -1"),
        (changed(dtype=(STRING, 8, "u", "=")), ValueError, "have no buffer of offsets"),
        (changed(describe_null=(USE_SENTINEL, 2**70)), ValueError, "is not one of int64"),
        (changed(describe_null=(USE_NAN, None)), BufferError, "NaN stands for null in float16"),
        (changed(describe_null=(9, None)), ValueError, "describe_null is"),
        (changed(describe_null=(USE_BITMASK, 0), null_count=1), ValueError, "no validity buffer"),
        (changed(dtype=(CATEGORICAL, 64, "l", "=")), TypeError, "not categorical"),
    ],
)
def test_what_a_column_cannot_be(column: MadeColumn, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as raised:
        take(column)
    assert str(raised.value).startswith('column "x": ')


def test_a_mask_of_another_width() -> None:
    column = with_nulls()["bits"]
    column.describe_null = (USE_BYTEMASK, 0)
    with pytest.raises(ValueError, match="USE_BYTEMASK, and its mask has 1 bits"):
        take(column)


def test_strings_whose_offsets_leave_their_bytes() -> None:
    for offsets in [0, 4], [2, 1], [-1, 1]:
        column = MadeColumn(
            np.frombuffer(b"abc", "uint8"), dtype=(STRING, 8, "u", "="), size=1,
            offsets=np.array(offsets),
        )  # fmt: skip
        with pytest.raises(ValueError, match='column "x"'):
            take(column)


def test_categories_without_a_dictionary() -> None:
    column = MadeColumn(np.arange(2), categorical=(False, False, None))
    column.dtype = (CATEGORICAL, *column.dtype[1:])
    with pytest.raises(BufferError, match="categorical without a dictionary"):
        take(column)


def test_names_and_shapes() -> None:
    with pytest.raises(TypeError, match="the column 3"):
        arrowdl.from_arrow(MadeFrame({3: MadeColumn(np.arange(2))}))  # type: ignore[dict-item]
    with pytest.raises(ValueError, match='field "y" has 3 rows'):
        arrowdl.from_arrow(
            MadeFrame({"x": MadeColumn(np.arange(2)), "y": MadeColumn(np.arange(3))})
        )
    assert len(arrowdl.from_arrow(MadeFrame({}))) == 0
    matrix = MadeColumn(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        take(matrix)


def test_a_frame_without_arrow_is_named_among_what_is_supported() -> None:
    with pytest.raises(TypeError, match="and __dataframe__"):
        arrowdl.from_arrow(object())


def test_metadata_is_not_left_behind_silently() -> None:
    frame = pd.DataFrame({"x": [1, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arrowdl.from_arrow(OnlyDataFrame(frame))
    with pytest.warns(UserWarning, match=r"is dropped: pandas\.index.*reset_index"):
        arrowdl.from_arrow(OnlyDataFrame(frame.set_index(pd.Index(["a", "b"]))))
    with pytest.warns(UserWarning, match=r"is dropped: library\.key"):
        arrowdl.from_arrow(MadeFrame({"x": MadeColumn(np.arange(1))}, metadata={"library.key": 1}))


# ---------------------------------------------------------------- life


@pytest.mark.parametrize("by", ["dlpack", "ptr"])
def test_the_buffers_live_as_long_as_the_array(by: str) -> None:
    data = np.arange(1000)
    column = MadeColumn(data, null=(USE_BITMASK, 0), validity=np.full(125, 255, "uint8"), by=by)
    array = take(column)
    gone = [weakref.ref(buffer[0].data) for buffer in column.buffers.values() if buffer]
    tensor = torch.from_dlpack(array)
    del data, column, array
    gc.collect()
    assert tensor.tolist() == list(range(1000))
    assert all(ref() is not None for ref in gone)
    del tensor
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_bits_of_bool_with_no_rows() -> None:
    bits = MadeColumn(np.zeros(0, "uint8"), dtype=(BOOL, 1, "b", "="), size=0)
    assert len(take(bits)) == 0
