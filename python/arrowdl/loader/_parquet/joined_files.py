"""`JoinedFiles`: small files that are read as one, since a call takes longer than their rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._parquet.scans import Check

if TYPE_CHECKING:
    import pyarrow as pa

# The most that a file has beside its columns, which compression may make somewhat larger.
_FOOTER_BYTES = 2**14


class JoinedFiles:
    """Reads whole files with equal columns."""

    # `options` are those of `pyarrow.parquet.ParquetFile`.
    def __init__(self, columns: list[str] | None, options: Mapping[str, Any]) -> None:
        self._columns = columns
        self._options = options

    def group(self, fragments: Sequence[Any], nbytes: int, rows: int) -> Iterator[list[Any]]:
        """Group fragments that may be read as one, of `nbytes` bytes and `rows` rows at most."""
        group: list[Any] = []
        room = room_rows = 0.0
        for fragment in fragments:
            size, count = self._measure(fragment)
            if group and (size > room or count > room_rows or fragment.alike != group[0].alike):
                yield group
                group = []
            if not group:
                room, room_rows = nbytes, rows
            group.append(fragment)
            room -= size
            room_rows -= count
        if group:
            yield group

    def _measure(self, fragment: Any) -> tuple[float, int]:
        """Return the bytes and rows of a file that may be one of several; else infinite bytes."""
        if getattr(fragment, "alike", None) is not None:
            file = fragment.file
            if len(fragment.row_groups) == len(file.groups):
                return sum(file.nbytes) or math.inf, sum(file.rows)  # 0 bytes: unknown
        return math.inf, 0

    def read(self, fragments: Sequence[Any], check: Check) -> pa.Table | None:
        """Read a group; None if each of its files has to be read alone, which tells what is wrong.

        The files are checked after they were read.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        paths = [fragment.path for fragment in fragments]
        rows = [count for fragment in fragments for count in fragment.file.rows]
        sizes = [size for fragment in fragments for size in fragment.file.nbytes]
        joined = _core.join_parquet_files(paths, 2 * sum(sizes) + len(paths) * _FOOTER_BYTES)
        if joined is None:
            return None
        with suppress(Exception):
            file = pq.ParquetFile(pa.BufferReader(joined), pre_buffer=False, **self._options)
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            group_sizes = [(group.num_rows, group.total_byte_size) for group in groups]
            if group_sizes == list(zip(rows, sizes, strict=True)):
                numbers = list(range(len(rows)))
                table = file.read_row_groups(numbers, self._columns, use_threads=False)
                check(paths)
                return table if table.num_rows == sum(rows) else None
        return None
