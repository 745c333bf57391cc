"""Rows of memory-mapped files for writing: the file stays as it is, and so does the next epoch.

Parts of a file are mapped once more, privately (copy-on-write), when an epoch comes to them, and
not the file as a whole: what the training writes takes memory until the part is left.
"""

from __future__ import annotations

import mmap
import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arrowdl import _core

if TYPE_CHECKING:
    import pyarrow as pa

# A mapping has some cost, and a file descriptor as long as a tensor lies in it.
_PART_BYTES = 2**25
# Where there can be no mapping rows are copied, so many at a time.
_COPY_ROWS = 65_536
# No memory is set aside for pages that nobody may write to. Python 3.13 has the name of it.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


@dataclass(frozen=True)
class MappedFile:
    """A file that is mapped to be read.

    Attributes
    ----------
    path : str
    address, size : int
        Of its bytes in memory.
    identity : tuple of int, optional
        What tells it from another one of that name, where that is known.
    """

    path: str
    address: int
    size: int
    identity: tuple[int, ...] | None


@dataclass(frozen=True)
class _Part:
    """Bytes `start` to `stop` of a file."""

    file: MappedFile
    start: int
    stop: int


def map_file(path: str) -> tuple[pa.MemoryMappedFile, MappedFile]:
    """The file, mapped to be read."""
    import pyarrow as pa

    before = _identify(os.stat(path))
    mapped = pa.memory_map(path)
    whole = mapped.read_buffer()
    mapped.seek(0)
    identity = before if _identify(os.stat(path)) == before else None
    return mapped, MappedFile(path, whole.address, whole.size, identity)


def _identify(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_dev, stat.st_ino, stat.st_size


class PrivateRows:
    """The rows of record batches over mapped files.

    Parameters
    ----------
    batches : sequence of RecordBatch
    arrays : sequence of DeviceArray
        The same.
    files : sequence of MappedFile
    """

    def __init__(
        self,
        batches: Sequence[pa.RecordBatch],
        arrays: Sequence[_core.DeviceArray],
        files: Sequence[MappedFile],
    ) -> None:
        self._arrays = arrays
        self._parts = _join([_find_part(batch, files) for batch in batches])

    def read(self, slices: Iterator[tuple[int, slice]]) -> Iterator[_core.DeviceArray]:
        """The rows of each slice of an array, in memory that nobody else sees."""
        part: _Part | None = None
        block = _map(None)
        for i, rows in slices:
            if self._parts[i] != part:
                part = self._parts[i]
                block = _map(part)
            array = self._arrays[i][rows]
            address = 0 if part is None else part.file.address + part.start
            step = max(1, len(array)) if len(block) else _COPY_ROWS
            for start in range(0, len(array), step):
                yield _core.relocate(array[start : start + step], address, block)


def _find_part(batch: pa.RecordBatch, files: Sequence[MappedFile]) -> _Part | None:
    """Where the buffers of a batch lie: all that do are in the same file."""
    ordered = sorted(files, key=lambda file: file.address)
    addresses = [file.address for file in ordered]
    found: MappedFile | None = None
    start, stop = sys.maxsize, 0
    for column in batch.columns:
        for buffer in column.buffers():
            if buffer is None or not buffer.size:
                continue
            i = bisect_right(addresses, buffer.address) - 1
            offset = buffer.address - addresses[i] if i >= 0 else 0
            if i < 0 or offset >= ordered[i].size or found not in (None, ordered[i]):
                continue
            found = ordered[i]
            start, stop = min(start, offset), max(stop, offset + buffer.size)
    if found is None or found.identity is None:
        return None
    return _Part(found, start - start % mmap.ALLOCATIONGRANULARITY, stop)


def _join(parts: Sequence[_Part | None]) -> list[_Part | None]:
    """Neighbours as one part, up to `_PART_BYTES`."""
    joined: list[_Part | None] = []
    group = 0  # of the parts since then
    for i, part in enumerate(parts):
        last = joined[-1] if joined else None
        if part is None or last is None or part.file != last.file:
            joined.append(part)
            group = i
            continue
        both = _Part(part.file, min(part.start, last.start), max(part.stop, last.stop))
        if both.stop - both.start <= _PART_BYTES:
            joined[group:] = [both] * (i - group + 1)
        else:
            joined.append(part)
            group = i
    return joined


def _map(part: _Part | None) -> _core.DeviceArray:
    """The bytes of a part, mapped anew; none where that cannot be."""
    if part is not None and (mapping := _map_privately(part)) is not None:
        return _core.to_arrow_device(mapping)
    return _core.to_arrow_device(bytearray())


def _map_privately(part: _Part) -> mmap.mmap | None:
    length = part.stop - part.start
    try:
        with open(part.file.path, "rb") as file:
            if _identify(os.fstat(file.fileno())) != part.file.identity:
                return None
            if sys.platform == "win32":
                return mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY, offset=part.start)
            return mmap.mmap(
                file.fileno(),
                length,
                mmap.MAP_PRIVATE | _NORESERVE,
                mmap.PROT_READ | mmap.PROT_WRITE,
                offset=part.start,
            )
    except OSError:  # the file has another name by now, or there is no room: rows are copied
        return None
