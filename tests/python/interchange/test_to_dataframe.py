"""Struct arrays by the dataframe interchange protocol, read by libraries and by hand."""

from __future__ import annotations

import gc
from typing import Any

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.interchange
import pytest
import torch
from arrowdl._interchange.export import DataFrame
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema
from helpers.frames import (
    BOOL,
    CATEGORICAL,
    DATETIME,
    FLOAT,
    INT,
    NON_NULLABLE,
    STRING,
    UINT,
    USE_BITMASK,
    OnlyDataFrame,
)
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [
    pytest.mark.filterwarnings("ignore:The Dataframe Interchange Protocol is deprecated"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),  # pandas 3.1's own use
]

# The frame of RAPIDS' article on the protocol in cuDF.
CUDF = {
    "int": pa.array([1000, 2, 300, None]),
    "uint8": pa.array([0, 128, 255, 25], pa.uint8()),
    "float": pa.array([None, 2.5, None, 10]),
    "bool": pa.array([True, None, False, True]),
    "string": pa.array(["hello", "", None, "always TRUE."]),
    "categorical": pa.array(["a", "b", "a", "a"]).dictionary_encode(),
}


def cudf_frame() -> arrowdl.DeviceArray:
    return arrowdl.from_arrow(pa.record_batch(CUDF))


def frame_of(**columns: Any) -> Any:
    return arrowdl.from_arrow(pa.record_batch(columns)).__dataframe__()


def column_of(array: Any) -> Any:
    return frame_of(x=array).get_column(0)


def memory_of(buffer: Any, dtype: Any) -> np.ndarray:
    """The buffer as NumPy reads it by DLPack, which is to be where `ptr` says."""
    assert buffer.__dlpack_device__() == (1, 0)
    read = np.from_dlpack(buffer)
    assert read.nbytes == buffer.bufsize
    assert read.ctypes.data == buffer.ptr or not read.nbytes
    assert read.dtype == dtype
    return read


# ---------------------------------------------------------------- libraries


def test_pyarrow_reads_it() -> None:
    table = pyarrow.interchange.from_dataframe(cudf_frame())
    for name, column in CUDF.items():
        assert table[name].combine_chunks().to_pylist() == column.to_pylist(), name


def test_pandas_reads_it() -> None:
    frame = pd.api.interchange.from_dataframe(OnlyDataFrame(cudf_frame()))
    assert frame["int"].tolist()[:3] == [1000, 2, 300]
    assert frame["int"].isna().tolist() == [False, False, False, True]
    assert frame["uint8"].tolist() == [0, 128, 255, 25]
    assert frame["uint8"].dtype == "uint8"
    assert frame["float"].isna().tolist() == [True, False, True, False]
    assert frame["float"].dropna().tolist() == [2.5, 10]
    assert frame["string"].isna().tolist() == [False, False, True, False]
    assert frame["string"].dropna().tolist() == ["hello", "", "always TRUE."]
    assert frame["categorical"].tolist() == ["a", "b", "a", "a"]
    assert isinstance(frame["categorical"].dtype, pd.CategoricalDtype)


def test_pandas_reads_times_and_numbers_as_categories() -> None:
    batch = pa.record_batch(
        {
            "t": pa.array([0, 1, None], pa.timestamp("s", "Asia/Tokyo")),
            "c": pa.array([30, None, 10]).dictionary_encode(),
            "b": pa.array([True, False, True]),
        }
    )
    frame = pd.api.interchange.from_dataframe(OnlyDataFrame(arrowdl.from_arrow(batch)))
    assert str(frame["t"].dtype) == "datetime64[s, Asia/Tokyo]"
    assert frame["t"].isna().tolist() == [False, False, True]
    assert frame["c"].isna().tolist() == [False, True, False]
    assert frame["c"].dropna().tolist() == [30, 10]
    assert frame["b"].tolist() == [True, False, True]


@pytest.mark.parametrize("start", [0, 1, 9])
def test_slices_are_read_where_they_start(start: int) -> None:
    batch = pa.record_batch(
        {
            "n": pa.array([None if i % 3 == 0 else i for i in range(20)]),
            "b": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(20)]),
            "s": pa.array([None if i % 4 == 0 else str(i) * i for i in range(20)]),
        }
    )
    array = arrowdl.from_arrow(batch)[start : start + 7]
    table = pyarrow.interchange.from_dataframe(OnlyDataFrame(array))
    assert table.to_pylist() == batch[start : start + 7].to_pylist()
    assert arrowdl.from_arrow(OnlyDataFrame(array)).null_count == 0
    assert pa.array(arrowdl.from_arrow(OnlyDataFrame(array))).to_pylist() == table.to_pylist()


