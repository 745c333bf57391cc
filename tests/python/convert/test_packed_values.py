"""Values of less than a byte: packed as DLPack 1.1 says, low bits first, or padded to bytes.

Sources: dlpack.h, DLDataType ("When a sub-byte type is packed ...") and
DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED.
"""

from __future__ import annotations

import ctypes
import random
import sys
from typing import Any

import arrowdl
import jax
import numpy as np
import pyarrow as pa
import pytest
import tvm_ffi
from arrowdl._core import TensorBlock, read_tensors
from arrowdl.testing._dlpack_consumer import RawProducer
from arrowdl.testing._structs import IS_SUBBYTE_TYPE_PADDED
from helpers.arrays import as_extension
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema, encode_metadata
from helpers.capsules import capsule_name
from helpers.dlpack import READ_ONLY, MadeTensor, read_capsule
from helpers.optional import torch
from helpers.random_cases import check_cases

PACKED = {
    "int2": (0, 2),
    "int4": (0, 4),
    "uint2": (1, 2),
    "uint4": (1, 4),
    "float4_e2m1fn": (17, 4),
}
PADDED = {f"{name}_padded": code for name, code in PACKED.items()}
PADDED |= {"float6_e2m3fn_padded": (15, 6), "float6_e3m2fn_padded": (16, 6)}
ALL = PACKED | PADDED


def pack(codes: Any, bits: int) -> np.ndarray:
    """Each group of values in a byte, the first one in the lowest bits."""
    flat = np.asarray(codes, np.uint8).reshape(-1, 8 // bits)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(flat << shifts, axis=1).astype(np.uint8)


def unpack(data: bytes, bits: int) -> list[int]:
    return [byte >> shift & (1 << bits) - 1 for byte in data for shift in range(0, 8, bits)]


def make(name: str, shape: tuple[int, ...], start: int = 0, **fields: Any) -> MadeTensor:
    """A tensor with the codes start, start + 1, ... of a type of ALL."""
    code, bits = ALL[name]
    count = int(np.prod(shape))
    codes = (np.arange(count) + start) % (1 << bits)
    is_padded = name in PADDED
    data = codes.astype(np.uint8) if is_padded else pack(codes, bits)
    flags = fields.pop("flags", 0) | (IS_SUBBYTE_TYPE_PADDED if is_padded else 0)
    address = data if count else None
    return MadeTensor(address, shape, dtype=(code, bits), flags=flags, **fields)


def export(array: Any, **options: Any) -> Any:
    return array.__dlpack__(max_version=(1, 3), **options)


def dims(tensor: Any) -> tuple[list[int], list[int]]:
    return tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]


# ---------------------------------------------------------------- both ways


@pytest.mark.parametrize("shape", [(8,), (3, 4), (2, 3, 8), (1, 4), (0, 4), (2, 0)], ids=str)
@pytest.mark.parametrize("name", ALL)
def test_they_come_back_as_the_same_dlpack_type(name: str, shape: tuple[int, ...]) -> None:
    made = make(name, shape)
    array = arrowdl.to_arrow_device(RawProducer(made), copy=False)
    assert array.dtype == name
    assert array.shape == shape
    for one in (array, arrowdl.from_arrow(array), array[:]):
        capsule = export(one)
        managed = read_capsule(capsule)
        tensor = managed.dl_tensor
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (*ALL[name], 1)
        assert dims(tensor)[0] == list(shape)
        assert dims(tensor)[1] == [
            int(np.prod(shape[d + 1 :])) or 1 for d in range(len(shape))
        ] or (0 in shape)
        padded = IS_SUBBYTE_TYPE_PADDED if name in PADDED else 0
        assert managed.flags == READ_ONLY | padded
        assert tensor.data == (made.tensor.data if 0 not in shape else None)
        assert tensor.byte_offset == 0
        del capsule
    del array, one
    assert made.released == 1


def storage_of(array: Any) -> pa.Array:
    storage = pa.array(array)
    while isinstance(storage, pa.ExtensionArray):
        storage = storage.storage
    return storage


