"""`keep_footers`: the ends of files, which have their footers, are read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow.fs as fs

from arrowdl.loader._storage.handlers import ReadingHandler
from arrowdl.loader._storage.readers import (
    Reader,
    Stamp,
    list_changes,
    may_be_rewritten,
    strip_etag,
)
from arrowdl.loader._storage.threads import FOOTERS_AT_ONCE, map_in_threads
from arrowdl.loader._storage.transient import FileChangedError

# pyarrow reads as much of a Parquet file's end to find its footer.
_END_BYTES = 2**16
# Larger footers are kept too: pyarrow reads them up to the length and the magic bytes behind them.
_MOST_BYTES = 2**23
_PARQUET_TAIL = 8


def keep_footers(
    filesystem: fs.FileSystem,
    nbytes: int = 2**26,  # the least recently used ones go first
) -> fs.FileSystem:
    """Return a file system that keeps the ends of files, as many as `nbytes` hold.

    pyarrow reads a footer for each object of the file that is made: of its schema, its row groups.
    """
    return fs.PyFileSystem(FooterHandler(filesystem, nbytes))


class _End(NamedTuple):
    """Bytes of a file from `start` to its end, which was read when the file had `stamp`."""

    stamp: Stamp
    start: int
    data: bytes
    is_fresh: bool  # as of `may_be_rewritten`

    def count_footer(self) -> int | None:
        """Return the bytes of the footer with what is behind; None if this has no such end."""
        magic = next((word for word in (b"PAR1", b"ARROW1") if self.data.endswith(word)), None)
        if magic is None:
            return None
        tail = len(magic) + 4
        return int.from_bytes(self.data[-tail : -len(magic)], "little") + tail

    def cut(self) -> _End | None:
        """Return the footer alone; None if this is not a file of Parquet or Arrow IPC."""
        length = self.count_footer()
        if length is None or length > len(self.data):
            return None
        return self._replace(start=self.start + len(self.data) - length, data=self.data[-length:])

    def read(self, nbytes: int, offset: int) -> bytes | None:
        """Return bytes of the file, if they are in this."""
        if self.start <= offset:
            return self.data[offset - self.start : offset - self.start + nbytes]
        is_to_end = offset + nbytes == self.start + len(self.data)
        if nbytes == _END_BYTES and is_to_end and self.data.endswith(b"PAR1"):
            # pyarrow looks for the footer, whose length is in its last bytes, and uses no others.
            return bytes(self.start - offset) + self.data
        return None


class FooterHandler(ReadingHandler):
    """Serves the ends of files from memory; pickled, it has their footers."""

    def __init__(self, inner: fs.FileSystem, nbytes: int) -> None:
        super().__init__(inner)
        self._most = nbytes
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._held = 0
        self._ends: OrderedDict[str, _End] = OrderedDict()
        self._footers: OrderedDict[str, _End] = OrderedDict()  # of those that had no room
        self._ahead: dict[str, Reader] = {}  # files that are open, and were not read

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self.inner, "_most": self._most, "footers": self.list_footers()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        footers = state.pop("footers")
        self.__dict__.update(state)
        self._forget()
        self.add_footers(footers)

    def list_footers(self) -> dict[str, _End]:
        """Return the footers, for a process that reads the same files."""
        with self._lock:
            ranges = {**self._footers, **self._ends}
        cut = ((path, end if end.start == 0 else end.cut()) for path, end in ranges.items())
        return {path: end for path, end in cut if end is not None}

    def add_footers(self, footers: Mapping[str, _End]) -> None:
        """Keep the footers that another process read."""
        for path, end in footers.items():
            self.keep(path, end)

    def add_etags(self, paths: Iterable[str]) -> None:
        """Take the ETags of files from their list if it has those of opened ones; else ask."""
        listed = {path: self.find_listed_etag(path) for path in paths}
        etags = {path: etag for path in listed if (etag := self.find_stamp(path).etag)}
        if etags and all(strip_etag(listed[path]) == strip_etag(etags[path]) for path in etags):
            for path in listed.keys() - etags:
                self.add_etag(path, listed[path])
        unknown = [path for path in listed if self.find_stamp(path).etag is None]

        def ask(path: str) -> None:
            with suppress(Exception):  # it is raised where the rows come
                self.open_below(path).close()

        map_in_threads(ask, unknown[:1], 1)
        if unknown and self.find_stamp(unknown[0]).etag is not None:
            map_in_threads(ask, unknown[1:], FOOTERS_AT_ONCE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FooterHandler) and self.inner == other.inner

    __hash__ = ReadingHandler.__hash__

    def open_reader(self, path: str) -> Reader:
        return _FooterReader(self, path)

    def open_below(self, path: str) -> Reader:
        """Open a file of which other bytes are needed than those that are kept."""
        return self._ahead.pop(path, None) or super().open_reader(path)

    def open_ahead(self, path: str) -> None:
        """Open a file of which rows are needed soon."""
        self._ahead[path] = super().open_reader(path)

    def read_footer(self, path: str) -> bytes | None:
        """Read the end of a Parquet file, which is kept; return the Thrift of its footer.

        Returns None if the file has no footer that can be kept.
        """
        listed, nbytes = self.find_stamp(path), _END_BYTES
        was_fresh = listed.size is not None and may_be_rewritten(listed)
        while True:
            stamp, data = self.read_end(path, nbytes)
            assert stamp.size is not None
            is_fresh = may_be_rewritten(stamp) or (was_fresh and not stamp.is_exact)
            end = _End(stamp, stamp.size - len(data), data, is_fresh)
            if (footer := end.cut()) is not None and data.endswith(b"PAR1"):
                self.keep(path, end)
                return footer.data[:-_PARQUET_TAIL]
            length = end.count_footer() or 0
            if not len(data) < length <= min(_MOST_BYTES, stamp.size):
                return None
            nbytes = length

    def check_unchanged(self, path: str) -> None:
        """Compare the footer too, if the store's stamp does not tell."""
        super().check_unchanged(path)
        end = self.find(path)
        if end is None or not end.is_fresh:
            return
        is_fresh = may_be_rewritten(end.stamp)
        reader = super().open_reader(path)
        try:
            data = reader.read_at(len(end.data), end.start)
        finally:
            reader.close()
        if bytes(data) != end.data:
            raise FileChangedError(
                f"{path!r} has changed since its footer was read, within a second, so that its "
                "rows are no longer where the Loader expects them: make a new Loader (and a new "
                "plan), and write new files under new names while a training reads"
            )
        self.keep(path, end._replace(is_fresh=is_fresh))

    def forget(self, path: str) -> None:
        super().forget(path)
        with self._lock:
            self._drop(path)

    def find(self, path: str) -> _End | None:
        """Return the end of a file, or its footer; None if neither is kept."""
        with self._lock:
            for ranges in (self._ends, self._footers):
                if path in ranges:
                    ranges.move_to_end(path)
                    return ranges[path]
            return None

    def keep(self, path: str, end: _End) -> None:
        """Keep the end of a file. For want of room, of others only the footers are kept."""
        with self._lock:
            self._drop(path)
            self._ends[path] = end
            self._held += len(end.data)
            while self._held > self._most and (self._ends or self._footers):
                oldest, dropped = (self._ends or self._footers).popitem(last=False)
                self._held -= len(dropped.data)
                footer = None if dropped.start == 0 else dropped.cut()
                if footer is not None and len(footer.data) < len(dropped.data):
                    self._footers[oldest] = footer
                    self._held += len(footer.data)

    def _drop(self, path: str) -> None:
        for ranges in (self._ends, self._footers):
            if (before := ranges.pop(path, None)) is not None:
                self._held -= len(before.data)