def test_there_and_back_is_the_same_memory() -> None:
    array = cudf_frame()
    back = arrowdl.from_arrow(OnlyDataFrame(array), copy=False)
    assert pa.array(back).to_pylist() == pa.array(array).to_pylist()
    for name in CUDF:
        ours, theirs = pa.array(array.field(name)), pa.array(back.field(name))
        assert ours.type == theirs.type
        for mine, its in zip(ours.buffers(), theirs.buffers(), strict=True):
            assert (mine is None) == (its is None)
            assert mine is None or mine.address == its.address


def test_what_pandas_writes_is_not_ours() -> None:
    """pandas 3.1 writes NaN under the nulls of a float column, into the memory that it was lent:
    what lies under a null has no meaning, and nulls and values stay as they are."""
    batch = pa.record_batch({"x": pa.array([1.0, None, 3.0])})
    pd.api.interchange.from_dataframe(OnlyDataFrame(arrowdl.from_arrow(batch)))
    assert batch["x"].to_pylist() == [1.0, None, 3.0]


def test_pandas_takes_null_bools_for_false() -> None:
    """pandas 3.1 does so with every producer: its own bool array has no place for a null."""
    batch = pa.record_batch({"x": pa.array([True, None, False])})
    for frame in arrowdl.from_arrow(batch), batch:
        read = pd.api.interchange.from_dataframe(OnlyDataFrame(frame))
        assert read["x"].tolist() == [True, False, False]
    assert batch["x"].to_pylist() == [True, None, False]


def columns_of(types: list[pa.DataType]) -> st.SearchStrategy[pa.Table]:
    """Tables of chunks that are slices, with nulls here and there."""
    values = {
        pa.int16(): st.integers(-(2**15), 2**15 - 1),
        pa.uint64(): st.integers(0, 2**64 - 1),
        pa.float32(): st.floats(width=32, allow_nan=False),
        pa.bool_(): st.booleans(),
        pa.string(): st.text(max_size=4),
        pa.large_string(): st.text(max_size=4),
        pa.string_view(): st.text(max_size=20),
        pa.timestamp("ms", "UTC"): st.integers(0, 2**40),
        pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b", ""]),
    }

    @st.composite
    def draw_table(draw: Any) -> pa.Table:
        rows = draw(st.integers(0, 20))
        columns = {}
        for i, kind in enumerate(types):
            column = draw(st.lists(st.none() | values[kind], min_size=rows, max_size=rows))
            is_dictionary = pa.types.is_dictionary(kind)
            array = pa.array(column, pa.string() if is_dictionary else kind)
            columns[str(i)] = array.cast(kind) if is_dictionary else array
        start, stop = sorted(draw(st.tuples(st.integers(0, rows), st.integers(0, rows))))
        table = pa.table(columns)
        return pa.concat_tables([table[start:stop], table[stop:]])

    return draw_table()


