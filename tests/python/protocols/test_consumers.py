"""DeviceArray as libraries take it: by their own from_dlpack, and keyword by keyword."""

from __future__ import annotations

import ctypes
from typing import Any

import arrowdl
import jax
import numpy as np
import pyarrow as pa
import pytest
import tvm_ffi
from helpers.arrays import address_of, data_address, fixed_size_list, numbers
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema
from helpers.capsules import capsule_address, capsule_name, rename_capsule
from helpers.dlpack import (
    IS_COPIED,
    READ_ONLY,
    DLManagedTensorVersioned,
    DLTensor,
    MadeTensor,
    read_capsule,
)
from helpers.optional import torch

FLOATS = pa.array([1, 2, 3, 4], pa.float32())
BITS = pa.array([True, False, True])
MATRIX = fixed_size_list(pa.array(range(12), pa.float32()), 3)
PERMUTED = pa.ExtensionArray.from_storage(
    pa.fixed_shape_tensor(pa.int32(), (2, 3), permutation=(1, 0)),
    pa.FixedSizeListArray.from_arrays(pa.array(range(24), pa.int32()), 6),
)


def tvm_to_numpy(array: Any) -> np.ndarray:
    return np.from_dlpack(tvm_ffi.from_dlpack(array))


CONSUMERS = {
    "torch": torch.from_dlpack,
    "numpy": np.from_dlpack,
    "jax": jax.dlpack.from_dlpack,
    "tvm_ffi": tvm_to_numpy,
    "np.asarray": np.asarray,
    "np.array": np.array,
}


def take(array: pa.Array) -> arrowdl.DeviceArray:
    return arrowdl.from_arrow(array)


# ---------------------------------------------------------------- libraries


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32", "float16", "float32"])
def test_every_consumer_reads_the_values(consumer: str, dtype: str) -> None:
    values = numbers((5,), dtype)
    tensor = CONSUMERS[consumer](take(pa.array(values))[1:])
    np.testing.assert_array_equal(np.asarray(tensor), values[1:])
    assert np.asarray(tensor).dtype == dtype


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("start", [0, 1])
def test_every_consumer_reads_rows_and_permutations(consumer: str, start: int) -> None:
    matrix = CONSUMERS[consumer](take(MATRIX)[start:])
    assert np.asarray(matrix).tolist() == MATRIX.to_pylist()[start:]
    permuted = CONSUMERS[consumer](take(PERMUTED)[start:])
    logical = np.arange(24).reshape(4, 2, 3).transpose(0, 2, 1)
    np.testing.assert_array_equal(np.asarray(permuted), logical[start:])


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_consumer_reads_bits(consumer: str) -> None:
    assert np.asarray(CONSUMERS[consumer](take(BITS)[1:])).tolist() == [False, True]


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize(
    "array",
    [
        pa.array([], pa.float32()),
        pa.array([], pa.bool_()),
        pa.array([], pa.list_(pa.float32(), 3)),
        pa.array([[], []], pa.list_(pa.float32(), 0)),
    ],
    ids=["(0,)", "bits", "(0, 3)", "(2, 0)"],
)
def test_every_consumer_takes_no_elements(consumer: str, array: pa.Array) -> None:
    device_array = take(array)
    assert tuple(CONSUMERS[consumer](device_array).shape) == device_array.shape


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_no_consumer_gets_nulls(consumer: str) -> None:
    with pytest.raises(BufferError, match="nulls"):
        CONSUMERS[consumer](take(pa.array([1, None], pa.int32())))


@pytest.mark.parametrize("consumer", ["torch", "numpy", "tvm_ffi", "np.asarray"])
def test_consumers_read_the_memory_of_arrow(consumer: str) -> None:
    tensor = CONSUMERS[consumer](take(FLOATS)[1:])
    assert address_of(tensor) == data_address(FLOATS) + 4


