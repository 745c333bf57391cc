"""`PackedEpochs`: the rows of other epochs, packed into blocks that take the place of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from arrowdl import _core
from arrowdl.loader._epoch.blocks import AnyBlocks, MixtureBlocks
from arrowdl.loader._epoch.documents import find_faults
from arrowdl.loader._epoch.epochs import Epochs, FindSharding, check_has_end
from arrowdl.loader._epoch.lengths import NAME_IT, describe_lost, list_lengths, open_lengths
from arrowdl.loader._epoch.mixed import check_weights
from arrowdl.loader._epoch.read import FindParts, Order, Reader
from arrowdl.loader._epoch.sharding import Sharding, count_batches, count_rest
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._options.options import Options
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._skip.numbers import Numbered
from arrowdl.loader._skip.numbers import Place as RowPlace
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._skipped import MissingRows, Skipped
from arrowdl.loader._sources.base import IndexedSource


class PackedEpochs(Epochs[Any]):
    """The blocks of the epochs of a source."""

    joins_rows = True

    def __init__(self, rows: Epochs[Any], pack: Pack) -> None:
        super().__init__(rows.source, rows.options)
        self._rows = rows
        self._pack = pack
        if self.source.list_members():  # sequences that are read side by side share the buffer
            shuffled = self.options.count_shuffled_rows(self.source.num_rows)
            size = self.order.buffer_size and shuffled
            self.order = replace(self.order, buffer_size=size)
        self._lengths: IndexedSource | None = None
        self._opened: tuple[int, Any] | None = None

    def with_options(self, options: Options) -> PackedEpochs:
        changed = super().with_options(options)
        changed._rows = self._rows.with_options(options)
        return changed

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def prepare(self) -> None:
        self._rows.prepare()
        self._read_lengths()

    def _read_lengths(self) -> IndexedSource | None:
        """Return the lengths of all rows, which each worker process would read again."""
        if self._lengths is None and self.source.list_members():
            column = self._pack.lengths or self._pack.column
            lengths = open_lengths(self.source, column, skips=self.options.skips)
            lengths.prepare()
            self._lengths = lengths
        return self._lengths

    def list_lost(self) -> list[Skipped]:
        lengths = self._read_lengths()
        if lengths is None or not self.options.skips:
            return []
        return [
            replace(entry, path=entry.path or name)
            for (name, _), source in zip(
                self.source.list_members(), list_lengths(lengths), strict=True
            )
            for entry in source.list_lost()
        ]

    def begin(self, position: Position, find_sharding: FindSharding, *, is_shared: bool) -> None:
        position.phases = list(self.source.phases)

    def open(self, position: Position) -> Any:
        """Return the blocks of the epoch of a position: `AnyBlocks`."""
        if self._opened is None or self._opened[0] != position.epoch:
            lengths = self._read_lengths()
            blocks = self._rows.open_blocks(self.order, lengths, self._pack, position.epoch)
            self._opened = (position.epoch, blocks)
        return self._opened[1]

    def number(self, rows: Any, faults: Sequence[Faults] = ()) -> tuple[Any, Numbered]:
        if self._lengths is not None:
            packed = find_packed(self.source, self._pack)
            columns = list_lengths(self._lengths)
            faults = [find_faults(lengths, packed, self._pack.lengths) for lengths in columns]
        documents, numbered = self._rows.number(self.source, faults)
        return rows.with_rows(documents), NumberedBlocks(numbered, self._pack)

    def read(
        self, rows: Any, reader: Reader, *, reads_ahead: bool
    ) -> tuple[_core.DeviceStream, FindParts | None]:
        blocks: AnyBlocks = rows
        return blocks.read_share(reader, reads_ahead=reads_ahead)

    def is_ready(self, *, is_gathered: bool) -> bool:
        return self._rows.is_ready(is_gathered=is_gathered)

    def limit_pass(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        return self._rows.limit_pass(stream)

    def count_batches(self, position: Position) -> int | None:
        sharding, rows = position.sharding, self.open(position).num_rows
        if sharding is None or rows is None:
            return None
        return count_batches(count_rest(rows, position.stages), sharding) or None

    def count_epoch(self, epoch: int, find_sharding: FindSharding) -> int:
        if not self.source.list_members():
            return super().count_epoch(epoch, find_sharding)
        check_has_end(self.source)
        return count_batches(self.open(Position(epoch)).num_rows, find_sharding())

    def count_pass(self, position: Position) -> int | None:
        if not self.source.is_endless:
            rows: int | None = self.open(position).num_rows
            return rows
        blocks: MixtureBlocks = self.open(position)
        return blocks.count_blocks(self.source.order.count_member_rows())

    def count_passes(self, position: Position, sharding: Sharding) -> int:
        if not self.source.is_endless:
            return 0
        blocks: MixtureBlocks = self.open(position)
        rows, order = blocks.find_row(position.count_rows()), blocks.mixture.order
        return rows * order.splits // order.count_member_rows()

    def describe_steps(self, find_sharding: FindSharding) -> dict[str, Any]:
        """See `Epochs`; add the options that decide on the blocks."""
        about = self._pack.list_deciding()
        if self.options.skips:
            lengths = self._read_lengths()
            if lengths is not None and (lost := describe_lost(lengths)):
                about["unread"] = lost
        return {**super().describe_steps(find_sharding), "pack": about}

    def check_position(self, position: Position, find_sharding: FindSharding) -> None:
        if self.source.phases:
            check_weights(self.source, position)
            if position.phases not in ([], list(self.source.phases)):
                raise ValueError(
                    "the state is of a packed mixture by other weights: its blocks have other "
                    "rows. Give the weights of the state, and others by set_epoch from the next "
                    "epoch on"
                )
        rows = self.open(position).num_rows
        if self.source.is_endless:
            position.check_tokens(self._pack.length)
        if rows is not None:
            position.check_rows(rows)

    def open_blocks(
        self, order: Order, lengths: IndexedSource | None, pack: Pack, epoch: int
    ) -> Any:
        raise TypeError("blocks are not packed again")


def check_pack(source: Any, pack: Pack) -> list[str] | None:
    """Return the columns of the blocks of a source; None for a stream, which is not opened yet.

    Raises TypeError, ValueError or BufferError as `DeviceStream.pack` does: the source has no such
    columns, or they cannot be packed. Raises ValueError if the source is a mixture whose weights
    change.
    """
    if not source.list_members():
        return None
    if len(source.schedule) > 1:
        raise ValueError(
            "batching=Pack(...) with weights that change at a step: a step has blocks, and at a "
            "step each sequence has come to another row. Give one number for each source, and "
            "others from the next epoch on"
        )
    names = source.column_names
    if names is not None and pack.column not in names:
        raise ValueError(
            f'Pack.column names "{pack.column}", and the columns that are read are {list(names)}: '
            f"{NAME_IT}"
        )
    if names is not None and pack.lengths is not None and pack.lengths not in names:
        raise ValueError(
            f'Pack.lengths="{pack.lengths}", and the columns that are read are {list(names)}: '
            f"{NAME_IT}"
        )
    try:
        stream = source.read([]).pack(**pack.list_arguments())
    except TypeError as error:
        error.add_note(
            "Pack takes lists of tokens. Text becomes ids before it is packed with "
            f'transform_arrow={{"{pack.column}": arrowdl.Tokenize(tokenizer)}}; tokens of another '
            "function have to be written to a file"
        )
        raise
    return [field.name for field in stream.schema.children]


def find_packed(source: IndexedSource, pack: Pack) -> frozenset[str]:
    """Return the columns with an item for each token: of blocks, lists of one length."""
    fields = source.read([]).pack(**{**pack.list_arguments(), "add": []}).schema.children
    return frozenset(field.name for field in fields if field.format == f"+w:{pack.length}")


class NumberedBlocks:
    """What the numbers of blocks mean, each the list of those of its documents."""

    def __init__(
        self,
        rows: Numbered,  # of the documents
        pack: Pack,
    ) -> None:
        self._rows = rows
        self._pack = pack.list_arguments()

    @property
    def has_failures(self) -> bool:
        return self._rows.has_failures

    def report_missing(self, numbers: Sequence[list[int]]) -> MissingRows:
        report = self._rows.report_missing(
            [number for span_numbers in numbers for number in span_numbers]
        )
        return replace(report, rows=len(numbers))

    def locate(self, numbers: Sequence[list[int]]) -> list[RowPlace]:
        return self._rows.locate([number for span_numbers in numbers for number in span_numbers])

    def sample(self) -> Iterator[_core.DeviceArray]:
        for row in self._rows.sample():
            yield from _core.chain([row]).pack(**self._pack).rebatch(1).slice(0, 1)
