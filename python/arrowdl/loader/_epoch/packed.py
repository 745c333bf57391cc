"""An epoch of blocks: `PackedEpoch` of a source, `PackedMixture`, and `PackedStream`.

A block counts as a row: ranks, workers, splits and states are those of sources of so many rows. The
rows are packed in the one order of the epoch, so blocks depend neither on ranks nor on splits. Each
process knows the lengths of all sequences, and so where every block begins: it reads its own rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._epoch.block_plan import BlockPlan, Place
from arrowdl.loader._epoch.documents import find_faults
from arrowdl.loader._epoch.lengths import check_lengths, describe_lost, list_lengths, open_lengths
from arrowdl.loader._epoch.mixed_sequences import MixedSequences
from arrowdl.loader._epoch.read import EpochRows, Order
from arrowdl.loader._epoch.sequences import EpochSequences, WholeRows
from arrowdl.loader._epoch.sharding import Span
from arrowdl.loader._mixture.mixture import ENDLESS, MixedSource
from arrowdl.loader._packing import Pack
from arrowdl.loader._skip.numbered import Faults, Numbered, number_source
from arrowdl.loader._skip.numbered import Place as RowPlace
from arrowdl.loader._skipped import Report, Skipped
from arrowdl.loader._sources.base import IndexedSource, Source, StreamSource, UnitOrder

_ROWS = 65_536  # whose lengths are packed at a time
_UNIT = 64  # blocks that are read together, if they are near each other


class Packing:
    """The blocks of a source, epoch by epoch.

    Parameters
    ----------
    source : Source
    order : Order
        Of the rows.
    splits : int, optional
        Sequences of blocks that a process may read side by side: they share the shuffle buffer, or
        rows that it holds as a whole.
    pack : Pack
    skips : bool
        Whether documents whose length cannot be read are left out.
    """

    def __init__(
        self, source: Source, order: Order, splits: int | None, pack: Pack, *, skips: bool
    ) -> None:
        self.pack = pack
        self._skips = skips
        self._source = source
        if splits is not None and order.buffer_size is not None and _is_divided(source, order):
            order = replace(order, buffer_size=-(-order.buffer_size // splits))
        self._order = order
        self._lengths: IndexedSource | None = None
        self._opened: tuple[int, Source] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def open(self, epoch: int) -> Source:
        """Return the blocks of an epoch."""
        if self._opened is None or self._opened[0] != epoch:
            self._opened = (epoch, self._open(epoch))
        return self._opened[1]

    def prepare(self) -> None:
        """Read the lengths of all sequences, which each worker process would read again."""
        if isinstance(self._source, IndexedSource) and self._lengths is None:
            column = self.pack.lengths or self.pack.column
            lengths = open_lengths(self._source, column, skips=self._skips)
            lengths.prepare()
            self._lengths = lengths

    def describe(self) -> dict[str, Any]:
        """Return what decides on the blocks, for states."""
        about = self.pack.list_deciding()
        if self._skips:
            self.prepare()
            if self._lengths is not None and (lost := describe_lost(self._lengths)):
                about["unread"] = lost
        return about

    def list_lost(self) -> list[Skipped]:
        """Name the documents whose lengths cannot be read, which are in no block."""
        self.prepare()
        sources = [] if self._lengths is None else list_lengths(self._lengths)
        names = [""]
        if isinstance(self._source, MixedSource):
            names = [member.name for member in self._source.members]
        return [
            replace(entry, path=entry.path or name)
            for name, source in zip(names, sources, strict=False)
            for entry in source.list_lost()
        ]

    def number(self, blocks: Source) -> tuple[Source, Numbered]:
        """Return blocks of `open` with the numbers of their documents as the column `NUMBER`."""
        assert isinstance(blocks, (PackedEpoch, PackedMixture, PackedStream))
        faults: list[Faults] = []
        if self._lengths is not None:
            assert isinstance(self._source, IndexedSource)
            packed = find_packed(self._source, self.pack)
            own = list_lengths(self._lengths)
            faults = [find_faults(lengths, packed, self.pack.lengths) for lengths in own]
        rows, numbered = number_source(self._source, faults)
        return blocks.with_rows(rows), NumberedBlocks(numbered, self.pack)

    def _open(self, epoch: int) -> Source:
        source = self._source
        if isinstance(source, StreamSource):
            return PackedStream(source, self._order, self.pack)
        self.prepare()
        lengths = self._lengths
        if isinstance(source, MixedSource):
            assert isinstance(lengths, MixedSource)
            return PackedMixture(source, lengths, self.pack, epoch)
        assert lengths is not None
        return PackedEpoch(source, lengths, self.pack, self._order, epoch)


def _is_divided(source: Source, order: Order) -> bool:
    """Whether each sequence has a part of the buffer, and not rows of one permutation."""
    return isinstance(source, IndexedSource) and not order.holds(source)


def check_pack(source: Source, pack: Pack) -> list[str] | None:
    """Return the columns of the blocks of a source; None for a stream, which is not opened yet.

    Raises
    ------
    TypeError, ValueError, BufferError
        Of `DeviceStream.pack`: the source has no such columns, or they cannot be packed.
    ValueError
        The source is a mixture whose weights change.
    """
    if isinstance(source, StreamSource):
        return None
    if isinstance(source, MixedSource) and len(source.schedule) > 1:
        raise ValueError(
            "pack= with weights that change at a step: a step has blocks, and at a step each "
            "sequence has come to another row. Give one number for each source, and others from "
            "the next epoch on"
        )
    names = source.column_names
    if names is not None and pack.column not in names:
        raise ValueError(
            f'pack= names "{pack.column}", and the columns that are read are {list(names)}'
        )
    if names is not None and pack.lengths is not None and pack.lengths not in names:
        raise ValueError(
            f'pack= has lengths="{pack.lengths}", and the columns that are read are {list(names)}'
        )
    stream = source.read([]).pack(**pack.list_arguments())
    return [field.name for field in stream.schema.children]


def find_packed(source: IndexedSource, pack: Pack) -> frozenset[str]:
    """Return the columns with an item for each token: of blocks, lists of one length."""
    fields = source.read([]).pack(**{**pack.list_arguments(), "add": []}).schema.children
    return frozenset(field.name for field in fields if field.format == f"+w:{pack.length}")


class NumberedBlocks:
    """What the numbers of blocks mean, each the list of those of its documents.

    Parameters
    ----------
    rows : Numbered
        Of the documents.
    pack : Pack
    """

    def __init__(self, rows: Numbered, pack: Pack) -> None:
        self._rows = rows
        self._pack = pack.list_arguments()

    @property
    def has_failures(self) -> bool:
        return self._rows.has_failures

    def report_missing(self, numbers: Sequence[list[int]]) -> Report:
        found = self._rows.report_missing([number for own in numbers for number in own])
        return replace(found, rows=len(numbers))

    def locate(self, numbers: Sequence[list[int]]) -> list[RowPlace]:
        return self._rows.locate([number for own in numbers for number in own])

    def sample(self) -> Iterator[_core.DeviceArray]:
        for row in self._rows.sample():
            yield from _core.chain([row]).pack(**self._pack).rebatch(1).slice(0, 1)


class _Blocks(IndexedSource):
    """Blocks as rows of a source; see `PackedEpoch` and `PackedMixture`."""

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


class PackedEpoch(_Blocks):
    """The blocks of an epoch of a source.

    Parameters
    ----------
    source : IndexedSource
    lengths : IndexedSource
        The length of each of its sequences, in the same units.
    pack : Pack
    order : Order
    epoch : int
    """

    def __init__(
        self, source: IndexedSource, lengths: IndexedSource, pack: Pack, order: Order, epoch: int
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

    def with_rows(self, source: Source) -> PackedEpoch:
        """Return the blocks of the same rows, which may have more columns."""
        assert isinstance(source, IndexedSource)
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


def _find_none() -> None:
    return None


def _read_from(rows: EpochRows, stop: int, row: int) -> _core.DeviceStream:
    return rows.read(Span(row, stop)).rebatch(_ROWS)


class PackedMixture(_Blocks, EpochSequences):
    """The blocks of an epoch of a mixture, whose sequences are packed each by itself.

    All have as many blocks: if the mixture ends with a source, those of the shortest sequence, and
    otherwise as many as the last sequence needs until it has had all rows of its sources.

    Parameters
    ----------
    source : MixedSource
    lengths : MixedSource
        The same mixture of the lengths of the sequences.
    pack : Pack
    epoch : int

    Raises
    ------
    ValueError
        Rows are repeated, and no row has tokens.
    """

    def __init__(self, source: MixedSource, lengths: MixedSource, pack: Pack, epoch: int) -> None:
        super().__init__(source, pack)
        self._epoch = epoch
        self._sequences = MixedSequences(source, epoch)
        self._end = source.length if source.stop == "first" else ENDLESS
        if source.stop != "first":
            _require_tokens(lengths, pack)
        own = MixedSequences(lengths, epoch)
        self._plans = [
            BlockPlan(partial(_open_sequence, own, i, self._end), pack)
            for i in range(source.splits)
        ]
        if source.is_endless:
            self._count = ENDLESS
        elif source.stop == "first":
            self._count = min(plan.count() for plan in self._plans)
        else:
            self._count = max(plan.count_until(source.length) for plan in self._plans)
        self.units: list[int] = [self._count] * source.splits

    def with_rows(self, source: Source) -> PackedMixture:
        """As in `PackedEpoch`."""
        assert isinstance(source, MixedSource)
        made = copy(self)
        made._source, made._sequences = source, MixedSequences(source, self._epoch)
        return made

    def find_row(self, block: int) -> int:
        """Return the row of the first sequence with which one of its blocks begins."""
        return self._plans[0].find(block).row

    def count_blocks(self, rows: int) -> int:
        """Count about as many blocks as `rows` rows of the mixture make."""
        assert isinstance(self._source, MixedSource)
        splits = self._source.splits
        return self._plans[0].count_until(max(1, rows // splits)) * splits

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


class PackedStream(StreamSource):
    """The blocks of a stream, whose lengths are not known: every rank packs all rows.

    Parameters
    ----------
    source : StreamSource
    order : Order
    pack : Pack
    """

    def __init__(self, source: StreamSource, order: Order, pack: Pack) -> None:
        super().__init__(source.open, source.is_replayable)
        self._rows = source
        self._order = order
        self._pack = pack.list_arguments()
        self._lengths_column = pack.lengths

    def with_rows(self, source: Source) -> PackedStream:
        """As in `PackedEpoch`."""
        assert isinstance(source, StreamSource)
        made = copy(self)
        made._rows = source
        return made

    def open(self, epoch: int) -> _core.DeviceStream:
        """As in `StreamSource`."""
        stream = self._order.shuffle(self._rows.open(epoch), epoch)
        return _check_rows(stream, self._pack["column"], self._lengths_column).pack(**self._pack)
