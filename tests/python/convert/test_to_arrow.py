"""Tensor to Arrow: the type map, shapes and strides, and what `copy` allows."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import arrowdl
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl import _core
from helpers.dlpack import CODES, MadeTensor
from helpers.optional import torch

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
PRIMITIVES = INTEGERS + FLOATS
TORCH_FLOAT8 = [name for name in CODES if name.startswith("float8") and hasattr(torch, name)]
EXTENSIONS = ["bfloat16", *TORCH_FLOAT8, "complex64", "complex128"]


def address(array: pa.Array) -> int:
    """Where the elements of an array lie, whatever wraps them."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    while pa.types.is_fixed_size_list(array.type):
        array = array.values
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
    buffer = array.buffers()[1]
    width = array.type.byte_width
    return buffer.address + array.offset * width


def metadata(array: arrowdl.DeviceArray) -> dict[str, Any]:
    return json.loads(array.schema.metadata[b"ARROW:extension:metadata"])


def logical(array: arrowdl.DeviceArray) -> np.ndarray:
    """The elements as the specification of fixed_shape_tensor says that they are to be read.

    Not `to_numpy_ndarray`: pyarrow 26 computes the strides of a permutation that is not its own
    inverse (channels last) from the wrong extents.
    """
    read = pa.array(array)
    physical = read.storage.values.to_numpy().reshape(len(read), *read.type.shape)
    if read.type.permutation is None:
        return physical
    return physical.transpose(0, *(dim + 1 for dim in read.type.permutation))


def torch_of(name: str, shape: tuple[int, ...] = (6,)) -> torch.Tensor:
    values = torch.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
    return values.to(getattr(torch, name))


def bits_of(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().flatten().view(torch.uint8).tolist()


# ---------------------------------------------------------------- the type map


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_numbers_become_primitives_without_a_copy(library, name):
    if library == "numpy":
        tensor = np.arange(6).astype(name)
        where = tensor.ctypes.data
    elif library == "torch":
        tensor = torch.arange(6).to(getattr(torch, name))
        where = tensor.data_ptr()
    else:
        with jax.enable_x64(True):
            tensor = jnp.arange(6).astype(name)
        where = tensor.unsafe_buffer_pointer()
    array = arrowdl.to_arrow_device(tensor)
    read = pa.array(array)
    assert read.type == pa.from_numpy_dtype(np.dtype(name))
    assert read.to_pylist() == [0, 1, 2, 3, 4, 5]
    assert address(read) == where
    assert (array.dtype, array.shape, len(array), array.null_count) == (name, (6,), 6, 0)
    assert tuple(array.device) == (1, 0)


@pytest.mark.parametrize("values", [[True, False, True, True], []])
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_bool_becomes_bool8_without_a_copy(library, values):
    make = {"numpy": np.array, "torch": torch.tensor, "jax": jnp.array}[library]
    tensor = make(values, dtype=bool if library != "torch" else torch.bool)
    read = pa.array(arrowdl.to_arrow_device(tensor, copy=False))
    assert read.type == pa.bool8()
    assert read.to_pylist() == values


def test_bool8_shares_the_memory():
    tensor = torch.tensor([True, False])
    assert address(pa.array(arrowdl.to_arrow_device(tensor))) == tensor.data_ptr()


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 64, 65, 1000])
def test_bool_becomes_bits_on_request(length):
    values = np.random.default_rng(length).random(length) < 0.5
    array = arrowdl.to_arrow_device(values, bool_as="bits")
    assert pa.array(array).type == pa.bool_()
    assert pa.array(array).to_pylist() == values.tolist()
    assert array.dtype == "bool"


def test_bits_are_a_copy_which_copy_false_forbids():
    with pytest.raises(BufferError, match="packed into bits"):
        arrowdl.to_arrow_device(torch.tensor([True]), bool_as="bits", copy=False)


def test_bool_bytes_other_than_one_become_set_bits():
    made = MadeTensor(np.array([0, 1, 2, 128, 255], np.uint8), dtype="bool")
    read = pa.array(arrowdl.to_arrow_device(made.capsule(), bool_as="bits"))
    assert read.to_pylist() == [False, True, True, True, True]


def test_strided_bool_becomes_bits():
    values = np.arange(40) % 3 == 0
    read = pa.array(arrowdl.to_arrow_device(values[::2], bool_as="bits"))
    assert read.to_pylist() == values[::2].tolist()