TYPES = [
    pa.int16(), pa.uint64(), pa.float32(), pa.bool_(), pa.string(), pa.large_string(),
    pa.string_view(), pa.timestamp("ms", "UTC"), pa.dictionary(pa.int8(), pa.string()),
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(columns_of(TYPES))
def test_any_table_comes_back_through_the_protocol(table: pa.Table) -> None:
    chunks = [arrowdl.from_arrow(batch) for batch in table.to_batches()] or [
        arrowdl.from_arrow(table)
    ]
    frame = DataFrame(chunks)
    assert pa.array(arrowdl.from_arrow(OnlyDataFrame(frame))).to_pylist() == table.to_pylist()
    assert pyarrow.interchange.from_dataframe(frame).to_pylist() == table.to_pylist()


# ---------------------------------------------------------------- description


@pytest.mark.parametrize(
    ("type", "dtype"),
    [
        (pa.int8(), (INT, 8, "c", "=")),
        (pa.int16(), (INT, 16, "s", "=")),
        (pa.int64(), (INT, 64, "l", "=")),
        (pa.uint16(), (UINT, 16, "S", "=")),
        (pa.uint64(), (UINT, 64, "L", "=")),
        (pa.float16(), (FLOAT, 16, "e", "=")),
        (pa.float64(), (FLOAT, 64, "g", "=")),
        (pa.bool_(), (BOOL, 1, "b", "=")),
        (pa.string(), (STRING, 8, "u", "=")),
        (pa.large_string(), (STRING, 8, "U", "=")),
        (pa.string_view(), (STRING, 8, "U", "=")),
        (pa.timestamp("us", "UTC"), (DATETIME, 64, "tsu:UTC", "=")),
        (pa.date32(), (DATETIME, 32, "tdD", "=")),
        (pa.date64(), (DATETIME, 64, "tdm", "=")),
        (pa.time32("s"), (DATETIME, 32, "tts", "=")),
        (pa.duration("ns"), (DATETIME, 64, "tDn", "=")),
        (pa.dictionary(pa.int16(), pa.string()), (CATEGORICAL, 16, "s", "=")),
    ],
)
def test_dtypes(type: pa.DataType, dtype: tuple[int, int, str, str]) -> None:
    column = column_of(pa.array([], type))
    assert column.dtype == dtype
    assert column.describe_null == (NON_NULLABLE, None)
    assert (column.size(), column.offset, column.null_count, column.num_chunks()) == (0, 0, 0, 1)
    buffers = column.get_buffers()
    assert set(buffers) == {"data", "validity", "offsets"}
    assert buffers["validity"] is None
    assert (buffers["offsets"] is None) == (dtype[0] != STRING)


def test_buffers() -> None:
    column = column_of(pa.array(["a", None, "bcd"]))
    buffers = column.get_buffers()
    assert buffers["data"][1] == (STRING, 8, "u", "=")
    assert buffers["offsets"][1] == (INT, 32, "i", "=")
    assert buffers["validity"][1] == (BOOL, 1, "b", "=")
    assert memory_of(buffers["data"][0], "uint8").tobytes() == b"abcd"
    assert memory_of(buffers["offsets"][0], "int32").tolist() == [0, 1, 1, 4]
    assert memory_of(buffers["validity"][0], "uint8")[0] & 7 == 0b101
    assert column.describe_null == (USE_BITMASK, 0)
    assert column.null_count == 1
    codes = column_of(pa.array(["a", "b"]).dictionary_encode()).get_buffers()["data"]
    assert codes[1] == (INT, 32, "i", "=")
    assert memory_of(codes[0], "int32").tolist() == [0, 1]
    times = column_of(pa.array([1], pa.timestamp("s"))).get_buffers()["data"]
    assert times[1] == (INT, 64, "l", "=")
    assert memory_of(times[0], "int64").tolist() == [1]


def test_bool8_is_bytes_of_0_and_1() -> None:
    data = np.array([0, 1, 2], "int8")
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array(data))
    frame = arrowdl.from_arrow(pa.record_batch({"x": array}))
    (buffer, dtype) = frame.__dataframe__().get_column(0).get_buffers()["data"]
    assert dtype == (BOOL, 8, "b", "=")
    assert memory_of(buffer, "bool").view("uint8").tolist() == [0, 1, 1]
    column = frame.__dataframe__(allow_copy=False).get_column(0)
    with pytest.raises(BufferError, match="other than 0 and 1"):
        column.get_buffers()
    shared = frame[:2].__dataframe__(allow_copy=False).get_column(0).get_buffers()["data"][0]
    assert shared.ptr == pa.array(frame.field("x")).storage.buffers()[1].address


def test_string_views_are_gathered() -> None:
    views = pa.array(["a", None, "more than twelve bytes"], pa.string_view())
    frame = arrowdl.from_arrow(pa.record_batch({"x": views}))
    back = arrowdl.from_arrow(OnlyDataFrame(frame)).field("x")
    assert pa.array(back).to_pylist() == views.to_pylist()
    assert frame.__dataframe__().get_column(0).null_count == 1
    with pytest.raises(BufferError, match="string views are not contiguous"):
        frame.__dataframe__(allow_copy=False).get_column(0)


def test_categories() -> None:
    ordered = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], pa.int8()), pa.array(["lo", "hi"]), ordered=True
    )
    column = column_of(ordered)
    description = column.describe_categorical
    assert type(description) is dict
    assert description["is_ordered"] is True
    assert description["is_dictionary"] is True
    assert description["categories"].dtype == (STRING, 8, "u", "=")
    assert description["categories"]._col == ["lo", "hi"]
    with pytest.raises(TypeError, match="not categorical"):
        description["categories"].describe_categorical  # noqa: B018
    times = column_of(pa.array([1], pa.timestamp("s")).dictionary_encode())
    assert not hasattr(times.describe_categorical["categories"], "_col")


def test_metadata() -> None:
    field = pa.field("x", pa.string(), metadata={"unit": "m"})
    schema = pa.schema([field], metadata={"owner": "me"})
    frame = arrowdl.from_arrow(pa.record_batch([pa.array(["a"])], schema=schema)).__dataframe__()
    assert frame.metadata == {"arrowdl.owner": "me"}
    assert frame.get_column(0).metadata == {"arrowdl.unit": "m"}


