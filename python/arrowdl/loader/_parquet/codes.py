"""`Codes`: what the codes of dictionary columns mean, for all row groups of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from arrowdl import _core
from arrowdl.loader._parquet.fragments import join_fragments
from arrowdl.loader._parquet.scans import wait_for
from arrowdl.loader._schema.dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._schema.vocabulary import TableBuilder, Vocabulary, list_dictionaries
from arrowdl.loader._skipped import can_skip, describe_units

if TYPE_CHECKING:
    import pyarrow as pa


class CodedUnits(Protocol):
    """The row groups whose dictionaries are read."""

    units: list[int]

    def list_fragments(self) -> Sequence[Any]:
        """Return pyarrow's fragment of each unit."""

    def project(self) -> pa.Schema:
        """Return the schema of the rows that are read."""

    def scan_columns(self, columns: list[str], fragments: Sequence[Any]) -> Iterator[Any]:
        """Return batches of whole columns, without the filter."""

    def scan_unit(self, unit: int) -> _core.DeviceStream:
        """Return the rows of a unit, with codes of its own."""


@dataclass
class Codes:
    """The dictionaries of a dataset, which each call is given: a copy of it may read others."""

    vocabulary: Vocabulary  # of the user
    skips: bool  # whether units that cannot be read are left out
    _tables: Vocabulary | None = None
    _first: Dictionaries | None = None  # of columns without a table, in the first rows
    _unread: list[int] = field(default_factory=list)

    def with_tables(self, vocabulary: Vocabulary) -> Codes:
        """Return the codes by other tables, which may be made of dictionaries that were read."""
        return Codes(vocabulary, self.skips, _unread=self._unread)

    def find(self, units: CodedUnits) -> Vocabulary:
        """Return the code tables of all columns. Those that the user did not give are read."""
        if self._tables is None:
            schema = units.project()
            columns = list_dictionaries(schema, self.vocabulary.tables)
            read = wait_for(lambda: self._read(units, columns, schema)) if columns else {}
            self._tables = Vocabulary({**self.vocabulary.tables, **read})
        return self._tables

    def find_values(self, units: CodedUnits, column: str) -> pa.Array | None:
        """Return the values of a dictionary column, in the order of the codes; None for others."""
        table = self.find(units).tables.get(column)
        if table is None and column in list_dictionaries(units.project(), ()):
            return self._find_first(units).find(column)
        return table

    def describe_unread(self, units: CodedUnits) -> str:
        """Name the units whose dictionaries could not be read; empty if there are none."""
        if not self.skips:
            return ""
        self.find(units)
        return describe_units([self._unread], [units.units])

    def check(self, units: CodedUnits, stream: _core.DeviceStream) -> _core.DeviceStream:
        """Return a stream whose dictionaries without a table have to be those of the first rows."""
        tables = self.find(units).tables
        if all(
            field.dictionary is not None and field.name in tables
            for field in stream.schema.children
            if has_dictionaries(field)  # within structs or lists, too
        ):
            return stream
        return check_dictionaries(stream, self._find_first(units))

    def _read(
        self, units: CodedUnits, columns: list[str], schema: pa.Schema
    ) -> dict[str, pa.Array]:
        """Read the dictionaries of `columns` in all files, in their order."""
        fragments = units.list_fragments()
        try:
            return self._read_groups(units, columns, schema, [join_fragments(fragments)])
        except Exception as error:
            if not self.skips or not can_skip(error):
                raise
        return self._read_groups(units, columns, schema, [[unit] for unit in fragments])

    def _read_groups(
        self,
        units: CodedUnits,
        columns: list[str],
        schema: pa.Schema,
        groups: Sequence[Sequence[Any]],
    ) -> dict[str, pa.Array]:
        """Read the dictionaries of each of `groups`; of several, those that can be read."""
        self._unread = []
        builders = {name: TableBuilder() for name in columns}
        for number, fragments in enumerate(groups):
            try:
                self._add(units, builders, fragments)
            except Exception as error:
                if len(groups) == 1 or not can_skip(error):
                    raise
                self._unread.append(number)
        return {name: builder.finish(schema.field(name).type) for name, builder in builders.items()}

    def _add(
        self, units: CodedUnits, builders: dict[str, TableBuilder], fragments: Sequence[Any]
    ) -> None:
        import pyarrow as pa

        for batch in units.scan_columns(list(builders), fragments):
            for name in list(builders) if batch.num_rows else ():
                try:
                    builders[name].add(batch.column(name).dictionary)
                except pa.ArrowNotImplementedError:  # of structs, for example: compared instead
                    del builders[name]

    def _find_first(self, units: CodedUnits) -> Dictionaries:
        """Return the dictionaries of the first rows, for every rank and epoch."""
        if self._first is None:
            self._first = Dictionaries()
            for unit in (unit for unit, rows in enumerate(units.units) if rows > 0):
                try:
                    self._first.check(next(units.scan_unit(unit)))
                except Exception as error:
                    if not self.skips or not can_skip(error):
                        raise
                else:
                    break
        return self._first