def test_bits_of_two_dimensions():
    values = np.arange(15).reshape(3, 5) % 2 == 0
    read = pa.array(arrowdl.to_arrow_device(values, bool_as="bits", layout="list"))
    assert read.type == pa.list_(pa.bool_(), 5)
    assert read.to_pylist() == values.tolist()
    array = arrowdl.to_arrow_device(values, bool_as="bits")
    assert pa.array(array).type == pa.fixed_shape_tensor(pa.bool_(), [5])
    assert torch.from_dlpack(array).tolist() == values.tolist()


def test_bool_as_is_for_bools_only():
    assert pa.array(arrowdl.to_arrow_device(np.arange(3), bool_as="bits")).type == pa.int64()


def test_bfloat16_is_two_bytes_under_its_own_name():
    tensor = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    array = arrowdl.to_arrow_device(tensor)
    read = pa.array(array)
    assert read.type == pa.binary(2)
    assert read.to_pylist() == [b"\xc0\x3f", b"\x00\xc0"]
    assert array.schema.metadata[b"ARROW:extension:name"] == b"arrowdl.bfloat16"
    assert address(read) == tensor.data_ptr()


@pytest.mark.parametrize("name", TORCH_FLOAT8)
def test_float8_is_one_byte_under_its_own_name(name):
    tensor = torch.tensor([1.0, 2.0, 0.5]).to(getattr(torch, name))
    array = arrowdl.to_arrow_device(tensor, copy=False)
    assert array.dtype == name
    assert array.schema.metadata[b"ARROW:extension:name"] == f"arrowdl.{name}".encode()
    read = pa.array(array)
    assert read.type == pa.binary(1)
    assert b"".join(read.to_pylist()) == bytes(bits_of(tensor))


@pytest.mark.parametrize(
    ("name", "part"), [("complex64", pa.float32()), ("complex128", pa.float64())]
)
def test_complex_is_a_list_of_two_parts(name, part):
    tensor = torch.tensor([1 + 2j, -3j], dtype=getattr(torch, name))
    array = arrowdl.to_arrow_device(tensor, copy=False)
    assert array.dtype == name
    assert array.schema.metadata[b"ARROW:extension:name"] == f"arrowdl.{name}".encode()
    read = pa.array(array)
    assert pa.types.is_fixed_size_list(read.type)
    assert read.type.value_type == part
    assert read.to_pylist() == [[1, 2], [0, -3]]
    assert address(read) == tensor.data_ptr()


@pytest.mark.parametrize("name", EXTENSIONS)
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2), (0, 3)])
def test_matrices_keep_their_type_in_pyarrow_and_in_files(name, shape, tmp_path):
    """pyarrow forgets the extension type of a fixed_shape_tensor's values: they are lists."""
    tensor = torch.arange(math.prod(shape)).reshape(shape).float().to(getattr(torch, name))
    table = pa.table(arrowdl.to_arrow_device({"x": tensor}))
    pq.write_table(table, tmp_path / "x.parquet")
    for read in (table, pq.read_table(tmp_path / "x.parquet")):
        back = arrowdl.to_torch(read)["x"]
        assert back.dtype == tensor.dtype
        assert back.shape == tensor.shape
        assert bits_of(back) == bits_of(tensor)
    permuted = tensor[None].transpose(1, 2)
    if permuted.numel() > 0:
        assert address(pa.array(arrowdl.to_arrow_device(permuted))) == tensor.data_ptr()


@pytest.mark.parametrize(
    "name", [name for name in CODES if name.startswith("float8") or name == "float4_e2m1fn_x2"]
)
def test_every_small_float_of_dlpack_keeps_its_code(name):
    made = MadeTensor(np.array([1, 2, 3], np.uint8), dtype=name)
    array = arrowdl.to_arrow_device(made.capsule())
    assert array.dtype == name
    assert pa.array(array).to_pylist() == [b"\x01", b"\x02", b"\x03"]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_jax_and_torch_agree_on_small_floats(name):
    ours = jnp.array([1.0, -2.0, 0.5], dtype=getattr(ml_dtypes, name))
    array = arrowdl.to_arrow_device(ours)
    assert array.dtype == name
    back = torch.from_dlpack(array)
    assert back.dtype == getattr(torch, name)
    assert back.float().tolist() == [1.0, -2.0, 0.5]