def test_what_other_libraries_see() -> None:
    row = arrowdl.to_arrow_device(RawProducer(make("int4", (6,))))
    assert len(row) == 3
    assert row.type == "arrowdl.int4"
    assert pa.array(row).to_pylist() == [b"\x10", b"\x32", b"\x54"]
    rows = arrowdl.to_arrow_device(RawProducer(make("uint2", (2, 8))), layout="fixed_shape_tensor")
    assert rows.type == "fixed_shape_tensor<arrowdl.uint2>(2)"
    assert storage_of(rows).to_pylist() == [[b"\xe4", b"\xe4"], [b"\xe4", b"\xe4"]]
    lists = arrowdl.to_arrow_device(RawProducer(make("int4", (3, 4))))
    tensors = {"x": RawProducer(make("int4", (3, 4)))}
    batch = pa.record_batch(arrowdl.to_arrow_device(tensors, layout="list"))
    assert lists.type == "fixed_size_list<arrowdl.int4>[2]"
    assert arrowdl.from_arrow(batch)["x"].shape == (3, 4)


def test_rows_are_sliced_without_a_copy() -> None:
    made = make("int4", (5, 4))
    array = arrowdl.to_arrow_device(RawProducer(made))[1:4]
    assert array.shape == (3, 4)
    tensor = read_capsule(export(array)).dl_tensor
    assert tensor.data == made.tensor.data + 2
    assert dims(tensor) == ([3, 4], [4, 1])
    flat = arrowdl.to_arrow_device(RawProducer(make("int2", (16,))))[1:3]
    assert flat.shape == (8,)
    assert read_capsule(export(flat)).dl_tensor.shape[0] == 8


def test_files_and_streams_keep_them(tmp_path: Any) -> None:
    array = arrowdl.to_arrow_device(
        {"x": RawProducer(make("float4_e2m1fn", (3, 4)))}, layout="list"
    )
    table = pa.table(pa.record_batch(array))
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(pa.concat_tables([table, table]))
    read = pa.ipc.open_file(tmp_path / "x.arrow").read_all()
    back = arrowdl.from_arrow(read)["x"]
    assert (back.dtype, back.shape) == ("float4_e2m1fn", (6, 4))
    tensor = read_capsule(export(back)).dl_tensor
    data = ctypes.string_at(tensor.data, 12)
    assert unpack(data, 4) == [*range(12), *range(12)]


def test_strided_rows_are_copied_by_bytes() -> None:
    data = pack(np.arange(16) % 16, 4)
    made = MadeTensor(data, (2, 4), dtype="uint4", strides=(8, 1))
    with pytest.raises(BufferError, match="without a copy"):
        arrowdl.to_arrow_device(made.capsule(), copy=False)
    made = MadeTensor(data, (2, 4), dtype="uint4", strides=(8, 1))
    array = arrowdl.to_arrow_device(made.capsule())
    assert [unpack(b"".join(row), 4) for row in storage_of(array).to_pylist()] == [
        [0, 1, 2, 3],
        [8, 9, 10, 11],
    ]


def test_permuted_rows_keep_their_memory() -> None:
    data = pack(np.arange(24) % 16, 4)
    made = MadeTensor(data, (2, 3, 2, 2), dtype="uint4", strides=(12, 2, 6, 1))
    array = arrowdl.to_arrow_device(made.capsule(), copy=False)
    assert dims(read_capsule(export(array)).dl_tensor) == ([2, 3, 2, 2], [12, 2, 6, 1])


def test_nulls() -> None:
    mask = np.array([True, False, True])
    array = arrowdl.to_arrow_device(RawProducer(make("uint4", (3, 4), start=1)), mask=mask)
    assert array.null_count == 1
    filled = arrowdl.to_jax(array, nulls="fill")
    assert np.asarray(filled).astype(int).tolist() == [[1, 2, 3, 4], [0] * 4, [9, 10, 11, 12]]
    with pytest.raises(BufferError, match="nulls"):
        array.__dlpack__()
    with pytest.raises(BufferError, match='nulls="mask" has no mask for values of uint4'):
        arrowdl.to_jax(array, nulls="mask")
    with pytest.raises(BufferError, match="needs a floating point type"):
        arrowdl.to_jax(array, nulls="nan")
    with pytest.raises(ValueError, match="mask"):  # a row of a 1-D tensor is a byte
        arrowdl.to_arrow_device(RawProducer(make("uint4", (4,))), mask=np.ones(4, bool))


def test_legacy_capsules_are_packed() -> None:
    made = MadeTensor(np.arange(2, dtype=np.uint8), (4,), dtype="int4", versioned=False)
    array = arrowdl.to_arrow_device(made.capsule())
    assert array.dtype == "int4"
    assert capsule_name(array.__dlpack__()) == "dltensor"
    assert read_capsule(array.__dlpack__()).dl_tensor.shape[0] == 4
    padded = arrowdl.to_arrow_device(RawProducer(make("int4_padded", (4,))))
    for options in ({}, {"max_version": (0, 8)}, {"max_version": (1, 0)}):
        with pytest.raises(BufferError, match=r"max_version=\(1, 1\)"):
            padded.__dlpack__(**options)
    for version in ((1, 1), (1, 3), (2, 0)):
        capsule = padded.__dlpack__(max_version=version)
        assert read_capsule(capsule).flags == READ_ONLY | IS_SUBBYTE_TYPE_PADDED


