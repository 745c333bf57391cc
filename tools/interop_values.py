"""Plain Python values of Arrow's columns and of a Loader's tensors, which can be compared.

Times are integers of nanoseconds, texts are bytes, decimals of tensors are floats, NaN is a text.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9


def find_factor(type: Any) -> int:
    """The nanoseconds of a unit of a time; 0 for other types."""
    if pa.types.is_date32(type):
        return _DAY
    if pa.types.is_date64(type):
        return 10**6
    return _NANOSECONDS[type.unit] if pa.types.is_temporal(type) and hasattr(type, "unit") else 0


def is_text(type: Any) -> bool:
    checks = pa.types
    return bool(
        checks.is_string(type)
        or checks.is_large_string(type)
        or checks.is_string_view(type)
        or checks.is_binary(type)
        or checks.is_large_binary(type)
        or checks.is_binary_view(type)
    )


def is_interval(type: Any) -> bool:
    """Whether a type is the 12 bytes of Parquet's INTERVAL: months, days and milliseconds."""
    return bool(pa.types.is_fixed_size_binary(type)) and type.byte_width == 12


def list_intervals(values: list[Any]) -> list[Any]:
    """The 12 bytes as `list_plain` has durations, which have neither months nor days."""
    parts = [None if value is None else struct.unpack("<III", value) for value in values]
    return [
        None if part is None else (part[1] * _DAY + part[2] * 10**6 if not part[0] else part)
        for part in parts
    ]


def is_list(type: Any) -> bool:
    checks = pa.types
    return bool(
        checks.is_list(type)
        or checks.is_large_list(type)
        or checks.is_list_view(type)
        or checks.is_large_list_view(type)
        or checks.is_map(type)
    )


def show_float(value: float) -> float | str:
    """NaN equals NaN, and -0.0 is not 0.0."""
    if value != value:
        return "nan"
    return "-0.0" if value == 0 and np.signbit(value) else float(value)


# ---------------------------------------------------------------------------
# Arrow