UNSUPPORTED = {
    "int3": ((0, 3), "int of 3 bits"),
    "uint1": ((1, 1), "uint of 1 bits"),
    "float4 of 4 lanes": ((17, 4, 4), "4 lanes"),
    "float6": ((15, 6), "float6_e2m3fn"),
    "float6_e3m2": ((16, 6), "float6_e3m2fn"),
    "bool of 1 bit": ((6, 1), "bool of 1 bits"),
    "bool of 16 bits": ((6, 16), "bool of 16 bits"),
    "float of 128 bits": ((2, 128), "float of 128 bits"),
    "complex of 32 bits": ((5, 32), "complex of 32 bits"),
    "complex of 256 bits": ((5, 256 & 255), "complex of 0 bits"),
    "int of 128 bits": ((0, 128), "int of 128 bits"),
    "handle": ((3, 64), "opaque handle"),
    "a code of the future": ((99, 8), "type code 99"),
    "4 lanes": ((2, 32, 4), "4 lanes"),
    "no lanes": ((2, 32, 0), "0 lanes"),
}


@pytest.mark.parametrize(("dtype", "said"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_element_types_without_an_arrow_type_are_refused_by_name(dtype, said):
    made = MadeTensor(np.zeros(64, np.uint8), (2,), dtype=dtype)
    with pytest.raises(BufferError, match=said):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_torch_complex32_is_refused_by_name():
    with pytest.raises(BufferError, match="complex of 32 bits"):
        arrowdl.to_arrow_device(torch.zeros(2, dtype=torch.complex32))


def test_the_refusal_of_a_dtype_says_what_to_do():
    made = MadeTensor(np.zeros(8, np.uint8), (2,), dtype=(15, 6))
    with pytest.raises(BufferError, match=r"supported are .*cast it, or view the bytes"):
        arrowdl.to_arrow_device(made.capsule())


# ---------------------------------------------------------------- shapes and strides


@pytest.mark.parametrize("name", [*PRIMITIVES, "bool"])
def test_two_dimensions_become_a_fixed_shape_tensor(name):
    values = np.arange(6).reshape(2, 3).astype(name)
    read = pa.array(arrowdl.to_arrow_device(values, copy=False))
    element = pa.bool8() if name == "bool" else pa.from_numpy_dtype(np.dtype(name))
    assert read.type == pa.fixed_shape_tensor(element, [3])
    assert address(read) == values.ctypes.data
    if name != "bool":
        np.testing.assert_array_equal(read.to_numpy_ndarray(), values, strict=True)


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_elements_in_a_fixed_shape_tensor_come_back(name):
    tensor = torch_of(name, (2, 3))
    array = arrowdl.to_arrow_device(tensor, copy=False)
    back = torch.from_dlpack(array)
    assert (back.dtype, back.shape, back.data_ptr()) == (
        tensor.dtype,
        tensor.shape,
        tensor.data_ptr(),
    )
    assert bits_of(back) == bits_of(tensor)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 3, 3), (1, 1, 1), (4, 1, 3), (1, 5)])
@pytest.mark.parametrize("permutation", ["identity", "last two", "channels", "reversed"])
def test_dense_rows_in_any_order_are_zero_copy(shape, permutation):
    inner = list(range(1, len(shape)))
    order = {
        "identity": inner,
        "last two": inner[:-2] + inner[-2:][::-1],
        "channels": inner[1:] + inner[:1],  # NCHW in memory, seen as NHWC
        "reversed": inner[::-1],
    }[permutation]
    memory = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    values = memory.transpose(0, *order)
    array = arrowdl.to_arrow_device(values, copy=False)
    assert array.shape == values.shape
    assert address(pa.array(array)) == memory.ctypes.data
    np.testing.assert_array_equal(logical(array), values)
    if permutation != "channels":
        np.testing.assert_array_equal(pa.array(array).to_numpy_ndarray(), values)
    np.testing.assert_array_equal(np.from_dlpack(array), values)
    assert torch.from_dlpack(array).tolist() == values.tolist()


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 3, 3), (1, 3, 8, 8)])
def test_channels_last_images_stay_where_they_are(shape):
    tensor = torch.arange(np.prod(shape)).float().reshape(shape)
    images = tensor.to(memory_format=torch.channels_last)
    array = arrowdl.to_arrow_device(images, copy=False)
    _, c, h, w = shape
    assert metadata(array) == {"shape": [h, w, c], "permutation": [2, 0, 1]}
    np.testing.assert_array_equal(logical(array), tensor.numpy())
    back = torch.from_dlpack(array)
    assert torch.equal(back, tensor)
    assert back.data_ptr() == images.data_ptr()
    assert back.is_contiguous(memory_format=torch.channels_last)