def test_jax_reads_aligned_memory_in_place_and_copies_the_rest() -> None:
    assert data_address(FLOATS) % 64 == 0
    aligned = jax.dlpack.from_dlpack(take(FLOATS), copy=False)
    assert address_of(aligned) == data_address(FLOATS)
    unaligned = take(FLOATS)[1:]
    assert jax.dlpack.from_dlpack(unaligned).tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="align"):
        jax.dlpack.from_dlpack(unaligned, copy=False)


def test_to_jax_lines_large_memory_up_for_jax() -> None:
    rows = pa.FixedSizeListArray.from_arrays(pa.array(range(80_000), pa.int32()), 4)
    lines = {}
    for array in (rows, rows[1:], rows[:20], rows[1:20]):
        tensor = arrowdl.to_jax(array)
        assert tensor.tolist() == array.to_pylist()
        lines[array.offset, len(array)] = address_of(tensor) == data_address(array.values) + (
            array.offset * 16
        )
    assert lines[0, 20_000]
    assert lines[0, 20]
    assert not lines[1, 19_999]
    permuted = np.moveaxis(np.arange(90_000, dtype="int32").reshape(30, 50, 60), 1, 2)
    there = arrowdl.to_arrow_device(permuted)[1:]
    np.testing.assert_array_equal(arrowdl.to_jax(there), permuted[1:])


@pytest.mark.parametrize("array", [BITS, PERMUTED, FLOATS], ids=["bits", "permuted", "floats"])
def test_jax_copies_when_asked_to(array: pa.Array) -> None:
    tensor = jax.dlpack.from_dlpack(take(array), copy=True)
    np.testing.assert_array_equal(tensor, arrowdl.to_numpy(array))


def test_what_numpy_reads_is_read_only() -> None:
    for tensor in (np.from_dlpack(take(FLOATS)), np.asarray(take(FLOATS))):
        assert not tensor.flags.writeable
    assert np.from_dlpack(take(FLOATS), copy=True).flags.writeable
    assert np.array(take(FLOATS)).flags.writeable


def test_a_copy_does_not_write_through() -> None:
    copied = np.from_dlpack(take(FLOATS), copy=True)
    copied[:] = 9
    assert FLOATS.to_pylist() == [1, 2, 3, 4]
    torch.from_dlpack(take(FLOATS), copy=True).zero_()
    assert FLOATS.to_pylist() == [1, 2, 3, 4]


def test_torch_takes_the_device_and_copy_of_its_own_keywords() -> None:
    tensor = torch.from_dlpack(take(FLOATS), device="cpu", copy=False)
    assert tensor.data_ptr() == data_address(FLOATS)
    copied = torch.from_dlpack(take(FLOATS), device="cpu", copy=True)
    assert copied.data_ptr() != data_address(FLOATS)
    assert copied.tolist() == [1, 2, 3, 4]
    with pytest.raises(BufferError, match="unpacked"):
        torch.from_dlpack(take(BITS), copy=False)


@pytest.mark.parametrize("consumer", ["torch", "numpy", "jax"])
def test_a_tensor_outlives_its_array(consumer: str) -> None:
    values = np.arange(1000, dtype="float32")
    tensor = CONSUMERS[consumer](take(pa.array(values)))
    np.testing.assert_array_equal(np.asarray(tensor), values)


@pytest.mark.parametrize("dtype", [None, "float64", np.float32])
@pytest.mark.parametrize("copy", [None, True])
def test_array_of_numpy_converts_the_dtype(dtype: Any, copy: bool | None) -> None:
    array = np.array(take(FLOATS), dtype=dtype, copy=copy)
    assert array.dtype == (dtype or "float32")
    assert array.tolist() == [1, 2, 3, 4]
    if copy:
        assert not np.shares_memory(array, arrowdl.to_numpy(FLOATS))


def test_array_of_numpy_refuses_to_copy_when_told_not_to() -> None:
    array = np.array(take(FLOATS), copy=False)
    assert address_of(array) == data_address(FLOATS)
    with pytest.raises(ValueError, match="float64"):
        np.array(take(FLOATS), dtype="float64", copy=False)
    with pytest.raises((ValueError, BufferError), match="without a copy"):
        np.array(take(BITS), copy=False)


