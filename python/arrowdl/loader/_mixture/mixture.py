"""`MixedSource`: rows of several sources by their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from arrowdl import _core
from arrowdl.loader._mixture.columns import MixedColumns
from arrowdl.loader._mixture.order import Member, MixedOrder
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._sources.row_bytes import LANES, count_lanes
from arrowdl.loader._storage.readers import Stamp

if TYPE_CHECKING:
    import pyarrow as pa


class MixedFiles(SourceFiles):
    """The files of several sources."""

    def __init__(
        self,
        members: Sequence[tuple[str, SourceFiles]],  # each with the name of the source
    ) -> None:
        super().__init__("a mixture has no plan: make one of each of its Loaders")
        self._members = members

    @property
    def snapshot(self) -> str:
        named = [(name, files.snapshot) for name, files in self._members]
        return "; ".join(f"{name}: {snapshot}" for name, snapshot in named if snapshot)

    def list_stamps(self) -> list[Stamp]:
        return [stamp for _, files in self._members for stamp in files.list_stamps()]

    def list_rows(self) -> Iterator[tuple[str, int]]:
        return chain.from_iterable(files.list_rows() for _, files in self._members)

    def find_nulls(self, column: str) -> str:
        return next(filter(None, (files.find_nulls(column) for _, files in self._members)), "")


class MixedSource(IndexedSource):
    """Rows of several sources by their weights, in several sequences.

    Row `i` of sequence `j` is the next row of sequence `j` of one of the sources, which has as many
    sequences. A source whose sequence has ended goes on with that of its next epoch. Raises
    ValueError if the sources have different columns.
    """

    is_shared = False
    order: MixedOrder

    # `origin` names a column of int32 with the index of each row's source.
    def __init__(
        self,
        members: Sequence[Member],
        order: MixedOrder,
        origin: str | None = None,
        dtype: Any = None,  # has the unit of times whose units differ
    ) -> None:
        self.members = members
        self.columns: MixedColumns = MixedColumns(members, origin, dtype)
        _adopt(self, order)

    def with_order(self, order: MixedOrder) -> MixedSource:
        """Return the mixture of the same sources in another order."""
        if order is self.order:
            return self
        mixture = copy(self)
        _adopt(mixture, order)
        return mixture

    def with_turns_of(self, other: IndexedSource) -> MixedSource:
        return self.with_order(cast("MixedSource", other).order)

    def map_members(
        self, change: Callable[[IndexedSource], IndexedSource], *, is_named: bool = False
    ) -> MixedSource:
        """Return the mixture of what `change` makes of each source, of as many rows."""
        mixture = copy(self)
        mixture.members = [replace(member, source=change(member.source)) for member in self.members]
        if is_named:
            return mixture.with_members(mixture.members)
        mixture.columns = MixedColumns(mixture.members, is_named=False)
        return mixture

    def with_members(self, members: Sequence[Member]) -> MixedSource:
        """Return the mixture of `members`, which have the same rows in as many columns or more."""
        mixture = copy(self)
        mixture.members, mixture.columns = members, self.columns.with_more(members)
        return mixture

    def list_members(self) -> list[tuple[str, IndexedSource]]:
        return [(member.name, member.source) for member in self.members]

    def cut_for_shuffle(self, rows: int) -> MixedSource:
        """Cut the sources that are not Loaders, which share the buffer."""
        mixture = copy(self)
        share, lanes = max(1, rows // len(self.members)), LANES // len(self.members)
        mixture.members = [_cut_member(member, share, lanes) for member in self.members]
        mixture.columns = self.columns.with_sources(mixture.members)
        return mixture

    def list_buffers(self, rows: int) -> list[tuple[str, IndexedSource, int]]:
        members = [member for member in self.members if not member.is_loader]
        return [(member.name, member.source, member.buffer_size or 0) for member in members]

    def estimate_row_bytes(self) -> float:
        return max(member.source.estimate_row_bytes() for member in self.members)

    @property
    def column_names(self) -> list[str] | None:
        return self.columns.names

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        """Return a stream without rows: those of a mixture are read by `MixedSequences`."""
        return _core.chain([self.columns.make_empty(0)])

    @property
    def files(self) -> SourceFiles:
        return MixedFiles([(member.name, member.source.files) for member in self.members])

    def describe(self) -> str:
        parts = []
        for member in self.members:
            is_own = member.is_loader and member.buffer_size is not None
            order = f" {member.buffer_size} {member.seed}" if is_own else ""
            parts.append(f"{member.name!r} {member.source.describe()}{order}")
        return f"mixture {self.order.stop} {parts}"

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        super().use_vocabulary(vocabulary)
        for member in self.members:
            member_tables = member.source.vocabulary.tables
            member.source.use_vocabulary(Vocabulary({**member_tables, **vocabulary.tables}))

    def find_vocabulary(self, column: str) -> pa.Array | None:
        return self.members[0].source.find_vocabulary(column)

    def describe_unread(self) -> str:
        texts = ((member.name, member.source.describe_unread()) for member in self.members)
        return "; ".join(f"{name}: {text}" for name, text in texts if text)

    def prepare(self) -> None:
        for member in self.members:
            member.source.prepare()

    def check_process(self) -> None:
        for member in self.members:
            member.source.check_process()

    def check_unchanged(self) -> None:
        for member in self.members:
            member.source.check_unchanged()

    def check_read(self) -> None:
        for member in self.members:
            member.source.check_read()


def _adopt(mixture: MixedSource, order: MixedOrder) -> None:
    """Give a mixture an order, and what other sources have of one."""
    mixture.order = order
    mixture.schedule, mixture.phases = order.schedule, order.phases
    mixture.is_endless = order.is_endless
    mixture.units = [order.length * order.splits]


def _cut_member(member: Member, rows: int, lanes: int) -> Member:
    if member.is_loader:
        return member
    lanes = count_lanes(member.source.measure_held(), rows, lanes)
    source = member.source.cut_for_shuffle(rows)
    return replace(member, source=source, buffer_size=rows, lanes=lanes)