def test_every_permutation_of_four_dimensions_reads_the_same():
    memory = np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5)
    for order in itertools.permutations((1, 2, 3)):
        values = memory.transpose(0, *order)
        array = arrowdl.to_arrow_device(values, copy=False)
        np.testing.assert_array_equal(logical(array), values)
        np.testing.assert_array_equal(np.from_dlpack(array), values)


def test_metadata_is_what_pyarrow_writes():
    ours = arrowdl.to_arrow_device(np.zeros((2, 3, 4)))
    theirs = pa.fixed_shape_tensor(pa.float64(), [3, 4])
    assert pa.array(ours).type.equals(theirs)
    assert ours.schema.metadata == arrowdl.from_arrow(pa.array([], theirs)).schema.metadata


@pytest.mark.parametrize("layout", ["auto", "fixed_shape_tensor"])
def test_layout_auto_is_fixed_shape_tensor(layout):
    array = arrowdl.to_arrow_device(np.zeros((2, 3)), layout=layout)
    assert pa.array(array).type == pa.fixed_shape_tensor(pa.float64(), [3])


def test_layout_list_nests_fixed_size_lists():
    values = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    array = arrowdl.to_arrow_device(values, layout="list", copy=False)
    read = pa.array(array)
    assert read.type == pa.list_(pa.list_(pa.int16(), 4), 3)
    assert read.to_pylist() == values.tolist()
    assert address(read) == values.ctypes.data
    assert np.from_dlpack(array).tolist() == values.tolist()


@pytest.mark.parametrize("name", EXTENSIONS)
def test_layout_list_keeps_extension_elements(name):
    tensor = torch_of(name, (2, 3))
    array = arrowdl.to_arrow_device(tensor, layout="list", copy=False)
    assert array.dtype == name
    assert bits_of(torch.from_dlpack(array)) == bits_of(tensor)


def test_layout_list_is_in_c_order_and_so_copies_permuted_rows():
    values = np.arange(24.0).reshape(2, 3, 4).transpose(0, 2, 1)
    with pytest.raises(BufferError, match="C order"):
        arrowdl.to_arrow_device(values, layout="list", copy=False)
    read = pa.array(arrowdl.to_arrow_device(values, layout="list"))
    assert read.to_pylist() == values.tolist()


