"""Structs as tables: what a DeviceArray of a struct gives to consumers of Arrow streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arro3.core
import arrowdl
import duckdb
import nanoarrow as na
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.capsules import capsule_name

TABLE = pa.table({"a": [1, None, 3, 4, 5], "b": [True, None, False, None, True]})


def with_a_null_row(row: int = 1) -> pa.StructArray:
    """The rows of TABLE with other values under a null one."""
    columns = [pa.array([1, 22, 3, 4, 5]), pa.array([True, True, False, None, True])]
    mask = pa.array([i == row for i in range(5)])
    return pa.StructArray.from_arrays(columns, names=["a", "b"], mask=mask)


def take_with_pandas(array: Any) -> dict[str, list[Any]]:
    frame = pd.DataFrame.from_arrow(array)
    return {name: [None if pd.isna(x) else x for x in frame[name]] for name in frame.columns}


# What makes columns of a struct.
CONSUMERS: dict[str, Callable[[Any], dict[str, list[Any]]]] = {
    "RecordBatchReader.from_stream": lambda x: (
        pa.RecordBatchReader.from_stream(x).read_all().to_pydict()
    ),
    "pa.table": lambda x: pa.table(x).to_pydict(),
    "pa.record_batch": lambda x: pa.record_batch(x).to_pydict(),
    "pl.scan_arrow_c_stream": lambda x: (
        pl.scan_arrow_c_stream(x).collect().to_dict(as_series=False)
    ),
    "pl.DataFrame": lambda x: pl.DataFrame(x).to_dict(as_series=False),
    "duckdb.from_arrow": lambda x: {
        name: list(values)
        for name, values in zip(
            "ab", zip(*duckdb.from_arrow(x).fetchall(), strict=True), strict=False
        )
    },
    "pandas.DataFrame.from_arrow": take_with_pandas,
    "arro3.RecordBatch": lambda x: pa.record_batch(
        arro3.core.RecordBatch.from_arrow(x)
    ).to_pydict(),
    "arro3.Table": lambda x: pa.table(arro3.core.Table.from_arrow(x)).to_pydict(),
    "arro3.RecordBatchReader": lambda x: pa.table(
        arro3.core.RecordBatchReader.from_arrow(x)
    ).to_pydict(),
}

# What makes rows of it.
ROWS: dict[str, Callable[[Any], list[Any]]] = {
    "pa.array": lambda x: pa.array(x).to_pylist(),
    "pa.chunked_array": lambda x: pa.chunked_array(x).to_pylist(),
    "pl.Series": lambda x: pl.Series(x).to_list(),
    "arro3.Array": lambda x: pa.array(arro3.core.Array.from_arrow(x)).to_pylist(),
    "arro3.ChunkedArray": lambda x: pa.chunked_array(
        arro3.core.ChunkedArray.from_arrow(x)
    ).to_pylist(),
    "na.Array": lambda x: na.Array(x).to_pylist(),
    "na.ArrayStream": lambda x: na.ArrayStream(x).to_pylist(),
}

everywhere = pytest.mark.parametrize("take", CONSUMERS.values(), ids=CONSUMERS.keys())


@everywhere
@pytest.mark.parametrize("start", [0, 1, 3])
def test_every_consumer_of_tables_takes_a_struct(take: Any, start: int) -> None:
    array = arrowdl.from_arrow(TABLE)[start:]
    assert take(array) == TABLE.slice(start).to_pydict()
    assert take(array) == TABLE.slice(start).to_pydict(), "the array stays as it is"


@everywhere
@pytest.mark.parametrize("window", [(2, 5), (3, 4), (0, 1)])
def test_a_slice_without_the_null_rows_is_a_table(take: Any, window: tuple[int, int]) -> None:
    rows = slice(*window)
    array = arrowdl.from_arrow(with_a_null_row())[rows]
    wanted = with_a_null_row()[rows]
    assert take(array) == {name: wanted.field(name).to_pylist() for name in "ab"}


@pytest.mark.parametrize("take", ROWS.values(), ids=ROWS.keys())
def test_every_consumer_of_arrays_takes_a_struct(take: Any) -> None:
    for rows in (slice(0, 5), slice(2, 5), slice(1, 2), slice(1, 1)):
        array = arrowdl.from_arrow(with_a_null_row())
        assert take(array[rows]) == with_a_null_row()[rows].to_pylist()


def test_what_a_slice_without_null_rows_exports_is_trimmed() -> None:
    array = arrowdl.from_arrow(with_a_null_row())[2:5]
    view = na.c_array(array)
    assert (view.offset, view.null_count, view.length) == (0, 0, 3)
    assert view.buffers[0] == 0
    assert [(child.offset, child.length) for child in view.children] == [(2, 3), (2, 3)]
    with_nulls = na.c_array(arrowdl.from_arrow(with_a_null_row())[1:3])
    assert (with_nulls.offset, with_nulls.length) == (1, 2)


@pytest.mark.parametrize("first", range(9))
def test_bits_are_looked_at_from_any_offset(first: int) -> None:
    mask = pa.array([i in (first, first + 12) for i in range(40)])
    struct = pa.StructArray.from_arrays([pa.array(range(40))], names=["a"], mask=mask)
    array = arrowdl.from_arrow(struct)
    inside = array[first + 1 : first + 12]
    assert pa.record_batch(inside).column(0).to_pylist() == list(range(first + 1, first + 12))
    assert pa.record_batch(array[:first]).num_rows == first
    for rows in (slice(first, first + 2), slice(first + 1, first + 13)):
        with pytest.raises(pa.ArrowInvalid, match="null count"):
            pa.record_batch(array[rows])


def test_null_rows_are_refused_as_tables_where_the_consumer_looks() -> None:
    array = arrowdl.from_arrow(with_a_null_row())
    with pytest.raises(pa.ArrowInvalid, match="null count"):
        pa.table(array)
    with pytest.raises(ValueError, match="null count"):
        arro3.core.Table.from_arrow(array)


@pytest.mark.parametrize("of", [lambda x: x, arrowdl.from_arrow_stream], ids=["array", "stream"])
def test_null_rows_are_null_in_the_columns_where_it_does_not(of: Any) -> None:
    """polars 2.1 leaves the struct's bitmap aside where it scans a stream."""
    wanted = {"a": [1, None, 3, 4, 5], "b": [True, None, False, None, True]}
    for offset in range(3):
        array = arrowdl.from_arrow(with_a_null_row())[offset:]
        taken = pl.scan_arrow_c_stream(of(array)).collect().to_dict(as_series=False)
        assert taken == {name: values[offset:] for name, values in wanted.items()}


