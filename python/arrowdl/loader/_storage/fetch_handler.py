"""`FetchHandler`: a file system that reads from memory what a `FetchAhead` has brought there."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import pyarrow.fs as fs

from arrowdl.loader._storage.cached import find_cache
from arrowdl.loader._storage.handlers import (
    ReadingHandler,
    check_unchanged,
    find_handler,
    open_reader,
)
from arrowdl.loader._storage.held_ranges import HeldRanges
from arrowdl.loader._storage.readers import Reader, Stamp

# Open files of the file system below.
_MOST_OPEN = 128


def fetch_ahead(filesystem: fs.FileSystem) -> fs.FileSystem:
    """Return a file system whose files are read from memory where a `FetchAhead` has been."""
    return fs.PyFileSystem(FetchHandler(filesystem))


class FetchHandler(ReadingHandler):
    """Reads what is held, and the rest from the file system below."""

    def __init__(self, inner: fs.FileSystem) -> None:
        super().__init__(inner)
        self._forget()

    def _forget(self) -> None:
        self.held = HeldRanges()
        self._lock = threading.Lock()
        self._stamps: dict[str, Stamp] = {}
        self._idle: OrderedDict[tuple[str, int], Reader] = OrderedDict()
        self._opened = 0
        # A file in Python is read by one thread at a time.
        handler = find_handler(_find_lowest(self.inner))
        self._is_serial = handler is None and isinstance(_find_lowest(self.inner), fs.PyFileSystem)

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self.inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FetchHandler) and self.inner == other.inner

    __hash__ = ReadingHandler.__hash__

    def open_reader(self, path: str) -> Reader:
        if path not in self._stamps:
            with _Borrowed(self, path) as reader:
                self._stamps[path] = reader.stamp
        return _HeldReader(self, path, self._stamps[path])

    def read_below(self, path: str, nbytes: int, offset: int) -> Any:
        """Read from the file system below; safe in several threads at a time."""
        with _Borrowed(self, path) as reader:
            return reader.read_at(nbytes, offset)

    def read_again(self, path: str, nbytes: int, offset: int) -> Any:
        """Read what another thread reads as well: the cache would wait for it, if it has no such
        range yet.
        """
        cached = find_cache(self.inner)
        if cached is None:
            return self.read_below(path, nbytes, offset)
        if (cached_bytes := cached.find(path, nbytes, offset)) is not None:  # its disk was late
            return cached_bytes
        below = cached.inner
        reader = open_reader(below, path)
        try:
            data = reader.read_at(nbytes, offset)
        finally:
            reader.close()
        check_unchanged(below, path)
        return data

    def borrow(self, path: str) -> tuple[Reader, int]:
        """Return an open file that has no other reader, unless that does not matter."""
        with self._lock:
            key = next((key for key in reversed(self._idle) if key[0] == path), None)
            if key is not None:
                reader = self._idle[key]
                if self._is_serial:
                    del self._idle[key]
                else:
                    self._idle.move_to_end(key)
                return reader, key[1]
            self._opened += 1
            number = self._opened
        return super().open_reader(path), number

    def give_back(self, key: tuple[str, int], reader: Reader | None) -> None:
        """Keep a file open for the next one that reads it; None for one that failed."""
        with self._lock:
            if reader is None:
                self._idle.pop(key, None)
                return
            self._idle[key] = reader
            dropped = []
            while len(self._idle) > _MOST_OPEN:
                dropped.append(self._idle.popitem(last=False)[1])
        if self._is_serial:  # others may be in use, and are closed after their last use
            for reader in dropped:
                reader.close()


class _Borrowed:
    """``with`` an open file of the file system below; one that failed is not used again."""

    def __init__(self, handler: FetchHandler, path: str) -> None:
        self._handler = handler
        self._path = path

    def __enter__(self) -> Reader:
        self._reader, self._number = self._handler.borrow(self._path)
        return self._reader

    def __exit__(self, kind: Any, *_: Any) -> None:
        key = self._path, self._number
        self._handler.give_back(key, self._reader if kind is None else None)


def _find_lowest(filesystem: fs.FileSystem) -> fs.FileSystem:
    handler = find_handler(filesystem)
    if handler is None or hasattr(handler, "filesystem"):
        return filesystem
    return _find_lowest(handler.inner)


class _HeldReader(Reader):
    """Reads what is held; closing it leaves the files below open for others."""

    def __init__(self, handler: FetchHandler, path: str, stamp: Stamp) -> None:
        self._handler = handler
        self._path = path
        self.stamp = stamp

    def read_at(self, nbytes: int, offset: int) -> Any:
        held = self._handler.held.find(self._path, offset, nbytes) if nbytes else b""
        return self._handler.read_below(self._path, nbytes, offset) if held is None else held