BASE = np.arange(120.0)  # each value is its own index
CUBE = BASE.reshape(4, 5, 6)
NOT_DENSE = {
    "every other element": BASE[::2],
    "every other row": BASE.reshape(20, 6)[::2],
    "a column": BASE.reshape(20, 6)[:, 2],
    "some columns": CUBE[:, :, 1:4],
    "a corner": CUBE[1:3, 1:4, 2:5],
    "F order": BASE.reshape(12, 10).T,
    "F order in three dimensions": CUBE.T,
    "rows last": CUBE.transpose(1, 2, 0),
    "broadcast rows": np.broadcast_to(BASE[:6], (4, 6)),
    "broadcast columns": np.broadcast_to(BASE[:6, None], (6, 5)),
    "one value everywhere": np.broadcast_to(BASE[7:8], (3, 4)),
    "overlapping windows": np.lib.stride_tricks.sliding_window_view(BASE[:10], 3),
}


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("values", NOT_DENSE.values(), ids=NOT_DENSE.keys())
def test_rows_that_are_not_dense_are_copied_if_copy_allows(library, values):
    tensor = values
    if library == "torch":
        strides = [stride // 8 for stride in values.strides]
        start = int(values.flat[0])
        tensor = torch.arange(120.0).double().as_strided(values.shape, strides, start)
    with pytest.raises(BufferError, match=r"without a copy.*not dense"):
        arrowdl.to_arrow_device(tensor, copy=False)
    array = arrowdl.to_arrow_device(tensor)
    assert array.shape == values.shape
    np.testing.assert_array_equal(np.from_dlpack(array), values)
    read = pa.array(array)
    np.testing.assert_array_equal(
        read.to_numpy() if values.ndim == 1 else read.to_numpy_ndarray(), values
    )


def test_a_slice_of_rows_is_zero_copy_from_where_it_starts():
    base = torch.arange(60.0).reshape(10, 6)
    rows = base[3:7]
    array = arrowdl.to_arrow_device(rows, copy=False)
    assert address(pa.array(array)) == rows.data_ptr() == base.data_ptr() + 3 * 6 * 4
    assert logical(array).tolist() == rows.tolist()


REVERSED = {
    "one dimension": ((6,), (-1,), 5),
    "rows": ((2, 3), (-3, 1), 3),
    "columns": ((2, 3), (3, -1), 2),
    "both": ((2, 3), (-3, -1), 5),
    "permuted": ((2, 3), (1, -2), 4),
    "every other": ((3,), (-2,), 5),
}


@pytest.mark.parametrize(("shape", "strides", "start"), REVERSED.values(), ids=REVERSED.keys())
@pytest.mark.parametrize("versioned", [True, False])
def test_negative_strides_are_read_as_numpy_reads_them(shape, strides, start, versioned):
    base = np.arange(6, dtype=np.int32)
    expected = np.lib.stride_tricks.as_strided(
        base[start:], shape, [stride * 4 for stride in strides]
    )

    def capsule():
        made = MadeTensor(
            base.ctypes.data,
            shape,
            dtype="int32",
            strides=strides,
            byte_offset=start * 4,
            versioned=versioned,
        )
        return made, made.capsule()

    made, taken = capsule()
    with pytest.raises(BufferError, match="reversed"):
        arrowdl.to_arrow_device(taken, copy=False)
    assert made.released == 1
    made, taken = capsule()
    array = arrowdl.to_arrow_device(taken)
    assert made.released == 1  # copied: the producer's memory is no longer needed
    assert np.from_dlpack(array).tolist() == expected.tolist()
    assert torch.from_dlpack(array).stride() == torch.empty(shape).stride()


def test_negative_stride_of_a_numpy_view():
    values = np.arange(6.0)[::-1]
    assert pa.array(arrowdl.to_arrow_device(values)).to_pylist() == values.tolist()


@pytest.mark.parametrize("versioned", [True, False])
def test_byte_offset_is_where_the_data_starts(versioned):
    base = np.arange(10, dtype=np.int32)
    made = MadeTensor(base, (2, 3), byte_offset=8, versioned=versioned)
    array = arrowdl.to_arrow_device(made.capsule(), copy=False)
    assert logical(array).tolist() == [[2, 3, 4], [5, 6, 7]]
    assert address(pa.array(array)) == base.ctypes.data + 8
    assert made.released == 0
    del array
    assert made.released == 1


def test_byte_offset_counts_for_copies_too():
    made = MadeTensor(np.arange(10, dtype=np.int32), (3,), strides=(2,), byte_offset=4)
    assert pa.array(arrowdl.to_arrow_device(made.capsule())).to_pylist() == [1, 3, 5]


@pytest.mark.parametrize("strides", [None, (2,)], ids=["dense", "strided"])
@pytest.mark.parametrize("name", ["int16", "float64", "complex128"])
def test_memory_of_any_alignment_is_read(strides, name):
    values = np.arange(1, 7).astype(name)
    memory = np.frombuffer(b"\0" + values.tobytes(), np.uint8)
    made = MadeTensor(memory, (3,), dtype=name, strides=strides, byte_offset=1)
    array = arrowdl.to_arrow_device(made.capsule())
    expected = values[:3] if strides is None else values[::2]
    assert torch.from_dlpack(array).tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("versioned", [True, False])
def test_null_strides_mean_c_order(shape, versioned):
    base = np.arange(6.0)
    made = MadeTensor(base, shape, versioned=versioned)
    array = arrowdl.to_arrow_device(made.capsule(), copy=False)
    assert np.from_dlpack(array).tolist() == base.reshape(shape).tolist()


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_no_dimensions_become_one_row(library):
    make = {"numpy": np.array, "torch": torch.tensor, "jax": jnp.array}[library]
    array = arrowdl.to_arrow_device(make(2.5), copy=False)
    assert (array.shape, pa.array(array).to_pylist()) == ((1,), [2.5])


@pytest.mark.parametrize("name", ["bool", *EXTENSIONS])
def test_no_dimensions_of_any_type_become_one_row(name):
    tensor = torch.tensor(1.0).to(getattr(torch, name))
    array = arrowdl.to_arrow_device(tensor)
    assert (array.shape, array.dtype) == ((1,), name)
    assert bits_of(torch.from_dlpack(array)) == bits_of(tensor.reshape(1))


EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3), (2, 3, 0), (0, 0), (0, 0, 0), (1, 0), (0, 1)]


