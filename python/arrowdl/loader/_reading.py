"""The batches of one of those who share an epoch, as a stream of Arrow arrays."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass

from arrowdl import _core
from arrowdl.loader._order import (
    Sharding,
    Span,
    choose_share,
    count_turns,
    drop_batches,
    find_rest,
)
from arrowdl.loader._position import Position
from arrowdl.loader._sources import IndexedSource, Source, StreamSource


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
    """One of those that share the rows: worker `worker` of rank `rank`, or None for all of them."""

    position: Position
    rank: int
    worker: int | None
    sharding: Sharding

    def count_own(self, batches: int) -> int:
        """Batches of this reader, of the first `batches` of its rank."""
        if self.worker is None:
            return batches
        return count_turns(batches, self.worker, self.sharding.workers)

    def count_all(self, own: int) -> int:
        """Batches of its rank up to the last of its `own` ones."""
        if self.worker is None:
            return own
        return (own - 1) * self.sharding.workers + self.worker + 1


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
    rest = find_rest([Span(0, source.num_rows)], position.stages)
    share = choose_share(rest, reader.rank, reader.worker, sharding)
    spans = drop_batches(share, position.batches, reader.worker, sharding)
    rows = sharding.batch_size
    if len(spans) <= 1:
        stream = _read_span(source, order, position.epoch, spans[0] if spans else Span(0, 0))
    else:
        stream = _core.stream(
            array
            for span in spans
            for array in _read_span(source, order, position.epoch, span).rebatch(rows)
        )
    return stream.rebatch(rows, drop_last=sharding.drop_last)


def _read_span(source: IndexedSource, order: Order, epoch: int, span: Span) -> _core.DeviceStream:
    units = range(len(source.units))
    window = order.window
    if window is None:
        return source.read_rows(span.start, span.stop, units)
    permuted = _core.permute(len(units), order.make_seed(epoch, "units"))
    first = span.start // window
    stop = min(-(-span.stop // window) * window, source.num_rows)
    stream = source.read_rows(first * window, stop, permuted)
    stream = stream.shuffle(window, order.make_seed(epoch, "rows"), first_window=first)
    return stream.slice(span.start - first * window, len(span))


def _read_sequence(source: StreamSource, order: Order, reader: Reader) -> _core.DeviceStream:
    """Every reader reads all of it, and takes its turns and its parts of them."""
    position, sharding = reader.position, reader.sharding
    assert reader.worker is not None
    stream = source.open(position.epoch)
    done = sum(
        stage.batches * stage.sharding.batch_size * stage.sharding.world_size
        for stage in position.stages
    )
    turn = reader.count_own(position.batches) * sharding.workers + reader.worker
    rows = sharding.batch_size * sharding.world_size
    stream = _skip_rows(stream, order, position.epoch, done + turn * rows)
    stream = stream.rebatch(rows, drop_last=sharding.drop_last)
    if sharding.workers > 1:
        stream = _take_every(stream, sharding.workers)
    if sharding.world_size == 1:
        return stream
    return stream.shard(reader.rank, sharding.world_size, pad=True)


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