def test_a_copy_is_packed_as_well() -> None:
    array = arrowdl.to_arrow_device(RawProducer(make("int4", (3, 4))))
    capsule = export(array, copy=True)
    tensor = read_capsule(capsule).dl_tensor
    assert dims(tensor) == ([3, 4], [4, 1])
    assert unpack(ctypes.string_at(tensor.data, 6), 4) == list(range(12))


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("shape", "strides", "says"),
    [
        ((), None, "no dimensions"),
        ((3,), None, "a last dimension of 3"),
        ((2, 3), None, "a last dimension of 3"),
        ((4,), (2,), "a stride of 2 in its last dimension"),
        ((2, 4), (5, 1), "a stride of 5 in dimension 0"),
        ((4, 4), (1, 4), "a stride of 1 in dimension 0"),
        ((4, 4), (4, 0), "a stride of 0 in its last dimension"),
    ],
    ids=str,
)
def test_rows_that_do_not_begin_with_a_byte_are_refused(
    shape: Any, strides: Any, says: str
) -> None:
    made = MadeTensor(np.zeros(64, np.uint8), shape, dtype="int4", strides=strides)
    with pytest.raises(BufferError, match=f"{says}.*multiple of 2 values.*view its bytes as uint8"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


@pytest.mark.parametrize(
    ("dtype", "flags"),
    [((15, 6), 0), ((1, 1), 0), ((0, 3), 0), ((17, 4, 2), IS_SUBBYTE_TYPE_PADDED), ((6, 1), 0)],
    ids=str,
)
def test_other_types_of_less_than_a_byte_are_refused(dtype: Any, flags: int) -> None:
    """TVM stored a bool as uint1 in a byte: its layout is not known."""
    made = MadeTensor(np.zeros(64, np.uint8), (8,), dtype=dtype, flags=flags)
    with pytest.raises(BufferError, match="view the bytes of packed elements as uint8"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


def test_lists_count_no_packed_values() -> None:
    """Offsets would count bytes, and values twice as many."""
    item = MadeSchema(
        "w:1", "item", metadata=encode_metadata({"ARROW:extension:name": "arrowdl.int4"})
    )
    schema = MadeSchema("+l", children=[item])
    values = MadeArray(3, [None, np.array([0x10, 0x32, 0x54], np.uint8)])
    lists = MadeArray(2, [None, np.array([0, 1, 3], np.int32)], children=[values])
    array = arrowdl.from_arrow((schema.capsule(), MadeDeviceArray(lists, (1, -1)).capsule()))
    for options in ({}, {"ragged": "offsets"}, {"ragged": "padded"}):
        with pytest.raises(BufferError, match=r"the offsets of lists of arrowdl\.int4 count bytes"):
            arrowdl.to_jax(array, **options)
    assert arrowdl.from_arrow(array).values.shape == (6,)


@pytest.mark.parametrize("depth", [1, 2])
def test_lists_of_structs_count_no_packed_values(depth: int) -> None:
    keys = encode_metadata({"ARROW:extension:name": "arrowdl.int4"})
    schema = MadeSchema("w:1", "q", metadata=keys)
    values = MadeArray(3, [None, np.array([0x00, 0x11, 0x22], np.uint8)])
    for i in range(depth):
        schema = MadeSchema("+s", f"s{i}", children=[schema])
        values = MadeArray(3, [None], children=[values])
    lists = MadeArray(2, [None, np.array([0, 1, 3], np.int32)], children=[values])
    schema = MadeSchema("+l", children=[schema])
    array = arrowdl.from_arrow((schema.capsule(), MadeDeviceArray(lists, (1, -1)).capsule()))
    with pytest.raises(BufferError, match=r"the offsets of lists of arrowdl\.int4 count bytes"):
        arrowdl.to_jax(array)


def test_lists_of_packed_rows_are_counted_by_rows() -> None:
    item = pa.field("item", pa.binary(1), metadata={"ARROW:extension:name": "arrowdl.int4"})
    values = pa.array([bytes([0x10 + i]) for i in range(12)], pa.binary(1))
    rows = pa.FixedSizeListArray.from_arrays(values, type=pa.list_(item, 2))
    kind = pa.list_(pa.field("item", rows.type))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 4, 6], pa.int32()), rows, type=kind)
    schema = pa.schema([pa.field("x", kind)])
    array = arrowdl.from_arrow(pa.RecordBatch.from_arrays([lists], schema=schema))["x"]
    whole, offsets = arrowdl.to_jax(array)
    assert (whole.dtype, whole.shape, offsets.tolist()) == ("int4", (6, 4), [0, 1, 4, 6])
    padded, lengths = arrowdl.to_jax(array, ragged="padded")
    assert (padded.shape, lengths.tolist()) == ((3, 3, 4), [1, 3, 2])
    assert padded[2, :2].astype("int8").tolist() == whole[4:].astype("int8").tolist()
    assert padded[0, 0].astype("int8").tolist() == [0, 1, 1, 1]
    assert not padded[0, 1:].astype("int8").any()