@pytest.mark.parametrize("shape", EMPTY)
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("layout", ["auto", "list"])
def test_zero_sizes_keep_their_shape(library, shape, layout):
    tensor = {"numpy": np, "torch": torch, "jax": jnp}[library].zeros(shape, dtype=None)
    array = arrowdl.to_arrow_device(tensor, layout=layout)
    assert (array.shape, len(array), array.nbytes) == (shape, shape[0], 0)
    pa.array(array).validate(full=True)
    assert len(pa.array(array)) == shape[0]
    assert np.from_dlpack(array).shape == shape
    assert torch.from_dlpack(array).shape == shape


@pytest.mark.parametrize("shape", EMPTY)
@pytest.mark.parametrize("name", ["bool", "bfloat16", "complex64"])
def test_zero_sizes_of_every_kind_of_element(shape, name):
    tensor = torch.zeros(shape, dtype=getattr(torch, name))
    back = torch.from_dlpack(arrowdl.to_arrow_device(tensor))
    assert (back.shape, back.dtype) == (shape, tensor.dtype)


@pytest.mark.parametrize("shape", EMPTY)
def test_zero_sizes_with_no_memory_and_odd_strides(shape):
    made = MadeTensor(None, shape, dtype="float32", strides=tuple(-7 for _ in shape))
    array = arrowdl.to_arrow_device(made.capsule(), copy=False)
    assert array.shape == shape
    assert np.from_dlpack(array).shape == shape
    del array
    assert made.released == 1


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((1, 3), (99, 1)),
        ((3, 1), (1, -5)),
        ((2, 1, 3), (3, 1000, 1)),
        ((1,), (0,)),
        ((1, 1, 1), (7, 0, -3)),
        ((2, 3, 1, 2), (6, 2, 1, 1)),
    ],
)
def test_strides_of_dimensions_of_one_mean_nothing(shape, strides):
    base = np.arange(np.prod(shape), dtype=np.int64)
    made = MadeTensor(base, shape, strides=strides)
    array = arrowdl.to_arrow_device(made.capsule(), copy=False)
    assert np.from_dlpack(array).tolist() == base.reshape(shape).tolist()
    assert torch.from_dlpack(array).tolist() == base.reshape(shape).tolist()


@pytest.mark.parametrize("ndim", [32, 64])
def test_many_dimensions_are_fine(ndim):
    made = MadeTensor(np.arange(2.0), (2, *[1] * (ndim - 1)))
    array = arrowdl.to_arrow_device(made.capsule(), copy=False)
    assert len(array.shape) == ndim
    assert torch.from_dlpack(array).shape == (2, *[1] * (ndim - 1))


def test_too_many_dimensions_are_refused_by_number():
    made = MadeTensor(np.arange(2.0), (2, *[1] * 64))
    with pytest.raises(BufferError, match="65 dimensions: at most 64"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


def test_a_dimension_beyond_int32_is_refused_in_lists():
    made = MadeTensor(np.zeros(1, np.int8), (1, 2**31), strides=(0, 0))
    made.tensor.shape[0] = 0
    with pytest.raises(BufferError, match="2147483648"):
        arrowdl.to_arrow_device(made.capsule(), layout="list")
    assert made.released == 1


@pytest.mark.parametrize("shape", [(0, 2**31), (0, 2**20, 2**20)])
def test_a_row_beyond_int32_is_refused_in_fixed_shape_tensors(shape):
    made = MadeTensor(None, shape, dtype="int8")
    with pytest.raises(BufferError, match="at most 2147483647"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


# ---------------------------------------------------------------- copy


def test_copy_none_and_false_share_the_memory_where_they_can():
    tensor = torch.arange(4.0)
    for copy in (None, False):
        array = arrowdl.to_arrow_device(tensor, copy=copy)
        assert address(pa.array(array)) == tensor.data_ptr()


@pytest.mark.parametrize("shape", [(4,), (2, 3), (0,), (3, 0)])
def test_copy_true_never_shares_the_memory(shape):
    made = MadeTensor(np.ones(shape))
    array = arrowdl.to_arrow_device(made.capsule(), copy=True)
    assert made.released == 1
    assert np.from_dlpack(array).tolist() == np.ones(shape).tolist()


def test_copy_true_keeps_what_was_there_when_it_was_made():
    tensor = torch.zeros(3)
    array = arrowdl.to_arrow_device(tensor, copy=True)
    tensor.fill_(7)
    assert pa.array(array).to_pylist() == [0, 0, 0]


def test_copy_true_of_permuted_rows_is_in_c_order():
    images = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    array = arrowdl.to_arrow_device(images, copy=True)
    assert metadata(array) == {"shape": [3, 4, 5]}
    assert torch.from_dlpack(array).is_contiguous()


def test_a_copy_is_aligned_for_jax():
    array = arrowdl.to_arrow_device(np.arange(7, dtype=np.float32)[::2])
    back = jax.dlpack.from_dlpack(array)
    assert back.unsafe_buffer_pointer() == address(pa.array(array))
    assert back.unsafe_buffer_pointer() % 64 == 0


@pytest.mark.parametrize("copy", [0, 1, "yes", "no"])
def test_copy_takes_true_false_and_none_only(copy):
    with pytest.raises(TypeError, match="copy must be True or False"):
        arrowdl.to_arrow_device(np.arange(3), copy=copy)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"layout": "rows"}, '"auto", "fixed_shape_tensor", "list"'),
        ({"layout": None}, '"auto", "fixed_shape_tensor", "list"'),
        ({"bool_as": "bit"}, '"bool8", "bits"'),
    ],
)
def test_a_choice_that_is_none_names_those_there_are(option, said):
    with pytest.raises(ValueError, match=said):
        arrowdl.to_arrow_device(np.arange(3), **option)