def list_plain(array: Any, *, bare: bool = False) -> list[Any]:
    """The values of an array or a column; with `bare`, times are counts of their own unit."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in list_plain(chunk, bare=bare)]
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type = array.type
    if pa.types.is_dictionary(type):
        values = list_plain(array.dictionary)
        return [None if code is None else values[code] for code in array.indices.to_pylist()]
    factor = find_factor(type)
    if factor:
        bits = pa.int32() if type.bit_width == 32 else pa.int64()
        return [
            None if x is None else x * (1 if bare else factor) for x in array.view(bits).to_pylist()
        ]
    if pa.types.is_interval(type):
        return _list_months(array)
    if pa.types.is_floating(type):
        return [None if x is None else show_float(float(x)) for x in array.to_pylist()]
    if is_text(type):
        text = array.to_pylist()
        return [x.encode() if isinstance(x, str) else x for x in text]
    if is_list(type) or pa.types.is_fixed_size_list(type):
        return _list_rows(array)
    if pa.types.is_struct(type):
        fields = {f.name: list_plain(child) for f, child in zip(type, array.flatten(), strict=True)}
        rows = _join_fields(fields, len(array))
        return [
            row if ok else None for row, ok in zip(rows, array.is_valid().to_pylist(), strict=True)
        ]
    return array.to_pylist()


def _list_months(array: Any) -> list[Any]:
    """Intervals as `list_intervals` has them."""
    return [
        None
        if value is None
        else (value.months, value.days, value.nanoseconds // 10**6)
        if value.months
        else value.days * _DAY + value.nanoseconds // 10**6 * 10**6
        for value in array.to_pylist()
    ]


def _list_rows(array: Any) -> list[Any]:
    if pa.types.is_map(array.type):
        kinds = array.type
        fields = [pa.field("key", kinds.key_type), pa.field("value", kinds.item_type)]
        array = pa.array(
            [
                None
                if row is None
                else [dict(zip(("key", "value"), pair, strict=True)) for pair in row]
                for row in array.to_pylist()
            ],
            pa.list_(pa.struct(fields)),
        )
    lengths = pc.list_value_length(array).to_pylist()
    values = list_plain(array.flatten())
    rows: list[Any] = []
    start = 0
    for length in lengths:
        rows.append(None if length is None else values[start : start + length])
        start += length or 0
    return rows


def _join_fields(fields: dict[str, list[Any]], rows: int) -> list[Any]:
    return [{name: values[i] for name, values in fields.items()} for i in range(rows)]


# ---------------------------------------------------------------------------
# Tensors


def split_fields(values: list[Any], type: Any) -> Any:
    """Values as tensors have them: structs by field, decimals as floats."""
    if pa.types.is_struct(type):
        return {
            field.name: split_fields(
                [None if row is None else row[field.name] for row in values], field.type
            )
            for field in type
        }
    if pa.types.is_decimal(type):
        return [None if value is None else show_float(float(value)) for value in values]
    return values


def fill(values: Any, type: Any, code: Any) -> Any:
    """What takes the place of nulls; `code` is the first value of a dictionary."""
    if isinstance(values, Mapping):
        return {field.name: fill(values[field.name], field.type, None) for field in type}
    if pa.types.is_list(type) or pa.types.is_fixed_size_list(type):
        item = type.value_type
        values = [None if row is None else _fill_items(row, item) for row in values]
    zero: Any = 0.0 if pa.types.is_floating(type) or pa.types.is_decimal(type) else 0
    if pa.types.is_dictionary(type):
        zero = code
    elif pa.types.is_boolean(type):
        zero = False
    elif is_text(type):
        zero = b""
    elif is_list(type):
        zero = []
    elif pa.types.is_fixed_size_list(type):
        zero = [fill([None], type.value_type, None)[0]] * type.list_size
    elif pa.types.is_fixed_size_binary(type):
        zero = bytes(type.byte_width)
    return [zero if value is None else value for value in values]


def _fill_items(row: list[Any], type: Any) -> list[Any]:
    """Fill the null items of a list, unless they are structs."""
    return row if pa.types.is_struct(type) else fill(row, type, None)


def read_tensor(value: Any, type: Any, codes: list[Any] | None) -> Any:
    """The rows of a column of a batch, a pair with a mask or not; nulls where the mask is False."""
    type = type.storage_type if isinstance(type, pa.BaseExtensionType) else type
    if isinstance(value, dict):
        return {field.name: read_tensor(value[field.name], field.type, None) for field in type}
    mask = None
    if isinstance(value, tuple) and getattr(value[1], "dtype", None) == np.bool_:
        value, mask = value
    rows = _list_tensor(value, type, codes)
    if mask is None:
        return rows
    if pa.types.is_fixed_size_list(type) and mask.ndim == 2:
        rows = [
            [item if ok else None for item, ok in zip(row, some, strict=True)]
            for row, some in zip(rows, mask.tolist(), strict=True)
        ]
    valid = (mask if mask.ndim == 1 else mask.any(axis=1)).tolist()
    return [row if ok else None for row, ok in zip(rows, valid, strict=True)]


def _list_tensor(value: Any, type: Any, codes: list[Any] | None) -> list[Any]:
    if isinstance(value, dict):
        fields = {field.name: _list_tensor(value[field.name], field.type, None) for field in type}
        return _join_fields(fields, len(next(iter(fields.values()))))
    if is_text(type):
        joined, offsets = value[0].tobytes(), value[1].tolist()
        return [joined[a:b] for a, b in pairwise(offsets)]
    if is_list(type):
        if pa.types.is_map(type):
            item = pa.struct([("key", type.key_type), ("value", type.item_type)])
        else:
            item = type.value_type
        values, offsets = _list_tensor(value[0], item, None), value[1].tolist()
        return [values[a:b] for a, b in pairwise(offsets)]
    if pa.types.is_fixed_size_binary(type) and not pa.types.is_decimal(type):
        return [row.tobytes() for row in value]
    if codes is not None:
        return [codes[code] if codes else None for code in value.tolist()]
    return _list_numbers(value.tolist(), find_factor(type))


def _list_numbers(values: list[Any], factor: int) -> list[Any]:
    if values and isinstance(values[0], list):
        return [_list_numbers(row, factor) for row in values]
    if factor:
        return [value * factor for value in values]
    return [show_float(value) if isinstance(value, float) else value for value in values]
