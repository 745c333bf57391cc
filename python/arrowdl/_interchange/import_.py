"""Imports frames of the dataframe interchange protocol, for producers without Arrow protocols."""

from __future__ import annotations

import re
import struct
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from arrowdl import _core
from arrowdl._interchange.frame_parts import (
    borrow_memory,
    call_part,
    read_buffers,
    read_categorical,
    read_chunks,
    read_device,
    read_dtype,
    read_int,
    read_metadata,
    read_names,
    read_null,
    read_null_count,
    read_part,
    read_window,
)
from arrowdl._interchange.protocol import (
    NATIVE,
    NUMBERS,
    Dtype,
    Kind,
    Null,
    find_time_bits,
    name_device,
)
from arrowdl._libraries import annotate

_BYTE_ORDERS = {NATIVE, "|", "<" if sys.byteorder == "little" else ">"}
_STRUCT_CODES = {
    **{f"int{8 << i}": code for i, code in enumerate("bhiq")},
    **{f"uint{8 << i}": code for i, code in enumerate("BHIQ")},
    **{f"float{16 << i}": code for i, code in enumerate("efd")},
    "bool": "B",
}
_NAMES = {Kind.INT: "int", Kind.UINT: "uint", Kind.FLOAT: "float"}


def from_dataframe(
    # buffers with an Arrow layout are shared: numbers, times, bytes as bool8, bit masks where 0 is
    # null, strings with offsets, codes with their categories
    frame: Any,
    *,
    # passed to the frame. False raises BufferError for several chunks, and for nulls that are not
    # marked by an Arrow bitmap
    allow_copy: bool = True,
) -> _core.DeviceArray:
    """Import a frame as a struct array of its columns.

    Raises BufferError if Arrow or the frame cannot represent a column, or a copy is needed and not
    allowed. Raises ValueError if the frame contradicts itself. Raises TypeError if an object does
    not have the protocol of a frame, column or buffer.

    The array is on the device of the buffers. It keeps the buffers alive, not the frame.
    """
    try:
        exchange = frame.__dataframe__(allow_copy=allow_copy)
        names = read_names(exchange)
        chunks = read_chunks(exchange, "frame") or [exchange]
        arrays = [_take_chunk(chunk, names, allow_copy) for chunk in chunks]
    except RuntimeError as error:  # pandas and pyarrow raise it to refuse a copy
        if allow_copy:
            raise
        raise BufferError(f"copy=False: the frame needs a copy: {error}") from error
    except TypeError as error:
        annotate(error, "__dataframe__", frame)
        raise
    array = _join(arrays, allow_copy)
    _warn_of_metadata(exchange, len(array))
    return array


def _join(arrays: list[_core.DeviceArray], allow_copy: bool) -> _core.DeviceArray:
    if len(arrays) == 1:
        return arrays[0]
    if not allow_copy:
        raise BufferError(
            f"the frame has {len(arrays)} chunks, and one array needs a copy of them: allow it "
            "with copy=None, or import the chunks of __dataframe__().get_chunks() one by one"
        )
    return _core.concatenate(arrays)


def _take_chunk(chunk: Any, names: list[str], allow_copy: bool) -> _core.DeviceArray:
    if not names and read_part(chunk, "num_rows", "frame"):
        raise BufferError(
            "the frame has rows and no columns, which a struct array cannot represent"
        )
    arrays = []
    for i, name in enumerate(names):
        try:
            column = call_part(chunk, "get_column", "frame", i)
            arrays.append(_take_column(column, allow_copy))
        except (BufferError, TypeError, ValueError, NotImplementedError) as error:
            kind = next((k for k in (TypeError, ValueError) if isinstance(error, k)), BufferError)
            raise kind(f'column "{name}": {error}') from error
    return _core.make_struct(names, arrays)