def test_unknown_keywords_and_a_second_argument_are_type_errors():
    with pytest.raises(TypeError, match="dtype"):
        arrowdl.to_arrow_device(np.arange(3), dtype="f4")
    with pytest.raises(TypeError, match="positional"):
        arrowdl.to_arrow_device(np.arange(3), None)
    with pytest.raises(TypeError, match="needs a tensor"):
        arrowdl.to_arrow_device()


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", [*PRIMITIVES, "bool", *EXTENSIONS])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 2), (0, 2)])
@pytest.mark.parametrize("layout", ["auto", "list"])
def test_torch_round_trip_keeps_type_shape_values_and_pointer(name, shape, layout):
    tensor = torch_of(name, shape)
    back = torch.from_dlpack(arrowdl.to_arrow_device(tensor, layout=layout, copy=False))
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert bits_of(back) == bits_of(tensor)
    if tensor.numel():
        assert back.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("name", [*PRIMITIVES, "bool", "complex64", "complex128"])
def test_numpy_round_trip_keeps_type_shape_values_and_pointer(name):
    values = np.arange(6).reshape(3, 2).astype(name)
    back = np.from_dlpack(arrowdl.to_arrow_device(values))
    np.testing.assert_array_equal(back, values, strict=True)
    assert back.ctypes.data == values.ctypes.data
    assert not back.flags.writeable


@pytest.mark.parametrize("name", ["int32", "float32", "bfloat16", "complex64", "bool"])
def test_jax_round_trip_keeps_type_shape_values_and_pointer(name):
    values = jnp.arange(6).reshape(3, 2).astype(name)
    back = jax.dlpack.from_dlpack(arrowdl.to_arrow_device(values))
    assert (back.dtype, back.shape) == (values.dtype, values.shape)
    assert (back == values).all()
    assert back.unsafe_buffer_pointer() == values.unsafe_buffer_pointer()


def test_an_arrow_round_trip_through_pyarrow_keeps_all():
    tensor = torch.arange(24).reshape(2, 3, 4)
    seen = tensor.permute(0, 2, 1)
    there = pa.array(arrowdl.to_arrow_device(seen))
    back = torch.from_dlpack(arrowdl.from_arrow(there))
    assert torch.equal(back, seen)
    assert back.data_ptr() == tensor.data_ptr()
    assert back.stride() == seen.stride()


def test_writes_to_the_tensor_are_seen_since_nothing_was_copied():
    tensor = torch.zeros(3)
    array = arrowdl.to_arrow_device(tensor)
    tensor[1] = 5
    assert pa.array(array).to_pylist() == [0, 5, 0]


def test_the_array_keeps_the_tensor_alive():
    array = arrowdl.to_arrow_device(torch.arange(100_000) + 1)
    assert pa.array(array).to_pylist() == list(range(1, 100_001))
    assert _core.live_objects() > 0
