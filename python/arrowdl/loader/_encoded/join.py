"""What the files of a column became, as one Arrow array: lists, or tensors of several shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arrowdl import _core

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_VALUES = 2**31 - 1  # of lists with offsets of 32 bits
# Source: "Variable shape tensor" in Arrow's list of canonical extension types.
_EXTENSION = {
    "ARROW:extension:name": "arrow.variable_shape_tensor",
    "ARROW:extension:metadata": "{}",
}


def join_lists(
    rows: Sequence[Any],  # arrays of NumPy; None for a null
    empty: Any,  # an array without values
    advice: str,  # what to give if the values are too many
) -> pa.ListArray:
    """Return an array with a list of values in each row."""
    import numpy as np
    import pyarrow as pa

    arrays = [empty if row is None else row for row in rows]
    ends = np.cumsum([0, *(array.size for array in arrays)], dtype=np.int64)
    if ends[-1] > _MOST_VALUES:
        raise ValueError(
            f"the rows of a batch have {ends[-1]} values together, and lists of Arrow at most "
            f"{_MOST_VALUES}: give {advice}"
        )
    values = np.concatenate([empty.ravel(), *(array.ravel() for array in arrays)])
    offsets = pa.array(ends.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(values), mask=_find_nulls(rows))


def join_shapes(rows: Sequence[Any], empty: Any, advice: str) -> _core.DeviceArray:
    """Return an array with a tensor of its own shape in each row; see `join_lists`."""
    import numpy as np
    import pyarrow as pa

    arrays = [empty if row is None else row for row in rows]
    flat = np.array([array.shape for array in arrays], np.int32).ravel()
    shapes = pa.FixedSizeListArray.from_arrays(pa.array(flat), empty.ndim)
    columns = [join_lists(arrays, empty, advice), shapes]
    storage = pa.StructArray.from_arrays(columns, ["data", "shape"], mask=_find_nulls(rows))
    schema = pa.schema([pa.field("column", storage.type, metadata=_EXTENSION)])
    return _core.from_arrow(pa.record_batch([storage], schema=schema)).field("column")


def _find_nulls(rows: Sequence[Any]) -> pa.BooleanArray:
    import pyarrow as pa

    return pa.array([row is None for row in rows], pa.bool_())