def test_other_arrays_are_no_streams() -> None:
    array = arrowdl.from_arrow(TABLE)["a"]
    assert not hasattr(array, "__arrow_c_stream__")
    assert not hasattr(array, "__arrow_c_device_stream__")
    with pytest.raises(AttributeError, match="__arrow_c_array__"):
        array.__arrow_c_stream__  # noqa: B018
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        pa.RecordBatchReader.from_stream(array)
    assert pl.Series(array).to_list() == [1, None, 3, 4, 5]


def test_the_methods_of_streams_take_what_the_protocol_says() -> None:
    array = arrowdl.from_arrow(TABLE)
    assert capsule_name(array.__arrow_c_stream__()) == "arrow_array_stream"
    assert capsule_name(array.__arrow_c_stream__(requested_schema=None)) == "arrow_array_stream"
    device = array.__arrow_c_device_stream__(None, future=None)
    assert capsule_name(device) == "arrow_device_array_stream"
    assert arrowdl.from_arrow(device).field_names == ["a", "b"]
    with pytest.raises(NotImplementedError, match="future"):
        array.__arrow_c_device_stream__(future=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'future'"):
        array.__arrow_c_stream__(future=None)
    with pytest.raises(TypeError, match="several values"):
        array.__arrow_c_stream__(None, requested_schema=None)


def test_a_stream_outlives_its_array() -> None:
    array = arrowdl.from_arrow(TABLE)
    bound = array.__arrow_c_stream__
    stream = bound()
    del array, bound
    assert arrowdl.from_arrow(stream)["a"].null_count == 1
    released = arrowdl.from_arrow(TABLE)
    bound = released.__arrow_c_stream__
    released.release()
    with pytest.raises(ValueError, match="released"):
        bound()
