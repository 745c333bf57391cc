"""Batches of one length: short ones are filled up, and a mask says which rows are their own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from arrowdl import _core

MASK = "valid"


def pad_batches(
    stream: _core.DeviceStream, rows: int, valid_rows: dict[int, int]
) -> _core.DeviceStream:
    """The arrays of `stream` with `rows` rows each, and a column `MASK`, False where one is filler.

    Parameters
    ----------
    stream : DeviceStream
        Structs in host memory, of at most `rows` rows.
    rows : int
    valid_rows : dict of int to int
        Of arrays, by their number, whose rows are not all of this rank: the others count as filler.
        Those that are filled up are noted there.

    Raises
    ------
    ValueError
        There is a column of that name.
    """
    first = next(stream, None)
    if first is None:
        return stream
    if MASK in first.field_names:
        raise ValueError(
            f'pad_last=True adds a column "{MASK}", and the source has one: rename it, or leave it '
            "out by columns="
        )

    def pad() -> Iterator[_core.DeviceArray]:
        array: _core.DeviceArray | None = first
        for i in count():
            if array is None:
                return
            own = valid_rows.get(i, len(array))
            if own < rows:
                valid_rows[i] = own
            yield _add_column(_fill_up(array, rows), _make_mask(own, rows))
            array = next(stream, None)

    return _core.stream(pad())


def _fill_up(array: _core.DeviceArray, rows: int) -> _core.DeviceArray:
    """Its own rows again and again, which are valid values whatever the types."""
    times, rest = divmod(rows, len(array))
    return array if times == 1 and not rest else _core.concatenate([array] * times + [array[:rest]])


def _make_mask(own: int, rows: int) -> _core.DeviceArray:
    """Memory of its own, which the training may write to."""
    mask = bytearray(b"\1" * own + b"\0" * (rows - own))
    return _core.to_arrow_device(memoryview(mask).cast("?"))


def _add_column(array: _core.DeviceArray, mask: _core.DeviceArray) -> _core.DeviceArray:
    names = array.field_names
    return _core.make_struct([*names, MASK], [*(array.field(name) for name in names), mask])
