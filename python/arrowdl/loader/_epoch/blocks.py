"""The blocks of an epoch: of a source, `SourceBlocks`, of a mixture, and of a stream.

A block counts as a row: ranks, workers, splits and states are those of a source with a row for each
block. The rows are packed in the one order of the epoch, so blocks depend neither on ranks nor on
splits. Each process knows the lengths of all sequences, and so where every block begins: it reads
its own rows.
"""

from __future__ import annotations

import itertools
import weakref
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from operator import itemgetter
from threading import RLock
from typing import Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._epoch.lengths import check_lengths
from arrowdl.loader._epoch.mixed_sequences import MixedSequences
from arrowdl.loader._epoch.read import EpochRows, FindParts, Order, Reader, read_share, read_stream
from arrowdl.loader._epoch.read_splits import copies_rows, read_splits
from arrowdl.loader._epoch.sequences import EpochSequences, Sequences, WholeRows
from arrowdl.loader._epoch.sharding import Span
from arrowdl.loader._epoch.steps import find_even_steps
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._sources.base import ENDLESS, IndexedSource, UnitOrder
from arrowdl.loader._sources.stream import StreamSource

_BLOCKS = 64  # that are planned at a time, if no window says how many
_MOST_ITEMS = 2**62


class Place(NamedTuple):
    """Where a packed stream goes on: what `DeviceStream.pack` takes as `resume_from`."""

    row: int
    value: int
    block: int


class BlockPlan:
    """Where each block of packed rows begins.

    The packer itself says so: it packs lists of these lengths whose items have no bytes.
    """

    def __init__(
        self,
        # returns the lengths of the sequences from a row on: a stream of structs with one column
        open_lengths: Callable[[int], _core.DeviceStream],
        pack: Pack,
    ) -> None:
        self._open_lengths = open_lengths
        self._arguments = {**pack.list_deciding(), "add": ["resume_from"]}
        # Numbers of blocks, and where the next one begins. Those between are found again.
        self._checkpoints = [(0, Place(0, 0, 0))]
        self._lock = RLock()  # signal handlers, too, save states

    def has_blocks(self) -> bool:
        """Whether a row has tokens that are packed."""
        return self._checkpoints[-1][0] > 0 or any(True for _ in self._extend())

    def count(self) -> int:
        """Count the blocks of all rows, of which there is an end."""
        for _ in self._extend():
            pass
        return self._checkpoints[-1][0]

    def count_until(self, row: int) -> int:
        """Count the blocks up to the first one after which all rows before `row` are used up."""
        if self._checkpoints[-1][1].row < row:
            for _, place in self._extend():
                if place.row >= row:
                    break
        checkpoints = self._checkpoints
        i = bisect_left(checkpoints, (row, 0, 0), key=lambda checkpoint: checkpoint[1])
        if i == 0:
            return 0
        blocks, start = checkpoints[i - 1]
        between = itertools.takewhile(lambda place: place.row < row, self._list_after(start))
        return blocks + sum(1 for _ in between) + 1

    def find(self, block: int) -> Place:
        """Return where `block` begins; all blocks before it exist."""
        if self._checkpoints[-1][0] < block:
            for blocks, _ in self._extend():
                if blocks >= block:
                    break
        blocks, start = self._checkpoints[
            bisect_right(self._checkpoints, block, key=itemgetter(0)) - 1
        ]
        if blocks == block:
            return start
        return next(itertools.islice(self._list_after(start), block - blocks - 1, None))

    def find_end(self, block: int) -> int | None:
        """Return a row that no block before `block` comes to; None if no such row is known."""
        checkpoints = self._checkpoints
        for i in range(bisect_left(checkpoints, block, key=itemgetter(0)), len(checkpoints)):
            row, value, used = checkpoints[i][1]
            if not used:
                return row + (value > 0)
        return None

    def _extend(self) -> Iterator[tuple[int, Place]]:
        """Note where more blocks begin; yield each of these numbers and places."""
        # Several threads may do so at once: each goes on from where it has begun.
        blocks, place = self._checkpoints[-1]
        for column in self._read(place):
            (place,) = _read_places(column[-1:])
            blocks += len(column)
            with self._lock:
                insort(self._checkpoints, (blocks, place))
            yield blocks, place

    def _list_after(self, place: Place) -> Iterator[Place]:
        """List where the blocks end that follow `place`."""
        for column in self._read(place):
            yield from _read_places(column)

    def _read(self, place: Place) -> Iterator[_core.DeviceArray]:
        """Yield where the blocks end that follow `place`: a column of `pack`, several at a time."""
        import pyarrow as pa

        name = self._arguments["column"]
        arrays = self._open_lengths(place.row)
        lengths = itertools.chain(
            [pa.array([], "i4")], (pa.array(rows.field(0)) for rows in arrays)
        )
        lists = _core.from_arrow_stream(_make_lists(name, part) for part in lengths)
        packed = lists.pack(**self._arguments, resume_from=place)
        if self._arguments["strategy"] == "concat":
            packed = packed.rebatch(_BLOCKS)
        with closing(packed) as stream:
            for blocks in stream:
                yield blocks.field("resume_from")


