"""Constants of the dataframe interchange protocol.

Source: "Python dataframe interchange protocol", Consortium for Python Data API Standards; its
format strings are those of the Arrow C data interface.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TypeAlias

from arrowdl._core import Device

Dtype: TypeAlias = tuple[int, int, str, str]
"""Kind, bits per element, format string, byte order."""

NATIVE = "="


class Kind(IntEnum):
    """The protocol's DtypeKind."""

    INT = 0
    UINT = 1
    FLOAT = 2
    BOOL = 20
    STRING = 21
    DATETIME = 22
    CATEGORICAL = 23


class Null(IntEnum):
    """The protocol's ColumnNullType."""

    NON_NULLABLE = 0
    USE_NAN = 1
    USE_SENTINEL = 2
    USE_BITMASK = 3
    USE_BYTEMASK = 4


NUMBERS: dict[str, tuple[Kind, int]] = {
    **{format: (Kind.INT, 8 << i) for i, format in enumerate("csil")},
    **{format: (Kind.UINT, 8 << i) for i, format in enumerate("CSIL")},
    **{format: (Kind.FLOAT, 16 << i) for i, format in enumerate("efg")},
}
"""Format string of each number type: its kind and bits."""

_TIME = re.compile(r"ts[smun]:|t[td][smunD]$|tD[smun]$")
_TIME_OF_32_BITS = {"tdD", "tts", "ttm"}


def find_time_bits(format: str) -> int | None:
    """Return the bits of a date, time, timestamp or duration; None for any other format."""
    if not _TIME.match(format):
        return None
    return 32 if format in _TIME_OF_32_BITS else 64


def name_device(device: Device) -> str:
    """Return the name of a device for error messages, such as ``cuda:0``."""
    return f"{device.name}:{device.id}"