def _warn_of_metadata(exchange: Any, rows: int) -> None:
    metadata = read_metadata(exchange).items()
    left = [str(key) for key, value in metadata if not _is_range(value, rows)]
    if left:
        warnings.warn(
            f"the frame's metadata is not in its columns and is dropped: {', '.join(left)}. To "
            "keep an index, make it a column: reset_index()",
            UserWarning,
            stacklevel=3,
        )


def _is_range(index: Any, rows: int) -> bool:
    """Whether `index` only counts the rows, as pandas' default index does."""
    return getattr(index, "start", None) == 0 and getattr(index, "stop", None) == rows


# ---------------------------------------------------------------- one column


def _take_column(column: Any, allow_copy: bool) -> _core.DeviceArray:
    count = read_int(read_part(column, "num_chunks", "column"), "num_chunks")
    chunks = read_chunks(column, "column") if count > 1 else [column]
    if not chunks:
        raise ValueError(f"num_chunks is {count}, and get_chunks() returns none")
    return _join([_take_whole(chunk, allow_copy) for chunk in chunks], allow_copy)


def _take_whole(column: Any, allow_copy: bool) -> _core.DeviceArray:
    """Import a column of one chunk."""
    dtype = read_dtype(read_part(column, "dtype", "column"))
    if dtype[3] not in _BYTE_ORDERS:
        raise BufferError(f"its byte order is {dtype[3]!r}; Arrow needs this machine's byte order")
    buffers = read_buffers(column)
    window = read_window(column)
    null = read_null(column, dtype)
    if null[0] == Null.NON_NULLABLE and read_null_count(column):  # as of modin's from_arrow
        raise ValueError(
            f"describe_null is NON_NULLABLE, and null_count is {read_null_count(column)}: what its "
            "dtype says may not be what its memory holds"
        )
    mask = _find_mask(column, null[0], buffers["validity"])
    is_arrows = null == (Null.USE_BITMASK, 0)
    bitmap = _take_buffer(mask, "uint8") if mask is not None and is_arrows else None
    if bitmap is not None and window[0] > 0 and not bitmap.nbytes:
        raise ValueError(f"its mask has no bytes for {window[0]} rows")
    array = _assemble(column, dtype, buffers, bitmap, window, allow_copy)
    if is_arrows or null[0] == Null.NON_NULLABLE or not len(array):
        return array
    return _mark_nulls(array, column, null, mask, window, allow_copy)


def _assemble(
    column: Any,
    dtype: Dtype,
    buffers: dict[str, tuple[Any, Any] | None],
    bitmap: _core.DeviceArray | None,
    window: tuple[int, int],
    allow_copy: bool,
) -> _core.DeviceArray:
    kind = dtype[0]
    if buffers["data"] is None:
        raise ValueError("get_buffers() has no data")
    data, data_dtype = buffers["data"]
    if kind == Kind.STRING:
        if buffers["offsets"] is None:
            raise ValueError("its strings have no buffer of offsets")
        format, integer = _find_offsets_format(buffers["offsets"][1])
        offsets = _take_buffer(buffers["offsets"][0], integer)
        parts = [bitmap, offsets, _take_buffer(data, "uint8")]
        return _core.assemble(format, *window, parts)
    if kind != Kind.CATEGORICAL:
        format, element = _find_format(dtype)
        return _core.assemble(format, *window, [bitmap, _take_buffer(data, element)])
    format, element = _find_code_format(dtype, read_dtype(data_dtype, "the data's dtype"))
    codes = _take_buffer(data, element)
    categories, is_ordered = _take_categories(column, codes.device, allow_copy)
    return _core.assemble(format, *window, [bitmap, codes], categories, is_ordered)


