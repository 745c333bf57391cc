"""`BucketedRows`: sequences whose rows are sorted by length, window by window."""

from __future__ import annotations

import copy
import itertools
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from arrowdl import _core
from arrowdl.loader._epoch.cut_rows import cut_rows
from arrowdl.loader._epoch.lengths import LENGTH, measure_rows
from arrowdl.loader._epoch.sequences import EpochSequences
from arrowdl.loader._epoch.sharding import Span, locate_sequence
from arrowdl.loader._epoch.steps import Window


class BucketedRows(EpochSequences):
    """The sequences of an epoch, with rows of similar lengths in each batch."""

    def __init__(
        self,
        epoch: EpochSequences,
        column: str,  # of which the lengths are sorted
        total: int,  # rows of the epoch
        splits: int,  # number of sequences
        rows: int,  # of each window of a sequence: its first rows, those after them, and so on
        # takes the number of a window, and returns a `Window`: the same for all sequences
        find_window: Callable[[int], Window],
        # the lengths of the rows, if these may be missing. By default they are measured
        lengths: EpochSequences | None = None,
    ) -> None:
        self._lengths = lengths
        self._epoch = epoch
        self._column = column
        self._total = total
        self._splits = splits
        self._rows = rows
        self._find_window = find_window

    def _open_none(self) -> _core.DeviceStream:
        (stream,) = self._epoch.open([])
        return stream

    def _open(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        wide = [(index, self._widen(index, span)) for index, span in wanted]
        row_lengths: Sequence[_core.DeviceStream | None] = [None] * len(wide)
        if self._lengths is not None:
            row_lengths = self._lengths.open(wide)
        opened = zip(self._epoch.open(wide), row_lengths, strict=True)
        return [
            self._sort(stream, lengths, span)
            for (_, span), (stream, lengths) in zip(wanted, opened, strict=True)
        ]

    def _widen(self, index: int, span: Span) -> Span:
        """Return the rows of the windows that have rows of `span`."""
        length = len(locate_sequence(index, self._splits, self._total))
        first, last = span.start // self._rows, -(-span.stop // self._rows)
        return Span(first * self._rows, min(length, last * self._rows))

    def _sort(
        self, stream: _core.DeviceStream, lengths: _core.DeviceStream | None, span: Span
    ) -> _core.DeviceStream:
        """Sort the windows of a stream of `_widen`, and keep the rows of `span`."""
        first = span.start // self._rows
        sorted_rows = _core.from_arrow_stream(self._sort_windows(stream, lengths, first))
        return sorted_rows.slice(span.start - first * self._rows, len(span))

    def _sort_windows(
        self, stream: _core.DeviceStream, lengths: _core.DeviceStream | None, first: int
    ) -> Iterator[_core.DeviceArray]:
        windows = cut_rows(stream, itertools.repeat((self._rows, 0)))
        row_lengths: Iterator[list[_core.DeviceArray] | None] = itertools.repeat(None)
        if lengths is not None:
            row_lengths = cut_rows(lengths, itertools.repeat((self._rows, 0)))
        numbers = itertools.count(first)
        for number, parts, window_lengths in zip(numbers, windows, row_lengths, strict=False):
            if window_lengths is None:
                columns = [part.field(self._column) for part in parts]
            else:
                columns = [part.field(LENGTH) for part in window_lengths]
            order = find_order(columns, self._column, self._find_window(number))
            yield self._sort_rows(parts, order)
            del parts, window_lengths, columns

    def _sort_rows(self, parts: list[_core.DeviceArray], order: Any) -> _core.DeviceArray:
        starts = list(itertools.accumulate(map(len, parts), initial=0))
        rows = _core.number_rows(parts, _core.read_row_numbers(starts[:-1], starts[-1]))
        taken, is_shared = _core.take_rows(rows, _core.read_row_numbers(order, starts[-1]))
        return copy.deepcopy(taken) if is_shared else taken


def find_order(
    # whose lengths count, of all rows of the window in one sequence
    columns: Sequence[_core.DeviceArray],
    name: str,  # of the column
    window: Window,
) -> Any:
    """Return the rows of a window in the order in which they are read, as int64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pa.concat_arrays([measure_rows(column, name) for column in columns])
    count = min(len(lengths), sum(window.sizes))  # the others stay at the end
    ranks = pc.array_sort_indices(lengths[:count]).cast(pa.int64())  # stable
    ends = list(itertools.accumulate(window.sizes, initial=0))
    parts = [ranks[ends[i] : ends[i + 1]] for i in window.draw]
    tail = pa.array(array("q", range(count, len(lengths))), pa.int64())
    return pa.concat_arrays([*parts, tail])
