"""Images of several sizes as one Arrow array, ``arrow.variable_shape_tensor``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arrowdl import _core
from arrowdl.loader._images.spec import Spec

_MOST_VALUES = 2**31 - 1  # of lists with offsets of 32 bits
# Source: "Variable shape tensor" in Arrow's list of canonical extension types.
_EXTENSION = {
    "ARROW:extension:name": "arrow.variable_shape_tensor",
    "ARROW:extension:metadata": "{}",
}


def join_shapes(
    images: Sequence[Any],  # arrays of NumPy; None for a null
    spec: Spec,
) -> _core.DeviceArray:
    """Return an array with a tensor of its own shape in each row."""
    import numpy as np
    import pyarrow as pa

    empty: Any = np.empty(spec.order_shape(0, 0), spec.dtype)
    arrays = [empty if image is None else image for image in images]
    ends = np.cumsum([0, *(array.size for array in arrays)], dtype=np.int64)
    if ends[-1] > _MOST_VALUES:
        raise ValueError(
            f"the images of a batch have {ends[-1]} values together, and lists of Arrow at most "
            f"{_MOST_VALUES}: give Image.size, or a smaller batch_size"
        )
    values = np.concatenate([array.ravel() for array in arrays]) if arrays else empty.ravel()
    data = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(values))
    flat = np.array([array.shape for array in arrays], np.int32).ravel()
    shapes = pa.FixedSizeListArray.from_arrays(pa.array(flat), 3)
    nulls = pa.array([image is None for image in images], pa.bool_())
    storage = pa.StructArray.from_arrays([data, shapes], ["data", "shape"], mask=nulls)
    schema = pa.schema([pa.field("image", storage.type, metadata=_EXTENSION)])
    return _core.from_arrow(pa.record_batch([storage], schema=schema)).field("image")