def _read_places(column: _core.DeviceArray) -> list[Place]:
    import pyarrow as pa

    return [Place(*numbers) for numbers in pa.array(column).to_pylist()]


def _make_lists(column: str, lengths: Any) -> Any:
    """Return lists of these lengths, of items of no bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    items = pa.Array.from_buffers(pa.binary(0), _MOST_ITEMS, [None, pa.py_buffer(b"")])
    lists = pa.LargeListArray.from_arrays(offsets, items)
    return pa.RecordBatch.from_arrays([lists], [column])


_ROWS = 65_536  # whose lengths are packed at a time
_UNIT = 64  # blocks that are read together, if they are near each other


class Blocks(IndexedSource):
    """Blocks as rows of a source; see `SourceBlocks` and `MixtureBlocks`."""

    is_shared = False
    rows_at_once = 1

    def __init__(self, source: IndexedSource, pack: Pack) -> None:
        self._source = source
        self._pack = pack.list_arguments()
        self._lengths_column = pack.lengths

    @property
    def column_names(self) -> list[str] | None:
        names = self._source.column_names
        return None if names is None else [*names, *self._pack["add"]]

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        """Return a stream without blocks: others are read by `read_rows`."""
        return self._source.read([]).pack(**self._pack)

    def pack_rows(self, rows: _core.DeviceStream, place: Place) -> _core.DeviceStream:
        """Pack rows from the one on with which `place` begins."""
        rows = _check_rows(rows, self._pack["column"], self._lengths_column)
        return rows.pack(**self._pack, resume_from=place)

    def describe(self) -> str:
        return self._source.describe()

    def check_unchanged(self) -> None:
        self._source.check_unchanged()


def _check_rows(rows: _core.DeviceStream, column: str, lengths: str | None) -> _core.DeviceStream:
    """Return the rows, which have to have the lengths that a column says, if there is one."""
    if lengths is None:
        return rows
    return _core.read_arrays(check_lengths(rows, column, lengths), rows.schema, rows.device_type)


class SourceBlocks(Blocks):
    """The blocks of an epoch of a source."""

    def __init__(
        self,
        source: IndexedSource,
        lengths: IndexedSource,  # the length of each of its sequences, in the same units
        pack: Pack,
        order: Order,
        epoch: int,
    ) -> None:
        super().__init__(source, pack)
        self._order = order
        self._epoch = epoch
        self._rows = EpochRows(source, order, epoch)
        self._count = source.num_rows
        self._whole: Callable[[], WholeRows | None] = _find_none
        epoch_rows = EpochRows(lengths, order, epoch)
        self._plan = BlockPlan(partial(_read_from, epoch_rows, self._count), pack)
        blocks = self._plan.count()
        self.units: list[int] = [_UNIT] * (blocks // _UNIT)
        if blocks % _UNIT:
            self.units.append(blocks % _UNIT)

    def with_rows(self, source: IndexedSource) -> SourceBlocks:
        """Return the blocks of the same rows, which may have more columns."""
        changed = copy(self)
        changed._source, changed._rows = source, EpochRows(source, self._order, self._epoch)
        changed._whole = _find_none
        return changed

    def read_rows(
        self, start: int, stop: int, order: UnitOrder, readers: int = 1
    ) -> _core.DeviceStream:
        if start >= stop:
            return self.read([])
        place = self._plan.find(start)
        end = self._plan.find_end(stop)
        rows = self._read(Span(place.row, self._count if end is None else end), readers)
        return self.pack_rows(rows, place).slice(0, stop - start)

    def _read(self, span: Span, readers: int) -> _core.DeviceStream:
        """Read rows of a span: those of a permutation once for all that read side by side."""
        if readers == 1 or not self._order.holds(self._source):
            return self._rows.read(span, readers)
        whole = self._whole()
        if whole is None:
            whole = WholeRows(self._rows, self._count, 1)
            self._whole = weakref.ref(whole)  # the streams keep it
        return whole.read(span, self._source.read([]))

    def read_share(
        self, reader: Reader, *, reads_ahead: bool
    ) -> tuple[_core.DeviceStream, FindParts | None]:
        """See `Epochs.read`."""
        sharding, order = reader.sharding, Order(self._order.seed, None)
        if sharding.splits is None:
            return read_share(self, order, reader), None
        self.check_unchanged()
        steps = find_even_steps(self.num_rows, reader.position.stages, sharding)
        is_joined = copies_rows(sharding)
        sequences = Sequences(self, order, self._epoch, sharding.splits, shares_units=is_joined)
        return read_splits(sequences, self.num_rows, steps, reader, reads_ahead=reads_ahead)


def _find_none() -> None:
    return None


def _read_from(rows: EpochRows, stop: int, row: int) -> _core.DeviceStream:
    return rows.read(Span(row, stop)).rebatch(_ROWS)


class MixtureBlocks(Blocks, EpochSequences):
    """The blocks of an epoch of a mixture, whose sequences are packed each by itself.

    All have as many blocks: if the mixture ends with a source, those of the shortest sequence, and
    otherwise as many as the last sequence needs until it has had all rows of its sources.

    Raises ValueError if rows are repeated, and no row has tokens.
    """

    def __init__(
        self,
        source: MixedSource,
        lengths: MixedSource,  # the same mixture of the lengths of the sequences
        pack: Pack,
        epoch: int,
    ) -> None:
        super().__init__(source, pack)
        self._epoch = epoch
        self._sequences = MixedSequences(source, epoch)
        order = source.order
        self._end = order.length if order.stop == "first" else ENDLESS
        if order.stop != "first":
            _require_tokens(lengths, pack)
        sequences = MixedSequences(lengths, epoch)
        self._plans = [
            BlockPlan(partial(_open_sequence, sequences, i, self._end), pack)
            for i in range(order.splits)
        ]
        if source.is_endless:
            self._count = ENDLESS
        elif order.stop == "first":
            self._count = min(plan.count() for plan in self._plans)
        else:
            self._count = max(plan.count_until(order.length) for plan in self._plans)
        self.units: list[int] = [self._count] * order.splits

    def with_rows(self, source: MixedSource) -> MixtureBlocks:
        """As in `SourceBlocks`."""
        changed = copy(self)
        changed._source, changed._sequences = source, MixedSequences(source, self._epoch)
        return changed

    def find_row(self, block: int) -> int:
        """Return the row of the first sequence with which one of its blocks begins."""
        return self._plans[0].find(block).row

    @property
    def mixture(self) -> MixedSource:
        """The mixture whose rows are packed."""
        return self._sequences.source

    def count_blocks(self, rows: int) -> int:
        """Count about as many blocks as `rows` rows of the mixture make."""
        splits = len(self._plans)
        return self._plans[0].count_until(max(1, rows // splits)) * splits

    def read_share(
        self, reader: Reader, *, reads_ahead: bool
    ) -> tuple[_core.DeviceStream, FindParts | None]:
        """See `Epochs.read`."""
        self.check_unchanged()
        steps = find_even_steps(self.num_rows, reader.position.stages, reader.sharding)
        return read_splits(self, self.num_rows, steps, reader, reads_ahead=reads_ahead)

    def _open_none(self) -> _core.DeviceStream:
        return self.read([])

    def _open(self, wanted: Sequence[tuple[int, Span]]) -> list[_core.DeviceStream]:
        places = [self._plans[index].find(span.start) for index, span in wanted]
        ends = [self._plans[index].find_end(span.stop) for index, span in wanted]
        rows = [
            Span(place.row, self._end if end is None else end)
            for place, end in zip(places, ends, strict=True)
        ]
        streams = self._sequences.open([(wanted[i][0], span) for i, span in enumerate(rows)])
        return [
            self.pack_rows(stream, place).slice(0, len(span))
            for stream, place, (_, span) in zip(streams, places, wanted, strict=True)
        ]


def _open_sequence(sequences: MixedSequences, index: int, end: int, row: int) -> _core.DeviceStream:
    (stream,) = sequences.open([(index, Span(row, end))])
    return stream


def _require_tokens(lengths: MixedSource, pack: Pack) -> None:
    """Raise ValueError if a packer would read the sources again and again, and find no block."""
    for member, weight in zip(lengths.members, lengths.phases[-1].weights, strict=True):
        rows, stop = EpochRows(member.source, Order(0, None), 0), member.source.num_rows
        if weight and BlockPlan(partial(_read_from, rows, stop), pack).has_blocks():
            return
    raise ValueError(
        f'no source has a row with tokens in "{pack.column}" that long="{pack.long}" keeps: there '
        "is nothing to pack"
    )


class StreamBlocks(StreamSource):
    """The blocks of a stream, whose lengths are not known: every rank packs all rows."""

    def __init__(self, source: StreamSource, order: Order, pack: Pack) -> None:
        super().__init__(source.open, source.is_replayable)
        self._rows = source
        self._order = order
        self._pack = pack.list_arguments()
        self._lengths_column = pack.lengths

    def with_rows(self, source: StreamSource) -> StreamBlocks:
        """As in `SourceBlocks`."""
        changed = copy(self)
        changed._rows = source
        return changed

    def open(self, epoch: int) -> _core.DeviceStream:
        """As in `StreamSource`."""
        stream = self._order.shuffle(self._rows.open(epoch), epoch)
        return _check_rows(stream, self._pack["column"], self._lengths_column).pack(**self._pack)

    def read_share(
        self, reader: Reader, *, reads_ahead: bool
    ) -> tuple[_core.DeviceStream, FindParts | None]:
        """See `Epochs.read`."""
        return read_stream(self, Order(self._order.seed, None), reader)


AnyBlocks = SourceBlocks | MixtureBlocks | StreamBlocks
