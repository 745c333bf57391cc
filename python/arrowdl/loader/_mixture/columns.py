"""`MixedColumns`: one list of columns for the rows of all sources of a mixture."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._mixture.order import Member
from arrowdl.loader._schema.dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._schema.unify import advise_unit, find_unit, join_types
from arrowdl.loader._schema.vocabulary import (
    TableBuilder,
    Vocabulary,
    list_dictionaries,
    make_empty,
)
from arrowdl.loader._skipped import OptionError
from arrowdl.loader._sources.base import UnitOrder

if TYPE_CHECKING:
    import pyarrow as pa


class MixedColumns:
    """The columns of a mixture: the names and codes of its first source, and `origin`."""

    # `origin` names a column of int32 with the index of each row's source. With `is_named`, rows of
    # the other sources get the names of the first: names of list items differ between writers.
    def __init__(
        self,
        members: Sequence[Member],
        origin: str | None = None,
        dtype: Any = None,  # has the unit of times whose units differ
        *,
        is_named: bool = True,
    ) -> None:
        self._sources = [member.source for member in members]
        self._origin = origin
        self._dtype = dtype
        self._is_named = is_named
        # types of columns whose units differ
        self._times = _check_columns(members, origin, dtype) if is_named else {}
        self._dictionaries: Dictionaries | None = None
        self._schema: _core.Schema | None = None
        self._schema = self._find_schema()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_schema": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._schema = self._find_schema()

    def _find_schema(self) -> _core.Schema | None:
        if not self._is_named:
            return None
        empty = self.make_empty(0)
        if self._times:
            import pyarrow as pa

            fields = [f.with_type(self._times.get(f.name, f.type)) for f in pa.schema(empty.schema)]
            empty = _core.from_arrow(make_empty(pa.schema(fields)))
        return empty.schema

    def with_sources(self, members: Sequence[Member]) -> MixedColumns:
        """Return the same columns, of members with the same rows in other units."""
        columns = copy(self)
        columns._sources = [member.source for member in members]
        return columns

    def with_more(self, members: Sequence[Member]) -> MixedColumns:
        """Return the columns of members that have more of them."""
        return MixedColumns(members, self._origin, self._dtype)

    @property
    def names(self) -> list[str] | None:
        """The columns, in order; None if unknown."""
        names = self._sources[0].column_names
        return names if names is None or self._origin is None else [*names, self._origin]

    def make_empty(self, member: int) -> _core.DeviceArray:
        """Return an array without rows, of the type of one source's rows."""
        stream = self._add_origin(self._sources[member].read([]), member)
        if self._schema is not None:
            stream = _name_as(stream, self._schema)
        return _take_empty(stream)

    def adapt(self, stream: _core.DeviceStream, member: int) -> _core.DeviceStream:
        """Return rows of one source as those of the mixture: with `origin`, and its names."""
        stream = self._add_origin(self._check_dictionaries(stream), member)
        if self._schema is None:
            return stream
        if self._times:
            return _core.from_arrow_stream(self._convert(stream, member))
        return _name_as(stream, self._schema)

    def _convert(self, stream: _core.DeviceStream, member: int) -> Iterator[_core.DeviceArray]:
        """Yield rows of one source whose times have the units of the mixture."""
        assert self._schema is not None
        yield self.make_empty(member)
        for rows in stream:
            try:
                converted = _core.from_arrow(_Named(rows, self._schema))
            except ValueError as error:
                raise OptionError(
                    f"source {member} of the mixture has times that the unit of dtype= does not "
                    f"hold ({error}): choose another for {[*self._times]}, or round the times first"
                ) from error
            yield converted

    def _add_origin(self, stream: _core.DeviceStream, member: int) -> _core.DeviceStream:
        """Add the column of `origin` to the rows of one source."""
        if self._origin is None:
            return stream
        name = self._origin

        def add(rows: _core.DeviceArray) -> _core.DeviceArray:
            numbers = memoryview(array("i", [member]) * len(rows))
            column = _core.to_arrow_device(numbers)
            if not _core.is_host_readable(rows.device):
                column = column.to(rows.device)
            names = rows.field_names
            return _core.make_struct([*names, name], [*map(rows.field, names), column])

        empty = _take_empty(self._sources[member].read([]))
        return _core.from_arrow_stream(map(add, itertools.chain([empty], stream)))

    def _check_dictionaries(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        """Return `stream`, and check that it has the dictionaries of the first source."""
        # Otherwise a code would have several meanings. Top-level columns have one vocabulary.
        if not has_dictionaries(stream.schema):
            return stream
        if self._dictionaries is None:
            source = self._sources[0]
            first = UnitOrder(source, range(len(source.units)))
            self._dictionaries = Dictionaries()
            self._dictionaries.check(next(source.read_rows(0, 1, first).rebatch(1)))
        return check_dictionaries(stream, self._dictionaries)

    def find_united(
        self, vocabulary: Vocabulary
    ) -> Vocabulary | None:  # `vocabulary` is the user's
        """Return one vocabulary for all sources, or None if theirs are alike."""
        import pyarrow as pa

        tables = {}
        schema = pa.schema(self.make_empty(0).schema)
        for column in list_dictionaries(schema, vocabulary.tables):
            results = [source.find_vocabulary(column) for source in self._sources]
            dictionaries = [table for table in results if table is not None]
            if any(not table.equals(dictionaries[0]) for table in dictionaries[1:]):
                builder = TableBuilder()
                for table in dictionaries:
                    builder.add(table)
                tables[column] = builder.finish(pa.dictionary(pa.int32(), dictionaries[0].type))
        return Vocabulary({**vocabulary.tables, **tables}) if tables else None


def _check_columns(
    members: Sequence[Member], origin: str | None, dtype: Any
) -> dict[str, pa.DataType]:
    """Return the types of times whose units differ; ValueError if columns differ in more."""
    import pyarrow as pa

    first, *others = members
    names = first.source.column_names
    for member in others:
        if member.source.column_names != names:
            raise ValueError(
                f'"{first.name}" has the columns {names}, and "{member.name}" '
                f"{member.source.column_names}: the sources of a mixture must have the same "
                "columns, choose them with columns="
            )
    if origin is not None and origin in (names or ()):
        raise ValueError(
            f'origin="{origin}": the sources have a column of this name, give another name'
        )
    empties = [_take_empty(member.source.read([])) for member in members]
    columns, *schemas = (pa.schema(empty.schema) for empty in empties)
    are_on_host = all(_core.is_host_readable(empty.device) for empty in empties)
    times: dict[str, pa.DataType] = {}
    for member, schema in zip(others, schemas, strict=True):
        for ours, theirs in zip(columns, schema, strict=True):
            if ours.type == theirs.type:
                continue
            unit = find_unit(dtype, ours.name)
            joined = join_types(times.get(ours.name, ours.type), theirs.type, unit)
            if unit is None or joined is None or not are_on_host:
                raise ValueError(
                    f'"{member.name}" has "{ours.name}" of {theirs.type}, and '
                    f'"{first.name}" of {ours.type}: a mixture has one type for each column:'
                    f"{advise_unit(ours.name, ours.type, theirs.type)} cast a table, read files by "
                    "pyarrow.dataset.dataset(schema=)"
                )
            times[ours.name] = joined
    return times


class _Named:
    """Asks for rows with the names of a schema: those of list items differ between writers."""

    def __init__(self, rows: Any, schema: _core.Schema) -> None:
        self._rows = rows  # an array or a stream
        self._schema = schema

    def __arrow_c_device_array__(self, requested_schema: object = None, **kwargs: Any) -> Any:
        return self._rows.__arrow_c_device_array__(self._schema.__arrow_c_schema__())

    def __arrow_c_device_stream__(self, requested_schema: object = None, **kwargs: Any) -> Any:
        return self._rows.__arrow_c_device_stream__(self._schema.__arrow_c_schema__())


def _name_as(stream: _core.DeviceStream, schema: _core.Schema) -> _core.DeviceStream:
    import pyarrow as pa

    if str(pa.schema(stream.schema)) == str(pa.schema(schema)):
        return stream
    return _core.from_arrow_stream(_Named(stream, schema))


def _take_empty(stream: _core.DeviceStream) -> _core.DeviceArray:
    """Return an array without rows, of a stream without rows: on its device if it has an array."""
    array = next(stream, None)
    if array is not None:
        return array[:0]
    import pyarrow as pa

    return _core.from_arrow(make_empty(pa.schema(stream.schema)))
