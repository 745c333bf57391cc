"""`read_footers`: what the order of rows needs of local Parquet files, without pyarrow."""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

# So many are read by one call: some 2 ms if they are in the page cache.
_TOGETHER = 256


class Stamp(NamedTuple):
    """What distinguishes a file from another one of its name; None if unknown."""

    size: int | None
    mtime_ns: int | None
    inode: int | None = None


def read_statistics(chunk: Any) -> Any:
    """Return pyarrow's statistics of a column of a row group, or None."""
    # arrow-rs cuts the bounds of values of a fixed size, and pyarrow then ends the process.
    return None if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY" else chunk.statistics


def check_footer(name: str, file: Any, fragment: Any = None) -> bool:
    """Raise OSError if pyarrow would end the process where it shows a column of a Parquet file.

    Returns whether it is plain: of an encrypted one, a row of `fragment` is read, by its keys.
    """
    size = file.size() - 8
    length, magic = struct.unpack("<I4s", file.read_at(8, size)) if size >= 0 else (0, b"")
    footer = file.read_at(length, size - length) if length <= size else b""
    is_sound = None if magic == b"PARE" else _core.is_sound_parquet_footer(footer)
    if is_sound is None and fragment is not None:
        fragment.head(1)
    elif not is_sound:
        text = "is damaged, or its columns are encrypted: write the file again, or leave it out"
        raise OSError(f"the footer of {name} {text}")
    return is_sound is not None


class Footers:
    """The footers of local Parquet files, in arrays: objects for each of many files take long."""

    def __init__(
        self,
        paths: Sequence[str] = (),
        parts: Sequence[Any] = (),  # what `read_parquet_footers` returns of parts of `paths`
    ) -> None:
        self.paths = list(paths)
        self._stamps, self.groups, self.rows, self.nbytes = (
            array("q", b"".join(part[i] for part in parts)) for i in range(4)
        )
        self.starts = array("q", accumulate(self.groups, initial=0))
        shared: dict[bytes, bytes] = {}
        # Equal for files with equal columns; empty if pyarrow has to look at the file.
        self.schemas = [shared.setdefault(one, one) for part in parts for one in part[4]]
        self.are_all = bool(paths) and b"" not in shared  # whether there are files, all read

    @cached_property
    def places(self) -> dict[str, int]:
        """Where the files that were read are in `paths`."""
        places = zip(self.paths, range(len(self.paths)), strict=True)
        return dict(places if self.are_all else (one for one in places if self.schemas[one[1]]))

    def take_stamp(self, place: int) -> Stamp:
        """Return the stamp that a file had when it was open."""
        size, mtime, inode = self._stamps[3 * place : 3 * place + 3]
        return Stamp(size, mtime, inode % 2**64 or None)

    def list_changed(self) -> list[str]:
        """List the files that may not have their stamps, and those that were not read."""
        return _core.list_changed_files(self.paths, self._stamps.tobytes())


def read_footers(paths: list[str]) -> Footers:
    """Read the footers of files."""
    parts = [paths[i : i + _TOGETHER] for i in range(0, len(paths), _TOGETHER)]
    line = OpeningLine("reads the footers", len(paths))
    read = map_in_threads(
        _core.read_parquet_footers,
        parts,
        min(FILES_AT_ONCE, 2 * (os.cpu_count() or 1)),
        lambda done: line(min(done * _TOGETHER, len(paths))),
    )
    return Footers(paths, read)
