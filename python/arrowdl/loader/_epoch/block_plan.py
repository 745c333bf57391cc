"""`BlockPlan`: where each block of packed rows begins, by the lengths of the rows alone."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import itemgetter
from threading import RLock
from typing import Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._settings.pack import Pack

_BLOCKS = 64  # that are planned at a time, if no window says how many
_MOST_ITEMS = 2**62


class Place(NamedTuple):
    """Where a packed stream goes on: what `DeviceStream.pack` takes as `resume_from`."""

    row: int
    value: int
    block: int


class BlockPlan:
    """Where each block of packed rows begins.

    The packer itself says so: it packs lists of these lengths whose items have no bytes.
    """

    def __init__(
        self,
        # returns the lengths of the sequences from a row on: a stream of structs with one column
        open_lengths: Callable[[int], _core.DeviceStream],
        pack: Pack,
    ) -> None:
        self._open_lengths = open_lengths
        self._arguments = {**pack.list_deciding(), "add": ["resume_from"]}
        # Numbers of blocks, and where the next one begins. Those between are found again.
        self._known = [(0, Place(0, 0, 0))]
        self._lock = RLock()  # signal handlers, too, save states

    def has_blocks(self) -> bool:
        """Whether a row has tokens that are packed."""
        return self._known[-1][0] > 0 or any(True for _ in self._extend())

    def count(self) -> int:
        """Count the blocks of all rows, of which there is an end."""
        for _ in self._extend():
            pass
        return self._known[-1][0]

    def count_until(self, row: int) -> int:
        """Count the blocks up to the first one after which all rows before `row` are used up."""
        if self._known[-1][1].row < row:
            for _, place in self._extend():
                if place.row >= row:
                    break
        known = self._known
        i = bisect_left(known, (row, 0, 0), key=lambda own: own[1])
        if i == 0:
            return 0
        blocks, start = known[i - 1]
        between = itertools.takewhile(lambda place: place.row < row, self._list_after(start))
        return blocks + sum(1 for _ in between) + 1

    def find(self, block: int) -> Place:
        """Return where `block` begins; all blocks before it exist."""
        if self._known[-1][0] < block:
            for blocks, _ in self._extend():
                if blocks >= block:
                    break
        blocks, start = self._known[bisect_right(self._known, block, key=itemgetter(0)) - 1]
        if blocks == block:
            return start
        return next(itertools.islice(self._list_after(start), block - blocks - 1, None))

    def find_end(self, block: int) -> int | None:
        """Return a row that no block before `block` comes to; None if no such row is known."""
        known = self._known
        for i in range(bisect_left(known, block, key=itemgetter(0)), len(known)):
            row, value, used = known[i][1]
            if not used:
                return row + (value > 0)
        return None

    def _extend(self) -> Iterator[tuple[int, Place]]:
        """Note where more blocks begin; yield each of these numbers and places."""
        # Several threads may do so at once: each goes on from where it has begun.
        blocks, place = self._known[-1]
        for column in self._read(place):
            (place,) = _read_places(column[-1:])
            blocks += len(column)
            with self._lock:
                insort(self._known, (blocks, place))
            yield blocks, place

    def _list_after(self, place: Place) -> Iterator[Place]:
        """List where the blocks end that follow `place`."""
        for column in self._read(place):
            yield from _read_places(column)

    def _read(self, place: Place) -> Iterator[_core.DeviceArray]:
        """Yield where the blocks end that follow `place`: a column of `pack`, several at a time."""
        import pyarrow as pa

        name = self._arguments["column"]
        arrays = self._open_lengths(place.row)
        lengths = itertools.chain(
            [pa.array([], "i4")], (pa.array(rows.field(0)) for rows in arrays)
        )
        lists = _core.from_arrow_stream(_make_lists(name, own) for own in lengths)
        packed = lists.pack(**self._arguments, resume_from=place)
        if self._arguments["strategy"] == "concat":
            packed = packed.rebatch(_BLOCKS)
        with closing(packed) as stream:
            for blocks in stream:
                yield blocks.field("resume_from")


def _read_places(column: _core.DeviceArray) -> list[Place]:
    import pyarrow as pa

    return [Place(*numbers) for numbers in pa.array(column).to_pylist()]


def _make_lists(column: str, lengths: Any) -> Any:
    """Return lists of these lengths, of items of no bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    items = pa.Array.from_buffers(pa.binary(0), _MOST_ITEMS, [None, pa.py_buffer(b"")])
    lists = pa.LargeListArray.from_arrays(offsets, items)
    return pa.RecordBatch.from_arrays([lists], [column])
