"""The errors that real libraries make between Arrow and tensors, and arrowdl right about each.

What a peer does is observed, not asserted: the suite warns when one has been mended, so that the
comparison can go, and fails only where arrowdl is wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import permutations
from typing import Any

import arrowdl
import duckdb
import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from helpers.arrays import fixed_size_list
from helpers.arrow import MadeArray, MadeSchema


class PeerIsRightNow(UserWarning):
    """A peer no longer makes the error that a test is about."""


def watch(peer: str, call: Callable[[], Any], right: Any) -> None:
    """Warns if `peer` gives the right answer by now."""
    try:
        answer = np.asarray(call())
    except Exception:
        return
    right = np.asarray(right)
    if answer.shape == right.shape and bool((answer == right).all()):
        warnings.warn(f"{peer} is right now", PeerIsRightNow, stacklevel=2)


class Capsules:
    """A producer of C structs made by hand."""

    def __init__(self, make: Callable[[], tuple[MadeSchema, MadeArray]]) -> None:
        self.make = make

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return tuple(made.capsule() for made in self.make())


def metadata_of(array: arrowdl.DeviceArray) -> dict[str, Any]:
    return json.loads(array.schema.metadata[b"ARROW:extension:metadata"])


# ---------------------------------------------------------------- strides


def test_a_strided_tensor_is_not_read_as_if_contiguous() -> None:
    """pyarrow 26 checks that rows follow one another, and not that they are dense."""
    tensor = np.arange(24).reshape(4, 6)[:, ::2]
    watch(
        "pyarrow.FixedShapeTensorArray.from_dlpack of strides",
        lambda: pa.FixedShapeTensorArray.from_dlpack(tensor).to_numpy_ndarray(),
        tensor,
    )
    array = arrowdl.to_arrow_device(tensor)
    np.testing.assert_array_equal(arrowdl.to_numpy(array), tensor)
    assert pa.array(array).storage.to_pylist() == tensor.tolist()
    with pytest.raises(BufferError):
        arrowdl.to_arrow_device(tensor, copy=False)


def test_a_broadcast_tensor_is_not_read_past_its_end() -> None:
    """pyarrow 26 refuses one row for all, but takes one element for a whole row as dense."""
    column = torch.arange(12, dtype=torch.int32)[:4].reshape(4, 1).expand(4, 3)
    watch(
        "pyarrow.FixedShapeTensorArray.from_dlpack of broadcast elements",
        lambda: pa.FixedShapeTensorArray.from_dlpack(column).to_numpy_ndarray(),
        column,
    )
    row = torch.arange(3, dtype=torch.int32).expand(4, 3)
    for tensor in (column, row):
        array = arrowdl.to_arrow_device(tensor)
        assert pa.array(array).storage.to_pylist() == tensor.tolist()
        with pytest.raises(BufferError):
            arrowdl.to_arrow_device(tensor, copy=False)


# ---------------------------------------------------------------- permutations


@pytest.mark.parametrize("permutation", list(permutations(range(3))), ids=str)
def test_logical_dimension_i_is_physical_dimension_permutation_i(
    permutation: tuple[int, ...],
) -> None:
    """pyarrow 26 reads the inverse where the two differ, and a row unlike the array it is of."""
    physical = np.arange(60, dtype="int32").reshape(2, 2, 3, 5)
    logical = physical.transpose(0, *(p + 1 for p in permutation))
    storage = pa.FixedSizeListArray.from_arrays(pa.array(physical.ravel()), 30)
    type = pa.fixed_shape_tensor(pa.int32(), (2, 3, 5), permutation=permutation)
    array = pa.ExtensionArray.from_storage(type, storage)
    if permutation in ((1, 2, 0), (2, 0, 1)):
        watch("pyarrow's to_numpy_ndarray of cycles", array.to_numpy_ndarray, logical)
    if permutation[0] != 0:
        watch(
            "pyarrow's FixedShapeTensorScalar.to_numpy",
            lambda: array[0].to_tensor().to_numpy(),
            logical[0],
        )
    np.testing.assert_array_equal(arrowdl.to_numpy(array), logical)
    np.testing.assert_array_equal(arrowdl.to_torch(array).numpy(), logical)


def test_channels_last_images_come_back_right_for_unequal_sides() -> None:
    """The permutation and its inverse agree as long as all sides are equal: these are not."""
    images = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    array = arrowdl.to_arrow_device(images, copy=False)
    metadata = metadata_of(array)
    assert metadata["shape"] == [4, 5, 3]  # as it lies in memory: height, width, channels
    assert metadata["permutation"] == [2, 0, 1]  # logical channels are physical dimension 2
    watch(
        "pyarrow.FixedShapeTensorArray.from_dlpack of channels_last",
        lambda: pa.FixedShapeTensorArray.from_dlpack(images).type.permutation,
        [2, 0, 1],
    )
    for back in (torch.from_dlpack(array), arrowdl.to_torch(pa.array(array))):
        assert torch.equal(back, images)
        assert back.stride() == images.stride()
        assert back.data_ptr() == images.data_ptr()


# ---------------------------------------------------------------- offsets


def test_the_offset_of_an_outer_level_and_that_of_a_child_both_count() -> None:
    """pyarrow 26's fixed-shape tensors leave out that of the child, nanoarrow's buffers both."""
    child = pa.array(range(24), pa.int32())[2:]
    storage = pa.FixedSizeListArray.from_arrays(child, 2)[1:4]
    right = [[4, 5], [6, 7], [8, 9]]
    assert storage.to_pylist() == right
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), (2,)), storage)
    watch("pyarrow's to_numpy_ndarray of slices", tensors.to_numpy_ndarray, right)
    watch(
        "nanoarrow's buffers of slices",
        lambda: np.from_dlpack(list(na.Array(storage).child(0).buffers)[1])[:6].reshape(3, 2),
        right,
    )
    assert arrowdl.to_numpy(storage).tolist() == right
    assert arrowdl.to_numpy(tensors).tolist() == right


def test_offsets_count_once_each_when_the_child_has_its_own() -> None:
    """`fixed_size_list(..., offset=1)` keeps both apart, as other writers do."""
    child = pa.array(range(24), pa.int32())[2:]
    array = fixed_size_list(child, 2, offset=1, length=3)
    assert array.to_pylist() == [[4, 5], [6, 7], [8, 9]]
    assert arrowdl.to_numpy(array).tolist() == array.to_pylist()
    assert arrowdl.to_numpy(array[1:]).tolist() == array.to_pylist()[1:]


# ---------------------------------------------------------------- nulls


def test_nulls_in_a_child_are_not_read_as_zeros() -> None:
    """pyarrow 26's fixed-shape tensors look at the validity of whole rows only."""
    storage = pa.array([[1, None], [3, 4]], pa.list_(pa.int32(), 2))
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), (2,)), storage)

    def refuses() -> bool:
        try:
            tensors.to_numpy_ndarray()
        except pa.ArrowInvalid:
            return True
        return False

    watch("pyarrow's to_numpy_ndarray of null elements", refuses, True)
    for array in (storage, tensors):
        with pytest.raises(BufferError, match="nulls"):
            arrowdl.to_numpy(array)
        with pytest.raises(BufferError, match="nulls"):
            np.from_dlpack(arrowdl.from_arrow(array))
        assert arrowdl.to_numpy(array, nulls="mask")[1].tolist() == [[True, False], [True, True]]


