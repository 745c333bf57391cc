"""Writable rows of memory-mapped files: writing changes neither the file nor the next epoch.

When an epoch reaches a part of a file, the part is mapped again, privately (copy-on-write). Pages
that the training writes to take memory until no batch of the part is alive.
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

# A mapping has some cost, and keeps a file descriptor as long as a tensor uses it.
_PART_BYTES = 2**25
# If the file cannot be mapped, rows are copied, this many at a time.
_COPY_ROWS = 65_536
# Reserves no memory for pages that may never be written. Python has the name since 3.13.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


@dataclass(frozen=True)
class MappedFile:
    """A file that is mapped for reading."""

    path: str
    address: int  # where its bytes are mapped
    size: int
    # device, inode and size; None if the file changed while it was mapped
    identity: tuple[int, ...] | None


@dataclass(frozen=True)
class _Part:
    """Bytes `start` to `stop` of a file."""

    file: MappedFile
    start: int
    stop: int


def map_file(path: str) -> tuple[pa.MemoryMappedFile, MappedFile]:
    """Map a file for reading."""
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
    """Rows of record batches over mapped files, in private memory."""

    def __init__(
        self,
        batches: Sequence[pa.RecordBatch],
        arrays: Sequence[_core.DeviceArray],  # the same rows
        files: Sequence[MappedFile],
    ) -> None:
        self._arrays = arrays
        self._parts = _join([_find_part(batch, files) for batch in batches])

    def read(self, slices: Iterator[tuple[int, slice]]) -> Iterator[_core.DeviceArray]:
        """Yield the rows of each slice of an array, in memory that has no other user."""
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
    """Return the part of a file that has the buffers of a batch; None if there is none."""
    ordered = sorted(files, key=lambda file: file.address)
    addresses = [file.address for file in ordered]
    mapped_file: MappedFile | None = None
    start, stop = sys.maxsize, 0
    for column in batch.columns:
        for buffer in column.buffers():
            if buffer is None or not buffer.size:
                continue
            i = bisect_right(addresses, buffer.address) - 1
            offset = buffer.address - addresses[i] if i >= 0 else 0
            if i < 0 or offset >= ordered[i].size or mapped_file not in (None, ordered[i]):
                continue
            mapped_file = ordered[i]
            start, stop = min(start, offset), max(stop, offset + buffer.size)
    if mapped_file is None or mapped_file.identity is None:
        return None
    return _Part(mapped_file, start - start % mmap.ALLOCATIONGRANULARITY, stop)


def _join(parts: Sequence[_Part | None]) -> list[_Part | None]:
    """Join neighbouring parts, up to `_PART_BYTES`."""
    joined: list[_Part | None] = []
    group = 0  # where the last joined part begins
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
    """Map the bytes of a part again; without a part or a mapping, return no bytes."""
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
    except OSError:  # the file was renamed, or there is no room: rows are copied
        return None
