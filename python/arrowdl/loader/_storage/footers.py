"""`keep_footers`: the ends of files, which have their footers, are read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import pyarrow.fs as fs

from arrowdl.loader._storage.handlers import ReadingHandler
from arrowdl.loader._storage.readers import Reader, Stamp

# pyarrow reads as much of a Parquet file's end to find its footer.
_END_BYTES = 2**16
# Larger footers are kept too: pyarrow reads them up to the length and the magic bytes behind them.
_MOST_BYTES = 2**23
_PARQUET_TAIL = 8


def keep_footers(filesystem: fs.FileSystem, nbytes: int = 2**26) -> fs.FileSystem:
    """Return a file system that keeps the ends of files, as many as `nbytes` hold.

    pyarrow reads a footer for each object of the file that is made: of its schema, its row groups.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem
    nbytes : int
        The least recently used ones go first.
    """
    return fs.PyFileSystem(FooterHandler(filesystem, nbytes))


class FooterHandler(ReadingHandler):
    """Serves the ends of files from memory."""

    def __init__(self, inner: fs.FileSystem, nbytes: int) -> None:
        super().__init__(inner)
        self._most = nbytes
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._held = 0
        self._ends: OrderedDict[str, tuple[Stamp, int, bytes]] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self.inner, "_most": self._most}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FooterHandler) and self.inner == other.inner

    __hash__ = ReadingHandler.__hash__

    def open_reader(self, path: str) -> Reader:
        return _FooterReader(self, path, super().open_reader(path))

    def find(self, path: str, stamp: Stamp, offset: int) -> tuple[int, bytes] | None:
        """Return the end of a file and its offset, if it begins at `offset` or before."""
        with self._lock:
            kept = self._ends.get(path)
            if kept is None or kept[0] != stamp or kept[1] > offset:
                return None
            self._ends.move_to_end(path)
            return kept[1], kept[2]

    def keep(self, path: str, stamp: Stamp, offset: int, end: bytes) -> None:
        """Keep the end of a file."""
        with self._lock:
            before = self._ends.pop(path, None)
            self._held += len(end) - (0 if before is None else len(before[2]))
            self._ends[path] = stamp, offset, end
            while self._held > self._most and self._ends:
                _, (_, _, dropped) = self._ends.popitem(last=False)
                self._held -= len(dropped)


class _FooterReader:
    def __init__(self, handler: FooterHandler, path: str, reader: Reader) -> None:
        self._handler = handler
        self._path = path
        self._reader = reader

    def stamp(self) -> Stamp:
        return self._reader.stamp()

    def read_at(self, nbytes: int, offset: int) -> Any:
        stamp = self.stamp()
        assert stamp.size is not None
        if not self._is_at_end(nbytes, offset, stamp.size):
            return self._reader.read_at(nbytes, offset)
        kept = self._handler.find(self._path, stamp, offset)
        if kept is None:
            start = min(offset, max(0, stamp.size - _END_BYTES))
            end = bytes(self._reader.read_at(stamp.size - start, start))
            self._handler.keep(self._path, stamp, start, end)
            kept = start, end
        start, end = kept
        return end[offset - start : offset - start + nbytes]

    def _is_at_end(self, nbytes: int, offset: int, size: int) -> bool:
        """Whether a range is in the end that is kept, or is a longer footer of a Parquet file."""
        if offset >= size - _END_BYTES:
            return True
        if offset + nbytes == size - _PARQUET_TAIL:
            return nbytes <= _MOST_BYTES
        return self._handler.find(self._path, self.stamp(), offset) is not None

    def close(self) -> None:
        self._reader.close()
