"""Frames of pandas: tensors of NumPy's memory where that has the meaning of pandas' own export."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

FLOATS = np.array([1.5, np.inf, -np.inf, 0.0], np.float32)
NAN = np.array([1.0, np.nan, 3.0, 4.0])
INTS = np.arange(4)

FRAMES: dict[str, Any] = {
    "numbers": lambda: pd.DataFrame({"x": FLOATS, "n": INTS, "b": INTS.astype(np.uint8)}),
    "one_block": lambda: pd.DataFrame(np.ones((4, 3), np.float32), columns=list("abc")),
    "column_block": lambda: pd.DataFrame(np.asfortranarray(np.eye(4)), columns=list("abcd")),
    "sliced": lambda: pd.DataFrame({"x": np.arange(10.0), "n": np.arange(10)})[3:7].reset_index(
        drop=True
    ),
    "strided": lambda: pd.DataFrame({"x": np.arange(8.0)[::2]}),
    "other_range": lambda: pd.DataFrame({"x": FLOATS}, index=pd.RangeIndex(5, 9)),
    "index": lambda: pd.DataFrame({"x": FLOATS}, index=[4, 3, 2, 1]),
    "named_index": lambda: pd.DataFrame({"x": FLOATS}, index=pd.RangeIndex(4, name="row")),
    "bools": lambda: pd.DataFrame({"x": FLOATS, "b": INTS > 1}),
    "halves": lambda: pd.DataFrame({"x": FLOATS.astype(np.float16)}),
    "nullable": lambda: pd.DataFrame({"x": pd.array([1, 2, 3, 4], dtype="Int64")}),
    "arrow": lambda: pd.DataFrame({"x": pd.array([1, 2, 3, 4], dtype=pd.ArrowDtype(pa.int16()))}),
    "categories": lambda: pd.DataFrame({"x": pd.Categorical(["a", "b", "a", "a"])}),
    "numbers_for_names": lambda: pd.DataFrame({0: FLOATS, 1: FLOATS}),
    "no_columns": lambda: pd.DataFrame(index=pd.RangeIndex(4)),
    "no_rows": lambda: pd.DataFrame({"x": FLOATS[:0], "n": INTS[:0]}),
}


def convert(source: Any, **options: Any) -> Any:
    try:
        return arrowdl.to_numpy(source, **options)
    except (BufferError, TypeError, ValueError) as error:
        return type(error)


def check_equal(ours: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert list(ours) == list(expected)
        for name, values in expected.items():
            check_equal(ours[name], values)
    elif isinstance(expected, tuple):
        for pair in zip(ours, expected, strict=True):
            check_equal(*pair)
    elif isinstance(expected, type):
        assert ours is expected
    else:
        assert ours.dtype == expected.dtype
        assert ours.flags.writeable == expected.flags.writeable
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize(
    "options",
    [{}, {"copy": True}, {"nulls": "mask"}, {"stack": True, "dtype": "float64"}],
    ids=["plain", "copy", "mask", "stack"],
)
@pytest.mark.parametrize("name", [*FRAMES, "nan"])
def test_frames_are_what_pandas_exports(name: str, options: dict[str, Any]) -> None:
    frame = FRAMES[name]() if name != "nan" else pd.DataFrame({"x": NAN, "n": INTS})
    check_equal(convert(frame, **options), convert(pa.table(frame), **options))


@pytest.mark.parametrize("name", [*FRAMES, "nan"])
def test_another_pandas_may_lack_what_is_faster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pd.DataFrame, "_get_column_array")
    test_frames_are_what_pandas_exports(name, {})


@pytest.mark.parametrize("has_array", [True, False])
def test_numbers_are_the_memory_of_the_frame(
    has_array: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_array:
        monkeypatch.delattr(pd.DataFrame, "_get_column_array")
    frame = FRAMES["numbers"]()
    tensors = arrowdl.to_numpy(frame, copy=False)
    assert all(np.shares_memory(tensors[name], frame[name].to_numpy()) for name in frame)
    copied = arrowdl.to_numpy(frame, copy=True)
    assert not any(np.shares_memory(copied[name], frame[name].to_numpy()) for name in frame)


def test_nan_is_null_as_in_pandas() -> None:
    frame = pd.DataFrame({"x": NAN})
    with pytest.raises(BufferError, match="null"):
        arrowdl.to_numpy(frame)
    assert list(arrowdl.to_numpy(frame, nulls="mask")["x"][1]) == [True, False, True, True]


def test_swapped_bytes_are_not_numbers() -> None:
    with pytest.raises(pa.ArrowNotImplementedError, match=r"[Bb]yte-swapped"):
        arrowdl.to_numpy(pd.DataFrame({"x": INTS.astype(">i4")}))


def test_a_class_of_a_user_is_exported_by_itself() -> None:
    class Frame(pd.DataFrame):
        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            return pa.table({"own": [1]}).__arrow_c_stream__(requested_schema)

    Frame.__name__ = Frame.__qualname__ = "DataFrame"
    assert list(arrowdl.to_numpy(Frame({"x": FLOATS}))) == ["own"]


def test_the_memory_outlives_the_frame() -> None:
    tensor = arrowdl.to_numpy(FRAMES["numbers"]())["x"]
    np.testing.assert_array_equal(tensor, FLOATS)
