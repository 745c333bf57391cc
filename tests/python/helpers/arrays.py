"""pyarrow arrays of a given layout, and where their memory lies."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa


def data_address(array: pa.Array) -> int:
    """Return the address of the first element, of the innermost array in a fixed-size list."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    if pa.types.is_fixed_size_list(storage.type):
        return data_address(storage.flatten())
    return storage.buffers()[1].address + storage.offset * storage.type.bit_width // 8


def address_of(tensor: Any) -> int:
    """Return the address of the first element of a framework's tensor."""
    if hasattr(tensor, "data_ptr"):
        return tensor.data_ptr()
    if hasattr(tensor, "unsafe_buffer_pointer"):
        return tensor.unsafe_buffer_pointer()
    return tensor.__array_interface__["data"][0]


def fixed_size_list(
    child: pa.Array,
    size: int,
    *,
    offset: int = 0,
    length: int | None = None,
    valid: list[bool] | None = None,
) -> pa.Array:
    """A FixedSizeList that keeps `offset` as its own and leaves `child`'s to the child, which
    `pa.FixedSizeListArray.from_arrays(...)[offset:]` does not promise. `valid` is for the window.
    """
    length = len(child) // size - offset if length is None else length
    bitmap = None
    if valid is not None:
        bitmap = pa.array([True] * offset + list(valid)).buffers()[1]
    list_type = pa.list_(pa.field("item", child.type), size)
    return pa.Array.from_buffers(list_type, length, [bitmap], -1, offset, [child])


def as_extension(storage: pa.Array, name: str, metadata: str = "") -> arrowdl.DeviceArray:
    """`storage` under the extension `name`, which pyarrow need not know."""
    keys = {"ARROW:extension:name": name, "ARROW:extension:metadata": metadata}
    schema = pa.schema([pa.field("x", storage.type, metadata=keys)])
    return arrowdl.from_arrow(pa.RecordBatch.from_arrays([storage], schema=schema)).field("x")


def numbers(shape: tuple[int, ...], dtype: Any = "float32") -> np.ndarray:
    """0, 1, 2, ... in C order."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def expected(array: pa.Array, dtype: Any = None) -> np.ndarray:
    """What pyarrow itself reads in `array`, value by value."""
    return np.array(array.to_pylist(), dtype=dtype)