def _find_format(dtype: Dtype) -> tuple[str, str]:
    """Return the Arrow format and the name of the element type."""
    # For numbers, only kind and bits count: pandas 3 writes "S" for the int16 of its Arrow columns.
    kind, bits, format, _ = dtype
    for number, description in NUMBERS.items():
        if description == (kind, bits):
            return number, f"{_NAMES[description[0]]}{bits}"
    if kind == Kind.BOOL and bits in (1, 8):
        return ("b", "uint8") if bits == 1 else ("bool8", "bool")
    if kind == Kind.DATETIME:
        own_bits = find_time_bits(format)
        if own_bits is None or own_bits != bits:
            raise BufferError(f"datetimes of {bits} bits in the format {format!r}: Arrow has none")
        # str() of Python's fixed offsets begins with "UTC"; Arrow's do not.
        return re.sub(r":UTC([+-]\d\d:\d\d)$", r":\1", format), f"int{bits}"
    raise BufferError(
        f"its dtype is {dtype}; supported are int, uint, float (16 bits and more), bool, string, "
        "datetime and categorical: cast it first"
    )


def _find_offsets_format(dtype: Any) -> tuple[str, str]:
    bits = read_dtype(dtype, "the offsets' dtype")[1]
    if bits not in (32, 64):
        raise BufferError(f"its offsets have {bits} bits, Arrow's have 32 or 64")
    return ("U", "int64") if bits == 64 else ("u", "int32")


def _find_code_format(dtype: Dtype, data_dtype: Dtype) -> tuple[str, str]:
    """Return the Arrow format and element type of codes; some buffers say categorical again."""
    kind, bits, format, order = data_dtype
    if kind == Kind.CATEGORICAL:
        is_unsigned = NUMBERS.get(dtype[2]) == (Kind.UINT, bits)
        kind = Kind.UINT if is_unsigned else Kind.INT
    if kind not in (Kind.INT, Kind.UINT):
        raise BufferError(f"its categorical codes have dtype {data_dtype}; Arrow needs integers")
    return _find_format((kind, bits, format, order))


def _take_categories(
    column: Any, device: _core.Device, allow_copy: bool
) -> tuple[_core.DeviceArray, bool]:
    """Return the values, and whether they are ordered."""
    is_ordered, categories = read_categorical(column)
    if not isinstance(categories, Mapping):
        kind = read_dtype(read_part(categories, "dtype", "column"))[0]
        if kind == Kind.CATEGORICAL:
            raise BufferError("its categories are categorical: cast the column to their values")
        return _take_column(categories, allow_copy), is_ordered
    values = _make_values(categories)
    return values if values.device == device else values.to(device), is_ordered


def _make_values(categories: Mapping[int, Any]) -> _core.DeviceArray:
    """Make an array of categories that are Python objects, by code."""
    if set(categories) != set(range(len(categories))):
        raise BufferError(f"its categories have the codes {[*categories]}, not 0, 1, 2, ...")
    values = [categories[code] for code in range(len(categories))]
    if all(isinstance(value, str) for value in values):
        encoded = [value.encode() for value in values]
        ends = [0]
        for item in encoded:
            ends.append(ends[-1] + len(item))
        buffers = struct.pack(f"={len(ends)}q", *ends), b"".join(encoded)
        return _core.assemble("U", len(values), 0, [None, *map(_core.to_arrow_device, buffers)])
    for kind, code, format in (int, "q", "l"), (float, "d", "g"):
        if all(isinstance(value, kind) and not isinstance(value, bool) for value in values):
            packed = _core.to_arrow_device(struct.pack(f"={len(values)}{code}", *values))
            return _core.assemble(format, len(values), 0, [None, packed])
    raise BufferError("its categories are neither all str nor all int nor all float")


# ---------------------------------------------------------------- nulls


def _find_mask(column: Any, null: int, validity: tuple[Any, Any] | None) -> Any:
    """Return the mask's buffer if nulls are marked by one; pyarrow has it also without nulls."""
    if null not in (Null.USE_BITMASK, Null.USE_BYTEMASK):
        return None
    if validity is None:
        if read_null_count(column):
            raise ValueError(
                "describe_null says that a mask marks its nulls, and it has no validity buffer"
            )
        return None
    mask, dtype = validity[0], read_dtype(validity[1], "the validity's dtype")
    if dtype[1] != (1 if null == Null.USE_BITMASK else 8):
        raise ValueError(f"describe_null is {Null(null).name}, and its mask has {dtype[1]} bits")
    return mask


