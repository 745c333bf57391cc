"""Batches of one length for `Loader(pad_last=True)`: padding, and a mask of the valid rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from arrowdl import _core
from arrowdl.loader._batches.rows import pad_rows
from arrowdl.loader._options.options import check_mask_name


def pad_batches(
    stream: _core.DeviceStream,  # structs of at most `rows` rows
    rows: int,
    # number of valid rows of some arrays, by the array's index; the other rows of such an array
    # belong to another rank and count as padding. The arrays that are padded are added
    valid_rows: dict[int, int],
) -> _core.DeviceStream:
    """Pad each array to `rows` rows, and add a column `MASK` that is False for padding.

    Raises ValueError if the source has a column of that name.
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
            rank_rows = valid_rows.get(i, len(array))
            if rank_rows < rows:
                valid_rows[i] = rank_rows
            yield pad_rows(array, rank_rows, rows)
            array = next(stream, None)

    return _core.from_arrow_stream(pad())
