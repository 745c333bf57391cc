"""`HeldRanges`: bytes of files that have arrived, in memory until they are dropped."""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import NamedTuple

import pyarrow as pa

from arrowdl.loader._storage.readers import join_bytes


class Range(NamedTuple):
    """`nbytes` bytes of a file from `offset`."""

    offset: int
    nbytes: int


class HeldRanges:
    """Bytes of files, in memory until they are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, list[tuple[Range, pa.Buffer]]] = {}  # ascending

    def add(self, path: str, part: Range, data: pa.Buffer) -> None:
        with self._lock:
            held = self._held.setdefault(path, [])
            held.insert(bisect_right(held, part, key=lambda item: item[0]), (part, data))

    def drop(self, path: str, part: Range, data: pa.Buffer) -> None:
        with self._lock:
            held = self._held[path]
            for index, (range_path, held_range) in enumerate(held):
                if range_path == part and held_range is data:
                    del held[index]
                    break
            if not held:
                del self._held[path]

    def find(self, path: str, offset: int, nbytes: int) -> pa.Buffer | None:
        """Return bytes of a file; None if not all are held."""
        parts = []
        position, end = offset, offset + nbytes
        with self._lock:
            for (begin, length), data in self._held.get(path, ()):
                if begin > position:
                    break
                if begin + length > position:
                    stop = min(end, begin + length)
                    parts.append(data.slice(position - begin, stop - position))
                    position = stop
                    if position == end:
                        break
        if position < end or not parts:
            return None
        return parts[0] if len(parts) == 1 else join_bytes(parts)
