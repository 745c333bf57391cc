"""`open_fetched`: a file that is read from beginning to end, and fetched ahead in pieces."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.fs as fs

from arrowdl.loader._storage.fetch_ahead import FETCH_BYTES, FetchAhead
from arrowdl.loader._storage.fetch_handler import FetchHandler
from arrowdl.loader._storage.held_ranges import Range
from arrowdl.loader._storage.readers import Reader, make_native_file
from arrowdl.loader._storage.unit_ranges import RANGE_BYTES, UnitRanges, join_ranges

# Eight files are read at a time, at most.
_FILE_BYTES = FETCH_BYTES // 8
_RANGES = 2  # of a piece, after which the store is asked whether the file has changed
_REQUESTS = 8


def open_fetched(filesystem: fs.FileSystem, path: str) -> pa.NativeFile:
    """Open a file whose next bytes are fetched while the last ones are used."""
    return make_native_file(_FetchedReader(FetchHandler(filesystem), path))


class _FetchedReader(Reader):
    """A reader that drops what is before its position. It goes on where it was, or jumps."""

    def __init__(self, handler: FetchHandler, path: str) -> None:
        self._reader: Reader = handler.open_reader(path)
        self.stamp, size = self._reader.stamp, self._reader.size
        self._nbytes = _RANGES * RANGE_BYTES
        count = -(-size // self._nbytes)

        def list_ranges(index: int) -> UnitRanges:
            begin = index * self._nbytes
            part = Range(begin, min(self._nbytes, size - begin))
            return UnitRanges(path, join_ranges([part]))

        self._fetched = FetchAhead(handler, count, list_ranges, _FILE_BYTES, _REQUESTS)
        self._first, self._last = 0, -1  # pieces: held, and used last
        self._fetched.start()

    def read_at(self, nbytes: int, offset: int) -> Any:
        first, stop = offset // self._nbytes, -(-(offset + nbytes) // self._nbytes)
        if self._first <= first <= self._last + 1:  # no jump to the footer
            if first > self._first:
                self._fetched.release(self._first, first)
            self._fetched.wait(first, stop)
            self._first, self._last = first, max(self._last, stop - 1)
        return self._reader.read_at(nbytes, offset)

    def close(self) -> None:
        self._fetched.close()
        self._reader.close()
