"""Tensors inside other things: dicts, TensorDicts, torch's nested tensors, masks."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from types import MappingProxyType

import arrowdl
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.dlpack import MadeTensor


def read(thing, **options) -> pa.Array:
    return pa.array(arrowdl.to_arrow_device(thing, **options))


def field_address(array: pa.StructArray, name: str) -> int:
    return array.field(name).buffers()[1].address


# ---------------------------------------------------------------- mappings


def test_a_dict_of_tensors_becomes_a_struct_without_a_copy():
    ids = torch.arange(3)
    weights = np.array([0.5, 1.5, 2.5])
    counts = jnp.arange(3, dtype=jnp.int32)
    array = arrowdl.to_arrow_device({"id": ids, "w": weights, "n": counts}, copy=False)
    struct = pa.array(array)
    assert struct.to_pylist() == [{"id": i, "w": i + 0.5, "n": i} for i in range(3)]
    assert array.field_names == ["id", "w", "n"]
    assert field_address(struct, "id") == ids.data_ptr()
    assert field_address(struct, "w") == weights.ctypes.data
    assert field_address(struct, "n") == counts.unsafe_buffer_pointer()
    assert pa.record_batch(array).num_columns == 3


def test_tensors_of_rows_keep_their_types_inside_a_struct():
    images = torch.arange(24.0).reshape(2, 3, 2, 2).to(memory_format=torch.channels_last)
    array = arrowdl.to_arrow_device({"x": images, "y": torch.tensor([True, False])}, copy=False)
    assert array.field("x").shape == (2, 3, 2, 2)
    back = torch.from_dlpack(array["x"])
    assert torch.equal(back, images)
    assert back.data_ptr() == images.data_ptr()
    assert pa.array(array).type.field("y").type == pa.bool8()


def test_a_nested_dict_becomes_a_nested_struct():
    array = read({"a": {"b": np.arange(2), "c": {"d": np.ones(2)}}, "e": np.zeros(2)})
    assert array.to_pylist()[1] == {"a": {"b": 1, "c": {"d": 1.0}}, "e": 0.0}


@pytest.mark.parametrize("make", [OrderedDict, UserDict, MappingProxyType])
def test_any_mapping_is_a_struct(make):
    assert read(make({"a": np.arange(2)})).to_pylist() == [{"a": 0}, {"a": 1}]


def test_an_empty_dict_is_an_empty_struct():
    assert read({}).type == pa.struct([])
    assert len(arrowdl.to_arrow_device({})) == 0


def test_options_reach_every_field():
    tensors = {"flag": np.array([True, False]), "rows": np.zeros((2, 3)), "deep": {"f": [True]}}
    tensors["deep"] = {"f": np.array([False, True])}
    struct = read(tensors, bool_as="bits", layout="list").type
    assert struct.field("flag").type == pa.bool_()
    assert struct.field("rows").type == pa.list_(pa.float64(), 3)
    assert struct.field("deep").type.field("f").type == pa.bool_()
    with pytest.raises(BufferError, match=r'field "deep": field "f": .*without a copy'):
        arrowdl.to_arrow_device({"deep": {"f": np.arange(6)[::2]}}, copy=False)


def test_the_fields_may_be_empty():
    array = arrowdl.to_arrow_device({"a": np.zeros((0, 3)), "b": np.zeros(0, bool)})
    assert len(array) == 0
    assert array["a"].shape == (0, 3)


def test_one_tensor_may_stand_in_several_fields():
    tensor = torch.arange(2)
    struct = read({"a": tensor, "b": tensor})
    assert field_address(struct, "a") == field_address(struct, "b") == tensor.data_ptr()


def test_a_struct_goes_back_to_a_dict_of_the_same_tensors():
    tensors = {"a": torch.arange(3), "b": {"c": torch.ones(3, 2)}}
    back = arrowdl.to_torch(arrowdl.to_arrow_device(tensors))
    assert back["a"].data_ptr() == tensors["a"].data_ptr()
    assert back["b"]["c"].data_ptr() == tensors["b"]["c"].data_ptr()
    assert torch.equal(back["b"]["c"], tensors["b"]["c"])


def test_a_tensordict_becomes_a_struct():
    from tensordict import TensorDict  # which takes seconds, of torch's compiler

    tensors = TensorDict({"a": torch.arange(2), "b": {"c": torch.ones(2, 3)}}, batch_size=[2])
    array = arrowdl.to_arrow_device(tensors, copy=False)
    assert array.field_names == ["a", "b"]
    assert array["b"]["c"].shape == (2, 3)
    assert field_address(pa.array(array), "a") == tensors["a"].data_ptr()


@pytest.mark.parametrize(
    ("tensors", "error", "said"),
    [
        ({"a": np.arange(2), "b": np.arange(3)}, ValueError, 'field "b" has 3 rows, "a" has 2'),
        (
            {"x": {"a": np.arange(2), "b": np.arange(3)}},
            ValueError,
            'field "x": field "b" has 3 rows',
        ),
        ({"a": torch.ones(2, requires_grad=True)}, BufferError, 'field "a": .*requires grad'),
        ({"a": np.arange(2), "b": "text"}, TypeError, 'field "b": .*type str'),
        ({"a": [1, 2]}, TypeError, 'field "a": .*type list'),
        ({"a": {"b": {"c": None}}}, TypeError, 'field "a": field "b": field "c": '),
        ({"a": np.array(["text"])}, BufferError, 'field "a": '),
        ({1: np.arange(2)}, TypeError, "named by str, got the key 1"),
        ({("a", "b"): np.arange(2)}, TypeError, "named by str"),
    ],
)
def test_what_is_wrong_with_a_field_is_said_with_its_name(tensors, error, said):
    with pytest.raises(error, match=said):
        arrowdl.to_arrow_device(tensors)


def test_fields_on_several_devices_are_refused_by_name():
    there = MadeTensor(np.arange(2), device=(3, 0))
    with pytest.raises(ValueError, match='field "there" is on cuda_host:0, "here" on cpu:0'):
        arrowdl.to_arrow_device({"here": np.arange(2), "there": there.capsule()})
    assert there.released == 1


def test_errors_with_constructors_of_their_own_name_the_field_too():
    class Odd(BufferError):
        def __init__(self, code: int, text: str) -> None:
            super().__init__(code, text)

    class Refusing:
        def __dlpack__(self, **_):
            raise Odd(7, "not this one")

    with pytest.raises(BufferError, match=r'field "x": .*not this one') as caught:
        arrowdl.to_arrow_device({"x": Refusing()})
    assert isinstance(caught.value.__cause__, Odd)


def test_a_failing_field_releases_those_before_it():
    first = MadeTensor(np.arange(2))
    with pytest.raises(TypeError):
        arrowdl.to_arrow_device({"a": first.capsule(), "b": object()})
    assert first.released == 1


def test_the_fields_live_as_long_as_one_part_of_the_struct():
    made = [MadeTensor(np.arange(2)), MadeTensor(np.arange(2))]
    array = arrowdl.to_arrow_device({"a": made[0].capsule(), "b": made[1].capsule()})
    field = array["b"]
    del array
    assert [m.released for m in made] == [0, 0]
    assert pa.array(field).to_pylist() == [0, 1]
    del field
    assert [m.released for m in made] == [1, 1]


# ---------------------------------------------------------------- nested tensors


ROWS = [[1.0, 2.0], [], [3.0, 4.0, 5.0], [6.0]]


def jagged(rows=ROWS, **options) -> torch.Tensor:
    return torch.nested.nested_tensor(
        [torch.tensor(row) for row in rows], layout=torch.jagged, **options
    )


def test_a_jagged_tensor_becomes_a_list_without_a_copy():
    nested = jagged()
    array = arrowdl.to_arrow_device(nested, copy=False)
    lists = pa.array(array)
    assert lists.type == pa.large_list(pa.float32())
    assert lists.to_pylist() == ROWS
    assert lists.values.buffers()[1].address == nested.values().data_ptr()
    assert lists.buffers()[1].address == nested.offsets().data_ptr()


def test_a_jagged_tensor_with_inner_dimensions():
    rows = [torch.arange(6.0).reshape(2, 3), torch.arange(3.0).reshape(1, 3)]
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    array = arrowdl.to_arrow_device(nested, layout="list", copy=False)
    assert pa.array(array).to_pylist() == [row.tolist() for row in rows]
    assert arrowdl.to_arrow_device(nested).values.shape == (3, 3)


def test_a_jagged_tensor_comes_back():
    nested = jagged()
    back = arrowdl.to_torch(arrowdl.to_arrow_device(nested))
    assert [row.tolist() for row in back.unbind()] == ROWS
    assert back.values().data_ptr() == nested.values().data_ptr()


def holes() -> torch.Tensor:
    return torch.nested.nested_tensor_from_jagged(
        torch.arange(10.0), torch.tensor([0, 4, 7, 10]), lengths=torch.tensor([2, 3, 1])
    )


def test_a_jagged_tensor_with_holes_is_copied_if_copy_allows():
    with pytest.raises(BufferError, match=r"holes.*without a copy"):
        arrowdl.to_arrow_device(holes(), copy=False)
    assert read(holes()).to_pylist() == [[0, 1], [4, 5, 6], [7]]


def test_a_jagged_tensor_that_is_narrowed_is_read_in_its_window():
    base = torch.arange(12.0).reshape(3, 4)
    nested = torch.nested.narrow(
        base, 1, torch.tensor([0, 1, 2]), torch.tensor([2, 3, 1]), layout=torch.jagged
    )
    assert read(nested).to_pylist() == [[0, 1], [5, 6, 7], [10]]


@pytest.mark.parametrize("copy", [None, False, True])
def test_a_ragged_dimension_that_was_moved_is_refused(copy):
    rows = [torch.arange(6.0).reshape(2, 3), torch.arange(3.0).reshape(1, 3)]
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged).transpose(1, 2)
    with pytest.raises(BufferError, match=r"transpose\(1, 2\)"):
        arrowdl.to_arrow_device(nested, copy=copy)
    back = arrowdl.to_arrow_device(nested.transpose(1, 2))
    assert pa.array(back).to_pylist() == [row.tolist() for row in rows]


def test_a_field_name_with_a_nul_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        arrowdl.to_arrow_device({"a\0b": torch.arange(2)})


def test_a_mask_may_be_an_arrow_array():
    array = arrowdl.to_arrow_device(torch.arange(3), mask=pa.array([True, False, True]))
    assert pa.array(array).to_pylist() == [0, None, 2]


def test_a_mask_adds_to_the_nulls_that_are_there():
    array = arrowdl.to_arrow_device(pa.array([None, 1, 2]), mask=np.array([True, False, True]))
    assert pa.array(array).to_pylist() == [None, None, 2]


def test_a_mask_that_is_no_tensor_is_named():
    with pytest.raises(TypeError, match="mask must be"):
        arrowdl.to_arrow_device(torch.arange(2), mask=[True, False])


def test_arrow_data_in_a_dict_keeps_its_type():
    times = pa.array([1, None], pa.timestamp("us", "UTC"))
    words = pa.array(["a", None]).dictionary_encode()
    array = arrowdl.to_arrow_device(
        {"t": times, "w": arrowdl.from_arrow(words), "s": pa.array(["x", None])}
    )
    batch = pa.record_batch(array)
    assert batch.schema.types == [times.type, words.type, pa.string()]
    assert batch.to_pylist() == [
        {"t": times[0].as_py(), "w": "a", "s": "x"},
        {"t": None, "w": None, "s": None},
    ]


@pytest.mark.parametrize("length", [0, 1])
def test_a_jagged_tensor_of_empty_rows(length):
    nested = torch.nested.nested_tensor_from_jagged(
        torch.zeros(0), torch.zeros(length + 1, dtype=torch.int64)
    )
    assert read(nested).to_pylist() == [[]] * length


def test_jagged_elements_keep_their_type():
    nested = torch.nested.as_nested_tensor(
        [torch.tensor([True, False]), torch.tensor([True])], layout=torch.jagged
    )
    assert read(nested).type.value_type == pa.bool8()
    assert read(nested, bool_as="bits").type.value_type == pa.bool_()


def test_a_jagged_tensor_that_requires_grad_is_refused():
    with pytest.raises(BufferError, match=r"requires grad.*detach\(\)"):
        arrowdl.to_arrow_device(jagged(requires_grad=True))
    assert read(jagged(requires_grad=True).detach()).to_pylist() == ROWS


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_strided_nested_tensor_is_refused_with_advice():
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.strided)
    with pytest.raises(BufferError, match=r"layout=torch\.jagged"):
        arrowdl.to_arrow_device(nested)


def test_a_jagged_tensor_may_be_a_field():
    array = arrowdl.to_arrow_device({"a": jagged(), "b": torch.arange(4)})
    assert pa.array(array).field("a").to_pylist() == ROWS


def test_copy_true_shares_no_memory_of_a_jagged_tensor():
    nested = jagged()
    array = arrowdl.to_arrow_device(nested, copy=True)
    nested.values().fill_(9)
    nested.offsets().fill_(0)
    assert pa.array(array).to_pylist() == ROWS


# ---------------------------------------------------------------- masks


@pytest.mark.parametrize("make", [np.array, torch.tensor, jnp.array])
@pytest.mark.parametrize("length", [0, 1, 8, 13])
def test_a_mask_becomes_the_validity_bitmap(make, length):
    valid = np.arange(length) % 3 != 1
    array = arrowdl.to_arrow_device(
        np.arange(length), mask=make(valid.tolist(), dtype=make([True]).dtype)
    )
    assert pa.array(array).to_pylist() == [i if ok else None for i, ok in enumerate(valid)]
    assert array.null_count == length - valid.sum()


def test_a_mask_leaves_the_values_where_they_are():
    tensor = torch.arange(3)
    array = read(tensor, mask=torch.tensor([True, False, True]), copy=False)
    assert array.buffers()[1].address == tensor.data_ptr()
    assert array.to_pylist() == [0, None, 2]


def test_a_mask_of_all_true_leaves_no_bitmap():
    array = arrowdl.to_arrow_device(np.arange(3), mask=np.ones(3, bool))
    assert (array.null_count, array.validity) == (0, None)


def test_a_mask_is_read_at_once_and_not_kept():
    mask = np.array([True, False])
    array = arrowdl.to_arrow_device(np.arange(2), mask=mask)
    mask[:] = True
    assert pa.array(array).to_pylist() == [0, None]
    made = MadeTensor(np.array([True, False]))
    array = arrowdl.to_arrow_device(np.arange(2), mask=made.capsule())
    assert made.released == 1


def test_a_strided_mask_is_read_by_its_strides():
    mask = np.array([True, False, False, True, True, False])[::2]
    assert read(np.arange(3), mask=mask).to_pylist() == [0, None, 2]


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2), (2, 0)])
def test_a_mask_is_of_rows(shape):
    array = read(np.zeros(shape), mask=np.array([False, True]))
    assert array.is_null().to_pylist() == [True, False]


def test_a_mask_of_a_struct_is_of_its_rows():
    array = read({"a": np.arange(2), "b": jnp.arange(2)}, mask=np.array([True, False]))
    assert array.to_pylist() == [{"a": 0, "b": 0}, None]


def test_a_mask_of_a_jagged_tensor_is_of_its_rows():
    mask = torch.tensor([True, False, True, False])
    assert read(jagged(), mask=mask).to_pylist() == [ROWS[0], None, ROWS[2], None]


def test_a_mask_with_bits():
    array = read(np.array([True, True]), mask=np.array([False, True]), bool_as="bits")
    assert array.to_pylist() == [None, True]


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (np.ones(2, bool), r"shape \(2\), expected \(3,\)|shape \(2,\)"),
        (np.ones(4, bool), "expected \\(3,\\)"),
        (np.ones((3, 1), bool), "shape \\(3, 1\\)"),
        (np.array(True), "shape \\(\\)"),
        (np.ones(3, np.uint8), "uint8, expected bool"),
        (np.ones(3), "float64, expected bool"),
    ],
)
@pytest.mark.parametrize("tensor", [np.arange(3), {"a": np.arange(3)}], ids=["array", "dict"])
def test_a_mask_that_does_not_fit_is_refused(tensor, mask, said):
    with pytest.raises(ValueError, match=f"mask.*{said}"):
        arrowdl.to_arrow_device(tensor, mask=mask)


def test_a_mask_elsewhere_is_refused():
    made = MadeTensor(np.ones(3, bool), device=(13, 0))
    with pytest.raises(ValueError, match="mask is on cuda_managed:0, the tensor on cpu:0"):
        arrowdl.to_arrow_device(np.arange(3), mask=made.capsule())
    assert made.released == 1


@pytest.mark.parametrize("mask", [[True, True, True], True, "mask"], ids=repr)
def test_a_mask_that_is_no_tensor_is_a_type_error(mask):
    with pytest.raises(TypeError):
        arrowdl.to_arrow_device(np.arange(3), mask=mask)


def test_masked_values_come_back_with_their_mask():
    tensor = torch.tensor([1.0, 2.0, 3.0])
    mask = torch.tensor([True, False, True])
    values, valid = arrowdl.to_torch(arrowdl.to_arrow_device(tensor, mask=mask), nulls="mask")
    assert values.data_ptr() == tensor.data_ptr()
    assert torch.equal(valid, mask)
