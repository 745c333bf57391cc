"""Reads the parts of a foreign frame of the dataframe interchange protocol, and checks each.

A part that is missing or does not follow the protocol raises a TypeError or ValueError that names
it.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arrowdl import _core
from arrowdl._interchange.protocol import Dtype, Kind, Null

_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_FIRST_PAGE = 4096  # no system maps memory at lower addresses


def get_part(
    owner: Any,
    name: str,  # the attribute
    what: str,  # what `owner` should be ("frame", "column" or "buffer"), for the error
) -> Any:
    """Return an attribute of a frame, column or buffer."""
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise TypeError(
            f"{reprlib.repr(owner)} is not a {what} of the dataframe interchange protocol: it has "
            f"no {name}"
        ) from error


def call_part(owner: Any, name: str, what: str, *arguments: Any) -> Any:
    """Call a method of a frame, column or buffer."""
    method = get_part(owner, name, what)
    if not callable(method):
        raise TypeError(f"{name} of the {what} is {reprlib.repr(method)}, expected a method")
    return method(*arguments)


def read_part(owner: Any, name: str, what: str) -> Any:
    """Read an attribute that is a method in some versions of the protocol."""
    value = get_part(owner, name, what)
    return value() if callable(value) else value


def read_int(value: Any, name: str, least: int = 0) -> int:
    """Return `value` as an int64 of at least `least`; TypeError or ValueError otherwise."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {reprlib.repr(value)}, expected an integer") from None
    if not least <= number <= _INT64_MAX:
        raise ValueError(f"{name} is {number}, expected {least} to {_INT64_MAX}")
    return number


def read_names(frame: Any) -> list[str]:
    """Return the column names of a frame."""
    names = _read_items(call_part(frame, "column_names", "frame"), "column_names()")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a struct's fields have str names, got the column {name!r}")
    return names


def read_chunks(owner: Any, what: str) -> list[Any]:
    """Return the chunks of a frame or column."""
    return _read_items(call_part(owner, "get_chunks", what), "get_chunks()")


def read_metadata(frame: Any) -> Mapping[Any, Any]:
    """Return the metadata of a frame."""
    metadata = get_part(frame, "metadata", "frame")
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata of the frame is {reprlib.repr(metadata)}, expected a dict")
    return metadata


def read_window(column: Any) -> tuple[int, int]:
    """Return the rows of a column, and its offset: rows of the buffers before its first."""
    size = read_int(read_part(column, "size", "column"), "size", _INT64_MIN)  # the core checks them
    return size, read_int(read_part(column, "offset", "column"), "offset", _INT64_MIN)


def read_dtype(value: Any, name: str = "dtype") -> Dtype:
    """Return kind, bits, format string and byte order."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 4:
        raise TypeError(
            f"{name} is {reprlib.repr(value)}, expected (kind, bits, format string, byte order)"
        )
    kind, bits, format, order = value
    if not isinstance(format, str) or not isinstance(order, str):
        raise TypeError(f"{name} is {reprlib.repr(value)}: format and byte order are str")
    return read_int(kind, f"the kind in {name}"), read_int(bits, f"bits in {name}"), format, order


def read_buffers(column: Any) -> dict[str, tuple[Any, Any] | None]:
    """Return ``data``, ``validity`` and ``offsets``: each None or a buffer with its dtype."""
    buffers = call_part(column, "get_buffers", "column")
    if not isinstance(buffers, Mapping):
        raise TypeError(f"get_buffers() returned {reprlib.repr(buffers)}, expected a dict")
    read = {name: buffers.get(name) for name in ("data", "validity", "offsets")}
    for name, pair in read.items():
        if pair is not None:
            _check_pair(pair, f"the {name} of get_buffers()", "(buffer, dtype)")
    return read


def read_null(column: Any, dtype: Dtype) -> tuple[int, Any]:
    """Return how nulls are marked, and by which value."""
    described = read_part(column, "describe_null", "column")
    _check_pair(described, "describe_null", "(kind, value)")
    kind = read_int(described[0], "the kind in describe_null")
    value = described[1]
    if kind not in list(Null):
        raise ValueError(f"describe_null is {(kind, value)}, which the protocol does not have")
    if kind in (Null.USE_BITMASK, Null.USE_BYTEMASK):
        value = read_int(value, f"the value of null in the mask ({Null(kind).name})")
        if value > 1:
            raise ValueError(f"the value of null in the mask is {value}, expected 0 or 1")
    if kind == Null.USE_NAN and dtype[0] == Kind.DATETIME:  # modin's word for NaT
        return Null.USE_SENTINEL, _INT64_MIN  # NumPy's NaT
    return kind, value


def read_null_count(column: Any) -> int | None:
    """Return the number of nulls; None if the producer has not counted them."""
    count = read_part(column, "null_count", "column")
    return None if count is None else read_int(count, "null_count")


def read_categorical(column: Any) -> tuple[bool, Any]:
    """Return whether the categories are ordered, and the categories.

    Older producers describe them in a tuple.
    """
    described = read_part(column, "describe_categorical", "column")
    if isinstance(described, Mapping):
        is_ordered, is_dictionary = described.get("is_ordered"), described.get("is_dictionary")
        categories = described.get("categories", described.get("mapping"))
    elif isinstance(described, tuple) and len(described) == 3:
        is_ordered, is_dictionary, categories = described
    else:
        raise TypeError(
            f"describe_categorical is {reprlib.repr(described)}, expected a dict of is_ordered, "
            "is_dictionary and categories"
        )
    if not is_dictionary or categories is None:
        raise BufferError(
            "it is categorical without a dictionary, and Arrow has no such type: cast it to the "
            "type of its values"
        )
    return bool(is_ordered), categories


def read_device(buffer: Any) -> _core.Device:
    """Return the device of a buffer."""
    device = call_part(buffer, "__dlpack_device__", "buffer")
    _check_pair(device, "__dlpack_device__()", "(device type, device id)")
    id = 0 if device[1] is None else read_int(device[1], "the device id")
    return _core.Device(read_int(device[0], "the device type"), id)


def borrow_memory(buffer: Any, device: _core.Device) -> _core.DeviceArray:
    """Return the bytes at a buffer's address, which the host can read; they keep it alive."""
    size = read_int(read_part(buffer, "bufsize", "buffer"), "bufsize")
    address = read_part(buffer, "ptr", "buffer")
    try:
        address = operator.index(address)
    except TypeError:
        raise TypeError(f"ptr is {reprlib.repr(address)}, expected an integer") from None
    if size and not _FIRST_PAGE <= address < 2**64 - size:
        raise ValueError(
            f"a buffer of {size} bytes at address {address}, which is not valid memory"
        )
    return _core.borrow_memory(address if size else 0, size, device, buffer)


def _read_items(value: Any, name: str) -> list[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{name} returned {reprlib.repr(value)}, expected an iterable")
    return list(value)


def _check_pair(value: Any, name: str, expected: str) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) != 2:
        raise TypeError(f"{name} is {reprlib.repr(value)}, expected {expected}")