def test_pyarrow_reads_the_memory_of_tensors_and_of_arrow() -> None:
    row = take(FLOATS)[1:]
    column = pa.Array.from_dlpack(row)
    assert column.equals(FLOATS[1:])
    assert data_address(column) == data_address(FLOATS) + 4
    matrix = take(MATRIX)[1:]
    tensor = pa.Tensor.from_dlpack(matrix)
    assert tensor.to_numpy().tolist() == MATRIX.to_pylist()[1:]
    assert address_of(tensor.to_numpy()) == data_address(MATRIX) + 12
    rows = pa.FixedShapeTensorArray.from_dlpack(matrix)
    assert rows.storage.to_pylist() == MATRIX.to_pylist()[1:]
    assert data_address(rows) == data_address(MATRIX) + 12


# ---------------------------------------------------------------- __dlpack__


def export(array: pa.Array, **keywords: Any) -> Any:
    return take(array).__dlpack__(**keywords)


@pytest.mark.parametrize(
    ("max_version", "name"),
    [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((1, 1), "dltensor_versioned"),
        ((1, 3), "dltensor_versioned"),
        ((2, 0), "dltensor_versioned"),
    ],
)
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("array", [FLOATS, BITS, PERMUTED], ids=["floats", "bits", "permuted"])
def test_max_version_chooses_the_vintage(
    array: pa.Array, copy: bool | None, max_version: Any, name: str
) -> None:
    capsule = export(array, max_version=max_version, copy=copy)
    assert capsule_name(capsule) == name
    if name == "dltensor_versioned":
        assert read_capsule(capsule).version.major == 1


def test_the_default_is_a_legacy_capsule() -> None:
    assert capsule_name(take(FLOATS).__dlpack__()) == "dltensor"


CALLS = {
    "cupy": {"stream": None, "max_version": (1, 0), "copy": None},
    "cupy of before 2024": {"stream": None},
    "dpctl": {"max_version": (1, 0), "dl_device": (1, 0), "copy": None},
    "anyone": {},
}


@pytest.mark.parametrize("caller", CALLS)
def test_libraries_that_are_not_here_get_what_their_call_asks_for(caller: str) -> None:
    managed = read_capsule(capsule := export(FLOATS, **CALLS[caller]))
    if "max_version" in CALLS[caller]:
        assert capsule_name(capsule) == "dltensor_versioned"
        assert managed.flags == READ_ONLY
    else:
        assert capsule_name(capsule) == "dltensor"  # which cannot say so
    assert managed.dl_tensor.data == data_address(FLOATS)
    assert torch.from_dlpack(capsule).tolist() == [1, 2, 3, 4]


def test_memory_of_arrow_is_marked_read_only() -> None:
    managed = read_capsule(capsule := export(FLOATS, max_version=(1, 0)))
    assert managed.flags == READ_ONLY
    assert managed.dl_tensor.data == data_address(FLOATS)
    del capsule


@pytest.mark.parametrize(
    ("array", "copy"),
    [(FLOATS, True), (BITS, True), (BITS, None), (PERMUTED, True)],
    ids=["floats", "bits", "bits on need", "permuted"],
)
def test_a_copy_is_marked_copied_and_may_be_written(array: pa.Array, copy: bool | None) -> None:
    managed = read_capsule(capsule := export(array, max_version=(1, 0), copy=copy))
    assert managed.flags == IS_COPIED
    storage = array.storage.flatten() if array is PERMUTED else array
    assert managed.dl_tensor.data != storage.buffers()[1].address
    assert managed.dl_tensor.data % 64 == 0
    del capsule


