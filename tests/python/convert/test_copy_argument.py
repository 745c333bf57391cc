"""to_torch, to_jax and to_numpy with copy=: new memory, or none."""

from __future__ import annotations

from typing import Any

import arrowdl
import jax
import numpy as np
import pyarrow as pa
import pytest
import torch

FLOATS = pa.array(np.arange(100, dtype=np.float32))
COLUMNS: dict[str, Any] = {
    "floats": FLOATS,
    "slice": FLOATS.slice(3, 20),
    "vectors": pa.FixedSizeListArray.from_arrays(FLOATS, 4),
    "tensors": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), (2, 2), permutation=[1, 0]),
        pa.FixedSizeListArray.from_arrays(FLOATS, 4),
    ),
    "codes": pa.array(["a", "b", "a"]).dictionary_encode(),
    "dates": pa.array([1, 2], pa.date32()),
    "bytes": pa.array([b"ab", b"cd"], pa.binary(2)),
    "lists": pa.array([[1.0], [], [2.0, 3.0]]),
    "large lists": pa.array([[1], [2, 3]], pa.large_list(pa.int32())),
    "texts": pa.array(["a", "", "bc"]),
    "struct": pa.array([{"a": 1, "b": 2.0}]),
    "record batch": pa.record_batch({"a": [1, 2], "l": [[1], [2]]}),
}
RUNS = pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2])
# What no tensor can share.
COPIED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "bits": (pa.array([True, False]), {}, "bit-packed booleans"),
    "nulls": (pa.array([1.0, None]), {"nulls": "fill"}, "nulls have to be replaced"),
    "runs": (RUNS, {}, "runs have to be decoded"),
    "views": (pa.array(["a" * 20], pa.string_view()), {}, "have to be gathered"),
    "gaps": (
        pa.ListViewArray.from_arrays([4, 0], [2, 2], pa.array(range(6))),
        {},
        "have to be gathered",
    ),
    "padded": (pa.array([[1], [2, 3]]), {"ragged": "padded"}, "rows have to be padded"),
    "stack": (pa.record_batch({"a": [1.0], "b": [2.0]}), {"stack": True}, "copied into one matrix"),
    "chunks": (pa.chunked_array([[1], [2]]), {}, "2 chunks"),
    "field": (pa.record_batch({"a": [True]}), {}, 'field "a".*bit-packed'),
    "runs in a field": (pa.record_batch({"a": RUNS}), {}, 'field "a".*runs have to be decoded'),
    "runs in a field's field": (
        pa.record_batch({"s": pa.StructArray.from_arrays([RUNS], ["a"])}),
        {},
        'field "a".*runs have to be decoded',
    ),
    "runs in lists in a field": (
        pa.record_batch({"a": pa.FixedSizeListArray.from_arrays(RUNS, 3)}),
        {},
        'field "a".*runs have to be decoded',
    ),
    "runs in lists": (pa.ListArray.from_arrays([0, 3], RUNS), {}, "runs have to be decoded"),
    "runs in structs in lists": (
        pa.ListArray.from_arrays([0, 3], pa.StructArray.from_arrays([RUNS], ["a"])),
        {},
        'field "a".*runs have to be decoded',
    ),
}


def leaves_of(tree: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves_of(part)]
    return [tree]


def to_numpy(array: Any, **options: Any) -> list[np.ndarray[Any, Any]]:
    return leaves_of(arrowdl.to_numpy(array, ragged="offsets", **options))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_copy_is_the_callers_own(name: str) -> None:
    array = COLUMNS[name]
    before = array.to_pylist()
    shared, copied = to_numpy(array), to_numpy(array, copy=True)
    for theirs, ours in zip(shared, copied, strict=True):
        np.testing.assert_array_equal(theirs, ours)
        assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
        assert not theirs.flags.writeable
        assert ours.flags.writeable
        assert ours.__array_interface__["data"][0] % 64 == 0
        ours[...] = 77
    assert array.to_pylist() == before


@pytest.mark.parametrize("name", COLUMNS)
def test_without_a_copy_it_is_the_arrays_memory(name: str) -> None:
    array = COLUMNS[name]
    for shared, same in zip(to_numpy(array), to_numpy(array, copy=False), strict=True):
        assert shared.__array_interface__["data"][0] == same.__array_interface__["data"][0]
        assert not same.flags.writeable


@pytest.mark.parametrize("name", COPIED)
def test_a_copy_that_is_needed_can_be_refused(name: str) -> None:
    array, options, why = COPIED[name]
    options = {"ragged": "offsets", **options}
    with pytest.raises(BufferError, match=why):
        arrowdl.to_numpy(array, copy=False, **options)
    for copy in (None, True):
        for leaf in leaves_of(arrowdl.to_numpy(array, copy=copy, **options)):
            assert leaf.flags.writeable or copy is None


def test_torch_and_jax() -> None:
    address = FLOATS.buffers()[1].address
    assert arrowdl.to_torch(FLOATS, copy=False).data_ptr() == address
    tensor = arrowdl.to_torch(FLOATS, copy=True)
    tensor /= 2
    assert FLOATS[2].as_py() == 2.0
    nested = arrowdl.to_torch(pa.array([[1.0], [2.0, 3.0]]), copy=True)
    nested.values().zero_()
    assert arrowdl.to_torch(FLOATS, copy=True, device="cpu").data_ptr() != address
    array = arrowdl.to_jax(FLOATS, copy=True)
    assert array.unsafe_buffer_pointer() != address
    assert jax.numpy.array_equal(array, np.arange(100))
    assert isinstance(tensor, torch.Tensor)


def test_masks_and_copies() -> None:
    array = pa.array([1.0, None, 3.0])
    values, mask = arrowdl.to_numpy(array, nulls="mask", copy=True)
    values[:] = 0
    mask[:] = True
    assert array.to_pylist() == [1.0, None, 3.0]
    values, mask = arrowdl.to_numpy(array, nulls="mask", copy=False)
    assert values.__array_interface__["data"][0] == array.buffers()[1].address
    assert mask.tolist() == [True, False, True]


def test_copy_is_a_bool_or_none() -> None:
    with pytest.raises(TypeError, match="copy"):
        arrowdl.to_torch(FLOATS, copy="yes")