def test_a_null_of_a_database_is_not_a_zero() -> None:
    """duckdb 2.0's own `.torch()` makes it one."""
    relation = duckdb.sql("select * from (values (1), (null), (3)) t(a)")

    def refuses() -> bool:
        try:
            relation.torch()
        except Exception:
            return True
        return False

    watch("duckdb's torch()", refuses, True)
    with pytest.raises(BufferError, match=r'field "a".*nulls'):
        arrowdl.to_torch(relation)
    assert arrowdl.to_torch(relation, nulls="mask")["a"][1].tolist() == [True, False, True]


def test_integers_with_nulls_do_not_become_floats() -> None:
    """polars 2.1's `to_torch` widens them, and int64 does not fit float64."""
    big = 2**53 + 1
    series = pl.Series([big, None], dtype=pl.Int64)
    frame = series.to_frame("x")
    watch("polars' to_torch of int64 with nulls", lambda: int(frame.to_torch()[0, 0]), big)
    values, mask = arrowdl.to_torch(series, nulls="mask")
    assert values.dtype is torch.int64
    assert values[mask].tolist() == [big]


@pytest.mark.parametrize("valid", [0b1111, 0b1011], ids=["no nulls", "a null"])
def test_an_unknown_null_count_is_not_taken_for_none(valid: int) -> None:
    """The trap is `null_count > 0`: nanoarrow's `c_array(x).null_count` says -1 as it stands."""

    def make() -> tuple[MadeSchema, MadeArray]:
        buffers = [np.array([valid], "uint8"), np.array([10, 20, 30, 40], "int32")]
        return MadeSchema("i"), MadeArray(4, buffers, null_count=-1)

    count = 4 - valid.bit_count()
    watch("nanoarrow's c_array().null_count", lambda: na.c_array(Capsules(make)).null_count, count)
    array = arrowdl.from_arrow(Capsules(make))
    assert array.null_count == count
    if count == 0:
        assert np.from_dlpack(array).tolist() == [10, 20, 30, 40]
    else:
        with pytest.raises(BufferError, match="nulls"):
            np.from_dlpack(array)


# ---------------------------------------------------------------- no elements


