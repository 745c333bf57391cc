"""`NumberedStream`: the rows of a stream with their numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import closing

from arrowdl import _core
from arrowdl.loader._skip.number_column import number_spans
from arrowdl.loader._skip.numbers import MISSING, SAMPLES, Place
from arrowdl.loader._skipped import MissingRows
from arrowdl.loader._sources.stream import StreamSource


class NumberedStream(StreamSource):
    """Rows of a stream with their numbers, from 0 in each epoch. Its errors are raised."""

    has_failures = False

    def __init__(self, source: StreamSource) -> None:
        self.__dict__.update(source.__dict__)
        self._inner = source

    def open(self, epoch: int) -> _core.DeviceStream:
        stream = self._inner.open(epoch)
        return _core.from_arrow_stream(number_spans(stream, 0, [(0, MISSING)]))

    def report_missing(self, numbers: Sequence[int]) -> MissingRows:
        raise AssertionError("no row of a stream is missing")

    def locate(self, numbers: Sequence[int]) -> list[Place]:
        return [("", number) for number in numbers]

    def sample(self) -> Iterator[_core.DeviceArray]:
        if self.is_replayable:
            with closing(self.open(0)) as stream:
                yield from map(copy.deepcopy, stream.slice(0, SAMPLES).rebatch(1))