def test_they_are_no_numbers_to_cast() -> None:
    array = arrowdl.to_arrow_device(RawProducer(make("int4", (3, 4))))
    with pytest.raises((BufferError, ValueError), match="int4"):
        arrowdl.to_numpy(array, dtype="int32")
    with pytest.raises(ValueError, match="not a dtype that numbers are cast to"):
        arrowdl.to_numpy(np.arange(3), dtype="int4")
    requested = arrowdl.to_arrow_device(np.arange(3, dtype=np.int8))
    flat = arrowdl.to_arrow_device(RawProducer(make("int4", (6,))))
    with pytest.raises(ValueError, match="int4 is requested as int8"):
        flat.__arrow_c_array__(requested.__arrow_c_schema__())
    assert not hasattr(flat, "__cuda_array_interface__")


# ---------------------------------------------------------------- foreign files


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "storage",
    [
        pa.array([b"ab"], pa.binary(2)),
        pa.array([b""], pa.binary(0)),
        pa.array([1], pa.uint8()),
        pa.array([b"a"]),
        pa.array([[b"a"]], pa.list_(pa.binary(1), 1)),
        pa.array([b"a"]).dictionary_encode(),
    ],
    ids=lambda storage: str(storage.type)[:20],
)
def test_storage_of_another_size_is_refused(name: str, storage: pa.Array) -> None:
    with pytest.raises(ValueError, match=f"arrowdl.{name} over the storage .* it needs"):
        as_extension(storage, f"arrowdl.{name}")


def test_metadata_of_others_is_not_read() -> None:
    storage = pa.array([b"\x10", b"\x32"], pa.binary(1))
    array = as_extension(storage, "arrowdl.int4", '{"shape": [1000000], "bits": 99}')
    assert (array.dtype, array.shape) == ("int4", (4,))


def test_a_permutation_that_splits_bytes_is_not_exported() -> None:
    item = pa.field("item", pa.binary(1), metadata={"ARROW:extension:name": "arrowdl.int4"})
    keys = {
        "ARROW:extension:name": "arrow.fixed_shape_tensor",
        "ARROW:extension:metadata": '{"shape": [2, 3], "permutation": [1, 0]}',
    }
    values = pa.array([bytes([i]) for i in range(6)], pa.binary(1))
    rows = pa.FixedSizeListArray.from_arrays(values, type=pa.list_(item, 6))
    schema = pa.schema([pa.field("x", rows.type, metadata=keys)])
    array = arrowdl.from_arrow(pa.RecordBatch.from_arrays([rows], schema=schema)).field("x")
    assert array.dtype == "int4"
    with pytest.raises(BufferError, match="another dimension than the last"):
        array.__dlpack__()


@pytest.mark.parametrize("name", ["int2", "int4"])
def test_a_shape_with_more_values_than_int64_counts_is_refused(name: str) -> None:
    """Its bytes fit, since another dimension is 0."""
    item = pa.field("item", pa.binary(1), metadata={"ARROW:extension:name": f"arrowdl.{name}"})
    keys = {
        "ARROW:extension:name": "arrow.fixed_shape_tensor",
        "ARROW:extension:metadata": f'{{"shape": [0, {2**61}]}}',
    }
    kind = pa.list_(item, 0)
    rows = pa.FixedSizeListArray.from_buffers(kind, 2, [None], children=[pa.array([], item.type)])
    schema = pa.schema([pa.field("x", kind, metadata=keys)])
    array = arrowdl.from_arrow(pa.RecordBatch.from_arrays([rows], schema=schema)).field("x")
    for use in (lambda: array.shape, array.__dlpack__):
        with pytest.raises(BufferError, match="more elements in a row than int64 can count"):
            use()