# ---------------------------------------------------------------- frames


def test_columns() -> None:
    frame = frame_of(a=pa.array([1, 2]), b=pa.array([3, 4]), c=pa.array([5, 6]))
    assert list(frame.column_names()) == ["a", "b", "c"]
    assert (frame.num_columns(), frame.num_rows(), frame.num_chunks()) == (3, 2, 1)
    assert len(list(frame.get_columns())) == 3
    some = frame.select_columns([2, 0])
    assert some.column_names() == ["c", "a"]
    assert some.select_columns_by_name(["a"]).column_names() == ["a"]
    data = some.get_column_by_name("c").get_buffers()["data"][0]
    assert memory_of(data, "int64").tolist() == [5, 6]
    assert pa.array(arrowdl.from_arrow(some)).to_pylist() == [{"c": 5, "a": 1}, {"c": 6, "a": 2}]
    with pytest.raises(ValueError, match='no column is named "z"'):
        frame.get_column_by_name("z")
    with pytest.raises(IndexError):
        frame.get_column(3)


def test_a_name_of_several_columns() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    frame = arrowdl.from_arrow(batch).__dataframe__()
    assert frame.column_names() == ["a", "a"]
    with pytest.raises(ValueError, match='several columns are named "a"'):
        frame.get_column_by_name("a")


def test_chunks() -> None:
    array = arrowdl.from_arrow(pa.record_batch({"x": pa.array(range(5))}))
    frame = DataFrame([array[:2], array[2:]])
    assert (frame.num_chunks(), frame.num_rows()) == (2, 5)
    assert [chunk.num_rows() for chunk in frame.get_chunks()] == [2, 3]
    assert [chunk.num_rows() for chunk in frame.get_chunks(4)] == [1, 1, 2, 1]
    assert [chunk.num_rows() for chunk in frame.get_chunks(8)] == [1, 1, 0, 0, 1, 1, 1, 0]
    for wrong in 3, 0, -2:
        with pytest.raises(ValueError, match="not a multiple of the 2 chunks"):
            list(frame.get_chunks(wrong))
    column = frame.get_column(0)
    assert (column.num_chunks(), column.size(), column.null_count) == (2, 5, 0)
    assert [chunk.size() for chunk in column.get_chunks()] == [2, 3]
    table = pyarrow.interchange.from_dataframe(frame)
    assert table["x"].num_chunks == 2
    assert table["x"].to_pylist() == [0, 1, 2, 3, 4]
    assert memory_of(column.get_buffers()["data"][0], "int64").tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(BufferError, match="2 chunks are not contiguous"):
        frame.__dataframe__(allow_copy=False).get_column(0).get_buffers()
    read = pd.api.interchange.from_dataframe(OnlyDataFrame(frame))
    assert read["x"].tolist() == [0, 1, 2, 3, 4]


def test_nulls_of_rows_are_nulls_of_columns() -> None:
    rows = pa.StructArray.from_arrays(
        [pa.array([1, None, 3])], names=["x"], mask=pa.array([False, False, True])
    )
    array = arrowdl.from_arrow(rows)
    assert array.__dataframe__().get_column(0).null_count == 2
    with pytest.raises(BufferError, match="struct has nulls"):
        array.__dataframe__(allow_copy=False)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([b"a"]),
        pa.array([None]),
        pa.array([1], pa.decimal128(3)),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([[1]], pa.list_(pa.int8(), 1)),
    ],
    ids=lambda array: str(array.type),
)
def test_types_that_the_protocol_has_not(array: pa.Array) -> None:
    with pytest.raises(BufferError, match=r'column "x" is .* select other columns'):
        column_of(array)
    frame = frame_of(x=array, y=pa.array([2]))
    assert frame.select_columns([1]).get_column(0).size() == 1


def test_extension_types_over_integers_are_not_integers() -> None:
    tensor = torch.ones(2, dtype=torch.float8_e4m3fn)
    frame = arrowdl.to_arrow_device({"x": tensor}).__dataframe__()
    with pytest.raises(BufferError, match='column "x" is arrowdl'):
        frame.get_column(0)


