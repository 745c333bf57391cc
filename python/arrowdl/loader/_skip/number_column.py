"""Rows get their numbers, as the column `NUMBER`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from arrowdl import _core
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._skipped import NUMBER, check_number_name

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_ROWS = 131_072  # that get numbers at once


def number_spans(
    stream: _core.DeviceStream, first: int, spans: Iterable[tuple[int, int]]
) -> Iterator[_core.DeviceArray]:
    """Number the rows of a stream, those of each span from its first row on."""
    import pyarrow as pa

    first_array = next(stream, None)
    if first_array is None:
        yield add_numbers(_core.from_arrow(make_empty(pa.schema(stream.schema))), 0)
        return
    yield add_numbers(first_array[:0], 0)
    waiting = iter(spans)
    number = left = 0
    arrays = chain([first_array], stream)
    del first_array
    for array in arrays:
        while len(array):
            if not left:
                number, left = next(waiting)
            rows = min(len(array), left)
            yield from number_rows([array[:rows]], first + number)
            array = array[rows:]
            number, left = number + rows, left - rows


def number_rows(arrays: Iterable[_core.DeviceArray], number: int) -> Iterator[_core.DeviceArray]:
    """Number the rows of arrays from `number` on, in pieces."""
    for array in arrays:
        for start in range(0, len(array), PIECE_ROWS):
            piece = array[start : start + PIECE_ROWS]
            yield add_numbers(piece, number)
            number += len(piece)


def add_numbers(array: _core.DeviceArray, number: int) -> _core.DeviceArray:
    """Return an array with the column `NUMBER`, which counts from `number` on."""
    column = _make_numbers(number, len(array))
    if not _core.is_host_readable(array.device):
        column = column.to(array.device)
    names = array.field_names
    check_number_name(names)
    return _core.make_struct([*names, NUMBER], [*map(array.field, range(len(names))), column])


def _make_numbers(number: int, rows: int) -> _core.DeviceArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    return _core.from_arrow(pc.add(_count_up()[:rows], pa.scalar(number, pa.int64())))


@cache
def _count_up() -> pa.Array:
    import pyarrow as pa

    return pa.array(range(PIECE_ROWS), pa.int64())
