"""Arrow in, by every door and from every library."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import arro3.core
import arrowdl
import cffi
import duckdb
import nanoarrow as na
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.arrays import address_of, data_address
from helpers.arrow import (
    ArrowArray,
    ArrowDeviceArray,
    ArrowSchema,
    MadeArray,
    MadeSchema,
    list_releases,
)
from helpers.capsules import capsule_address, capsule_name
from helpers.processes import run_python
from nanoarrow.device import c_device_array

# ---------------------------------------------------------------- producers

INTS = pa.array([1, 2, 3], pa.int64())
TABLE = pa.table({"a": INTS, "b": pa.array([0.5, 1.5, 2.5])})

ARRAYS = {
    "pyarrow Array": lambda: INTS,
    "pyarrow ChunkedArray": lambda: pa.chunked_array([INTS]),
    "polars Series": lambda: pl.Series([1, 2, 3]),
    "arro3 Array": lambda: arro3.core.Array(INTS),
    "arro3 ChunkedArray": lambda: arro3.core.ChunkedArray([INTS]),
    "nanoarrow Array": lambda: na.Array(INTS),
    "nanoarrow CArray": lambda: na.c_array(INTS),
    "nanoarrow CDeviceArray": lambda: c_device_array(INTS),
    "nanoarrow ArrayStream": lambda: na.ArrayStream(pa.chunked_array([INTS])),
    "nanoarrow CArrayStream": lambda: na.c_array_stream(pa.chunked_array([INTS])),
    "pandas Series": lambda: pd.Series([1, 2, 3]),
    "DeviceArray": lambda: arrowdl.from_arrow(INTS),
}

TABLES = {
    "pyarrow Table": lambda: TABLE,
    "pyarrow RecordBatch": lambda: TABLE.to_batches()[0],
    "pyarrow RecordBatchReader": lambda: TABLE.to_reader(),
    "pyarrow StructArray": lambda: TABLE.to_batches()[0].to_struct_array(),
    "polars DataFrame": lambda: pl.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]}),
    "duckdb relation": lambda: duckdb.from_arrow(TABLE),
    "arro3 Table": lambda: arro3.core.Table(TABLE),
    "arro3 RecordBatch": lambda: arro3.core.RecordBatch(TABLE.to_batches()[0]),
    "arro3 RecordBatchReader": lambda: arro3.core.RecordBatchReader.from_stream(TABLE),
    "nanoarrow ArrayStream": lambda: na.ArrayStream(TABLE),
    "pandas DataFrame": lambda: pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]}),
}


@pytest.mark.parametrize("producer", ARRAYS)
def test_arrays_of_every_library_are_read(producer: str) -> None:
    array = arrowdl.from_arrow(ARRAYS[producer]())
    assert array.type == "int64"
    assert array.device == (1, 0)
    assert arrowdl.to_numpy(array).tolist() == [1, 2, 3]
    assert arrowdl.to_torch(ARRAYS[producer]()).tolist() == [1, 2, 3]


@pytest.mark.parametrize("producer", TABLES)
def test_tables_of_every_library_are_read(producer: str) -> None:
    array = arrowdl.from_arrow(TABLES[producer]())
    assert array.field_names == ["a", "b"]
    tensors = arrowdl.to_torch(TABLES[producer]())
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == TABLE.to_pydict()


IN_PLACE = {
    "Array": INTS,
    "one chunk": pa.chunked_array([INTS]),
    "one chunk among empty ones": pa.chunked_array([INTS[:0], INTS, INTS[3:]]),
    "stream": na.ArrayStream(pa.chunked_array([INTS])),
}


@pytest.mark.parametrize("source", IN_PLACE)
def test_one_chunk_is_read_where_it_lies(source: str) -> None:
    assert address_of(arrowdl.to_numpy(IN_PLACE[source])) == data_address(INTS)


def test_a_polars_array_column_is_read_where_it_lies() -> None:
    values = np.arange(12, dtype="float32").reshape(4, 3)
    series = pl.Series("v", values, dtype=pl.Array(pl.Float32, 3))
    tensor = arrowdl.to_torch(series)
    assert tensor.data_ptr() == data_address(pa.chunked_array(series).chunk(0))
    np.testing.assert_array_equal(tensor.numpy(), values)
    np.testing.assert_array_equal(arrowdl.to_numpy(series[1:3]), values[1:3])


def test_a_polars_array_of_two_dimensions_keeps_them() -> None:
    values = np.arange(24, dtype="int16").reshape(4, 3, 2)
    series = pl.Series("v", values.tolist(), dtype=pl.Array(pl.Int16, (3, 2)))
    np.testing.assert_array_equal(arrowdl.to_numpy(series), values)


def test_strings_and_nulls_of_polars_are_read() -> None:
    frame = pl.DataFrame(
        {"s": ["a", None, "a string of more than twelve bytes"], "x": [1, None, 3]}
    )
    tensors = arrowdl.to_numpy(frame, nulls="mask")
    (values, _), mask = tensors["s"]
    assert values.tobytes() == b"aa string of more than twelve bytes"
    assert mask.tolist() == [True, False, True]
    assert tensors["x"][1].tolist() == [True, False, True]


def test_an_array_of_a_database_is_a_matrix() -> None:
    relation = duckdb.sql("select [i, i + 1]::float[2] v from range(5000) t(i)")
    tensor = arrowdl.to_torch(relation)["v"]
    assert tuple(tensor.shape) == (5000, 2)
    assert tensor[4999].tolist() == [4999, 5000]


def test_the_producer_may_go_once_its_array_is_taken() -> None:
    values = np.arange(1000)
    source = pa.array(values)
    tensor = arrowdl.to_torch(source)
    reference = arrowdl.from_arrow(source)[500:]
    del source
    np.testing.assert_array_equal(tensor.numpy(), values)
    np.testing.assert_array_equal(np.from_dlpack(reference), values[500:])


@pytest.mark.parametrize(
    "thing",
    [1, None, "text", [1, 2], {"a": 1}, np.arange(3), pa.scalar(1), pa.int64(), pa.Array, object()],
    ids=lambda thing: type(thing).__name__,
)
@pytest.mark.parametrize("take", [arrowdl.from_arrow, arrowdl.to_torch, arrowdl.to_numpy])
def test_what_is_no_arrow_array_is_a_type_error(take: Any, thing: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"^{take.__name__}\(\) cannot read .*(pass|make|convert|none)"
    ):
        take(thing)


def test_a_tensor_is_pointed_to_the_other_direction() -> None:
    with pytest.raises(TypeError, match=r"a tensor: to_arrow_device\(\) converts it"):
        arrowdl.from_arrow(np.arange(3))


# ---------------------------------------------------------------- protocols


class Speaks:
    """A producer that speaks some of the protocols and notes which one was used."""

    def __init__(self, *protocols: str) -> None:
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        for protocol in protocols:
            setattr(self, protocol, lambda *a, _name=protocol, **k: self._give(_name, a, k))

    def _give(self, protocol: str, args: Any, keywords: Any) -> Any:
        self.asked.append((protocol, args, keywords))
        source = pa.chunked_array([INTS]) if "stream" in protocol else INTS
        return getattr(source, protocol)()


def test_the_array_protocols_come_before_the_streams_and_the_device_before_the_host() -> None:
    producer = Speaks("__arrow_c_stream__", "__arrow_c_array__", "__arrow_c_device_array__")
    arrowdl.from_arrow(producer)
    producer_of_host = Speaks("__arrow_c_stream__", "__arrow_c_array__")
    arrowdl.from_arrow(producer_of_host)
    assert [asked[0] for asked in producer.asked] == ["__arrow_c_device_array__"]
    assert [asked[0] for asked in producer_of_host.asked] == ["__arrow_c_array__"]


def test_no_schema_is_requested() -> None:
    producer = Speaks("__arrow_c_device_array__")
    arrowdl.from_arrow(producer)
    assert producer.asked == [("__arrow_c_device_array__", (), {})]


@pytest.mark.parametrize("result", [None, 1, (), (1, 2), "text", [1, 2]])
def test_a_producer_that_answers_with_nonsense_is_a_type_error(result: Any) -> None:
    class Confused:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return result

    with pytest.raises(TypeError, match=r"__arrow_c_array__\(\) returned|expected a capsule"):
        arrowdl.from_arrow(Confused())


def test_a_producers_own_error_comes_through() -> None:
    class Refuses:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            raise NotImplementedError("not on a Tuesday")

    with pytest.raises(NotImplementedError, match="not on a Tuesday"):
        arrowdl.from_arrow(Refuses())


def test_raw_capsules_are_taken() -> None:
    schema, array = INTS.__arrow_c_array__()
    assert arrowdl.to_numpy((schema, array)).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.from_arrow((schema, array))


def test_raw_device_capsules_are_taken() -> None:
    pair = INTS.__arrow_c_device_array__()
    assert arrowdl.to_numpy(pair).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.from_arrow(pair)


def test_raw_stream_capsules_are_taken() -> None:
    stream = TABLE.__arrow_c_stream__()
    assert len(arrowdl.from_arrow(stream)) == 3
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.from_arrow(stream)


def test_capsules_in_the_wrong_order_are_a_type_error_and_stay_whole() -> None:
    schema, array = INTS.__arrow_c_array__()
    with pytest.raises(TypeError, match='expected a capsule named "arrow_schema"'):
        arrowdl.from_arrow((array, schema))
    assert len(arrowdl.from_arrow((schema, array))) == 3


def test_an_array_of_which_the_schema_is_gone_stays_whole() -> None:
    schema, array = INTS.__arrow_c_array__()
    other_schema, other_array = INTS.__arrow_c_array__()
    arrowdl.from_arrow((schema, other_array))
    with pytest.raises(ValueError, match=r"arrow_schema.*consumed"):
        arrowdl.from_arrow((schema, array))
    assert len(arrowdl.from_arrow((other_schema, array))) == 3


# ---------------------------------------------------------------- what DeviceArray gives


def test_a_device_array_speaks_arrow_to_every_library() -> None:
    array = arrowdl.from_arrow(TABLE)
    assert pa.table(pa.record_batch(array)).equals(TABLE)
    assert pl.DataFrame(array).to_dict(as_series=False) == TABLE.to_pydict()
    assert duckdb.from_arrow(array).aggregate("sum(b)").fetchall() == [(4.5,)]
    assert arro3.core.RecordBatch.from_arrow(array).num_rows == 3
    assert na.Array(array).to_pylist() == TABLE.to_pylist()
    column = array["a"]
    assert pa.array(column).equals(INTS)
    assert pl.Series(column).to_list() == [1, 2, 3]
    assert na.c_array(column[1:]).offset == 1
    assert c_device_array(column).device_id == -1


@pytest.mark.parametrize("keyword", [True, False])
def test_a_requested_schema_is_cast_to_where_values_fit(keyword: bool) -> None:
    array = arrowdl.from_arrow(INTS)
    wanted = pa.int32().__arrow_c_schema__()
    pair = (
        array.__arrow_c_array__(requested_schema=wanted)
        if keyword
        else array.__arrow_c_array__(wanted)
    )
    assert [capsule_name(capsule) for capsule in pair] == ["arrow_schema", "arrow_array"]
    assert arrowdl.from_arrow(pair).type == "int32"


def test_a_producer_that_ignores_the_requested_schema_is_read_as_what_it_gives() -> None:
    class Stubborn:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return pa.array([1.5]).__arrow_c_array__()

    assert arrowdl.to_numpy(Stubborn()).tolist() == [1.5]


def test_unknown_keywords_of_the_device_protocol_are_not_implemented() -> None:
    array = arrowdl.from_arrow(INTS)
    pair = array.__arrow_c_device_array__(requested_schema=None, future=None)
    assert [capsule_name(capsule) for capsule in pair] == ["arrow_schema", "arrow_device_array"]
    with pytest.raises(NotImplementedError, match="future"):
        array.__arrow_c_device_array__(future=1)


def test_unknown_keywords_of_the_host_protocol_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'future'"):
        arrowdl.from_arrow(INTS).__arrow_c_array__(future=None)
    with pytest.raises(TypeError, match="takes 1 positional"):
        arrowdl.from_arrow(INTS).__arrow_c_array__(None, None)


def test_an_exported_device_array_says_cpu_as_arrow_does() -> None:
    _, capsule = arrowdl.from_arrow(INTS).__arrow_c_device_array__()
    exported = ArrowDeviceArray.from_address(capsule_address(capsule))
    assert (exported.device_type, exported.device_id) == (1, -1)
    assert not exported.sync_event
    assert list(exported.reserved) == [0, 0, 0]
    assert exported.array.length == 3


# ---------------------------------------------------------------- streams


def chunk(array: pa.Array, *lengths: int) -> pa.ChunkedArray:
    """`array` cut into chunks, each of memory of its own behind an offset."""
    chunks = []
    start = 0
    for length in lengths:
        piece = array[start : start + length]
        chunks.append(pa.concat_arrays([array[-1:], piece])[1:])
        start += length
    return pa.chunked_array(chunks, type=array.type)


def dictionaries(index: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], index), ["a", "b"]),
            pa.DictionaryArray.from_arrays(pa.array([2, 1, 0], index), ["c", "b", "d"])[1:],
            pa.DictionaryArray.from_arrays(pa.array([0, 0], index), ["a", "b"]),
        ]
    )


def runs(ends: pa.DataType) -> pa.ChunkedArray:
    first = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], ends), pa.array([1.5, None]))
    second = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 9], ends), pa.array([1.0, 2, 3]))
    return pa.chunked_array([first, second[2:6], first[:0], first[1:2]])


def dense_union(values: list[int], texts: list[str], type_ids: list[int]) -> pa.Array:
    seen = [0, 0]
    offsets = []
    for type_id in type_ids:
        offsets.append(seen[type_id])
        seen[type_id] += 1
    return pa.UnionArray.from_dense(
        pa.array(type_ids, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(values), pa.array(texts)],
    )


SPARSE = pa.UnionArray.from_sparse(
    pa.array([0, 1, 1, 0], pa.int8()), [pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", "d"])]
)
ROWS = [[1, 2], None, [], [3], [4, 5, 6], None, [7]]
TEXTS = ["a", None, "", "a string of more than twelve bytes", "grün", "b" * 100, None]

GATHERED = {
    "int32": chunk(pa.array(range(7), pa.int32()), 3, 0, 4),
    "with nulls": chunk(pa.array([1, None, 3, 4, None, None, 7]), 2, 2, 3),
    "nulls in one chunk": chunk(pa.array([1, 2, 3, 4, 5, None, 7]), 3, 2, 2),
    "bits": chunk(pa.array([True, None, False, True, True, False, None] * 9), 3, 11, 7, 13),
    "fixed_size_binary": chunk(pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)), 1, 3),
    "timestamp": chunk(pa.array([1, 2, 3], pa.timestamp("us", tz="UTC")), 2, 1),
    "decimal": chunk(pa.array([1, 2, None], pa.decimal128(20, 2)), 2, 1),
    "string": chunk(pa.array(TEXTS), 3, 2, 2),
    "large_string": chunk(pa.array(TEXTS, pa.large_string()), 3, 2, 2),
    "string_view": chunk(pa.array(TEXTS, pa.string_view()), 3, 2, 2),
    "binary": chunk(pa.array([t and t.encode() for t in TEXTS], pa.binary()), 3, 4),
    "binary_view": chunk(pa.array([t and t.encode() for t in TEXTS], pa.binary_view()), 3, 4),
    "list": chunk(pa.array(ROWS), 3, 2, 2),
    "large_list": chunk(pa.array(ROWS, pa.large_list(pa.int8())), 3, 2, 2),
    "list_view": chunk(pa.array(ROWS, pa.list_view(pa.int8())), 3, 2, 2),
    "large_list_view": chunk(pa.array(ROWS, pa.large_list_view(pa.int8())), 3, 2, 2),
    "fixed_size_list": chunk(
        pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int16(), 2)), 1, 3
    ),
    "map": chunk(
        pa.array([[(1, "a")], None, [], [(2, "b")]], pa.map_(pa.int8(), pa.string())), 3, 1
    ),
    "struct": chunk(pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]), 2, 1),
    "list of list of string": chunk(pa.array([[["a"], []], None, [], [["b", None]]]), 1, 2, 1),
    "null": pa.chunked_array([pa.nulls(2), pa.nulls(3)]),
    "sparse union": pa.chunked_array([SPARSE, SPARSE[1:3]]),
    "dense union": pa.chunked_array(
        [dense_union([1, 2], ["a"], [0, 1, 0]), dense_union([3], ["b", "c"], [1, 0, 1])[1:]]
    ),
    **{f"dictionary of {index}": dictionaries(index) for index in (pa.int8(), pa.uint16())},
    **{f"runs to {ends}": runs(ends) for ends in (pa.int16(), pa.int32(), pa.int64())},
}
PEER_CANNOT = {"dictionary", "runs"}  # gathering these, pyarrow concatenates values or refuses


@pytest.mark.parametrize("case", GATHERED)
def test_several_chunks_are_gathered_into_one_array(case: str) -> None:
    chunks = GATHERED[case]
    gathered = pa.array(arrowdl.from_arrow(chunks))
    gathered.validate(full=True)
    assert gathered.type == chunks.type
    assert gathered.to_pylist() == chunks.to_pylist()
    if case.split()[0] not in PEER_CANNOT:
        combined = pa.concat_arrays(chunks.chunks)
        assert gathered.equals(combined)
        assert gathered.null_count == combined.null_count


@pytest.mark.parametrize("case", GATHERED)
def test_chunks_inside_a_table_are_gathered(case: str) -> None:
    chunks = GATHERED[case]
    table = pa.table({"i": pa.array(range(len(chunks))), "x": chunks})
    gathered = pa.record_batch(arrowdl.from_arrow(table))
    gathered.validate(full=True)
    assert gathered.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("case", GATHERED)
def test_chunks_inside_lists_are_gathered(case: str) -> None:
    """A list's values are gathered under the list's offsets, not as the chunks of a column."""
    lists = []
    for piece in GATHERED[case].chunks:
        ends = pa.array([0, len(piece) // 2, len(piece)], pa.int32())
        lists.append(pa.ListArray.from_arrays(ends, piece))
    chunks = pa.chunked_array(lists)
    gathered = pa.array(arrowdl.from_arrow(chunks))
    gathered.validate(full=True)
    assert gathered.to_pylist() == chunks.to_pylist()


def test_dictionaries_that_differ_are_unified() -> None:
    array = arrowdl.from_arrow(dictionaries(pa.int8()))
    assert pa.array(array.dictionary).to_pylist() == ["a", "b", "c", "d"]
    values, mask = arrowdl.to_numpy(array, nulls="mask")
    assert values[mask].tolist() == [0, 1, 0, 1, 2, 0, 0]


def test_unified_dictionaries_that_outgrow_their_index_are_refused() -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array([99], pa.int8()), pa.array([f"{part} {i}" for i in range(100)])
        )
        for part in "ab"
    ]
    with pytest.raises((BufferError, ValueError), match="int8"):
        arrowdl.from_arrow(pa.chunked_array(chunks))


def test_gathered_extension_arrays_keep_their_extension() -> None:
    type = pa.fixed_shape_tensor(pa.float32(), (2, 3), permutation=(1, 0))
    storage = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(24, dtype="float32")), 6)
    array = pa.ExtensionArray.from_storage(type, storage)
    chunks = pa.chunked_array([array[:1], array[1:3], array[3:]])
    gathered = arrowdl.from_arrow(chunks)
    assert pa.array(gathered).type == type
    np.testing.assert_array_equal(arrowdl.to_numpy(gathered), arrowdl.to_numpy(array))


def test_many_small_chunks_are_gathered() -> None:
    chunks = pa.chunked_array([pa.array([i, None], pa.int32()) for i in range(1000)])
    gathered = arrowdl.from_arrow(chunks)
    assert gathered.null_count == 1000
    assert arrowdl.to_numpy(gathered, nulls="fill")[::2].tolist() == list(range(1000))


def test_memory_that_was_gathered_is_aligned_for_jax() -> None:
    gathered = arrowdl.to_numpy(chunk(pa.array(np.arange(100.0)), 50, 50))
    assert address_of(gathered) % 64 == 0


@pytest.mark.parametrize("case", GATHERED)
def test_an_empty_stream_is_an_empty_array_of_its_type(case: str) -> None:
    type = GATHERED[case].type
    array = pa.array(arrowdl.from_arrow(pa.chunked_array([], type)))
    array.validate(full=True)
    assert array.type == type
    assert len(array) == 0


@pytest.mark.parametrize("case", GATHERED)
def test_chunks_of_no_rows_are_an_empty_array(case: str) -> None:
    chunks = GATHERED[case]
    empty = pa.chunked_array([chunks.chunk(0)[:0]] * 2, chunks.type)
    array = pa.array(arrowdl.from_arrow(empty))
    array.validate(full=True)
    assert array.type == chunks.type
    assert len(array) == 0


def test_an_empty_table_has_its_columns() -> None:
    empty = TABLE.schema.empty_table()
    tensors = arrowdl.to_numpy(empty)
    assert {name: (len(t), str(t.dtype)) for name, t in tensors.items()} == {
        "a": (0, "int64"),
        "b": (0, "float64"),
    }


def failing_reader(good_batches: int) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from [TABLE.to_batches()[0]] * good_batches
        raise ValueError("the disk caught fire")

    return pa.RecordBatchReader.from_batches(TABLE.schema, batches())


@pytest.mark.parametrize("good_batches", [0, 1, 3])
@pytest.mark.parametrize("take", [arrowdl.from_arrow, arrowdl.to_torch])
def test_a_stream_that_fails_is_a_runtime_error_with_its_message(
    take: Any, good_batches: int
) -> None:
    with pytest.raises(RuntimeError, match="the disk caught fire"):
        take(failing_reader(good_batches))


def test_a_stream_may_call_into_python_while_it_is_read() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(5):
            inner = arrowdl.from_arrow(pa.chunked_array([[i], [i + 1]]))
            yield pa.record_batch({"x": pa.array(inner)})

    schema = pa.schema({"x": pa.int64()})
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    assert arrowdl.to_numpy(reader)["x"].tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]


# ---------------------------------------------------------------- addresses


def test_structs_of_pyarrow_are_taken_by_address() -> None:
    schema, array = ArrowSchema(), ArrowArray()
    INTS[1:]._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    taken = arrowdl.c_data.import_array(ctypes.addressof(array), ctypes.addressof(schema))
    assert not array.release
    assert not schema.release
    assert arrowdl.to_numpy(taken).tolist() == [2, 3]
    assert address_of(arrowdl.to_numpy(taken)) == data_address(INTS) + 8


def test_structs_of_a_device_array_are_taken_by_address() -> None:
    schema, array = ArrowSchema(), ArrowDeviceArray()
    INTS._export_to_c_device(ctypes.addressof(array), ctypes.addressof(schema))
    taken = arrowdl.c_data.import_device_array(ctypes.addressof(array), ctypes.addressof(schema))
    assert taken.device == (1, 0)
    assert arrowdl.to_numpy(taken).tolist() == [1, 2, 3]


@pytest.mark.parametrize("source", [INTS, pl.Series([1, 2, 3]), arrowdl.from_arrow(INTS)], ids=type)
def test_pyarrow_takes_structs_written_to_an_address(source: Any) -> None:
    schema, array = ArrowSchema(), ArrowArray()
    arrowdl.c_data.export_array(source, ctypes.addressof(array), ctypes.addressof(schema))
    imported = pa.Array._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
    assert imported.to_pylist() == [1, 2, 3]


def test_pyarrow_takes_device_structs_written_to_an_address() -> None:
    schema, array = ArrowSchema(), ArrowDeviceArray()
    arrowdl.c_data.export_device_array(INTS, ctypes.addressof(array), ctypes.addressof(schema))
    imported = pa.Array._import_from_c_device(ctypes.addressof(array), ctypes.addressof(schema))
    assert imported.to_pylist() == [1, 2, 3]


def test_cffi_addresses_go_both_ways() -> None:
    ffi = cffi.FFI()
    schema = ffi.new("char[]", ctypes.sizeof(ArrowSchema))
    array = ffi.new("char[]", ctypes.sizeof(ArrowArray))
    addresses = [int(ffi.cast("uintptr_t", struct)) for struct in (array, schema)]
    arrowdl.c_data.export_array(INTS, *addresses)
    assert arrowdl.to_numpy(arrowdl.c_data.import_array(*addresses)).tolist() == [1, 2, 3]


def test_hand_made_structs_are_released_once_each() -> None:
    child_schema, child = MadeSchema("i"), MadeArray(4, [None, np.arange(4, dtype="int32")])
    schema = MadeSchema("+w:2", children=[child_schema])
    array = MadeArray(2, [None], children=[child])
    taken = arrowdl.c_data.import_array(array.address, schema.address)
    assert list_releases(array) == list_releases(schema) == [0, 0]
    tensor = arrowdl.to_numpy(taken)
    del taken
    assert list_releases(array) == [0, 0]
    assert tensor.tolist() == [[0, 1], [2, 3]]
    del tensor
    assert list_releases(array) == list_releases(schema) == [1, 1]


@pytest.mark.parametrize("argument", ["array", "schema"])
@pytest.mark.parametrize("address", [0, 1, 12])
def test_an_address_of_no_struct_is_refused(argument: str, address: int) -> None:
    schema, array = MadeSchema("i"), MadeArray(0, [None, None])
    addresses = {"array": array.address, "schema": schema.address, argument: address}
    with pytest.raises(ValueError, match=f"{argument}={address} is not the address"):
        arrowdl.c_data.import_array(**addresses)
    with pytest.raises(ValueError, match=f"{argument}={address} is not the address"):
        arrowdl.c_data.export_array(INTS, **addresses)
    array.drop()
    schema.drop()
    assert (array.released, schema.released) == (1, 1)


def test_released_structs_are_refused() -> None:
    schema, array = ArrowSchema(), ArrowArray()
    with pytest.raises(ValueError, match="released"):
        arrowdl.c_data.import_array(ctypes.addressof(array), ctypes.addressof(schema))


def test_targets_stay_untouched_when_the_source_fails() -> None:
    schema, array = ArrowSchema(), ArrowArray()
    array.length = 77
    with pytest.raises(TypeError):
        arrowdl.c_data.export_array(object(), ctypes.addressof(array), ctypes.addressof(schema))
    assert array.length == 77
    assert not array.release


# ---------------------------------------------------------------- torch's exchange API


@pytest.mark.slow
def test_tensors_of_torch_are_made_by_its_exchange_api() -> None:
    """And not by torch.from_dlpack, which is slower: it is gone before the first call."""
    said = run_python(
        """
        import pyarrow as pa, torch
        import arrowdl

        def fail(*_, **__):
            raise AssertionError("from_dlpack was called")

        torch.from_dlpack = torch.utils.dlpack.from_dlpack = fail
        values = pa.array([1, 2, 3])
        tensor = arrowdl.to_torch(values)
        assert tensor.data_ptr() == values.buffers()[1].address
        print(tensor.tolist(), arrowdl.to_torch(pa.table({"a": values}))["a"].tolist())
        """
    )
    assert said == "[1, 2, 3] [1, 2, 3]\n"
