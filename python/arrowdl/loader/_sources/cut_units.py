"""`cut_units`: the arrays of a stream, unit by unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from arrowdl import _core


def cut_units(
    stream: Iterator[_core.DeviceArray],
    counts: Iterable[int],  # rows of each unit
) -> Iterator[list[_core.DeviceArray]]:
    """Yield the arrays of each unit; raise OSError if the stream has other rows."""
    remaining: _core.DeviceArray | None = None
    for count in counts:
        arrays: list[_core.DeviceArray] = []
        missing = count
        while missing:
            if remaining is None or not len(remaining):
                if (remaining := next(stream, None)) is None:
                    raise refuse_rows()
                continue
            arrays.append(remaining[:missing])
            remaining = remaining[len(arrays[-1]) :]
            missing -= len(arrays[-1])
        yield arrays
    if (remaining is not None and len(remaining)) or any(len(array) for array in stream):
        raise refuse_rows()


def refuse_rows() -> OSError:
    """Return the error of units with other rows."""
    return OSError(
        "a file has another number of rows than when this Loader was made: make a new Loader"
    )
