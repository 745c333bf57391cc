"""Schemas and streams by the addresses of their C structs; arrays are in test_from_arrow.py."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import arrowdl
import cffi
import polars as pl
import pyarrow as pa
import pytest
from helpers.arrow import ArrowArray, ArrowSchema, MadeArray, MadeDeviceArray, MadeSchema
from helpers.capsules import capsule_address

STREAM_SIZE = 40  # five pointers
DEVICE_STREAM_SIZE = 48  # and a device type before them

TABLE = pa.table({"x": pa.chunked_array([[1, 2], [None]])})

# The structs of the specification, as a program without Arrow's headers declares them.
DECLARATIONS = """
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  int32_t device_type;
  void *sync_event;
  int64_t reserved[3];
};
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};
struct ArrowDeviceArrayStream {
  int32_t device_type;
  int (*get_schema)(struct ArrowDeviceArrayStream *, struct ArrowSchema *);
  int (*get_next)(struct ArrowDeviceArrayStream *, struct ArrowDeviceArray *);
  const char *(*get_last_error)(struct ArrowDeviceArrayStream *);
  void (*release)(struct ArrowDeviceArrayStream *);
  void *private_data;
};
"""

FFI = cffi.FFI()
FFI.cdef(DECLARATIONS)


def new(name: str) -> tuple[Any, int]:
    struct = FFI.new(f"struct {name} *")
    return struct, int(FFI.cast("uintptr_t", struct))


@contextmanager
def stream_memory(size: int = STREAM_SIZE) -> Iterator[int]:
    memory = (ctypes.c_int64 * (size // 8))()
    yield ctypes.addressof(memory)


# ---------------------------------------------------------------- schemas


@pytest.mark.parametrize(
    "source",
    [pa.int32(), pa.field("x", pa.int32()), pl.Series([1], dtype=pl.Int32), pa.array([1], "int32")],
    ids=type,
)
def test_a_schema_is_written(source: Any) -> None:
    schema = ArrowSchema()
    arrowdl.c_data.export_schema(source, ctypes.addressof(schema))
    assert pa.DataType._import_from_c(ctypes.addressof(schema)) == pa.int32()


def test_a_schema_is_read() -> None:
    schema = ArrowSchema()
    pa.schema({"x": pa.int32()})._export_to_c(ctypes.addressof(schema))
    taken = arrowdl.c_data.import_schema(ctypes.addressof(schema))
    assert isinstance(taken, arrowdl.Schema)
    assert [child.name for child in taken.children] == ["x"]
    assert pa.schema(taken) == pa.schema({"x": pa.int32()})
    assert not schema.release


def test_a_schema_of_a_schema() -> None:
    schema = ArrowSchema()
    arrowdl.c_data.export_schema(arrowdl.from_arrow(TABLE).schema, ctypes.addressof(schema))
    assert pa.Schema._import_from_c(ctypes.addressof(schema)) == TABLE.schema


def test_a_malformed_schema_is_refused_and_released() -> None:
    schema = MadeSchema("nonsense")
    with pytest.raises(ValueError, match="nonsense"):
        arrowdl.c_data.import_schema(schema.address)
    assert schema.released == 1


def test_an_array_alone_is_written_for_those_who_know_its_type() -> None:
    array, schema = ArrowArray(), ArrowSchema()
    source = pa.array([1, 2])
    arrowdl.c_data.export_array(source, ctypes.addressof(array))
    source.type._export_to_c(ctypes.addressof(schema))
    assert pa.Array._import_from_c(
        ctypes.addressof(array), ctypes.addressof(schema)
    ).to_pylist() == [1, 2]


# ---------------------------------------------------------------- streams


def test_a_stream_of_pyarrow_is_read() -> None:
    with stream_memory() as address:
        TABLE.to_reader()._export_to_c(address)
        taken = arrowdl.c_data.import_stream(address)
        arrays = list(taken)
        assert [len(array) for array in arrays] == [2, 1]
        assert [row for array in arrays for row in pa.array(array).to_pylist()] == TABLE.to_pylist()
        with pytest.raises(ValueError, match="released already"):
            arrowdl.c_data.import_stream(address)


@pytest.mark.parametrize(
    ("source", "chunks"),
    [
        (TABLE, 2),
        (TABLE.to_batches()[0], 1),
        (TABLE.to_batches(), 2),
        (arrowdl.from_arrow(TABLE), 1),
        ([arrowdl.from_arrow(batch) for batch in TABLE.to_batches()], 2),
        (pl.DataFrame({"x": [1, 2, None]}), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pyarrow_reads_a_stream_in_chunks(source: Any, chunks: int) -> None:
    with stream_memory() as address:
        arrowdl.c_data.export_stream(source, address)
        read = pa.RecordBatchReader._import_from_c(address).read_all()
    assert read["x"].num_chunks == chunks
    assert read["x"].to_pylist() == TABLE["x"].to_pylist()[: len(read)]


def test_a_stream_is_of_any_type() -> None:
    with stream_memory() as address:
        arrowdl.c_data.export_stream([pa.array([1, 2]), pa.array([3])], address)
        assert arrowdl.to_numpy(arrowdl.c_data.import_stream(address)).tolist() == [1, 2, 3]


def test_a_stream_of_no_chunks_has_its_schema() -> None:
    with stream_memory() as address:
        arrowdl.c_data.export_stream(TABLE.schema.empty_table().to_reader(), address)
        reader = pa.RecordBatchReader._import_from_c(address)
        assert reader.schema == TABLE.schema
        assert reader.read_all().num_rows == 0


def test_device_streams_keep_device_and_event() -> None:
    event = ctypes.c_int64()
    made = [
        MadeDeviceArray(MadeArray(2, [None, 4096]), (2, 0), ctypes.addressof(event))
        for _ in range(2)
    ]
    chunks = [arrowdl.from_arrow((MadeSchema("l").capsule(), array.capsule())) for array in made]
    stream, address = new("ArrowDeviceArrayStream")
    arrowdl.c_data.export_device_stream(chunks, address)
    assert stream.device_type == 2
    for _ in range(2):
        out, _ = new("ArrowDeviceArray")
        assert stream.get_next(stream, out) == 0
        assert (out.device_type, out.device_id, out.array.length) == (2, 0, 2)
        assert int(FFI.cast("uintptr_t", out.sync_event)) == ctypes.addressof(event)
        out.array.release(FFI.addressof(out.array))
    end, _ = new("ArrowDeviceArray")
    assert stream.get_next(stream, end) == 0
    assert end.array.release == FFI.NULL
    stream.release(stream)
    assert stream.release == FFI.NULL


def test_device_streams_are_read() -> None:
    with stream_memory(DEVICE_STREAM_SIZE) as address:
        arrowdl.c_data.export_device_stream(TABLE, address)
        taken = arrowdl.c_data.import_device_stream(address)
        assert isinstance(taken, arrowdl.DeviceStream)
    assert pa.table(taken).to_pylist() == TABLE.to_pylist()


def test_a_stream_is_released_with_what_was_not_read() -> None:
    made = [MadeArray(1, [None, None]) for _ in range(2)]
    for array in made:
        array.struct.length = 0
    chunks = [arrowdl.from_arrow((MadeSchema("l").capsule(), array.capsule())) for array in made]
    stream, address = new("ArrowArrayStream")
    arrowdl.c_data.export_stream(chunks, address)
    del chunks
    first, _ = new("ArrowArray")
    assert stream.get_next(stream, first) == 0
    schema, _ = new("ArrowSchema")
    assert stream.get_schema(stream, schema) == 0
    stream.release(stream)
    assert [array.released for array in made] == [0, 1]
    first.release(first)
    assert [array.released for array in made] == [1, 1]
    assert FFI.string(schema.format) == b"l"
    schema.release(schema)


@pytest.mark.parametrize(
    ("chunks", "says"),
    [
        ([pa.array([1]), pa.array([1.5])], "array 1 is of float64, the stream of int64"),
        ([pa.array([{"a": 1}]), pa.array([{"b": 1}])], "a stream has one schema"),
        ([pa.array([1]), pa.array(["a"]).dictionary_encode()], "a stream has one schema"),
        (
            [pa.array([["a"]]), pa.array([["a"]], pa.list_(pa.dictionary("int8", "string")))],
            "one schema",
        ),
        ([], "empty list of arrays has no schema"),
    ],
)
def test_chunks_of_several_types(chunks: list[Any], says: str) -> None:
    with stream_memory() as address, pytest.raises(ValueError, match=says):
        arrowdl.c_data.export_stream(chunks, address)


def test_chunks_on_several_devices() -> None:
    made = MadeDeviceArray(MadeArray(2, [None, 4096]), (2, 0))
    on_cuda = arrowdl.from_arrow((MadeSchema("l").capsule(), made.capsule()))
    with stream_memory(DEVICE_STREAM_SIZE) as address:
        with pytest.raises(ValueError, match="array 1 is on cuda:0, the stream on cpu"):
            arrowdl.c_data.export_device_stream([pa.array([1]), on_cuda], address)
        with pytest.raises(BufferError, match="cuda:0"):
            arrowdl.c_data.export_stream(on_cuda, address)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize("address", [0, 4])
@pytest.mark.parametrize("device", [False, True])
def test_an_address_of_no_stream_is_refused(address: int, device: bool) -> None:
    kind = "device_stream" if device else "stream"
    with pytest.raises(ValueError, match=f"stream={address} is not the address"):
        getattr(arrowdl.c_data, f"import_{kind}")(address)
    with pytest.raises(ValueError, match=f"stream={address} is not the address"):
        getattr(arrowdl.c_data, f"export_{kind}")(TABLE, address)


@pytest.mark.parametrize("address", [0, 4])
def test_an_address_of_no_schema_is_refused(address: int) -> None:
    with pytest.raises(ValueError, match=f"schema={address} is not the address"):
        arrowdl.c_data.import_schema(address)
    with pytest.raises(ValueError, match=f"schema={address} is not the address"):
        arrowdl.c_data.export_schema(TABLE, address)


@pytest.mark.parametrize("name", arrowdl.c_data.__all__)
def test_an_address_is_an_integer(name: str) -> None:
    function = getattr(arrowdl.c_data, name)
    parameters = [n for n in inspect.signature(function).parameters if n != "source"]
    source = () if name.startswith("import") else (TABLE,)
    with pytest.raises(TypeError):
        function(*source, *["8"] * len(parameters))


def test_a_source_that_fails_leaves_the_stream_untouched() -> None:
    with stream_memory() as address:
        with pytest.raises(TypeError):
            arrowdl.c_data.export_stream(object(), address)
        assert ctypes.c_int64.from_address(address).value == 0


def test_stream_capsules_have_an_address_too() -> None:
    capsule = TABLE.__arrow_c_stream__()
    taken = arrowdl.c_data.import_stream(capsule_address(capsule))
    assert len(arrowdl.from_arrow(taken)) == 3
