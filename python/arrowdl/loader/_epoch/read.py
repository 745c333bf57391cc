"""The batches of one of those who share an epoch, as a stream of Arrow arrays."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from arrowdl import _core
from arrowdl.loader._epoch.sharding import Rest, Sharding, Span, choose_share, count_turns
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._sources.base import IndexedSource, Source, StreamSource, UnitOrder

# What is cut out of many places is read in arrays of so many rows.
_CUT_ROWS = 4_096


@dataclass(frozen=True)
class Order:
    """The order of the rows in each epoch.

    Attributes
    ----------
    seed : int
    window : int, optional
        Rows that are permuted among themselves, once the units of the source are. None: the rows
        come as the source has them.
    """

    seed: int
    window: int | None

    def make_seed(self, epoch: int, purpose: str) -> int:
        """64 bits of the seed, the epoch and what they are for."""
        text = f"{self.seed} {epoch} {purpose}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Reader:
    """One of those that share the rows: worker `worker` of rank `rank`, or None for all of them.

    Attributes
    ----------
    position : Position
    rank : int
    worker : int, optional
    sharding : Sharding
    valid_rows : dict of int to int
        The rows that are this rank's own, of batches that have others as well: by their number,
        from 0 for the first one that is read. Whoever reads a batch or fills it up notes it.
    """

    position: Position
    rank: int
    worker: int | None
    sharding: Sharding
    valid_rows: dict[int, int] = field(default_factory=dict)

    def count_own(self, batches: int) -> int:
        """Batches of this reader, of the first `batches` of its rank."""
        if self.worker is None:
            return batches
        return count_turns(batches, self.worker, self.sharding.num_workers)

    def count_all(self, own: int) -> int:
        """Batches of its rank up to the last of its `own` ones."""
        if self.worker is None:
            return own
        return (own - 1) * self.sharding.num_workers + self.worker + 1


def read_batches(source: Source, order: Order, reader: Reader) -> _core.DeviceStream:
    """What is left of the reader's batches: an array of rows for each.

    Parameters
    ----------
    source : Source
    order : Order
    reader : Reader
        One worker.
    """
    if isinstance(source, StreamSource):
        return _read_sequence(source, order, reader)
    source.check_unchanged()
    return _read_share(source, order, reader)


def _read_share(source: IndexedSource, order: Order, reader: Reader) -> _core.DeviceStream:
    assert reader.worker is not None
    position, sharding = reader.position, reader.sharding
    rest = Rest(source.num_rows, position.stages)
    share = choose_share(len(rest), reader.rank, reader.worker, sharding, position.batches)
    spans = rest.slice(share.rows.start, share.rows.stop)
    rows = sharding.batch_size
    if share.has_filler:
        reader.valid_rows[-(-len(share.rows) // rows)] = 0
        spans += rest.slice(0, 1)
    epoch = _Epoch(source, order, position.epoch)
    groups = list(epoch.group(spans)) or [[Span(0, 0)]]
    if len(groups) == len(groups[0]) == 1:
        stream = epoch.read(groups[0][0])
    else:
        stream = _core.stream(array for group in groups for array in epoch.read_each(group, rows))
    return stream.rebatch(rows, drop_last=sharding.drop_last)


class _Epoch:
    """The order of the rows of `source` in an epoch."""

    def __init__(self, source: IndexedSource, order: Order, epoch: int) -> None:
        units: Sequence[int] = range(len(source.units))
        if order.window is not None:
            units = _core.permute(len(units), order.make_seed(epoch, "units"))
        self._source = source
        self._units = UnitOrder(source, units)
        self._window = order.window
        self._seed = order.make_seed(epoch, "rows")

    def read(self, span: Span) -> _core.DeviceStream:
        window = self._window
        if window is None:
            return self._source.read_rows(span.start, span.stop, self._units)
        first = span.start // window
        stop = min(-(-span.stop // window) * window, self._source.num_rows)
        stream = self._source.read_rows(first * window, stop, self._units)
        stream = stream.shuffle(window, self._seed, first_window=first)
        return stream.slice(span.start - first * window, len(span))

    def group(self, spans: Iterable[Span]) -> Iterator[list[Span]]:
        """Ascending spans that are read together: what is between them has to be read anyway."""
        group: list[Span] = []
        for span in spans:
            is_near = bool(group) and group[-1].stop <= span.start
            if not is_near or self._find_block(group[-1].stop - 1) != self._find_block(span.start):
                if group:
                    yield group
                group = []
            group.append(span)
        if group:
            yield group

    def _find_block(self, row: int) -> int:
        """The rows that are read as a whole: a window of the shuffle, or a unit."""
        return self._units.find(row) if self._window is None else row // self._window

    def read_each(self, group: Sequence[Span], rows: int) -> Iterator[_core.DeviceArray]:
        """The rows of the spans of a group, in arrays of some `rows` rows or less."""
        position = group[0].start
        spans = iter(group)
        span = next(spans)
        for array in self.read(Span(position, group[-1].stop)).rebatch(max(rows, _CUT_ROWS)):
            end = position + len(array)
            while span.start < end:
                start, stop = max(span.start, position), min(span.stop, end)
                yield array[start - position : stop - position]
                if span.stop > end or (following := next(spans, None)) is None:
                    break
                span = following
            position = end


def _read_sequence(source: StreamSource, order: Order, reader: Reader) -> _core.DeviceStream:
    """Every reader reads all of it, and takes its turns and its parts of them."""
    position, sharding = reader.position, reader.sharding
    assert reader.worker is not None
    stream = source.open(position.epoch)
    done = sum(
        stage.batches * stage.sharding.batch_size * stage.sharding.world_size
        for stage in position.stages
    )
    turn = reader.count_own(position.batches) * sharding.num_workers + reader.worker
    rows = sharding.batch_size * sharding.world_size
    stream = _skip_rows(stream, order, position.epoch, done + turn * rows)
    stream = stream.rebatch(rows, drop_last=sharding.drop_last)
    if sharding.num_workers > 1:
        stream = _take_every(stream, sharding.num_workers)
    if sharding.world_size == 1:
        return stream
    return _note_fillers(stream, reader).shard(reader.rank, sharding.world_size, pad=True)


def _note_fillers(stream: _core.DeviceStream, reader: Reader) -> _core.DeviceStream:
    """The same arrays, of all ranks: where one has no row for each, the others repeat the last."""
    first = next(stream, None)
    if first is None:
        return stream

    def note() -> Iterator[_core.DeviceArray]:
        for i, array in enumerate(itertools.chain([first], stream)):
            if len(array) <= reader.rank:
                reader.valid_rows[i] = 0
            yield array

    return _core.stream(note())


def _skip_rows(
    stream: _core.DeviceStream, order: Order, epoch: int, rows: int
) -> _core.DeviceStream:
    """The stream in its order of the epoch, without its first `rows` rows."""
    if order.window is not None:
        first, rows = divmod(rows, order.window)
        if first:
            stream = stream.slice(first * order.window)
        seed = order.make_seed(epoch, "rows")
        stream = stream.shuffle(order.window, seed, first_window=first)
    return stream.slice(rows) if rows else stream


def _take_every(stream: _core.DeviceStream, step: int) -> _core.DeviceStream:
    """Every `step`th array of `stream`, from the first one on."""
    arrays = itertools.islice(stream, 0, None, step)
    first = next(arrays, None)
    return stream if first is None else _core.stream(itertools.chain([first], arrays))
