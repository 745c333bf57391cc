"""DeviceArray itself: what it says of itself, its parts, its life."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.arrays import address_of, data_address, fixed_size_list
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema

VALUES = pa.array([1, None, 3, 4, 5], pa.int32())
STRUCT = pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "yy"}, {"a": 3, "b": ""}])
LISTS = pa.array([[1, 2], [], [3, 4, 5]], pa.list_(pa.int16()))


def take(array: Any) -> arrowdl.DeviceArray:
    return arrowdl.from_arrow(array)


# ---------------------------------------------------------------- what a person reads


def test_repr_says_type_length_device_nulls_and_address() -> None:
    text = repr(take(VALUES))
    address = hex(VALUES.buffers()[1].address)
    assert text == f"<arrowdl.DeviceArray int32, 5 rows, cpu:0, 1 null, at {address}>"
    assert repr(take(VALUES)[2:]).endswith(f"no nulls, at {hex(int(address, 16) + 8)}>")


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (VALUES[:1], "1 row,"),
        (pa.array([None, None, 1]), "2 nulls"),
        (pa.nulls(2), "null, 2 rows"),
        (pa.array([], pa.string()), "string, 0 rows"),
        (LISTS, "list<int16>"),
        (STRUCT, "struct<a: int64, b: string>"),
        (fixed_size_list(pa.array([1.0, 2.0]), 2), "fixed_size_list<float64>[2]"),
        (pa.array(["a"]).dictionary_encode(), "dictionary<int32, string>"),
        (pa.array([1], pa.timestamp("us", tz="UTC")), "timestamp[us, UTC]"),
        (pa.array([1], pa.duration("ms")), "duration[ms]"),
        (pa.array([1], pa.time32("s")), "time32[s]"),
        (pa.array([1], pa.decimal128(10, 2)), "decimal128(10,2)"),
        (pa.array([1], pa.decimal32(5, 2)), "decimal32(5,2)"),
        (pa.array([1], pa.decimal256(50, 2)), "decimal256(50,2)"),
        (pa.array([b"ab"], pa.binary(2)), "fixed_size_binary[2]"),
        (pa.RunEndEncodedArray.from_arrays([1], [1.0]), "run_end_encoded<int64, float64>"),
        (pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())), "map<key: int8, value: int8>"),
        (pa.array([[1]], pa.large_list_view(pa.int8())), "large_list_view<int8>"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), "arrow.bool8"),
        (
            pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.int8(), (2, 1), permutation=(1, 0)),
                fixed_size_list(pa.array([1, 2], pa.int8()), 2),
            ),
            "fixed_shape_tensor<int8>(2, 1), permutation (1, 0)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_repr_is_for_a_person(array: pa.Array, says: str) -> None:
    assert says in repr(take(array))
    assert says.split(", ")[0] in take(array).type or says not in take(array).type


def test_repr_of_pending_work_says_so() -> None:
    schema, array = MadeSchema("i"), MadeArray(3, [None, 4096])
    device_array = take((schema.capsule(), MadeDeviceArray(array, (2, 1), 4096).capsule()))
    assert "cuda:1" in repr(device_array)
    assert "pending" in repr(device_array)
    assert "pending" in device_array._repr_html_()


def test_html_escapes_names() -> None:
    struct = pa.array([{"<script>&": 1}])
    html = take(struct)._repr_html_()
    assert html.startswith("<table>")
    assert "<script>" not in html
    assert "struct&lt;&lt;script&gt;&amp;: int64&gt;" in html


def test_html_has_the_facts_of_repr() -> None:
    html = take(VALUES)._repr_html_()
    for fact in ("int32", "5 rows", "cpu:0", "1 null", hex(VALUES.buffers()[1].address)):
        assert fact in html


# ---------------------------------------------------------------- shape, dtype, device


@pytest.mark.parametrize(
    ("array", "shape", "dtype"),
    [
        (VALUES, (5,), "int32"),
        (pa.array([True]), (1,), "bool"),
        (pa.array([b"abc"], pa.binary(3)), (1, 3), "uint8"),
        (pa.array([[[1], [2]]], pa.list_(pa.list_(pa.float16(), 1), 2)), (1, 2, 1), "float16"),
        (pa.array(["a"]).dictionary_encode(), (1,), "int32"),
        (LISTS, (3,), None),
        (STRUCT, (3,), None),
        (pa.array(["a"]), (1,), None),
        (pa.array([], pa.list_(pa.int8(), 4)), (0, 4), "int8"),
        (pa.RunEndEncodedArray.from_arrays([3], [1.0]), (3,), "float64"),
        (
            pa.RunEndEncodedArray.from_arrays([3], pa.array([[1, 2]], pa.list_(pa.int8(), 2))),
            (3, 2),
            "int8",
        ),
        (
            pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.int8(), (2, 3), permutation=(1, 0)),
                pa.FixedSizeListArray.from_arrays(pa.array(range(6), pa.int8()), 6),
            ),
            (1, 3, 2),
            "int8",
        ),
    ],
    ids=str,
)
def test_shape_and_dtype_are_those_of_the_tensor(
    array: pa.Array, shape: tuple[int, ...], dtype: str | None
) -> None:
    device_array = take(array)
    assert (device_array.shape, device_array.dtype) == (shape, dtype)
    if dtype is not None:
        tensor = arrowdl.to_numpy(device_array, nulls="fill")
        assert (tensor.shape, tensor.dtype.name) == (shape, dtype)


def test_a_device_is_a_tuple_with_a_name() -> None:
    device = take(VALUES).device
    assert device == (1, 0)
    assert device == arrowdl.Device("cpu")
    assert device == arrowdl.Device(1, 7)  # there is one CPU
    assert device != (2, 0)
    assert device != "cpu"
    assert (device.type, device.id, device.name) == (1, 0, "cpu")
    assert tuple(device) == (1, 0)
    assert hash(device) == hash((1, 0))
    assert {(1, 0): "found"}[device] == "found"
    assert repr(arrowdl.Device("cuda", 2)) == 'Device("cuda", 2)'


def test_device_types_are_those_of_dlpack() -> None:
    numbers = {
        "cpu": 1,
        "cuda": 2,
        "cuda_host": 3,
        "opencl": 4,
        "vulkan": 7,
        "metal": 8,
        "vpi": 9,
        "rocm": 10,
        "rocm_host": 11,
        "ext_dev": 12,
        "cuda_managed": 13,
        "oneapi": 14,
        "webgpu": 15,
        "hexagon": 16,
        "maia": 17,
        "trainium": 18,
        "tpu": 19,
        "tpu_host": 20,
        "ascend": 21,
    }
    assert {member.name: member.value for member in arrowdl.DeviceType} == numbers
    for name, number in numbers.items():
        assert arrowdl.Device(name, 1) == arrowdl.Device(number, 1)
        assert arrowdl.Device(arrowdl.DeviceType[name]).name == name


@pytest.mark.parametrize("type", ["gpu", "CPU", "", "99", 0, -1])
def test_an_unknown_device_type_lists_the_known_ones(type: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown.*cpu cuda cuda_host"):
        arrowdl.Device(type)


@pytest.mark.parametrize(
    ("array", "nbytes"),
    [
        (pa.array(range(10), pa.int32()), 40),
        (pa.array(range(10), pa.int32())[3:5], 8),
        (pa.array([1, None, 3], pa.int64()), 24 + 1),
        (pa.array([True] * 17), 3),
        (pa.array(["ab", "", "cde"]), 4 * 4 + 5),
        (pa.array(["ab", "", "cde"])[2:], 2 * 4 + 3),
        (LISTS, 4 * 4 + 5 * 2),
        (LISTS[2:], 2 * 4 + 3 * 2),
        (fixed_size_list(pa.array(range(8), pa.int16()), 2)[1:], 3 * 4),
        (pa.array(["ab", "ab"]).dictionary_encode(), 2 * 4 + 2 * 4 + 2),
        (STRUCT, 3 * 8 + 4 * 4 + 3),
        (pa.nulls(5), 0),
    ],
    ids=str,
)
def test_nbytes_is_what_the_window_takes(array: pa.Array, nbytes: int) -> None:
    assert take(array).nbytes == nbytes


def test_null_count_is_of_the_window() -> None:
    array = take(VALUES)
    assert [array[start:].null_count for start in range(6)] == [1, 1, 0, 0, 0, 0]
    assert take(pa.nulls(4))[1:].null_count == 3


@pytest.mark.parametrize("name", ["__cuda_array_interface__", "__sycl_usm_array_interface__"])
def test_interfaces_of_other_devices_are_absent_on_the_cpu(name: str) -> None:
    """Consumers look for them before they look at the device."""
    assert not hasattr(take(VALUES.drop_null()), name)
    assert not hasattr(arrowdl.to_arrow_device(np.zeros(3)), name)


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize("start", [None, -9, -5, -2, 0, 1, 4, 5, 9])
@pytest.mark.parametrize("stop", [None, -9, -2, 0, 1, 3, 5, 9])
def test_slices_are_those_of_a_list(start: int | None, stop: int | None) -> None:
    window = take(VALUES)[start:stop]
    assert pa.array(window).to_pylist() == VALUES.to_pylist()[start:stop]
    assert len(window) == len(VALUES.to_pylist()[start:stop])


@pytest.mark.parametrize("array", [VALUES, STRUCT, LISTS, VALUES.dictionary_encode()], ids=str)
def test_slices_of_slices_add_up(array: pa.Array) -> None:
    assert pa.array(take(array[1:])[1:][0:1]).to_pylist() == array.to_pylist()[2:3]


def test_a_slice_shares_memory() -> None:
    whole = pa.array(range(10), pa.int64())
    assert address_of(arrowdl.to_numpy(take(whole)[2:4])) == data_address(whole) + 16


@pytest.mark.parametrize("step", [2, -1])
def test_a_step_is_refused(step: int) -> None:
    with pytest.raises(ValueError, match=f"got step {step}"):
        take(VALUES)[::step]


@pytest.mark.parametrize("key", [0, 1.5, None, (0, 1), [0]])
def test_rows_are_not_taken_one_by_one(key: Any) -> None:
    with pytest.raises(TypeError, match="a slice of rows or the name of a field"):
        take(VALUES)[key]


def test_an_array_is_no_sequence() -> None:
    with pytest.raises(TypeError):
        iter(take(VALUES))
    assert bool(take(VALUES))
    assert not take(VALUES)[:0]


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("key", ["b", 1, -1])
def test_fields_are_taken_by_name_and_number(key: Any) -> None:
    assert pa.array(take(STRUCT).field(key)).to_pylist() == ["x", "yy", ""]
    assert pa.array(take(STRUCT)[1:].field(key)).to_pylist() == ["yy", ""]


def test_fields_are_taken_by_subscript() -> None:
    array = take(STRUCT)
    assert array.field_names == ["a", "b"]
    assert pa.array(array["a"]).to_pylist() == [1, 2, 3]
    assert take(VALUES).field_names == []


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        ("c", (KeyError, ValueError), 'no field "c"'),
        (2, IndexError, "field 2 of a struct of 2"),
        (-3, IndexError, "field -3 of a struct of 2"),
        (1.5, TypeError, "name or index"),
        (None, TypeError, "name or index"),
    ],
)
def test_a_field_that_is_not_there_is_an_error(key: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        take(STRUCT).field(key)


def test_fields_of_one_name_are_taken_by_number() -> None:
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(ValueError, match="use the index"):
        take(struct)["a"]
    assert pa.array(take(struct).field(1)).to_pylist() == [2]


@pytest.mark.parametrize("array", [VALUES, LISTS, VALUES.dictionary_encode()], ids=str)
def test_only_structs_have_fields(array: pa.Array) -> None:
    with pytest.raises((TypeError, ValueError), match=r"struct|no field"):
        take(array).field("a")
    with pytest.raises((TypeError, IndexError)):
        take(array).field(0)


def test_values_and_offsets_are_those_of_the_window() -> None:
    array = take(LISTS)
    assert pa.array(array.values).to_pylist() == [1, 2, 3, 4, 5]
    assert pa.array(array.offsets).to_pylist() == [0, 2, 2, 5]
    assert pa.array(array[1:].values).to_pylist() == [3, 4, 5]
    assert pa.array(array[1:].offsets).to_pylist() == [0, 0, 3]
    assert address_of(arrowdl.to_numpy(array.values)) == data_address(LISTS.values)


def test_values_of_strings_are_bytes() -> None:
    array = take(pa.array(["ab", "c"]))
    assert bytes(arrowdl.to_numpy(array.values)) == b"abc"
    assert arrowdl.to_numpy(array.offsets).tolist() == [0, 2, 3]


def test_values_of_fixed_size_lists_are_their_elements() -> None:
    array = take(fixed_size_list(pa.array(range(6), pa.int8()), 2))
    assert arrowdl.to_numpy(array[1:].values).tolist() == [2, 3, 4, 5]
    with pytest.raises((TypeError, ValueError)):
        _ = array.offsets


@pytest.mark.parametrize("part", ["values", "offsets", "indices", "dictionary"])
def test_a_part_that_is_not_there_is_an_error(part: str) -> None:
    with pytest.raises((TypeError, ValueError), match="int32"):
        getattr(take(VALUES), part)


def test_indices_and_dictionary_are_taken_apart() -> None:
    array = take(pa.array(["b", None, "a", "b"]).dictionary_encode())[1:]
    assert pa.array(array.indices).to_pylist() == [None, 1, 0]
    assert array.indices.type == "int32"
    assert pa.array(array.dictionary).to_pylist() == ["b", "a"]


def test_validity_is_the_bitmap_of_the_window() -> None:
    array = take(VALUES)
    assert pa.array(array.validity).to_pylist() == [True, False, True, True, True]
    assert pa.array(array[1:3].validity).to_pylist() == [False, True]
    assert take(VALUES.drop_null()).validity is None
    assert take(pa.nulls(2)).validity is None


# ---------------------------------------------------------------- schema


def test_a_schema_tells_the_arrow_type() -> None:
    schema = take(STRUCT).schema
    assert (schema.format, schema.name, schema.nullable) == ("+s", "", True)
    assert [(child.name, child.format) for child in schema.children] == [("a", "l"), ("b", "u")]
    assert schema.dictionary is None
    assert schema.metadata == {}
    assert pa.DataType._import_from_c_capsule(schema.__arrow_c_schema__()) == STRUCT.type
    assert "struct<a: int64, b: string>" in repr(schema)


def test_a_schema_keeps_metadata_nullability_and_dictionaries() -> None:
    field = pa.field(
        "x", pa.dictionary(pa.int8(), pa.string()), nullable=False, metadata={"k": "v"}
    )
    column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), ["a"])
    batch = pa.RecordBatch.from_arrays([column], schema=pa.schema([field], metadata={"m": "\xff"}))
    schema = take(batch).schema
    assert schema.metadata == {b"m": "\xff".encode()}
    child = schema.children[0]
    assert (child.name, child.format, child.nullable) == ("x", "c", False)
    assert child.metadata == {b"k": b"v"}
    assert child.dictionary is not None
    assert child.dictionary.format == "u"
    assert pa.field(child) == field


def test_a_schema_outlives_its_array() -> None:
    array = take(STRUCT)
    child = array.schema.children[1]
    array.release()
    del array
    gc.collect()
    assert child.name == "b"
    assert pa.field(child).type == pa.string()


def test_an_array_gives_its_schema_as_a_capsule() -> None:
    assert pa.DataType._import_from_c_capsule(take(LISTS).__arrow_c_schema__()) == LISTS.type


# ---------------------------------------------------------------- life


def test_release_gives_the_memory_back_now() -> None:
    schema, array = MadeSchema("i"), MadeArray(3, [None, np.arange(3, dtype="int32")])
    device_array = take((schema.capsule(), array.capsule()))
    assert not device_array.is_released
    device_array.release()
    assert device_array.is_released
    assert (schema.released, array.released) == (1, 1)
    device_array.release()
    assert array.released == 1


def test_exports_made_before_release_stay_valid() -> None:
    array = take(VALUES[2:])
    tensor, column, part = np.from_dlpack(array), pa.array(array), array[1:]
    array.release()
    assert tensor.tolist() == column.to_pylist() == [3, 4, 5]
    assert arrowdl.to_numpy(part).tolist() == [4, 5]


USES = {
    "len": len,
    "slice": lambda array: array[:1],
    "field": lambda array: array["a"],
    "dlpack": lambda array: array.__dlpack__(),
    "dlpack_device": lambda array: array.__dlpack_device__(),
    "arrow": lambda array: array.__arrow_c_array__(),
    "arrow device": lambda array: array.__arrow_c_device_array__(),
    "arrow schema": lambda array: array.__arrow_c_schema__(),
    "numpy": np.asarray,
    "from_arrow": arrowdl.from_arrow,
    "to_torch": arrowdl.to_torch,
    "html": lambda array: array._repr_html_(),
    **{
        name: lambda array, name=name: getattr(array, name)
        for name in (
            "type",
            "schema",
            "shape",
            "dtype",
            "device",
            "nbytes",
            "null_count",
            "field_names",
            "values",
            "offsets",
            "indices",
            "dictionary",
            "validity",
        )
    },
}


@pytest.mark.parametrize("use", USES)
def test_use_after_release_is_an_error_that_says_so(use: str) -> None:
    array = take(VALUES)
    array.release()
    with pytest.raises(ValueError, match="has been released"):
        USES[use](array)


def test_repr_after_release_says_so() -> None:
    array = take(VALUES)
    array.release()
    assert "released" in repr(array)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused_with_advice(protocol: int) -> None:
    with pytest.raises(TypeError, match=r"pyarrow\.array\(arr\)"):
        pickle.dumps(take(VALUES), protocol)


def test_equality_is_identity() -> None:
    array = take(VALUES)
    assert array == array
    assert array != take(VALUES)
    assert len({array, array[:], array}) == 2


def test_it_cannot_be_made_or_subclassed_from_python() -> None:
    with pytest.raises(TypeError):
        arrowdl.DeviceArray()
    with pytest.raises(TypeError):
        type("Sub", (arrowdl.DeviceArray,), {})


def test_it_takes_weak_references_and_no_attributes() -> None:
    array = take(VALUES)
    reference = weakref.ref(array)
    assert reference() is array
    with pytest.raises(AttributeError):
        array.note = 1
    with pytest.raises(AttributeError):
        array.shape = (1,)
    del array
    assert reference() is None


def test_a_name_that_is_no_utf8_is_shown_escaped() -> None:
    child_schema, child = MadeSchema("i"), MadeArray(2, [None, np.arange(2, dtype="int32")])
    child_schema.struct.name = b"a\xff"
    schema = MadeSchema("+s", children=[child_schema])
    array = MadeArray(2, [None], children=[child])
    struct = arrowdl.from_arrow((schema.capsule(), array.capsule()))
    assert "a\\xff" in repr(struct)
    assert "a\\xff" in struct._repr_html_()
    with pytest.raises(UnicodeDecodeError):
        arrowdl.to_numpy(struct)


def test_the_arguments_of_array_are_taken_once() -> None:
    array = arrowdl.from_arrow(pa.array([1, 2]))
    assert array.__array__("int64", copy=True).tolist() == [1, 2]
    with pytest.raises(TypeError, match="several values for the argument 'dtype'"):
        array.__array__("int64", dtype="int32")
    with pytest.raises(TypeError, match="several values for the argument 'copy'"):
        array.__array__(None, True, copy=False)


# ---------------------------------------------------------------- to another device


@pytest.mark.parametrize(
    "device", ["cpu", "cpu:0", (1, 0), arrowdl.Device("cpu"), torch.device("cpu")], ids=str
)
def test_to_where_it_lies_is_the_same_memory(device):
    array = arrowdl.to_arrow_device(np.arange(3.0))
    there = array.to(device)
    assert there.device == arrowdl.Device("cpu")
    assert np.from_dlpack(there).ctypes.data == np.from_dlpack(array).ctypes.data


@pytest.mark.parametrize(
    "device", ["cuda", "rocm:1", "cuda_host", torch.device("cuda", 0)], ids=str
)
def test_to_a_device_without_a_runtime_says_what_is_missing(device):
    array = arrowdl.to_arrow_device(np.arange(3.0))
    with pytest.raises(BufferError, match=r"is not installed|no device"):
        array.to(device)


@pytest.mark.parametrize(
    ("device", "error", "words"),
    [
        ("gpu", ValueError, "'gpu' is unknown"),
        ("cuda:x", ValueError, "no number behind the colon"),
        ("cuda:", ValueError, "no number behind the colon"),
        ("cuda:-1", ValueError, "a device id is 0 or more"),
        (("cuda:1", 2), ValueError, "has an id already"),
        (torch.zeros(1), TypeError, "a device is a Device"),
        (torch.device("cuda"), BufferError, "no current device"),
        (99, TypeError, "a device is a Device"),
        ((0, 0), ValueError, "0 is unknown"),
        ((99, 0), BufferError, "no backend"),
        (None, TypeError, "a device is a Device"),
        ("ext_dev", BufferError, "no backend"),
    ],
)
def test_to_something_that_is_no_device(device, error, words):
    array = arrowdl.to_arrow_device(np.arange(3.0))
    with pytest.raises(error, match=words):
        array.to(device)


def test_to_takes_its_options_by_name():
    array = arrowdl.to_arrow_device(np.arange(3.0))
    assert array.to("cpu", stream=None, non_blocking=False)
    assert array.to(device="cpu")
    with pytest.raises(TypeError, match="needs a device"):
        array.to()
    with pytest.raises(TypeError, match="copy"):
        array.to("cpu", copy=True)
    with pytest.raises(BufferError, match="CPU memory has no streams"):
        array.to("cpu", stream=1)


def test_names_of_many_fields_are_their_own() -> None:
    """Strings of names are kept for later batches, in a table that has fewer places."""
    names = [f"{kind}{i}" for i in range(5_000) for kind in ("column ", "ä", "n" * 80)]
    names += ["", "a", "a" * 64, "a" * 65, "\0"[:0] + "日本"]
    for _ in range(2):
        for start in range(0, len(names), 1_000):
            some = list(dict.fromkeys(names[start : start + 1_000]))
            array = arrowdl.from_arrow(pa.record_batch([[1]] * len(some), names=some))
            assert list(arrowdl.to_torch(array)) == some
            assert list(arrowdl.to_numpy(array)) == some


def test_fields_that_are_tensors_as_they_are() -> None:
    table = pa.table({"x": range(10), "y": [1.5] * 10, "n": [None, *range(9)], "s": ["a"] * 10})
    batch = arrowdl.from_arrow(table.to_batches()[0])[3:8]
    assert batch.nbytes == sum(batch.field(name).nbytes for name in batch.field_names)
    assert arrowdl.from_arrow(table.select(["x", "y"]).to_batches()[0])[3:8].nbytes == 80
    made = arrowdl.to_torch(batch, ragged="offsets")
    assert made["x"].tolist() == [3, 4, 5, 6, 7]
    assert made["x"].data_ptr() == arrowdl.to_torch(batch.field("x")).data_ptr()
    assert made["n"].tolist() == [2, 3, 4, 5, 6]  # the null is in another row
    nothing = arrowdl.to_torch(batch[:0], ragged="offsets")
    assert nothing["x"].shape == (0,)
    with pytest.raises(BufferError, match='field "n": '):
        arrowdl.to_torch(arrowdl.from_arrow(table))
    nulls = pa.StructArray.from_arrays(
        [pa.array([1, 2])], names=["x"], mask=pa.array([False, True])
    )
    with pytest.raises(BufferError, match='field "x": '):
        arrowdl.to_torch(nulls)
    filled = arrowdl.to_torch(nulls, nulls="fill")
    assert filled["x"].tolist() == [1, 0]
    copied = arrowdl.to_torch(batch, ragged="offsets", copy=True)
    assert copied["x"].data_ptr() != made["x"].data_ptr()
    cast = arrowdl.to_torch(batch.field("x"), dtype="float32")
    assert cast.tolist() == [3.0, 4.0, 5.0, 6.0, 7.0]


def test_an_iterator_ends_and_says_that_it_is_closed() -> None:
    stream = arrowdl.from_arrow_stream(pa.table({"x": [1, 2]}))
    assert next(stream).field_names == ["x"]
    assert next(stream, None) is None
    with pytest.raises(StopIteration):
        stream.__next__()
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        next(stream)
    assert not list(arrowdl.from_arrow_stream(pa.table({"x": pa.array([], pa.int8())})))