class _FooterReader(Reader):
    """Opens the file when bytes are read that are not kept."""

    def __init__(self, handler: FooterHandler, path: str) -> None:
        self._handler = handler
        self._path = path
        self._lock = threading.Lock()
        self._reader: Reader | None = None
        if (held := handler.find(path)) is not None:
            self.stamp = held.stamp
        else:
            self._reader = handler.open_below(path)
            self.stamp = self._reader.stamp

    def _read_below(self, nbytes: int, offset: int) -> Any:
        with self._lock:
            if self._reader is None:
                self._reader = self._handler.open_below(self._path)
                self.stamp = self._reader.stamp
        return self._reader.read_at(nbytes, offset)

    def read_at(self, nbytes: int, offset: int) -> Any:
        stamp, size = self.stamp, self.size
        nbytes = max(0, min(nbytes, size - offset))
        held = self._handler.find(self._path)
        is_kept = held is not None and not list_changes(held.stamp, stamp)
        if held is not None and is_kept and (data := held.read(nbytes, offset)) is not None:
            return data
        if not self._has_footer(nbytes, offset, size, is_kept):
            return self._read_below(nbytes, offset)
        is_fresh = may_be_rewritten(stamp)
        start = min(offset, max(0, size - _END_BYTES))
        end = _End(stamp, start, bytes(self._read_below(size - start, start)), is_fresh)
        self._handler.keep(self._path, end)
        return end.read(nbytes, offset)

    def _has_footer(self, nbytes: int, offset: int, size: int, is_kept: bool) -> bool:
        """Whether a range is in the end that is to be kept, or is a longer footer of Parquet."""
        if offset + nbytes == size - _PARQUET_TAIL and nbytes <= _MOST_BYTES:
            return True
        if nbytes == size <= _END_BYTES:  # where pyarrow looks for the footer; rows come next
            return True
        return offset >= size - _END_BYTES and not is_kept

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
