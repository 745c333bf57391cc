"""`MixedSource`: rows of several sources by their weights."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from arrowdl import _core
from arrowdl.loader._mixture.files import MixedFiles
from arrowdl.loader._mixture.schedule import Phase, Schedule, Turns, plan_phases
from arrowdl.loader._schema.dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._schema.vocabulary import (
    TableBuilder,
    Vocabulary,
    list_dictionaries,
    make_empty,
)
from arrowdl.loader._sources.base import ENDLESS, IndexedSource, UnitOrder
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._sources.row_bytes import LANES, count_lanes

if TYPE_CHECKING:
    import pyarrow as pa

Stop = Literal["first", "all", "repeat"]


@dataclass(frozen=True)
class Member:
    """A source of a mixture.

    Attributes
    ----------
    name : str
    source : IndexedSource
    seed : int
    buffer_size : int, optional
        Of its shuffle; None for its own order, and until the mixture is cut for a shuffle.
    is_loader : bool
        Whether seed and buffer are its own, and not of the mixture.
    lanes : int
        Of its shuffle, at most.
    """

    name: str
    source: IndexedSource
    seed: int
    buffer_size: int | None
    is_loader: bool
    lanes: int = LANES


class MixedSource(IndexedSource):
    """Rows of several sources by their weights, in `splits` sequences.

    Row `i` of sequence `j` is the next row of sequence `j` of one of the sources, which has as many
    sequences. A source whose sequence has ended goes on with that of its next epoch.

    Parameters
    ----------
    members : sequence of Member
    schedule : sequence of (int, weights)
        Of `read_schedule`.
    rows_of_step : int
        Of each sequence; 0 with a budget of tokens.
    stop : {"first", "all", "repeat"}
        Whether an epoch ends before a row of any source is repeated, when all rows of all sources
        have been read, or never.
    splits : int
    origin : str, optional
        Name of a column of int32 with the index of each row's source.

    Attributes
    ----------
    members : sequence of Member
    schedule : sequence of (int, weights)
        The weights, and the steps from which they hold.
    phases : tuple of Phase
    counts_rows : bool
        Whether steps have equally many rows, so that it is known at which row a step begins.
    stop : {"first", "all", "repeat"}
    splits : int
    origin : str, optional
    length : int
        Rows of each sequence of an epoch.

    Raises
    ------
    ValueError
        The sources have different columns, or too few rows, or weights that no epoch ends with.
    """

    is_shared = False

    def __init__(
        self,
        members: Sequence[Member],
        schedule: Schedule,
        rows_of_step: int,
        stop: Stop,
        splits: int,
        origin: str | None = None,
    ) -> None:
        self.members = members
        self.schedule = schedule
        self.stop = stop
        self.is_endless: bool = stop == "repeat"
        self.splits = splits
        self.origin = origin
        self._dictionaries: Dictionaries | None = None
        self._other: MixedSource | None = None
        self._schema: _core.Schema | None = None
        self._check_members()
        self._check_types()
        self.counts_rows: bool = rows_of_step > 0
        if self.counts_rows:
            self._use(plan_phases(schedule, lambda step: step * rows_of_step, [], 0))
        elif len(schedule) == 1:
            self._use([Phase(0, schedule[0][1])])
        else:  # a plan finds the rows of the steps
            self._use([Phase(0, schedule[0][1])], ENDLESS)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_other": None, "_schema": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._schema = self.make_empty(0).schema

    def _use(self, phases: Sequence[Phase], length: int | None = None) -> None:
        self.phases: tuple[Phase, ...] = tuple(phases)
        self.length: int = self._count_length() if length is None else length
        self.units: list[int] = [self.length * self.splits]

    def find_phases(
        self, saved: Sequence[Phase], steps: Sequence[tuple[int, int]], size: int
    ) -> list[Phase]:
        """Return the phases of an epoch, of which a part was read.

        Parameters
        ----------
        saved : sequence of Phase
            By which it was read.
        steps : sequence of (int, int)
            Numbers of steps that were read, and the rows of each.
        size : int
            Rows of the steps to come.
        """
        done = sum(count * rows for count, rows in steps) // self.splits

        def find_row(step: int) -> int:
            row = 0
            for count, rows in steps:
                taken = min(step, count)
                row += taken * rows
                step -= taken
            return (row + step * size) // self.splits

        return plan_phases(self.schedule, find_row, saved, done)

    def go_on(self, phases: Sequence[Phase]) -> MixedSource:
        """Return the mixture by other weights, which has no end."""
        made = copy(self)
        made.stop, made.is_endless = "repeat", True
        made._use(phases)
        return made

    def find_length(self, phases: Sequence[Phase]) -> int:
        """Return the rows of each sequence by other weights; many if these have no end."""
        made = copy(self)
        try:
            made._use(phases)
        except ValueError:  # a weight is 0 until there is another one
            return ENDLESS
        return made.length

    def with_turns_of(self, other: IndexedSource) -> MixedSource:
        mixture = cast("MixedSource", other)
        made = copy(self)
        made.stop, made.is_endless, made.units = mixture.stop, mixture.is_endless, mixture.units
        made.phases, made.length = mixture.phases, mixture.length
        return made

    def with_phases(self, phases: Sequence[Phase]) -> MixedSource:
        """Return the mixture of the same sources by other weights."""
        if tuple(phases) == self.phases and (self.counts_rows or len(self.schedule) == 1):
            return self
        if self._other is None or self._other.phases != tuple(phases):
            made = copy(self)
            made._use(phases)
            self._other = made  # asked for again at each step
        return self._other

    def map_members(self, change: Callable[[IndexedSource], IndexedSource]) -> MixedSource:
        """Return the mixture of what `change` makes of each source, of as many rows."""
        made = copy(self)
        made.members = [replace(own, source=change(own.source)) for own in self.members]
        made.origin = made._schema = made._dictionaries = made._other = None
        return made

    def with_members(self, members: Sequence[Member]) -> MixedSource:
        """Return the mixture of `members`, which have the same rows in as many columns or more."""
        made = copy(self)
        made.members, made._other, made._schema = members, None, None
        made._schema = made.make_empty(0).schema
        return made

    def list_members(self) -> list[tuple[str, IndexedSource]]:
        return [(member.name, member.source) for member in self.members]

    def _check_members(self) -> None:
        first = self.members[0]
        for member in self.members:
            rows = member.source.num_rows
            if rows < self.splits:
                raise ValueError(
                    f'"{member.name}" has {rows} rows, and Ranks.splits={self.splits} sequences '
                    "need a row each: give fewer splits, or leave it out"
                )
            if member.source.column_names != first.source.column_names:
                raise ValueError(
                    f'"{first.name}" has the columns {first.source.column_names}, and '
                    f'"{member.name}" {member.source.column_names}: a mixture has one list of '
                    "columns, choose them with columns="
                )
        if self.origin is not None and self.origin in (first.source.column_names or ()):
            raise ValueError(
                f'origin="{self.origin}": the sources have a column of this name, give another one'
            )

    def _check_types(self) -> None:
        import pyarrow as pa

        own = [self.make_empty(i).schema for i in range(len(self.members))]
        self._schema = own[0]
        first, *others = map(pa.schema, own)
        for member, schema in zip(self.members[1:], others, strict=True):
            for ours, theirs in zip(first, schema, strict=True):
                if ours.type != theirs.type:
                    raise ValueError(
                        f'"{member.name}" has "{ours.name}" of {theirs.type}, and '
                        f'"{self.members[0].name}" of {ours.type}: a mixture has one type for each '
                        "column: cast a table, read files by pyarrow.dataset.dataset(schema=)"
                    )

    def _count_length(self) -> int:
        """Count the rows of each sequence of an epoch."""
        if self.is_endless:
            return ENDLESS
        lengths = map(self._find_end, range(self.splits))
        return min(lengths) if self.stop == "first" else max(lengths)

    def _find_end(self, sequence: int) -> int:
        """Find the number of rows with which one sequence has ended."""
        turns = Turns(self.phases, sequence, self.splits)
        own = [self.count_rows(member, sequence) for member in range(len(self.members))]
        if self.stop == "all":
            lacks = [i for i, weight in enumerate(self.phases[-1].weights) if weight == 0]
            counts = turns.count(self.phases[-1].row)
            for i in lacks:
                if counts[i] < own[i]:
                    raise ValueError(
                        f'the weight of "{self.members[i].name}" is 0 in the end, so that its rows '
                        'are never all read: give stop="first" or "repeat", or leave it out'
                    )

        def has_ended(rows: int) -> bool:
            pairs = list(zip(turns.count(rows), own, strict=True))
            if self.stop == "first":  # the row after them would be one too many
                return any(count > rows for count, rows in pairs)
            return all(count >= rows for count, rows in pairs)

        high = 1
        while not has_ended(high):
            high *= 2
        low = high // 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if has_ended(middle) else (middle + 1, high)
        return low - 1 if self.stop == "first" else low

    def count_rows(self, member: int, sequence: int) -> int:
        """Count the rows of one sequence of a source."""
        rows = self.members[member].source.num_rows
        return (sequence + 1) * rows // self.splits - sequence * rows // self.splits

    def count_member_rows(self) -> int:
        """Count the rows of all sources."""
        return sum(member.source.num_rows for member in self.members)

    def cut_for_shuffle(self, rows: int) -> MixedSource:
        """Cut the sources that are no Loaders, which share the buffer."""
        made = copy(self)
        share = max(1, rows // len(self.members))
        made.members = [self._cut_member(own, share) for own in self.members]
        made._other = None
        return made

    def list_buffers(self, rows: int) -> list[tuple[str, IndexedSource, int]]:
        own = [member for member in self.members if not member.is_loader]
        return [(member.name, member.source, member.buffer_size or 0) for member in own]

    def _cut_member(self, member: Member, rows: int) -> Member:
        if member.is_loader:
            return member
        lanes = count_lanes(member.source.measure_held(), rows, LANES // len(self.members))
        source = member.source.cut_for_shuffle(rows)
        return replace(member, source=source, buffer_size=rows, lanes=lanes)

    def estimate_row_bytes(self) -> float:
        return max(member.source.estimate_row_bytes() for member in self.members)

    @property
    def column_names(self) -> list[str] | None:
        names = self.members[0].source.column_names
        return names if names is None or self.origin is None else [*names, self.origin]

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        """Return a stream without rows: those of a mixture are read by `MixedSequences`."""
        return _core.chain([self.make_empty(0)])

    def make_empty(self, member: int) -> _core.DeviceArray:
        """Return an array without rows, of the type of one source's rows."""
        stream = self.add_origin(self.members[member].source.read([]), member)
        if self._schema is not None:
            stream = _name_as(stream, self._schema)
        return _take_empty(stream)

    def adapt(self, stream: _core.DeviceStream, member: int) -> _core.DeviceStream:
        """Return rows of one source as those of the mixture: with `origin`, and its names."""
        stream = self.add_origin(self.check_dictionaries(stream), member)
        return stream if self._schema is None else _name_as(stream, self._schema)

    def add_origin(self, stream: _core.DeviceStream, member: int) -> _core.DeviceStream:
        """Add the column of `origin` to the rows of one source."""
        if self.origin is None:
            return stream
        name = self.origin

        def add(rows: _core.DeviceArray) -> _core.DeviceArray:
            numbers = memoryview(array("i", [member]) * len(rows))
            column = _core.to_arrow_device(numbers)
            if not _core.is_host_readable(rows.device):
                column = column.to(rows.device)
            names = rows.field_names
            return _core.make_struct([*names, name], [*map(rows.field, names), column])

        empty = _take_empty(self.members[member].source.read([]))
        return _core.from_arrow_stream(map(add, itertools.chain([empty], stream)))

    @property
    def files(self) -> SourceFiles:
        return MixedFiles([(member.name, member.source.files) for member in self.members])

    def describe(self) -> str:
        parts = []
        for member in self.members:
            is_own = member.is_loader and member.buffer_size is not None
            order = f" {member.buffer_size} {member.seed}" if is_own else ""
            parts.append(f"{member.name!r} {member.source.describe()}{order}")
        return f"mixture {self.stop} {parts}"

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        super().use_vocabulary(vocabulary)
        for member in self.members:
            own = member.source.vocabulary.tables
            member.source.use_vocabulary(Vocabulary({**own, **vocabulary.tables}))

    def unite_vocabularies(self) -> None:
        """Give the sources one vocabulary for each dictionary column, if theirs differ."""
        import pyarrow as pa

        tables = {}
        schema = pa.schema(self.read([]).schema)
        for column in list_dictionaries(schema, self.vocabulary.tables):
            own = [member.source.find_vocabulary(column) for member in self.members]
            known = [table for table in own if table is not None]
            if any(not table.equals(known[0]) for table in known[1:]):
                builder = TableBuilder()
                for table in known:
                    builder.add(table)
                tables[column] = builder.finish(_dictionary_of(known[0]))
        if tables:
            self.use_vocabulary(Vocabulary({**self.vocabulary.tables, **tables}))

    def check_dictionaries(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        """Return `stream`, whose dictionaries have to be those of the first source.

        Otherwise a code would have several meanings. Top-level columns have one vocabulary.
        """
        if not has_dictionaries(stream.schema):
            return stream
        if self._dictionaries is None:
            source = self.members[0].source
            first = UnitOrder(source, range(len(source.units)))
            self._dictionaries = Dictionaries()
            self._dictionaries.check(next(source.read_rows(0, 1, first).rebatch(1)))
        return check_dictionaries(stream, self._dictionaries)

    def find_vocabulary(self, column: str) -> pa.Array | None:
        return self.members[0].source.find_vocabulary(column)

    def describe_unread(self) -> str:
        found = ((member.name, member.source.describe_unread()) for member in self.members)
        return "; ".join(f"{name}: {text}" for name, text in found if text)

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


class _Named:
    """Asks a stream for the names of a schema: those of list items differ from writer to writer."""

    def __init__(self, stream: _core.DeviceStream, schema: _core.Schema) -> None:
        self._stream = stream
        self._schema = schema

    def __arrow_c_device_stream__(self, requested_schema: object = None, **kwargs: Any) -> Any:
        return self._stream.__arrow_c_device_stream__(self._schema.__arrow_c_schema__())


def _name_as(stream: _core.DeviceStream, schema: _core.Schema) -> _core.DeviceStream:
    import pyarrow as pa

    if str(pa.schema(stream.schema)) == str(pa.schema(schema)):
        return stream
    return _core.from_arrow_stream(_Named(stream, schema))


def _take_empty(stream: _core.DeviceStream) -> _core.DeviceArray:
    """Return an array without rows, of a stream without rows: on its device if it has an array."""
    found = next(stream, None)
    if found is not None:
        return found[:0]
    import pyarrow as pa

    return _core.from_arrow(make_empty(pa.schema(stream.schema)))


def _dictionary_of(values: pa.Array) -> pa.DictionaryType:
    import pyarrow as pa

    return pa.dictionary(pa.int32(), values.type)


def read_stop(stop: Any) -> Stop:
    """Return `stop`. Raises ValueError unless it is known."""
    if stop not in get_args(Stop):
        raise ValueError(f'stop={stop!r}: expected "first", "all" or "repeat"')
    return cast("Stop", stop)
