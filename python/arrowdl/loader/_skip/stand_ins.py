"""`StandIns`: rows in the place of those that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from arrowdl import _core
from arrowdl.loader._skip.number_column import PIECE_ROWS
from arrowdl.loader._sources.base import IndexedSource

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Faults:
    """What is known of a source before its rows are read."""

    # units that are not read, since the lengths of their rows are unknown
    lost: Mapping[int, Exception] = field(default_factory=dict)
    # takes a field and a unit. Returns what stands in for the rows of a unit that cannot be read,
    # or None for nulls
    make_column: Callable[[pa.Field, int], pa.Array | None] | None = None


class StandIns:
    """Rows for the units of a source that cannot be read, dropped before anybody reads them."""

    def __init__(
        self, source: IndexedSource, make_column: Callable[[pa.Field, int], pa.Array | None] | None
    ) -> None:
        self._source = source
        self._make_column = make_column
        self._missing: _core.DeviceArray | None = None

    def make(self, unit: int) -> Iterator[_core.DeviceArray]:
        """Yield as many rows as the unit has."""
        left = self._source.units[unit]
        if self._make_column is not None:
            yield self._make_missing(left, unit)
            return
        if self._missing is None:
            self._missing = self._make_missing(min(PIECE_ROWS, max(self._source.units)), unit)
        rows = len(self._missing)
        for start in range(0, left, rows):
            yield self._missing[: min(rows, left - start)]

    def _make_missing(self, rows: int, unit: int) -> _core.DeviceArray:
        import pyarrow as pa

        schema, make = find_schema(self._source), self._make_column
        columns = []
        for column in schema:
            filler = None if make is None else make(column, unit)
            columns.append(self._make_nulls(column, rows) if filler is None else filler)
        return _core.from_arrow(pa.RecordBatch.from_arrays(columns, schema=schema))

    def _make_nulls(self, field: pa.Field, rows: int) -> pa.Array:
        import pyarrow as pa

        if not pa.types.is_dictionary(field.type):
            return pa.nulls(rows, field.type)
        values = self._source.find_vocabulary(field.name)
        if values is None:
            return pa.nulls(rows, field.type)
        return pa.DictionaryArray.from_arrays(pa.nulls(rows, field.type.index_type), values)


def find_schema(source: IndexedSource) -> pa.Schema:
    """Return the schema of the rows of a source."""
    import pyarrow as pa

    with closing(source.read([])) as stream:
        return pa.schema(stream.schema)