def test_what_is_no_frame() -> None:
    with pytest.raises(TypeError, match="needs a struct array, this is int64"):
        arrowdl.to_arrow_device(np.arange(3)).__dataframe__()
    with pytest.raises(BufferError, match="nan_as_null=True"):
        cudf_frame().__dataframe__(nan_as_null=True)
    with pytest.raises(BufferError, match="nan_as_null=True"):
        cudf_frame().__dataframe__(True)
    assert cudf_frame().__dataframe__(False, False)._allow_copy is False
    with pytest.raises(TypeError, match="unexpected keyword"):
        cudf_frame().__dataframe__(allow_copies=True)


# ---------------------------------------------------------------- devices


def on_cuda() -> tuple[arrowdl.DeviceArray, np.ndarray]:
    """A struct said to be on a GPU; its strings end nowhere that the host may read."""
    data = np.arange(3, dtype="float32")
    children = [
        MadeArray(3, [None, data], null_count=0),
        MadeArray(3, [4096, data], null_count=-1),
        MadeArray(3, [None, 4096, 8192]),
    ]
    schemas = [MadeSchema("f", "x"), MadeSchema("f", "nulls"), MadeSchema("u", "s")]
    schema = MadeSchema("+s", children=schemas)
    made = MadeDeviceArray(MadeArray(3, [None], children=children), (2, 0))
    return arrowdl.from_arrow((schema.capsule(), made.capsule())), data


def test_device_memory_by_dlpack() -> None:
    array, data = on_cuda()
    column = array.__dataframe__(allow_copy=False).get_column(0)
    buffer = column.get_buffers()["data"][0]
    assert buffer.__dlpack_device__() == (2, 0)
    assert buffer.bufsize == 12
    back = arrowdl.to_arrow_device(buffer)
    assert (back.device.name, back.dtype) == ("cuda", "float32")
    assert arrowdl._core.address_of(back) == data.ctypes.data
    with pytest.raises(BufferError, match=r"on cuda:0, which the host cannot read"):
        buffer.ptr  # noqa: B018


def test_device_memory_without_a_runtime_has_no_address() -> None:
    array, _ = on_cuda()
    buffer = array.__dataframe__().get_column(0).get_buffers()["data"][0]
    with pytest.raises(BufferError, match="cuda"):
        buffer.ptr  # noqa: B018


def test_device_nulls_are_not_counted() -> None:
    array, _ = on_cuda()
    column = array.__dataframe__(allow_copy=False).get_column(1)
    assert column.null_count is None
    assert column.describe_null == (USE_BITMASK, 0)
    assert column.get_buffers()["validity"][0].__dlpack_device__() == (2, 0)


def test_device_strings_need_a_runtime_for_their_size() -> None:
    array, _ = on_cuda()
    with pytest.raises(BufferError, match="cuda"):
        array.__dataframe__().get_column(2).get_buffers()


def test_numbers_on_a_device_come_back() -> None:
    array, data = on_cuda()
    numbers = array.__dataframe__().select_columns([0, 1])
    back = arrowdl.from_arrow(OnlyDataFrame(numbers), copy=False)
    assert back.device.name == "cuda"
    assert back.field("nulls").validity is not None
    assert arrowdl._core.address_of(back.field("x")) == data.ctypes.data


# ---------------------------------------------------------------- life


def test_a_buffer_keeps_its_memory() -> None:
    data = torch.arange(1000)
    buffer = (
        arrowdl.to_arrow_device({"x": data}).__dataframe__().get_column(0).get_buffers()["data"][0]
    )
    address = data.data_ptr()
    del data
    gc.collect()
    assert buffer.ptr == address
    assert torch.from_dlpack(buffer).tolist() == list(range(1000))


def test_pandas_keeps_the_memory() -> None:
    frame = pd.api.interchange.from_dataframe(
        OnlyDataFrame(arrowdl.to_arrow_device({"x": torch.arange(1000)}))
    )
    gc.collect()
    assert frame["x"].sum() == 499500
    assert arrowdl._core.live_objects() > 0


def test_a_stream_is_a_frame_of_its_arrays() -> None:
    table = pa.table({"x": [1, None, 3, 4], "s": ["a", "", None, "d"]})
    stream = arrowdl.from_arrow_stream(table).rebatch(3)
    frame = stream.__dataframe__()
    assert frame.num_chunks() == 2
    with pytest.raises(ValueError, match="can be read once"):
        next(stream)
    read = pa.interchange.from_dataframe(frame)
    assert read.to_pydict() == table.to_pydict()
    assert arrowdl.from_arrow_stream(table[:0]).__dataframe__().num_rows() == 0
    with pytest.raises(TypeError, match="a frame needs a struct array"):
        arrowdl.from_arrow_stream(pa.chunked_array([[1], [2]])).__dataframe__()
