"""`read_ahead`: one scan after another, and the next ones started before the first has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from arrowdl import _core
from arrowdl.loader._parquet.scan_limits import ScanLimits


def read_ahead(
    scans: Sequence[Sequence[int]],  # the units of each
    measure: Callable[[Sequence[int]], float],  # returns the bytes of a scan
    # starts a scan, of which it gets the units and the number of units in the scans before it
    open_scan: Callable[[Sequence[int], int], _core.DeviceStream],
    make_empty: Callable[[], _core.DeviceArray],  # returns no rows of the scans' schema
    limits: ScanLimits,
) -> Iterator[_core.DeviceArray]:
    """Read scans in their order.

    Each of several readers starts one scan. It reads ahead when some rows were taken: at the
    beginning, all readers wait for the first rows of each other.
    """
    waiting = deque(scans)
    begin = 0
    opened: deque[tuple[_core.DeviceStream, float]] = deque()

    def start(*, may_be_more: bool) -> None:
        nonlocal begin
        while waiting and (may_be_more or not opened):
            nbytes = measure(waiting[0])
            if not limits.has_room([size for _, size in opened], nbytes):
                break
            units = waiting.popleft()
            opened.append((open_scan(units, begin), nbytes))
            begin += len(units)

    start(may_be_more=limits.readers == 1)
    yield make_empty()  # for the schema, without a wait for rows or other readers
    while waiting or opened:
        start(may_be_more=limits.readers == 1)
        stream, _ = opened[0]
        for array in stream:
            taken = len(array) // 4 if waiting and limits.readers > 1 else 0
            if taken:
                yield array[:taken]
            start(may_be_more=True)
            yield array[taken:] if taken else array
            del array
        del stream
        opened.popleft()