def _mark_nulls(
    array: _core.DeviceArray,
    column: Any,
    null: tuple[int, Any],
    mask: Any,
    window: tuple[int, int],
    allow_copy: bool,
) -> _core.DeviceArray:
    """Return `array` with nulls that are not marked by an Arrow bitmap."""
    kind, value = null
    if kind == Null.USE_NAN:
        return _mark(array, column, "NaN", allow_copy, lambda: _core.null_where(array, None))
    if kind == Null.USE_SENTINEL:
        item = _encode(array, value)
        how = f"the value {value}"
        return _mark(array, column, how, allow_copy, lambda: _core.null_where(array, item))
    if mask is None:
        return array

    def apply() -> _core.DeviceArray:
        return _core.apply_mask(array, _take_mask(mask, kind, *window), valid=value == 0)

    how = "a byte mask" if kind == Null.USE_BYTEMASK else "a bit mask that is set for nulls"
    return _mark(array, column, how, allow_copy, apply)


def _mark(
    array: _core.DeviceArray, column: Any, how: str, allow_copy: bool, mark: Any
) -> _core.DeviceArray:
    """Return `mark()`, which makes a bitmap for the nulls of `array`, if that is allowed."""
    if not _core.is_host_readable(array.device) and read_null_count(column) == 0:
        return array  # without work for the device
    try:
        marked: _core.DeviceArray = mark()
    except BufferError as error:
        if _core.is_host_readable(array.device):
            raise
        raise BufferError(
            f"its nulls are marked by {how}, and Arrow's bitmap cannot be made on "
            f"{name_device(array.device)}: with the frame's own library, fill or drop the nulls, "
            f"or copy the frame to the CPU ({error})"
        ) from error
    if not allow_copy and marked.null_count:
        raise BufferError(
            f"copy=False: its {marked.null_count} nulls are marked by {how}, and Arrow needs a "
            "bitmap, which is a copy: allow it with copy=None"
        )
    return marked


def _take_mask(buffer: Any, null: int, size: int, offset: int) -> _core.DeviceArray:
    """Return the mask as booleans, of either polarity."""
    if null == Null.USE_BYTEMASK:
        return _core.assemble("bool8", size, offset, [None, _take_buffer(buffer, "bool")])
    return _core.assemble("b", size, offset, [None, _take_buffer(buffer, "uint8")])


def _encode(array: _core.DeviceArray, sentinel: Any) -> bytes | None:
    """Return the bytes of the value that means null; None for NaN."""
    dtype = array.dtype
    if dtype is None or array.schema.format == "b":
        raise BufferError(f"the value {sentinel!r} means null, and {array.type} cannot hold it")
    if sentinel != sentinel:
        return None
    try:
        return struct.pack("=" + _STRUCT_CODES[dtype], sentinel)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"the null value {sentinel!r} is not one of {dtype}") from error


# ---------------------------------------------------------------- one buffer


def _take_buffer(buffer: Any, element: str) -> _core.DeviceArray:
    """Import a buffer, of `element` or bytes, by DLPack or by an address that the host can read."""
    device = read_device(buffer)
    try:
        array = _core.to_arrow_device(buffer, copy=False)
    except (AttributeError, BufferError, NotImplementedError, TypeError) as error:
        if _core.is_host_readable(device):
            return borrow_memory(buffer, device)
        raise BufferError(
            f"a buffer on {name_device(device)} has no working __dlpack__ "
            f"({error or type(error).__name__}), and the host cannot read its address: copy the "
            "frame to the CPU with its own library"
        ) from error
    allowed = {element, "uint8", "int8"} if element in ("bool", "uint8") else {element, "uint8"}
    if len(array.shape) != 1 or array.dtype not in allowed:
        raise ValueError(
            f"its buffer is a tensor of {array.dtype or array.type} and shape {array.shape}, and "
            f"its description says one dimension of {element}"
        )
    return array
