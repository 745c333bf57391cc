"""`cut_rows`: the next rows of a stream, cut by cut."""

from __future__ import annotations

from collections.abc import Iterator

from arrowdl import _core


def cut_rows(
    stream: _core.DeviceStream,
    cuts: Iterator[tuple[int, int]],  # rows to take, and rows to skip after them
) -> Iterator[list[_core.DeviceArray]]:
    """Yield the next rows of a stream, in several arrays, for each cut until the stream ends."""
    current: _core.DeviceArray | None = None
    taken: list[_core.DeviceArray] = []
    for rows, skip in cuts:
        for left, is_wanted in ((rows, True), (skip, False)):
            while left:
                if current is None and (current := next(stream, None)) is None:
                    if taken:
                        yield taken
                    return
                count = min(left, len(current))
                if is_wanted and count:
                    taken.append(current[:count])
                left -= count
                current = current[count:] if count < len(current) else None
            if is_wanted:
                yield taken
                taken = []
