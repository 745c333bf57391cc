"""modin 0.37: frames by the interchange protocol alone, over pandas 2, which speaks it as well."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ["MODIN_ENGINE"] = "Python"  # in this process: neither ray nor dask

import arrowdl
import modin.pandas as mpd
import numpy as np
import pandas as pd
import pyarrow as pa
from arrowdl import debug
from helpers.protocols import TABLE
from modin.pandas.io import from_arrow

COLUMNS: dict[str, Any] = {
    "int": [1, 2, 3],
    "uint": np.array([1, 2, 3], "uint8"),
    "float": [0.5, None, 2.5],
    "bool": [True, False, True],
    "string": ["a", None, ""],
    "categorical": pd.Categorical(["x", None, "y"]),
    "datetime": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
}


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    gc.collect()
    before = debug.live_objects()
    yield
    gc.collect()
    assert debug.live_objects() == before


class OnlyDataFrame:
    """pandas 2's frame without its Arrow protocol."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._frame.__dataframe__(allow_copy=allow_copy)


def test_modin_has_no_other_door() -> None:
    frame = mpd.DataFrame({"x": [1]})
    assert hasattr(frame, "__dataframe__")
    assert not any(hasattr(frame, f"__arrow_c_{name}__") for name in ("array", "stream"))


@pytest.mark.parametrize(
    "make", [mpd.DataFrame, lambda columns: OnlyDataFrame(pd.DataFrame(columns))]
)
def test_a_frame_is_read(make: Any) -> None:
    taken = pa.array(arrowdl.from_arrow(make(COLUMNS)))
    expected = pa.table(pd.DataFrame(COLUMNS))
    for name in COLUMNS:
        column = taken.field(name)
        if isinstance(column, pa.ExtensionArray):  # bool8
            column = column.storage.cast(pa.bool_())
        assert column.to_pylist() == expected[name].to_pylist(), name


def test_a_frame_becomes_tensors() -> None:
    frame = mpd.DataFrame({"x": [1, 2], "y": [3, 4]})
    assert arrowdl.to_numpy(frame, stack=True).tolist() == [[1, 3], [2, 4]]


def test_numbers_are_shared() -> None:
    array = arrowdl.from_arrow(mpd.DataFrame({"x": np.arange(10)}), copy=False).field("x")
    assert np.from_dlpack(array).tolist() == list(range(10))


def test_partitions_are_chunks() -> None:
    chunks = [mpd.DataFrame({"x": np.arange(n), "c": pd.Categorical(["a"] * n)}) for n in (50, 60)]
    frame = mpd.concat(chunks)
    frame.index = range(len(frame))
    assert arrowdl.to_numpy(frame)["x"].tolist() == [*range(50), *range(60)]


def test_a_table_of_pyarrow_by_its_frame() -> None:
    table = pa.table({"x": [1, None, 3], "s": ["a", "b", None]})
    exchange = table.__dataframe__()
    assert pa.array(arrowdl.from_arrow(exchange)).to_pylist() == table.to_pylist()


def test_an_index_is_not_left_behind_silently() -> None:
    frame = mpd.DataFrame({"x": [1, 2]}, index=["a", "b"])
    with pytest.warns(UserWarning, match=r"modin\.index"):
        arrowdl.from_arrow(frame)


def test_the_table_of_the_documentation_says_so() -> None:
    for key, row in TABLE.find_rows(["modin"]).items():
        assert TABLE.read_rows()[key] == row, "run tools/list_protocols.py modin"


@pytest.mark.parametrize("type", ["int8", "uint32", "int64", "bool"])
def test_numbers_with_nulls_of_from_arrow_are_refused(type: str) -> None:
    """Its dtype is that of the Arrow column, and its memory that of float64 or of objects."""
    table = pa.table({"x": pa.array([1, None, 0]).cast(type)})
    frame = from_arrow(table)
    assert str(frame.dtypes["x"]) == type
    with pytest.raises(ValueError, match="NON_NULLABLE, and null_count is 1"):
        arrowdl.from_arrow(frame)
