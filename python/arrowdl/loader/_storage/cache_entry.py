"""The file of an entry of a `DiskCache`: its name, its data, and a checksum of both at its end."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from typing import Any

ENTRY, PART = ".range", ".part"
_MAGIC = b"arrowdl2"
END = struct.Struct("<8sQI")  # magic, bytes of the data, checksum
_WRITTEN_AT_ONCE = 2**22
_OF_GROUP = "\x01"  # in a key, after the name of the group


def name_entry(key: str) -> str:
    return name_group(key.partition(_OF_GROUP)[0]) + _digest(key)


def name_group(group: str) -> str:
    return _digest(group)[:16]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def make_end(name: str, data: Any) -> bytes:
    """Return what follows the data of an entry."""
    return END.pack(_MAGIC, len(data), zlib.crc32(data, zlib.crc32(name.encode())))


def write_entry(file: int, name: str, data: Any) -> None:
    """Write an entry to an open file."""
    view = memoryview(data).cast("B")
    end = make_end(name, view)
    for begin in range(0, len(view), _WRITTEN_AT_ONCE):
        _write_all(file, view[begin : begin + _WRITTEN_AT_ONCE])
    _write_all(file, memoryview(end))


def _write_all(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]
