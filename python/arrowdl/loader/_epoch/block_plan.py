"""`BlockPlan`: where each block of packed rows begins, by the lengths of the rows alone."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._packing import Pack

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

    Parameters
    ----------
    open_lengths : callable
        Returns the lengths of the sequences from a row on: a stream of structs with one column.
    pack : Pack
    """

    def __init__(self, open_lengths: Callable[[int], _core.DeviceStream], pack: Pack) -> None:
        self._open_lengths = open_lengths
        self._arguments = {**pack.list_deciding(), "add": ["resume_from"]}
        # Some blocks, and where those after them begin. Blocks between them are found again.
        self._blocks = [0]
        self._places = [Place(0, 0, 0)]

    def has_blocks(self) -> bool:
        """Whether a row has tokens that are packed."""
        return self._blocks[-1] > 0 or any(True for _ in self._extend())

    def count(self) -> int:
        """Count the blocks of all rows, of which there is an end."""
        for _ in self._extend():
            pass
        return self._blocks[-1]

    def count_until(self, row: int) -> int:
        """Count the blocks up to the first one after which all rows before `row` are used up."""
        if self._places[-1].row < row:
            for place in self._extend():
                if place.row >= row:
                    break
        i = bisect_left(self._places, (row, 0, 0))
        if i == 0:
            return 0
        between = itertools.takewhile(lambda place: place.row < row, self._list_after(i - 1))
        return self._blocks[i - 1] + sum(1 for _ in between) + 1

    def find(self, block: int) -> Place:
        """Return where `block` begins; all blocks before it exist."""
        if self._blocks[-1] < block:
            for _ in self._extend():
                if self._blocks[-1] >= block:
                    break
        i = bisect_right(self._blocks, block) - 1
        skipped = block - self._blocks[i]
        if not skipped:
            return self._places[i]
        return next(itertools.islice(self._list_after(i), skipped - 1, None))

    def find_end(self, block: int) -> int | None:
        """Return a row that no block before `block` comes to; None if no such row is known."""
        for i in range(bisect_left(self._blocks, block), len(self._blocks)):
            row, value, used = self._places[i]
            if not used:
                return row + (value > 0)
        return None

    def _extend(self) -> Iterator[Place]:
        """Note where more blocks begin; yield each of these places."""
        for column in self._read(self._places[-1]):
            (place,) = _read_places(column[-1:])
            self._blocks.append(self._blocks[-1] + len(column))
            self._places.append(place)
            yield place

    def _list_after(self, i: int) -> Iterator[Place]:
        """List where the blocks end that follow the place `i`."""
        for column in self._read(self._places[i]):
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