# ---------------------------------------------------------------- real libraries


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 2), (0, 4)], ids=str)
def test_jax_float4_makes_the_round_trip(shape: tuple[int, ...]) -> None:
    """jax 0.10.2 exports float4 packed, in legacy capsules, and reads none by DLPack."""
    tensor = jax.numpy.arange(np.prod(shape)).reshape(shape).astype("float4_e2m1fn")
    array = arrowdl.to_arrow_device(tensor)
    assert (array.dtype, array.shape) == ("float4_e2m1fn", shape)
    back = arrowdl.to_jax(array)
    assert back.dtype == "float4_e2m1fn"
    assert back.shape == shape
    assert np.array_equal(np.asarray(back, np.float32), np.asarray(tensor, np.float32))


@pytest.mark.parametrize("name", ["int2", "int4", "uint2", "uint4"])
def test_jax_integers_make_the_round_trip(name: str) -> None:
    """jax 0.10 exports none of them by DLPack, so their bytes are copied."""
    tensor = (jax.numpy.arange(24) % 4).reshape(3, 8).astype(name)
    array = arrowdl.to_arrow_device(tensor)
    assert (array.dtype, array.shape) == (name, (3, 8))
    back = arrowdl.to_jax(array)
    assert (back.dtype, back.shape) == (name, (3, 8))
    assert np.array_equal(np.asarray(back, np.int8), np.asarray(tensor, np.int8))
    codes = unpack(b"".join(map(b"".join, storage_of(array).to_pylist())), PACKED[name][1])
    assert [code & 3 for code in codes] == [*range(4)] * 6
    assert arrowdl.to_arrow_device({"x": tensor[0]})["x"].shape == (8,)
    with pytest.raises(BufferError, match=f"{name}.*without a copy.*copy=None"):
        arrowdl.to_arrow_device(tensor, copy=False)
    with pytest.raises(BufferError, match=f"{name}.*whole bytes"):
        arrowdl.to_arrow_device(tensor[:, :3])
    with pytest.raises(BufferError, match=f"{name}.*whole bytes"):
        arrowdl.to_arrow_device(tensor[0, 0])
    tensor.delete()
    with pytest.raises(BufferError, match="was deleted"):
        arrowdl.to_arrow_device(tensor)


@pytest.mark.parametrize("name", PACKED)
def test_to_jax_has_the_values(name: str) -> None:
    array = arrowdl.to_arrow_device(RawProducer(make(name, (3, 8))))
    tensor = arrowdl.to_jax(array)
    assert tensor.dtype == name
    bits = PACKED[name][1]
    codes = [i % (1 << bits) for i in range(24)]
    raw = np.asarray(tensor).view(np.uint8) & (1 << bits) - 1  # ml_dtypes: a value in a byte
    assert raw.reshape(-1).tolist() == codes
    with pytest.raises(BufferError, match=r"copy=False.*copy=None"):
        arrowdl.to_jax(array, copy=False)


def test_torch_has_float4_in_pairs() -> None:
    tensor = jax.numpy.arange(12).reshape(3, 4).astype("float4_e2m1fn")
    array = arrowdl.to_arrow_device(tensor)
    pairs = arrowdl.to_torch(array)
    assert pairs.dtype is torch.float4_e2m1fn_x2
    assert pairs.shape == (3, 2)
    assert pairs.view(torch.uint8).tolist() == np.asarray(tensor.view("uint8")).tolist()
    again = arrowdl.to_jax(arrowdl.to_arrow_device(pairs))
    assert (again.dtype, again.shape) == ("float4_e2m1fn", (3, 4))
    assert np.array_equal(np.asarray(again, np.float32), np.asarray(tensor, np.float32))


@pytest.mark.parametrize("name", [name for name in ALL if name != "float4_e2m1fn"])
def test_frameworks_without_the_type_say_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array = arrowdl.to_arrow_device(RawProducer(make(name, (3, 4))))
    with pytest.raises(BufferError, match=f"torch has no {name} .*pyarrow.array"):
        arrowdl.to_torch(array)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "ml_dtypes", None)  # not imported
        for options in ({}, {"copy": False}):
            with pytest.raises(BufferError, match=f"numpy has no {name}.*pyarrow.array"):
                arrowdl.to_numpy(array, **options)
    if name in PADDED:
        for copy in (None, False):
            with pytest.raises(BufferError, match=f"jax has no {name}.*pyarrow.array"):
                arrowdl.to_jax(array, copy=copy)
    data = arrowdl.to_numpy(pa.array(array.values)).tobytes()  # the advice
    codes = data if name in PADDED else unpack(data, PACKED[name][1])
    assert list(codes) == [i % (1 << ALL[name][1]) for i in range(12)]


