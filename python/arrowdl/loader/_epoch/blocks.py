"""The blocks of an epoch: of a source, `SourceBlocks`, of a mixture, and of a stream.

A block counts as a row: ranks, workers, splits and states are those of a source with a row for each
block. The rows are packed in the one order of the epoch, so blocks depend neither on ranks nor on
splits. Each process knows the lengths of all sequences, and so where every block begins: it reads
its own rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial

from arrowdl import _core
from arrowdl.loader._epoch.block_plan import BlockPlan, Place
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
        own = EpochRows(lengths, order, epoch)
        self._plan = BlockPlan(partial(_read_from, own, self._count), pack)
        blocks = self._plan.count()
        self.units: list[int] = [_UNIT] * (blocks // _UNIT)
        if blocks % _UNIT:
            self.units.append(blocks % _UNIT)

    def with_rows(self, source: IndexedSource) -> SourceBlocks:
        """Return the blocks of the same rows, which may have more columns."""
        made = copy(self)
        made._source, made._rows = source, EpochRows(source, self._order, self._epoch)
        made._whole = _find_none
        return made

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
        own = MixedSequences(lengths, epoch)
        self._plans = [
            BlockPlan(partial(_open_sequence, own, i, self._end), pack) for i in range(order.splits)
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
        made = copy(self)
        made._source, made._sequences = source, MixedSequences(source, self._epoch)
        return made

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
        streams = self._sequences.open([(i, own) for (i, _), own in zip(wanted, rows, strict=True)])
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
        made = copy(self)
        made._rows = source
        return made

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
