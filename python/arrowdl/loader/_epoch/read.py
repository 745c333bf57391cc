"""One share of an epoch as a stream of Arrow arrays, an array for each batch."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from arrowdl import _core
from arrowdl.loader._epoch.lanes import Arrangement, Lanes, arrange_units
from arrowdl.loader._epoch.sharding import (
    Rest,
    Sharding,
    Span,
    choose_share,
    count_turns,
    locate_sequence,
)
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.row_bytes import LANES, count_buffer_rows, measure_stream
from arrowdl.loader._sources.stream import StreamSource

FindParts = Callable[[int, int], list[int]]  # of a batch, by its index and its rows


@dataclass(frozen=True)
class Order:
    """The order of the rows in each epoch."""

    seed: int
    # rows of the shuffle buffer. If it holds all rows, they are permuted. Otherwise units are
    # permuted and read in `Lanes`, and then the rows within each full buffer are. None keeps the
    # order of the source. 0, of streams, is as many rows as fit
    buffer_size: int | None
    lanes: int = LANES  # of all sequences together, at most

    def make_seed(self, epoch: int, purpose: str) -> int:
        """Derive a 64-bit seed for one purpose in one epoch."""
        text = f"{self.seed} {epoch} {purpose}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    def holds(self, source: IndexedSource) -> bool:
        """Whether the buffer has all rows of `source`."""
        return self.buffer_size is not None and self.buffer_size >= source.num_rows

    def arrange(self, source: IndexedSource, epoch: int, sequences: int = 1) -> Arrangement:
        """Return the order of the units of `source` in an epoch, and the lanes of `sequences`."""
        if self.buffer_size is None or self.holds(source):
            rows = source.num_rows
            cuts = [locate_sequence(i, sequences, rows) for i in range(sequences)]
            order = UnitOrder(source, range(len(source.units)))
            return Arrangement(order, [[[cut]] for cut in cuts])
        return arrange_units(source, self.make_seed(epoch, "units"), sequences, self.lanes)

    def shuffle(self, stream: _core.DeviceStream, epoch: int, skip: int = 0) -> _core.DeviceStream:
        """Shuffle the rows of a stream, and drop the first `skip` rows of the result."""
        size = self.buffer_size
        if size == 0:
            row_bytes, stream = measure_stream(stream)
            size = count_buffer_rows(row_bytes)
        if size is not None:
            first, skip = divmod(skip, size)
            if first:
                stream = stream.slice(first * size)
            stream = stream.shuffle(size, self.make_seed(epoch, "rows"), first_window=first)
        return stream.slice(skip) if skip else stream


@dataclass(frozen=True)
class Reader:
    """One reader of a rank, of its batches `worker`, ``worker + step``, ``worker + 2 * step``,
    ..."""

    position: Position
    rank: int
    sharding: Sharding
    worker: int  # index among the workers of the rank
    step: int  # the number of workers, or 1 where one reader receives the batches of all workers
    # number of rows that belong to this rank, for batches that also have other rows, by the index
    # of the batch among those of this reader. Reading and padding fill it in
    valid_rows: dict[int, int] = field(default_factory=dict)
    # of a stream: rows of all ranks in a step that has fewer than others, by the index of this
    # reader's batch. Reading fills it in
    step_rows: dict[int, int] = field(default_factory=dict)

    def count_read(self, batches: int) -> int:
        """Count this reader's batches among the first `batches` of its rank."""
        return count_turns(batches, self.worker, self.step)

    def count_all(self, read: int) -> int:
        """Count the batches of the rank up to the last of this reader's first `read` ones."""
        return (read - 1) * self.step + self.worker + 1


