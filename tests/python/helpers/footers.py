"""Parquet files whose footers lie, made of real ones by way of Thrift's compact protocol."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Types of the protocol. A field is its type and its value, a list the type of its items and these.
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, _I64)
Struct = dict[int, tuple[int, Any]]

# Fields of Parquet's footer, by their numbers in parquet.thrift.
_GROUPS, _FILE_ROWS = 4, 3
_CHUNKS, _GROUP_ROWS = 1, 3
_CHUNK_METADATA, _CHUNK_VALUES = 3, 5


def set_rows(path: Path, group: int, rows: int) -> None:
    """Let the footer say that a row group has another number of rows, and the file in all."""

    def change(footer: Struct) -> None:
        own = _find_group(footer, group)
        added = rows - own[_GROUP_ROWS][1]
        own[_GROUP_ROWS] = (_I64, rows)
        footer[_FILE_ROWS] = (_I64, footer[_FILE_ROWS][1] + added)

    _rewrite(path, change)


def take_column(path: Path, group: int, column: int, other: int) -> None:
    """Let a column of a row group have the values of row group `other`, which may be fewer."""

    def change(footer: Struct) -> None:
        chunks = _find_group(footer, group)[_CHUNKS][1][1]
        chunks[column] = _find_group(footer, other)[_CHUNKS][1][1][column]

    _rewrite(path, change)


def _find_group(footer: Struct, group: int) -> Struct:
    found: Struct = footer[_GROUPS][1][1][group]
    return found


def _rewrite(path: Path, change: Callable[[Struct], None]) -> None:
    data = path.read_bytes()
    (size,) = struct.unpack("<I", data[-8:-4])
    begin = len(data) - 8 - size
    footer = _Reader(data[begin:-8]).read_struct()
    assert _write_struct(footer) == data[begin:-8]
    change(footer)
    written = _write_struct(footer)
    path.write_bytes(data[:begin] + written + struct.pack("<I", len(written)) + b"PAR1")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _read_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _read_integer(self) -> int:
        value = self._read_varint()
        return (value >> 1) ^ -(value & 1)

    def _read_value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._read_integer()
        if kind in (_BYTE, _DOUBLE):
            return self._take(1 if kind == _BYTE else 8)
        if kind == _BINARY:
            return self._take(self._read_varint())
        if kind in (_LIST, _SET):
            head = self._take(1)[0]
            items, count = head & 15, head >> 4
            if count == 15:
                count = self._read_varint()
            is_bool = items in (_TRUE, _FALSE)
            return items, [
                self._take(1) if is_bool else self._read_value(items) for _ in range(count)
            ]
        assert kind == _STRUCT
        return self.read_struct()

    def read_struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while head := self._take(1)[0]:
            kind, step = head & 15, head >> 4
            number = number + step if step else self._read_integer()
            is_bool = kind in (_TRUE, _FALSE)
            fields[number] = (kind, None if is_bool else self._read_value(kind))
        return fields


def _write_varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _write_integer(value: int) -> bytes:
    return _write_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _write_value(kind: int, value: Any) -> bytes:
    if kind in _INTEGERS:
        return _write_integer(value)
    if kind == _BINARY:
        return _write_varint(len(value)) + bytes(value)
    if kind in (_LIST, _SET):
        items, values = value
        count = len(values)
        head = bytes([count << 4 | items] if count < 15 else [0xF0 | items])
        is_bool = items in (_TRUE, _FALSE)
        body = [own if is_bool else _write_value(items, own) for own in values]
        return head + (_write_varint(count) if count >= 15 else b"") + b"".join(body)
    return _write_struct(value) if kind == _STRUCT else bytes(value)


def _write_struct(fields: Struct) -> bytes:
    written = b""
    last = 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - last
        head = (
            bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _write_integer(number)
        )
        written += head + (b"" if value is None else _write_value(kind, value))
        last = number
    return written + b"\0"