@pytest.mark.parametrize("legacy", [True, False])
def test_copy_false_is_zero_copy_or_refused(legacy: bool) -> None:
    version = None if legacy else (1, 0)
    managed = read_capsule(capsule := export(FLOATS, max_version=version, copy=False))
    assert managed.dl_tensor.data == data_address(FLOATS)
    with pytest.raises(BufferError, match="unpacked"):
        export(BITS, max_version=version, copy=False)
    odd_bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 2], pa.int8()))
    with pytest.raises(BufferError, match="other than 0 and 1"):
        export(odd_bools, max_version=version, copy=False)
    runs = pa.RunEndEncodedArray.from_arrays([2], pa.array([1]))
    with pytest.raises(BufferError, match="decoded"):
        export(runs, max_version=version, copy=False)
    del capsule


@pytest.mark.parametrize("dl_device", [None, (1, 0), (1, 7), (1, None)])
def test_the_own_device_may_be_asked_for(dl_device: Any) -> None:
    managed = read_capsule(capsule := export(FLOATS, max_version=(1, 0), dl_device=dl_device))
    device = managed.dl_tensor.device
    assert (device.device_type, device.device_id) == (1, 0)
    assert managed.dl_tensor.data == data_address(FLOATS)
    del capsule


def test_the_device_may_be_asked_for_as_an_enum() -> None:
    assert capsule_name(export(FLOATS, dl_device=(arrowdl.DeviceType.cpu, 0))) == "dltensor"


@pytest.mark.parametrize("dl_device", [(2, 0), (3, 0), (10, 1), (13, 0)])
def test_another_device_is_refused(dl_device: Any) -> None:
    with pytest.raises(BufferError, match="copies to the CPU alone"):
        export(FLOATS, dl_device=dl_device)


@pytest.mark.parametrize("stream", [None, -1])
def test_no_stream_is_the_only_stream_of_the_cpu(stream: int | None) -> None:
    assert capsule_name(export(FLOATS, stream=stream)) == "dltensor"


@pytest.mark.parametrize("stream", [0, 1, 2, 12345])
def test_another_stream_is_refused(stream: int) -> None:
    with pytest.raises(BufferError, match=f"stream={stream}"):
        export(FLOATS, stream=stream)


BAD_ARGUMENTS = {
    "stream": ["x", 1.5],
    "max_version": [1, (1,), (1, 0, 0), ("1", 0), "1.0"],
    "dl_device": [1, (1,), ("cpu", 0), (1, "0"), "cpu"],
    "copy": [1, 0, "yes"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in BAD_ARGUMENTS for value in BAD_ARGUMENTS[name]]
)
def test_an_argument_of_the_wrong_kind_is_a_type_error(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=name):
        export(FLOATS, **{name: value})


def test_an_unknown_device_type_is_refused() -> None:
    with pytest.raises((ValueError, BufferError), match="device type 99"):
        export(FLOATS, dl_device=(99, 0))