def read_share(
    source: IndexedSource,
    order: Order,
    reader: Reader,  # with `step` equal to the number of workers
) -> _core.DeviceStream:
    """Read the remaining batches of one worker, an array for each batch.

    Raises OSError if a file has changed since the source was opened.
    """
    source.check_unchanged()
    position, sharding = reader.position, reader.sharding
    rest = Rest(source.num_rows, position.stages)
    share = choose_share(len(rest), reader.rank, reader.worker, sharding, position.batches)
    spans = rest.slice(share.rows.start, share.rows.stop)
    rows = sharding.batch_size
    if share.has_filler:
        reader.valid_rows[-(-len(share.rows) // rows)] = 0
        spans += rest.slice(0, 1)
    epoch = EpochRows(source, order, position.epoch)
    groups = list(epoch.group(spans)) or [[Span(0, 0)]]
    if len(groups) == len(groups[0]) == 1:
        stream = epoch.read(groups[0][0])
    else:
        stream = _core.from_arrow_stream(
            array for group in groups for array in epoch.read_each(group, rows)
        )
    return stream.rebatch(rows, drop_last=sharding.drop_last)


class EpochRows:
    """The rows of a source in the order of an epoch."""

    def __init__(self, source: IndexedSource, order: Order, epoch: int) -> None:
        self._source = source
        self._units, (lanes,) = order.arrange(source, epoch)
        self._buffer_size = order.buffer_size
        self._lanes = Lanes(source, self._units, lanes, order.buffer_size or 0)
        self._seed = order.make_seed(epoch, "rows")

    def read(self, span: Span, readers: int = 1) -> _core.DeviceStream:
        """Read the rows of a span; `readers` as in `IndexedSource.read`."""
        size = self._buffer_size
        if size is None:
            return self._lanes.read(span.start, span.stop, readers)
        first = span.start // size
        stop = min(-(-span.stop // size) * size, self._source.num_rows)
        stream = self._lanes.read(first * size, stop, readers)
        is_private = self._source.is_decoded
        stream = stream.shuffle(size, self._seed, first_window=first, in_place=is_private)
        return stream.slice(span.start - first * size, len(span))

    def group(self, spans: Iterable[Span]) -> Iterator[list[Span]]:
        """Group ascending spans whose gaps are read anyway, to be read together."""
        group: list[Span] = []
        for span in spans:
            is_near = bool(group) and group[-1].stop <= span.start
            if not is_near or (
                self._find_block(group[-1].stop - 1) + 1 < self._find_block(span.start)
            ):
                if group:
                    yield group
                group = []
            group.append(span)
        if group:
            yield group

    def _find_block(self, row: int) -> int:
        """Return the index of the block that is read as a whole: a shuffle buffer, or a unit."""
        size = self._buffer_size
        return self._units.find(row) if size is None else row // size

    def read_each(self, group: Sequence[Span], rows: int) -> Iterator[_core.DeviceArray]:
        """Read the rows of a group's spans, in arrays of `rows` rows or more."""
        rows = max(rows, self._source.rows_at_once)
        position = group[0].start
        spans = iter(group)
        span = next(spans)
        for array in self.read(Span(position, group[-1].stop)).rebatch(rows):
            end = position + len(array)
            while span.start < end:
                start, stop = max(span.start, position), min(span.stop, end)
                yield array[start - position : stop - position]
                if span.stop > end or (following := next(spans, None)) is None:
                    break
                span = following
            position = end


def read_stream(
    source: StreamSource,
    order: Order,
    reader: Reader,  # as in `read_share`
) -> tuple[_core.DeviceStream, FindParts | None]:
    """Read a whole stream, and keep the batches of one worker and its rank's rows of them.

    Returns also what counts the parts of a batch, if it has several.
    """
    has_parts = reader.sharding.splits not in (None, 1)
    return (
        _read_stream(source, order, reader),
        partial(find_stream_parts, reader) if has_parts else None,
    )


def _read_stream(source: StreamSource, order: Order, reader: Reader) -> _core.DeviceStream:
    position, sharding = reader.position, reader.sharding
    stream = source.open(position.epoch)
    done = sum(
        stage.batches * stage.sharding.batch_size * stage.sharding.world_size
        for stage in position.stages
    )
    turn = reader.count_read(position.batches) * sharding.num_workers + reader.worker
    rows = sharding.batch_size * sharding.world_size
    stream = order.shuffle(stream, position.epoch, done + turn * rows)
    stream = stream.rebatch(rows, drop_last=sharding.drop_last)
    if sharding.num_workers > 1:
        stream = _take_every(stream, sharding.num_workers)
    if sharding.world_size == 1:
        return stream
    return _note_fillers(stream, reader).shard(sharding.world_size, reader.rank, pad=True)


def _note_fillers(stream: _core.DeviceStream, reader: Reader) -> _core.DeviceStream:
    """Note in `reader` which arrays have fewer rows than ranks: there, a rank repeats a row."""
    first = next(stream, None)
    if first is None:
        return stream

    def note() -> Iterator[_core.DeviceArray]:
        for i, array in enumerate(itertools.chain([first], stream)):
            if len(array) < reader.sharding.global_batch_size:
                reader.step_rows[i] = len(array)
            if len(array) <= reader.rank:
                reader.valid_rows[i] = 0
            yield array

    return _core.from_arrow_stream(note())


def _take_every(stream: _core.DeviceStream, step: int) -> _core.DeviceStream:
    """Keep every `step`th array of `stream`, starting with the first."""
    arrays = itertools.islice(stream, 0, None, step)
    first = next(arrays, None)
    return stream if first is None else _core.from_arrow_stream(itertools.chain([first], arrays))


def find_stream_parts(
    reader: Reader,  # with a sharding with `splits`: of all numbers that divide it
    index: int,  # of the batch among those of the reader
    rows: int,  # of this rank
) -> list[int]:
    """Cut the rows of a rank in a step of a stream where any number of ranks would."""
    world_size, splits = reader.sharding.world_size, reader.sharding.splits
    assert splits is not None
    total = reader.step_rows.get(index, rows * world_size)
    if total % splits == 0:
        return [total // splits] * (splits // world_size)
    start = _find_shard(total, world_size, reader.rank)
    cuts = {
        _find_shard(total, ranks, rank)
        for ranks in range(1, splits + 1)
        if splits % ranks == 0
        for rank in range(ranks + 1)
    }
    cuts_inside = sorted(cut for cut in cuts if start <= cut <= start + rows)
    return [after - before for before, after in itertools.pairwise(cuts_inside)]


def _find_shard(rows: int, ranks: int, rank: int) -> int:
    """Return the first row of a rank in a step; see `DeviceStream.shard`."""
    return rank * (rows // ranks) + min(rank, rows % ranks)


def seed_steps(
    seed: int,  # of the Loader
    reader: Reader,
) -> Callable[[str, int | None], int]:
    """Return the `find_seed` of `Draws` for the batches that `reader` has left to read.

    Steps count from the start of the epoch, and no worker's number is part of a seed: so it is the
    same with any number of workers, and after a resume.
    """
    position, rank = reader.position, reader.rank
    epoch, order = position.epoch, Order(seed, None)
    before = sum(stage.batches for stage in position.stages)
    done = reader.count_read(position.batches)

    def find_seed(purpose: str, index: int | None) -> int:
        if index is None:
            return order.make_seed(epoch, f"{purpose} in place of a batch")
        step = before + reader.count_all(done + index + 1) - 1
        return order.make_seed(epoch, f"{purpose} of rank {rank} in step {step}")

    return find_seed