def test_the_advice_holds_for_lists_and_structs(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"x": RawProducer(make("uint4_padded", (3, 4)))}
    array = arrowdl.to_arrow_device(columns, layout="list")
    advice = r"`values` of lists.*fields of structs.*\.to\("
    for use in (arrowdl.to_torch, arrowdl.to_jax):
        with pytest.raises(BufferError, match=advice):
            use(array)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "ml_dtypes", None)  # not imported
        with pytest.raises(BufferError, match=advice):
            arrowdl.to_numpy(array)
    data = arrowdl.to_numpy(pa.array(array["x"].values))
    assert data.reshape(-1).tolist() == list(range(12))


@pytest.mark.parametrize("name", PACKED)
def test_tvm_ffi_has_them_all(name: str) -> None:
    made = make(name, (3, 4), versioned=False)  # it reads legacy capsules of Python objects
    tensor = tvm_ffi.from_dlpack(RawProducer(made))
    array = arrowdl.to_arrow_device(tensor)
    assert (array.dtype, array.shape) == (name, (3, 4))
    back = tvm_ffi.from_dlpack(array)
    assert str(back.dtype) == name
    assert tuple(back.shape) == (3, 4)
    assert read_capsule(export(array)).dl_tensor.data == made.tensor.data


def test_worker_processes_send_them() -> None:
    """The block of a batch: numbers of its table are elements of Arrow."""
    leaves = [RawProducer(make("int4", (3, 4))), RawProducer(make("uint4_padded", (3,)))]
    block = TensorBlock(leaves, ["jax", "jax"])
    memory = np.zeros(block.nbytes, np.uint8)
    block.write(memory)
    assert block.left_out == []
    assert unpack(memory[:6].tobytes(), 4) == list(range(12))
    assert memory[64:67].tolist() == [0, 1, 2]
    table = np.frombuffer(block.table, np.int64).copy()
    with pytest.raises(BufferError, match="jax has no uint4_padded"):
        read_tensors(arrowdl.to_arrow_device(memory), block.table, ["jax", "jax"])
    only = TensorBlock(leaves[:1], ["jax"])
    (tensor,) = read_tensors(arrowdl.to_arrow_device(memory), only.table, ["jax"])
    assert (tensor.dtype, tensor.shape) == ("int4", (3, 4))
    for dtype in (-1, 10**6, 2**62):
        table[1] = dtype
        with pytest.raises(ValueError, match="does not fit a block"):
            read_tensors(arrowdl.to_arrow_device(memory), table.tobytes(), ["jax", "jax"])


# ---------------------------------------------------------------- random


def check_round_trip(rng: random.Random) -> None:
    name = rng.choice(list(ALL))
    bits = ALL[name][1]
    group = 1 if name in PADDED else 8 // bits
    shape = [rng.randrange(4) for _ in range(rng.randrange(3))] + [group * rng.randrange(1, 5)]
    made = make(name, tuple(shape), start=rng.randrange(16))
    rows = shape[0] // group if len(shape) == 1 else shape[0]
    layout = rng.choice(["auto", "list"])
    array = arrowdl.to_arrow_device(RawProducer(made), layout=layout)
    assert len(array) == rows
    begin = rng.randrange(rows + 1)
    end = rng.randrange(begin, rows + 1)
    part = array[begin:end]
    capsule = export(part, copy=rng.choice([None, True]))
    managed = read_capsule(capsule)
    tensor = managed.dl_tensor
    kept = [end - begin, *shape[1:]] if len(shape) > 1 else [(end - begin) * group]
    assert tensor.shape[: tensor.ndim] == kept
    assert bool(managed.flags & IS_SUBBYTE_TYPE_PADDED) == (name in PADDED)
    row_bytes = int(np.prod(shape[1:], dtype=int)) // group if len(shape) > 1 else 1
    size = (end - begin) * row_bytes
    seen = ctypes.string_at(tensor.data, size) if size else b""
    assert seen == (bytes(made.data)[begin * row_bytes :][:size] if made.data is not None else b"")


def test_random_round_trips() -> None:
    check_cases(check_round_trip, 200)
