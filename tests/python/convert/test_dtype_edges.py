"""dtype= and its companions where nulls, lists, dictionaries and mappings meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

UNDER_NULLS = pa.array([1, 2, 300, 400], pa.int32())
PAIRS = pa.FixedSizeListArray.from_arrays(UNDER_NULLS, 2, mask=pa.array([False, True]))


@pytest.mark.parametrize(
    "column",
    [
        PAIRS,
        pa.FixedSizeListArray.from_arrays(PAIRS, 1),
        pa.FixedSizeListArray.from_arrays(pa.concat_arrays([PAIRS, PAIRS]), 1).slice(1, 3),
    ],
    ids=["lists", "lists in lists", "slice"],
)
def test_values_under_null_lists_are_not_checked(column: Any) -> None:
    wide = arrowdl.to_numpy(column, nulls="fill")
    narrow = arrowdl.to_numpy(column, nulls="fill", dtype="int8")
    assert narrow.dtype == np.int8
    np.testing.assert_array_equal(narrow, wide)
    with pytest.raises(ValueError, match="row 1: 300 is beyond the range of int8"):
        arrowdl.to_numpy(pa.FixedSizeListArray.from_arrays(UNDER_NULLS, 2), dtype="int8")


def test_lists_of_that_dtype_need_no_copy() -> None:
    pairs = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4], pa.float32()), 2)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pairs)
    own = arrowdl.to_numpy(pairs)
    assert np.shares_memory(own, arrowdl.to_numpy(pairs, dtype="float32", copy=False))
    assert np.shares_memory(own, arrowdl.to_numpy(lists, dtype="float32", copy=False)[0])
    with pytest.raises(BufferError, match="its numbers have to be cast"):
        arrowdl.to_numpy(pairs, dtype="float64", copy=False)


def nullable_codes() -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 0], pa.int32()), pa.array(["a", None]))


@pytest.mark.parametrize(
    "column",
    [
        nullable_codes(),
        pa.FixedSizeListArray.from_arrays(nullable_codes(), 2),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4, 9], pa.int32()), nullable_codes()),
        pa.ListArray.from_arrays(pa.array([0, 1, 4], pa.int32()), nullable_codes()),
    ],
    ids=["codes", "fixed-size lists", "runs", "lists"],
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_codes_of_null_values_are_null(column: Any, dtype: str) -> None:
    table = pa.table({"x": column})
    options: dict[str, Any] = {"ragged": "offsets", "dtype": {"x": dtype}}
    expected = [0] * (9 if pa.types.is_run_end_encoded(column.type) else 4)
    found = arrowdl.to_numpy(table, nulls="fill", **options)["x"]
    values = found[0] if isinstance(found, tuple) else found
    assert (str(values.dtype), values.reshape(-1).tolist()) == (dtype, expected)
    with pytest.raises(BufferError, match="null"):
        arrowdl.to_numpy(table, **options)
    if not pa.types.is_list(column.type):
        matrix, mask = arrowdl.to_numpy(table, nulls="mask", stack=True, dtype=dtype)
        is_valid = [text is not None for text in pa.array(column).to_pylist()]
        if not pa.types.is_fixed_size_list(column.type):
            assert mask.reshape(-1).tolist() == is_valid
        assert mask.sum() == {4: 3, 9: 7}[matrix.size]


def test_a_dtype_by_column_reaches_structs_in_lists() -> None:
    table = pa.table({"x": [[{"a": 1}], [{"a": 2}, {"a": 300}]]})
    values, offsets = arrowdl.to_numpy(table, ragged="offsets", dtype={"x": "float32"})["x"]
    assert values["a"].dtype == np.float32
    assert values["a"].tolist() == [1, 2, 300]
    assert offsets.tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match="row 1: 300 is beyond the range of int8"):
        arrowdl.to_numpy(table, ragged="offsets", dtype={"x": "int8"})


def test_the_row_of_a_tensor_of_variable_shape_is_named() -> None:
    storage = pa.array(
        [{"data": [1, 2], "shape": [2]}, {"data": [3, 300], "shape": [2]}],
        pa.struct([("data", pa.list_(pa.int32())), ("shape", pa.list_(pa.int32(), 1))]),
    )
    metadata = {
        "ARROW:extension:name": "arrow.variable_shape_tensor",
        "ARROW:extension:metadata": "{}",
    }
    table = pa.table([storage], schema=pa.schema([pa.field("x", storage.type, metadata=metadata)]))
    for dtype in ["int8", {"x": "int8"}]:
        with pytest.raises(ValueError, match="row 1: 300 is beyond the range of int8"):
            arrowdl.to_numpy(table, dtype=dtype)
    values, _, shapes = arrowdl.to_numpy(table, dtype={"x": "float32"})["x"]
    assert values.dtype == np.float32
    assert shapes.dtype == np.int32


def test_padding_of_unsigned_numbers() -> None:
    lists = pa.array([[1], [2, 3]], pa.list_(pa.uint64()))
    greatest = 2**64 - 1
    padded, _ = arrowdl.to_numpy(lists, ragged="padded", pad_value=greatest)
    assert padded.tolist() == [[1, greatest], [2, 3]]
    for value in [-1, 2**64, -(2**63) - 1]:
        with pytest.raises(ValueError, match=r"is not a value of uint64"):
            arrowdl.to_numpy(lists, ragged="padded", pad_value=value)


def test_a_mapping_may_change_during_the_call() -> None:
    kept: list[float] = []

    class Clears:
        def __index__(self) -> int:
            pad_value.clear()
            kept.extend(-float(i) for i in range(1, 200))  # in the memory of what is freed
            return 2

    pad_value = {"x": float("12.5")}
    table = pa.table({"x": [[1.0], [2.0, 3.0]]})
    padded, _ = arrowdl.to_numpy(
        table, ragged="padded", pad_value=pad_value, max_length={"x": Clears()}
    )["x"]
    assert padded.tolist() == [[1, 12.5], [2, 3]]


def test_a_name_that_is_no_utf8() -> None:
    with pytest.raises(ValueError, match=r"is not a dtype that numbers are cast to"):
        arrowdl.to_numpy(pa.array([1]), dtype="\ud800")


def test_pinned_columns_as_one_matrix(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import pyarrow as pa
table = pa.table({"a": pa.array([1, None], pa.int32()), "b": pa.array([0.5, 1.5], pa.float32())})
pinned = arrowdl.from_arrow(table).to("cuda_host")
made = arrowdl.to_numpy(pinned, stack=True, dtype="float32", nulls="fill")
assert made.tolist() == [[1, 0.5], [0, 1.5]], made
made, mask = arrowdl.to_numpy(pinned, stack=True, dtype={"a": "float32"}, nulls="mask")
assert made[0].tolist() == [1, 0.5] and mask.tolist() == [[True, True], [False, True]]
""")
