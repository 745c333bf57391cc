"""Nulls that are not in an array's own bitmap: values of dictionaries, masks of torch."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.optional import torch

VALUES = pa.array(["a", None, "b"])


def encode(codes: list[Any], values: pa.Array = VALUES) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values)


NULL_VALUES = encode([0, 1, 2, None, 1, 2])
IS_VALID = [True, False, True, False, False, True]


@pytest.mark.parametrize("source", ["array", "table", "sliced", "list"])
def test_rows_of_null_values_are_null(source: str) -> None:
    table = pa.table({"k": NULL_VALUES})
    if source == "array":
        values, mask = arrowdl.to_numpy(NULL_VALUES, nulls="mask")
        filled = arrowdl.to_numpy(NULL_VALUES, nulls="fill")
    elif source == "table":
        values, mask = arrowdl.to_numpy(table, nulls="mask")["k"]
        filled = arrowdl.to_numpy(table, nulls={"k": "fill"})["k"]
    elif source == "sliced":
        longer = encode([0, 0, 1, 2, None, 1, 2])[1:]
        assert longer.equals(NULL_VALUES)
        values, mask = arrowdl.to_numpy(longer, nulls="mask")
        filled = arrowdl.to_numpy(longer, nulls="fill")
    else:
        lists = pa.FixedSizeListArray.from_arrays(NULL_VALUES, 2)
        values, mask = (part.reshape(-1) for part in arrowdl.to_numpy(lists, nulls="mask"))
        filled = arrowdl.to_numpy(lists, nulls="fill").reshape(-1)
    assert mask.tolist() == IS_VALID
    assert values[mask].tolist() == [0, 2, 2]
    assert filled.tolist() == [0, 0, 2, 0, 0, 2]


def test_a_matrix_has_them_too() -> None:
    table = pa.table({"k": NULL_VALUES, "j": encode([0] * 6)})
    _, mask = arrowdl.to_numpy(table, stack=True, nulls="mask")
    assert mask.tolist() == [[valid, True] for valid in IS_VALID]
    filled = arrowdl.to_numpy(table, stack=True, nulls="fill", dtype="float32")
    assert filled[:, 0].tolist() == [0, 0, 2, 0, 0, 2]


def test_without_a_policy_they_raise() -> None:
    for convert in (
        lambda: arrowdl.to_numpy(NULL_VALUES),
        lambda: arrowdl.to_numpy(pa.table({"k": NULL_VALUES})),
        lambda: np.from_dlpack(arrowdl.from_arrow(NULL_VALUES)),
        lambda: arrowdl.to_numpy(pa.table({"k": NULL_VALUES}), stack=True),
    ):
        with pytest.raises(BufferError, match=r'nulls.*"fill"'):
            convert()


def make_runs(values: pa.Array) -> pa.RunEndEncodedArray:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), values)


class Runs(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(make_runs(VALUES).type, "test.runs")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Runs:
        return cls()


MEMBERS = pa.array([0, 0, 1], pa.int8())
WITHOUT_BITMAP = {
    "runs": make_runs(VALUES),
    "codes": encode([0, 1, 2]),
    "runs of codes": make_runs(encode([0, 1, 2])),
    "codes of runs": encode([0, 1, 2], make_runs(VALUES)),
    "extension": pa.ExtensionArray.from_storage(Runs(), make_runs(VALUES)),
    "sparse union": pa.UnionArray.from_sparse(MEMBERS, [VALUES, pa.array([None, 1, 2])]),
    "dense union": pa.UnionArray.from_dense(
        MEMBERS, pa.array([0, 1, 0], pa.int32()), [VALUES, pa.array([7])]
    ),
}


@pytest.mark.parametrize("values", WITHOUT_BITMAP.values(), ids=WITHOUT_BITMAP)
def test_values_that_are_null_without_a_bitmap(values: pa.Array) -> None:
    codes = encode([0, 1, 2, None, 1, 2], values)
    sliced = encode([1, 0, 1, 2, None, 1, 2], values)[1:]
    lists = pa.ListArray.from_arrays(pa.array([0, 6], pa.int32()), codes)
    for rows in (codes, sliced, pa.table({"k": codes})["k"]):
        kept, mask = arrowdl.to_numpy(rows, nulls="mask")
        assert (kept[mask].tolist(), mask.tolist()) == ([0, 2, 2], IS_VALID)
        assert arrowdl.to_numpy(rows, nulls="fill").tolist() == [0, 0, 2, 0, 0, 2]
    assert arrowdl.to_numpy(lists, nulls="fill", ragged="padded")[0].tolist() == [
        [0, 0, 2, 0, 0, 2]
    ]
    unmasked = encode([0, 1, 2], values)
    for convert in (
        lambda: arrowdl.to_numpy(unmasked),
        lambda: arrowdl.to_torch({"k": arrowdl.from_arrow(unmasked)}["k"]),
        lambda: arrowdl.to_torch(pa.record_batch({"k": unmasked})),
        lambda: arrowdl.to_numpy(pa.record_batch({"k": unmasked}), dtype={"k": "float32"}),
        lambda: np.from_dlpack(arrowdl.from_arrow(unmasked)),
    ):
        with pytest.raises(BufferError, match="nulls"):
            convert()
    assert arrowdl.to_numpy(encode([0, 2], values)).tolist() == [0, 2]


def test_a_dictionary_of_nothing_but_nulls() -> None:
    codes = encode([0, None, 2], pa.nulls(3))
    values, mask = arrowdl.to_numpy(codes, nulls="mask")
    assert (values.shape, mask.tolist()) == ((3,), [False] * 3)
    assert arrowdl.to_numpy(pa.table({"k": codes}), nulls="fill")["k"].tolist() == [0, 0, 0]
    with pytest.raises(BufferError, match="nulls"):
        arrowdl.to_numpy(codes)
    empty = encode([None, None], pa.nulls(0))
    assert arrowdl.to_numpy(empty, nulls="fill").tolist() == [0, 0]


def test_null_values_that_no_row_has_do_not_matter() -> None:
    assert arrowdl.to_numpy(encode([0, 2, 0])).tolist() == [0, 2, 0]
    assert np.from_dlpack(arrowdl.from_arrow(encode([2, 2]))).tolist() == [2, 2]
    values, mask = arrowdl.to_numpy(encode([0, None]), nulls="mask")
    assert (values[0], mask.tolist()) == (0, [True, False])


def test_indices_beyond_the_dictionary_are_malformed() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), VALUES, safe=False)
    with pytest.raises(ValueError, match="7"):
        arrowdl.to_numpy(codes, nulls="mask")


@pytest.mark.parametrize("options", [{}, {"shuffle": True, "seed": 1}, {"num_workers": 1}])
def test_loaders(options: dict[str, Any]) -> None:
    table = pa.table({"k": NULL_VALUES, "x": range(6)})
    (batch,) = arrowdl.Loader(table, 6, framework="numpy", nulls="mask", **options)
    _, mask = batch["k"]
    order = batch["x"][0] if isinstance(batch["x"], tuple) else batch["x"]
    assert mask.tolist() == [IS_VALID[i] for i in order]
    stream = arrowdl.Loader(lambda: table.to_reader(), 6, framework="numpy", nulls="fill")
    assert [int(code) for code in next(iter(stream))["k"]][2:4] == [2, 0]


def test_run_ends_in_fixed_size_lists() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 3, 6], pa.int32()), pa.array([1.0, None, 3.0])
    )
    lists = pa.FixedSizeListArray.from_arrays(runs, 2)
    table = pa.table({"x": lists})
    values, mask = arrowdl.to_numpy(table, nulls="mask")["x"]
    assert mask.tolist() == [[True, False], [False, True], [True, True]]
    assert values[mask].tolist() == [1.0, 3.0, 3.0, 3.0]
    assert arrowdl.to_numpy(lists[2:]).tolist() == [[3.0, 3.0]]
    filled = np.array([[1.0, 0.0], [0.0, 3.0], [3.0, 3.0]])
    np.testing.assert_array_equal(arrowdl.to_numpy(lists, nulls="fill"), filled)
    np.testing.assert_array_equal(arrowdl.to_numpy(table, stack=True, nulls="fill"), filled)
    deep = pa.FixedSizeListArray.from_arrays(lists, 3)
    np.testing.assert_array_equal(arrowdl.to_numpy(deep, nulls="fill"), filled[None])
    whole = pa.RunEndEncodedArray.from_arrays(pa.array([4], pa.int32()), pa.array([7]))
    plain = pa.FixedSizeListArray.from_arrays(whole, 2)
    assert torch.from_dlpack(arrowdl.from_arrow(plain)).tolist() == [[7, 7], [7, 7]]
    masked = pa.FixedSizeListArray.from_arrays(whole, 2, mask=pa.array([False, True]))
    assert arrowdl.to_numpy(pa.table({"x": masked}), nulls="fill")["x"].tolist() == [[7, 7], [0, 0]]
    with pytest.raises(BufferError, match="runs have to be decoded"):
        arrowdl.to_numpy(plain, copy=False)
    (batch,) = arrowdl.Loader(table, 3, framework="numpy", nulls="fill")
    np.testing.assert_array_equal(batch["x"], filled)


def test_masked_tensors_keep_their_mask() -> None:
    from torch.masked import masked_tensor

    data, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])
    masked = masked_tensor(data, mask)
    assert pa.array(arrowdl.to_arrow_device(masked)).to_pylist() == [1.0, None, 3.0]
    struct = arrowdl.to_arrow_device({"x": masked, "y": data})
    assert pa.array(struct["x"]).to_pylist() == [1.0, None, 3.0]
    also = arrowdl.to_arrow_device(masked, mask=torch.tensor([False, True, True]))
    assert pa.array(also).to_pylist() == [None, None, 3.0]
    rows = masked_tensor(torch.ones(2, 2), torch.tensor([[False, False], [True, True]]))
    array = arrowdl.to_arrow_device(rows)
    assert arrowdl.to_numpy(array, nulls="mask")[1].tolist() == [[False, False], [True, True]]
    for shape in ((0,), (0, 2), (2, 0), (2, 3, 0)):
        empty = masked_tensor(torch.ones(shape), torch.ones(shape, dtype=torch.bool))
        made = arrowdl.to_arrow_device(empty)
        assert (tuple(arrowdl.to_torch(made).shape), made.null_count) == (shape, 0)
    parts = masked_tensor(torch.ones(2, 2), torch.tensor([[True, False], [True, True]]))
    with pytest.raises(BufferError, match=r"\(2, 2\) differs within rows.*to_tensor"):
        arrowdl.to_arrow_device(parts)
