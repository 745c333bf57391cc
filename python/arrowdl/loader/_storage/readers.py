"""`Reader`: an open file that is read at offsets, from any thread; and pyarrow's file over one."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl.loader._clock import READING

if TYPE_CHECKING:
    import pyarrow as pa


SECOND = 10**9
# A time of the store in whole seconds, and how far its clock may be from ours.
_JUST_NOW = 10 * SECOND


class Stamp(NamedTuple):
    """What distinguishes a file from another one of its name; None if unknown."""

    size: int | None  # bytes
    # when it was written, in nanoseconds since 1970. Many stores tell whole seconds
    mtime: int | None = None
    etag: str | None = None

    @property
    def is_exact(self) -> bool:
        """Whether a file that is rewritten within a second has another stamp."""
        return self.etag is not None or (self.mtime or 0) % SECOND != 0


def may_be_rewritten(stamp: Stamp) -> bool:
    """Whether a file may be rewritten and have the same stamp: from now on, not before."""
    if stamp.mtime is None:
        return stamp.etag is None
    return not stamp.is_exact and time.time_ns() - stamp.mtime < _JUST_NOW


def is_other_time(before: int | None, now: int | None) -> bool:
    """Whether times differ: in seconds, if one of both has no fraction."""
    if before is None or now is None:
        return False
    unit = 1 if before % SECOND and now % SECOND else SECOND
    return before // unit != now // unit


def strip_etag(etag: str | None) -> str | None:
    """Return an ETag without what proxies that compress add to it."""
    return etag and etag.removeprefix("W/").strip('"').removesuffix("-gzip")


def list_changes(before: Stamp, now: Stamp) -> list[str]:
    """Say in what two files differ, as far as both are known."""
    changes = []
    if _differ(before.size, now.size):
        changes.append(f"{before.size} bytes before, {now.size} now")
    if _differ(strip_etag(before.etag), strip_etag(now.etag)):
        changes.append(f"ETag {before.etag} before, {now.etag} now")
    # Copies may keep the ETag, and have another time.
    elif None in (before.etag, now.etag) and is_other_time(before.mtime, now.mtime):
        changes.append("written at another time")
    return changes


def _differ(before: int | str | None, now: int | str | None) -> bool:
    return None not in (before, now) and before != now


def join_bytes(parts: Sequence[Any]) -> pa.Buffer:
    """Copy bytes, one part after the other, into memory of pyarrow.

    pyarrow's threads release what they read. While the interpreter ends, a thread that releases
    memory of a Python object ends the process with an error.
    """
    import pyarrow as pa

    views = [memoryview(part).cast("B") for part in parts]
    joined = pa.allocate_buffer(sum(map(len, views)))
    target = memoryview(joined).cast("B")
    position = 0
    for view in views:
        target[position : position + len(view)] = view
        position += len(view)
    return joined


class Reader(ABC):
    """An open file. Reading is safe from several threads at a time."""

    stamp: Stamp  # what the store said of the file when it was opened

    @property
    def size(self) -> int:
        """The bytes of the file."""
        assert self.stamp.size is not None
        return self.stamp.size

    @abstractmethod
    def read_at(self, nbytes: int, offset: int) -> Any:
        """Return the bytes from `offset`, as bytes or a pyarrow buffer: fewer only at the end."""

    def close(self) -> None:  # noqa: B027
        """Let go of the file; some are open during requests only."""


FileEnd = tuple[Stamp, bytes]  # the last bytes of a file, and its stamp when they were read


def read_last(reader: Reader, nbytes: int) -> FileEnd:
    """Read the end of an open file, and close it."""
    with closing(reader):
        nbytes = min(nbytes, reader.size)
        return reader.stamp, bytes(reader.read_at(nbytes, reader.size - nbytes))


class _ReaderFile:
    """A reader as a Python file, for ``pyarrow.PythonFile``, which calls it under a lock."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._size = reader.size
        self._position = 0
        self.closed = False

    def read_buffer(self, nbytes: int | None = None) -> pa.Buffer:
        """Read into memory of pyarrow, which calls this in place of `read`."""
        import pyarrow as pa

        data = self.read(nbytes)
        return data if isinstance(data, pa.Buffer) else join_bytes([data])

    def read(self, nbytes: int | None = None) -> Any:
        rest = max(0, self._size - self._position)
        count = rest if nbytes is None or nbytes < 0 else min(nbytes, rest)
        with READING:
            data = self._reader.read_at(count, self._position) if count else b""
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        start = (0, self._position, self._size)[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._size

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._reader.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is written."""


def make_native_file(reader: Reader) -> pa.NativeFile:
    """Return pyarrow's file over a reader; it has one position, and reads one range at a time."""
    import pyarrow as pa

    return pa.PythonFile(_ReaderFile(reader), mode="r")