def crashes(code: str) -> bool:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return done.returncode != 0 and b"Traceback" not in done.stderr  # a sanitizer exits with 1


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (0, 0), (2, 0, 3), (0, 3, 2)], ids=str)
def test_a_tensor_without_elements_goes_both_ways(shape: tuple[int, ...]) -> None:
    for tensor in (np.zeros(shape, "int32"), torch.zeros(shape)):
        array = arrowdl.to_arrow_device(tensor)
        assert array.shape == shape
        assert arrowdl.to_numpy(array).shape == shape
        assert tuple(torch.from_dlpack(array).shape) == shape
        assert len(pa.array(array)) == shape[0]


def test_a_tensor_of_no_rows_does_not_crash_the_process() -> None:
    """pyarrow 26 divides by zero at (0, 3) and is gone."""
    make = "import numpy as np, pyarrow as pa, arrowdl; x = np.zeros((0, 3), 'int32'); "
    peer_crashes = crashes(make + "pa.FixedShapeTensorArray.from_dlpack(x)")
    watch("pyarrow.FixedShapeTensorArray.from_dlpack of (0, 3)", lambda: peer_crashes, False)
    assert not crashes(make + "print(len(arrowdl.to_arrow_device(x)))")


NULL_BUFFERS = [("i", 2), ("b", 2), ("u", 3), ("U", 3), ("z", 3), ("w:3", 2), ("+l", 2), ("+L", 2)]


@pytest.mark.parametrize(("format", "buffers"), NULL_BUFFERS)
@pytest.mark.parametrize("in_struct", [False, True])
def test_an_empty_array_with_null_buffers_is_an_empty_array(
    format: str, buffers: int, in_struct: bool
) -> None:
    """Offsets that are NULL make pyarrow 26 and arro3 raise, and polars 2.1 panic."""
    has_items = format.startswith("+")
    items = [MadeArray(0, [None, None])] if has_items else []
    array = MadeArray(0, [None] * buffers, null_count=-1, children=items)
    schema = MadeSchema(format, "x", children=[MadeSchema("b")] if has_items else [])
    if in_struct:
        array = MadeArray(0, [None], children=[array])
        schema = MadeSchema("+s", children=[schema])
    capsules = schema.capsule(), array.capsule()
    read = arrowdl.from_arrow(capsules)
    assert len(read) == read.null_count == 0
    arrowdl.to_numpy(read)
    column = pa.array(read)
    column.validate(full=True)
    assert column.to_pylist() == pl.Series(read).to_list() == []


# ---------------------------------------------------------------- requested schemas


class Stubborn:
    """Gives int64 whatever is asked for, as the protocol allows."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return pa.array([1, 2, 300]).__arrow_c_array__()


def test_a_producer_that_ignores_the_requested_schema_is_not_misread() -> None:
    """`na.c_array(x, na.int8())` of nanoarrow 0.9 hands int64 out under no warning."""
    watch(
        "nanoarrow.c_array of a producer that ignores the schema",
        lambda: str(na.c_array(Stubborn(), na.int16()).schema.format),
        "s",
    )
    array = arrowdl.from_arrow(Stubborn())
    assert array.type == "int64"
    assert arrowdl.to_numpy(array).tolist() == [1, 2, 300]


def test_an_array_has_the_type_that_it_says_whatever_is_requested() -> None:
    array = arrowdl.from_arrow(pa.array([1, 2, 300]))
    with pytest.raises(ValueError, match="row 2 of int64 is 300, which int8 cannot hold"):
        array.__arrow_c_array__(pa.int8().__arrow_c_schema__())
    for wanted in (pa.int16(), pa.timestamp("s")):
        schema, _ = array.__arrow_c_array__(wanted.__arrow_c_schema__())
        assert pa.DataType._import_from_c_capsule(schema) == wanted
    with pytest.raises(ValueError, match="int64 is requested as"):
        array.__arrow_c_array__(pa.string().__arrow_c_schema__())


# ---------------------------------------------------------------- bit offsets


def test_bits_are_read_from_their_offset() -> None:
    """nanoarrow's buffers and their `__dlpack__` begin at bit 0 of the byte."""
    bits = pa.array([True, False, False, True, True])[1:]
    right = [False, False, True, True]
    buffer = list(na.Array(bits).buffers)[1]
    watch("nanoarrow's bits of slices", lambda: list(buffer.elements())[:4], right)
    assert arrowdl.to_numpy(bits).tolist() == right


def test_validity_is_read_from_its_offset() -> None:
    array = pa.array([1, None, 3, None, 5, 6])[3:]
    right = [False, True, True]
    buffer = next(iter(na.Array(array).buffers))
    watch("nanoarrow's validity of slices", lambda: list(buffer.elements())[:3], right)
    assert arrowdl.to_numpy(array, nulls="mask")[1].tolist() == right
    assert arrowdl.to_numpy(arrowdl.from_arrow(array).validity).tolist() == right
