"""`MarkedRead`: a read of a client of pyarrow, which does not tell how many bytes have arrived.

If the answer to a request for a range is shorter and ends properly, pyarrow's file of S3 returns as
many bytes as were asked for: those that are missing are what the memory had before. So the memory
gets random marks before it is filled, and where one of them is left, nothing has arrived.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from arrowdl.loader._storage.transient import ShortReadError

if TYPE_CHECKING:
    import pyarrow as pa

_MARK_BYTES = 16
# Between marks, which also tell how far a read has come. Clients write from the first byte on.
_STEP = 2**16


class MarkedRead:
    """Reads a range of a file, which is wholly in it."""

    def __init__(
        self,
        file: pa.NativeFile,  # it is read at the same time by others, perhaps
        nbytes: int,
        offset: int,
    ) -> None:
        import pyarrow as pa

        self._file = file
        self._offset = offset
        self._data = pa.allocate_buffer(nbytes)
        self._view = memoryview(self._data).cast("B")
        self._mark = os.urandom(_MARK_BYTES)
        for begin in self._list_marks():
            self._view[begin : begin + _MARK_BYTES] = self._mark[: nbytes - begin]

    def _list_marks(self) -> list[int]:
        """Return where the marks begin; the last one is at the end."""
        last = max(0, len(self._view) - _MARK_BYTES)
        return [*range(0, last - _MARK_BYTES, _STEP), last]

    def count(self) -> int:
        """Return about how many bytes have arrived, of a read under way too."""
        view, mark = self._view, self._mark
        for begin in self._list_marks():
            if view[begin : begin + _MARK_BYTES] == mark[: len(view) - begin]:
                return begin
        return len(view)

    def read(self) -> pa.Buffer:
        """Return the bytes, fewer if the file tells that.

        Raises ShortReadError if fewer bytes arrived, and the file does not tell.
        """
        if not len(self._view):
            return self._data
        arrived = self._fill(self._data, self._offset)
        if arrived < len(self._view):
            return self._data.slice(0, arrived)
        left = self._count_left()
        if left == _MARK_BYTES or (left and not self._has_end(left)):
            some = self.count() if left == _MARK_BYTES else arrived - left
            raise ShortReadError(f"the answer had some {some} bytes, of {arrived}")
        return self._data

    def _fill(self, data: pa.Buffer, offset: int) -> int:
        """Read at an offset without moving the file's position, which others share."""
        with self._file.get_stream(offset, data.size) as stream:
            return int(stream.readinto(data))

    def _count_left(self) -> int:
        """Return how many of the last bytes are those of the mark."""
        end = bytes(self._view[-_MARK_BYTES:])
        mark = self._mark[: len(end)]
        return next((i for i in range(len(end)) if end[-1 - i] != mark[-1 - i]), len(end))

    def _has_end(self, nbytes: int) -> bool:
        """Whether the last bytes are those of the mark by chance, as one in 256 is: ask again."""
        import pyarrow as pa

        again = pa.allocate_buffer(nbytes)
        end = bytes(self._view[-nbytes:])
        memoryview(again).cast("B")[:] = bytes(byte ^ 0xFF for byte in end)
        self._fill(again, self._offset + len(self._view) - nbytes)
        return bytes(again) == end
