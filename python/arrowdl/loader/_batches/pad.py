"""Batches of one length for `Loader(pad_last=True)`: padding, and a mask of the valid rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from arrowdl import _core
from arrowdl.loader._options.options import MASK, check_mask_name


def pad_batches(
    stream: _core.DeviceStream, rows: int, valid_rows: dict[int, int]
) -> _core.DeviceStream:
    """Pad each array to `rows` rows, and add a column `MASK` that is False for padding.

    Parameters
    ----------
    stream : DeviceStream
        Structs of at most `rows` rows.
    rows : int
    valid_rows : dict of int to int
        Number of valid rows of some arrays, by the array's index; the other rows of such an array
        belong to another rank and count as padding. The arrays that are padded are added.

    Raises
    ------
    ValueError
        The source has a column of that name.
    """
    first = next(stream, None)
    if first is None:
        return stream
    check_mask_name(first.field_names)

    def pad() -> Iterator[_core.DeviceArray]:
        array: _core.DeviceArray | None = first
        for i in count():
            if array is None:
                return
            own = valid_rows.get(i, len(array))
            if own < rows:
                valid_rows[i] = own
            yield pad_rows(array, own, rows)
            array = next(stream, None)

    return _core.from_arrow_stream(pad())


def pad_rows(array: _core.DeviceArray, own: int, rows: int) -> _core.DeviceArray:
    """Repeat the rows of `array` up to `rows`, with `MASK`: the first `own` rows are valid."""
    mask = _make_mask(own, rows)
    if not _core.is_host_readable(array.device):
        mask = mask.to(array.device)
    return _add_column(_repeat_rows(array, rows), mask)


def drop_column(array: _core.DeviceArray, name: str) -> _core.DeviceArray:
    """Return the rows without the column `name`; others may share a name."""
    kept = [(i, own) for i, own in enumerate(array.field_names) if own != name]
    return _core.make_struct([own for _, own in kept], [array.field(i) for i, _ in kept])


def _repeat_rows(array: _core.DeviceArray, rows: int) -> _core.DeviceArray:
    """Repeat the rows of `array` up to `rows`: they are valid values of every type."""
    times, rest = divmod(rows, len(array))
    return array if times == 1 and not rest else _core.concatenate([array] * times + [array[:rest]])


def _make_mask(own: int, rows: int) -> _core.DeviceArray:
    """Return a mask in new memory, which the training may write to."""
    mask = bytearray(b"\1" * own + b"\0" * (rows - own))
    return _core.to_arrow_device(memoryview(mask).cast("?"))


def _add_column(array: _core.DeviceArray, mask: _core.DeviceArray) -> _core.DeviceArray:
    names = array.field_names
    return _core.make_struct([*names, MASK], [*map(array.field, range(len(names))), mask])
