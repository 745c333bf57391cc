"""`MixedSequences`: the sequences of an epoch of a mixture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arrowdl import _core
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._epoch.sequences import EpochSequences, Sequences
from arrowdl.loader._epoch.sharding import Span
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._mixture.schedule import Turns

_EPOCHS = 2**32  # of a source in an epoch of the mixture


class MixedSequences(EpochSequences):
    """The sequences of an epoch of a mixture: as `Sequences`, for `MixedSource`."""

    def __init__(self, source: MixedSource, epoch: int) -> None:
        self.source = source
        self._epoch = epoch

    def _open_none(self) -> _core.DeviceStream:
        return self.source.read([])

    def _open(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        source = self.source
        splits = source.order.splits
        turns = {index: Turns(source.phases, index, splits) for index, _ in wanted}
        counts = {i: (turns[i].count(span.start), turns[i].count(span.stop)) for i, span in wanted}
        members = []
        for number, member in enumerate(source.members):
            spans = {i: Span(start[number], stop[number]) for i, (start, stop) in counts.items()}
            order = Order(member.seed, member.buffer_size, member.lanes)
            members.append(_Epochs(source, number, order, self._epoch, spans))
        return [
            _core.mix(
                [epochs.open(index) for epochs in members], turns[index].list_phases(span.start)
            )
            for index, span in wanted
        ]


class _Epochs:
    """The sequences of one source of a mixture, epoch after epoch."""

    def __init__(
        self,
        source: MixedSource,
        member: int,  # index of the source
        order: Order,
        epoch: int,  # of the mixture
        # for each sequence that this process reads, its rows, counted through all epochs
        spans: dict[int, Span],
    ) -> None:
        self._mixture = source
        self._member = member
        self._order = order
        self._epoch = epoch
        self._spans = spans
        self._rows = source.members[member].source.num_rows
        self._opened: dict[int, dict[int, _core.DeviceStream]] = {}

    def open(self, index: int) -> _core.DeviceStream:
        """Return the rows of one sequence of the mixture."""
        return _core.from_arrow_stream(self._read(index))

    def _read(self, index: int) -> Iterator[_core.DeviceArray]:
        # The other streams start before this one waits.
        yield self._mixture.columns.make_empty(self._member)
        span = self._spans[index]
        if not span:  # it may lie in the middle of an epoch of which nothing is read
            return
        epoch = self._find_epoch(index, span.start)
        while self._find_start(index, epoch) < span.stop:
            if epoch not in self._opened:
                self._opened[epoch] = self._open_epoch(epoch)
            opened = self._opened[epoch]
            stream = opened.pop(index)
            if not opened:
                del self._opened[epoch]
            yield from stream
            epoch += 1

    def _find_start(self, index: int, epoch: int) -> int:
        """Return the first row of an epoch of the source, in one sequence of the mixture."""
        # Sequence `i` of the mixture reads sequence `i + epoch` of the source. The lengths of these
        # differ by a row. So all sequences of the mixture reach the next epoch at the same row, to
        # one row, and read each row of the source equally often.
        rows, splits = self._rows, self._mixture.order.splits
        return (index + epoch) * rows // splits - index * rows // splits

    def _find_epoch(self, index: int, row: int) -> int:
        rows, splits = self._rows, self._mixture.order.splits
        end = row + index * rows // splits + 1
        return -(-end * splits // rows) - 1 - index

    def _open_epoch(self, epoch: int) -> dict[int, _core.DeviceStream]:
        """Open all sequences that this process reads, so that they share units."""
        wanted = {}
        for index, span in self._spans.items():
            start, stop = (self._find_start(index, epoch + i) for i in (0, 1))
            rows = Span(max(start, span.start) - start, min(stop, span.stop) - start)
            if rows.start < rows.stop:
                wanted[index] = ((index + epoch) % self._mixture.order.splits, rows)
        member = self._mixture.members[self._member]
        sequences = Sequences(
            member.source,
            self._order,
            self._epoch * _EPOCHS + epoch,
            self._mixture.order.splits,
            shares_units=True,
            readers=len(self._spans) * len(self._mixture.members),
        )
        opened = sequences.open(list(wanted.values()))
        streams = [self._mixture.columns.adapt(stream, self._member) for stream in opened]
        return dict(zip(wanted, streams, strict=True))