def test_keywords_are_keyword_only_and_known() -> None:
    with pytest.raises(TypeError, match="positional"):
        take(FLOATS).__dlpack__(None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'streams'"):
        take(FLOATS).__dlpack__(streams=None)


SHAPES = {
    "1-D": FLOATS[1:],
    "bits": BITS,
    "2-D": MATRIX[1:],
    "permuted": PERMUTED[1:],
    "one row": MATRIX[:1],
    "size 1": fixed_size_list(FLOATS, 1),
    "no rows": MATRIX[:0],
    "no columns": pa.array([[], []], pa.list_(pa.float32(), 0)),
    "no bits": BITS[:0],
}


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("copy", [None, True])
def test_offsets_are_in_the_pointer_and_strides_are_given(
    case: str, max_version: Any, copy: bool | None
) -> None:
    capsule = take(SHAPES[case]).__dlpack__(max_version=max_version, copy=copy)
    tensor = read_capsule(capsule).dl_tensor
    assert tensor.byte_offset == 0
    assert tensor.strides
    shape = tensor.shape[: tensor.ndim]
    assert tuple(shape) == take(SHAPES[case]).shape
    assert all(stride >= 0 for stride in tensor.strides[: tensor.ndim])
    assert (tensor.data is None) == (0 in shape)
    assert (tensor.device.device_type, tensor.device.device_id) == (1, 0)
    assert tensor.dtype.lanes == 1


def test_the_device_is_the_cpu_of_dlpack_not_of_arrow() -> None:
    assert take(FLOATS).__dlpack_device__() == (1, 0)
    assert [type(part) for part in take(FLOATS).__dlpack_device__()] == [int, int]


def test_an_unconsumed_capsule_gives_its_memory_back() -> None:
    schema, array = MadeSchema("i"), MadeArray(3, [None, np.arange(3, dtype="int32")])
    device_array = arrowdl.from_arrow((schema.capsule(), array.capsule()))
    capsules = [
        device_array.__dlpack__(max_version=version, copy=copy)
        for version in (None, (1, 0))
        for copy in (None, True)
    ]
    del device_array
    assert array.released == 0
    del capsules
    assert (schema.released, array.released) == (1, 1)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_is_consumed_once(max_version: Any) -> None:
    capsule = export(FLOATS, max_version=max_version)
    tensor = torch.from_dlpack(capsule)
    assert capsule_name(capsule).startswith("used_")
    with pytest.raises((RuntimeError, ValueError)):
        torch.from_dlpack(capsule)
    assert tensor.tolist() == [1, 2, 3, 4]


# ---------------------------------------------------------------- other memory of the host


def on_device(device: tuple[int, int], sync_event: int | None = None) -> arrowdl.DeviceArray:
    """Host memory under the label of another device."""
    schema, array = MadeSchema("i"), MadeArray(3, [None, np.array([7, 8, 9], "int32")])
    pair = (schema.capsule(), MadeDeviceArray(array, device, sync_event).capsule())
    return arrowdl.from_arrow(pair)


HOST_READABLE = [(3, 0), (11, 0), (13, 1)]  # CUDAHost, ROCMHost, CUDAManaged
DEVICE_ONLY = [(2, 1), (4, 0), (7, 0), (8, 0), (9, 0), (10, 0), (12, 0), (14, 0), (15, 0), (16, 0)]


@pytest.mark.parametrize("device", HOST_READABLE)
def test_pinned_and_managed_memory_keeps_its_device(device: tuple[int, int]) -> None:
    array = on_device(device)
    assert array.device == array.__dlpack_device__() == device
    tensor = read_capsule(capsule := array.__dlpack__(max_version=(1, 0))).dl_tensor
    assert (tensor.device.device_type, tensor.device.device_id) == device
    del capsule
    assert np.from_dlpack(array).tolist() == [7, 8, 9]  # numpy takes these devices


@pytest.mark.parametrize("device", HOST_READABLE)
def test_pinned_and_managed_memory_can_be_had_as_cpu(device: tuple[int, int]) -> None:
    array = on_device(device)
    managed = read_capsule(capsule := array.__dlpack__(max_version=(1, 0), dl_device=(1, 0)))
    tensor = managed.dl_tensor
    assert (tensor.device.device_type, tensor.device.device_id) == (1, 0)
    assert managed.flags == READ_ONLY
    assert torch.from_dlpack(capsule).tolist() == [7, 8, 9]


@pytest.mark.parametrize("device", DEVICE_ONLY)
def test_memory_that_the_host_cannot_read_is_passed_on_but_not_read(
    device: tuple[int, int],
) -> None:
    array = on_device(device)
    assert array.device == array.__dlpack_device__() == device
    tensor = read_capsule(capsule := array.__dlpack__(max_version=(1, 0))).dl_tensor
    assert (tensor.device.device_type, tensor.device.device_id) == device
    assert tensor.shape[0] == 3
    del capsule
    for refused in (
        lambda: array.__dlpack__(dl_device=(1, 0)),
        lambda: array.__dlpack__(copy=True),
        lambda: array.__arrow_c_array__(),
        lambda: arrowdl.to_numpy(array, nulls="mask"),
    ):
        with pytest.raises((BufferError, RuntimeError)):
            refused()
    with pytest.raises(TypeError, match=r'array\.to\("cpu"\)'):
        np.asarray(array)


@pytest.mark.parametrize("device", [(2, 0), (3, 0), (10, 0), (13, 0)])
def test_a_pending_event_is_never_ignored(device: tuple[int, int]) -> None:
    event = ctypes.c_void_p(1)
    array = on_device(device, ctypes.addressof(event))
    assert "pending" in repr(array)
    for refused in (
        lambda: array.__dlpack__(),
        lambda: array.__dlpack__(stream=12345),
        lambda: array.__dlpack__(dl_device=(1, 0)),
        lambda: array.__arrow_c_array__(),
        lambda: arrowdl.to_torch(array),
        lambda: arrowdl.to_numpy(array),
    ):
        with pytest.raises(BufferError):
            refused()
    _, capsule = array.__arrow_c_device_array__()  # the next consumer gets it to wait on
    assert arrowdl.from_arrow((array.__arrow_c_schema__(), capsule)).device == device


def test_an_event_on_the_cpu_is_malformed() -> None:
    with pytest.raises(ValueError, match="sync_event"):
        on_device((1, -1), 8)


# ---------------------------------------------------------------- the C exchange API

PyObject = ctypes.py_object
Managed = ctypes.POINTER(DLManagedTensorVersioned)
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class ExchangeAPI(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(
                ctypes.c_int,
                ctypes.POINTER(DLTensor),
                ctypes.POINTER(Managed),
                ctypes.c_void_p,
                SetError,
            ),
        ),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, PyObject, ctypes.POINTER(Managed))),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, Managed, ctypes.POINTER(PyObject))),
        ("borrow", ctypes.c_void_p),
        (
            "current_work_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    )


@pytest.fixture(scope="module")
def api() -> ExchangeAPI:
    capsule = arrowdl.DeviceArray.__dlpack_c_exchange_api__
    assert capsule_name(capsule) == "dlpack_exchange_api"
    return ExchangeAPI.from_address(capsule_address(capsule))


def delete(managed: Any) -> None:
    managed.contents.deleter(ctypes.addressof(managed.contents))


def test_the_table_is_of_this_version_and_static(api: ExchangeAPI) -> None:
    assert (api.major, api.minor) == (1, 3)
    assert not api.prev_api
    capsule = type(take(FLOATS)).__dlpack_c_exchange_api__
    assert capsule_address(capsule) == ctypes.addressof(api)
    assert api.borrow is None  # optional by the specification


def test_the_table_exports_in_place(api: ExchangeAPI) -> None:
    array, out = take(FLOATS)[1:], Managed()
    assert api.from_object(array, ctypes.byref(out)) == 0
    del array
    managed = out.contents
    assert managed.flags == READ_ONLY
    assert managed.dl_tensor.data == data_address(FLOATS) + 4
    assert managed.dl_tensor.shape[0] == 3
    assert managed.dl_tensor.byte_offset == 0
    delete(out)


@pytest.mark.parametrize(
    ("thing", "error"),
    [
        (pa.array([1, None]), BufferError),
        (pa.array(["x"]), BufferError),
        (None, TypeError),
    ],
    ids=["nulls", "string", "not an array"],
)
def test_the_table_reports_by_a_python_error(api: ExchangeAPI, thing: Any, error: Any) -> None:
    out = Managed()
    with pytest.raises(error):
        api.from_object(take(thing) if thing is not None else object(), ctypes.byref(out))
    assert not out


def test_the_table_takes_tensors_over(api: ExchangeAPI) -> None:
    made, out = MadeTensor(numbers((2, 3))), PyObject()
    assert api.to_object(ctypes.pointer(made.managed), ctypes.byref(out)) == 0
    array = out.value
    ctypes.pythonapi.Py_DecRef(out)
    assert isinstance(array, arrowdl.DeviceArray)
    assert arrowdl.to_numpy(array).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert address_of(arrowdl.to_numpy(array)) == made.data.ctypes.data
    assert made.released == 0
    del out, array
    assert made.released == 1


REFUSED = {
    "a later major version": {"version": (2, 0)},
    "lanes": {"dtype": (2, 32, 4)},
    "a sub-byte type": {"dtype": (0, 3)},
    "no device": {"device": (-1, 0)},
    "a negative extent": {"shape": (-1,)},
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_failure_leaves_the_tensor_with_the_caller(api: ExchangeAPI, case: str) -> None:
    made, out = MadeTensor(numbers((6,)), **REFUSED[case]), PyObject()
    with pytest.raises((BufferError, ValueError)):
        api.to_object(ctypes.pointer(made.managed), ctypes.byref(out))
    assert made.released == 0
    made.managed.deleter(made.address)
    assert made.released == 1


def test_a_tensor_that_must_be_copied_is_released_once_copied(api: ExchangeAPI) -> None:
    made = MadeTensor(numbers((6,)), (3,), strides=(2,))
    out = PyObject()
    assert api.to_object(ctypes.pointer(made.managed), ctypes.byref(out)) == 0
    array = out.value
    ctypes.pythonapi.Py_DecRef(out)
    assert made.released == 1
    assert arrowdl.to_numpy(array).tolist() == [0, 2, 4]
    del out, array


def test_the_table_allocates_on_the_cpu(api: ExchangeAPI) -> None:
    prototype, out = MadeTensor(None, (3, 5), dtype="float64"), Managed()
    prototype.managed.deleter = type(prototype.managed.deleter)()
    messages: list[bytes] = []
    set_error = SetError(lambda _, kind, message: messages.append(kind + b": " + message))
    assert api.allocate(ctypes.pointer(prototype.tensor), ctypes.byref(out), None, set_error) == 0
    tensor = out.contents.dl_tensor
    assert out.contents.flags == 0
    assert tensor.shape[:2] == [3, 5]
    assert tensor.strides[:2] == [5, 1]
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (2, 64, 1)
    ctypes.memset(tensor.data, 0xFF, 3 * 5 * 8)
    delete(out)
    prototype.tensor.device.device_type = 2
    assert api.allocate(ctypes.pointer(prototype.tensor), ctypes.byref(out), None, set_error) == -1
    assert messages
    assert b"cuda" in messages[0]
    prototype._release(prototype.address)


@pytest.mark.parametrize("shape", [(-1,), (2**40, 2**40)], ids=str)
def test_the_table_refuses_to_allocate_what_has_no_size(
    api: ExchangeAPI, shape: tuple[int, ...]
) -> None:
    prototype, out = MadeTensor(None, shape, dtype="float64"), Managed()
    messages: list[bytes] = []
    set_error = SetError(lambda _, kind, message: messages.append(kind + b": " + message))
    assert api.allocate(ctypes.pointer(prototype.tensor), ctypes.byref(out), None, set_error) == -1
    assert len(messages) == 1
    prototype._release(prototype.address)


def test_the_table_knows_the_stream_of_the_cpu_alone(api: ExchangeAPI) -> None:
    stream = ctypes.c_void_p(1)
    assert api.current_work_stream(1, 0, ctypes.byref(stream)) == 0
    assert stream.value is None
    for device in 2, 8, 10, 14:  # no runtime here
        with pytest.raises(BufferError, match="cannot name a stream"):
            api.current_work_stream(device, 0, ctypes.byref(stream))


def test_tvm_ffi_takes_and_gives_device_arrays_by_the_table() -> None:
    echo = tvm_ffi.convert(lambda tensor: tensor)
    back = echo(take(MATRIX)[1:])
    assert isinstance(back, arrowdl.DeviceArray)
    assert address_of(arrowdl.to_numpy(back)) == data_address(MATRIX) + 12
    assert arrowdl.to_numpy(back).tolist() == MATRIX.to_pylist()[1:]
    with pytest.raises(BufferError, match="nulls"):
        echo(take(pa.array([1, None])))


def test_a_capsule_with_a_name_of_its_own_is_left_alone() -> None:
    capsule = export(FLOATS)
    rename_capsule(capsule, "someone_elses")
    with pytest.raises(TypeError):
        arrowdl.from_arrow(capsule)
    rename_capsule(capsule, "dltensor")
