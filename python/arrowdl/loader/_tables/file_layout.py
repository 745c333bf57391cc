"""`TableLayout`, `FileLayout`: where the columns of a table are in its files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arrowdl.loader._tables.fields import (
    TableField,
    get_field_id,
    set_field_ids,
    with_default,
)
from arrowdl.loader._tables.version import DataFile, TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


@dataclass(frozen=True)
class TableLayout:
    """Where the columns of a table are in files of one schema."""

    # The columns of the files, with field ids, by the names in the table; without columns that the
    # files lack, and without constants.
    stored: Mapping[str, pa.Field]
    unchanged: set[str]  # columns that need no conversion
    is_plain: bool  # whether a scan by the names of the table returns the right values

    @classmethod
    def make(
        cls, version: TableVersion, schema: pa.Schema, constants: Set[str], defaults: Set[str]
    ) -> TableLayout:
        """Find the columns in `schema`, for files with values of `constants` and `defaults`."""
        stored = list(schema)
        if version.field_ids is not None and all(get_field_id(field) is None for field in stored):
            stored = set_field_ids(stored, version.field_ids)
        stored_fields, same, unchanged = {}, set(), set()
        for column in version.fields:
            field = None if column.name in constants else column.find_in(stored)
            if field is not None:
                stored_fields[column.name] = field
            if (with_default(column, True) if column.name in defaults else column).is_as_in(stored):
                same.add(column.name)
                if field is not None and field.type == column.type:
                    unchanged.add(column.name)
        # A constant is read from its partition expression, if the file has no such column.
        constant = constants - set(schema.names)
        return cls(
            stored_fields, unchanged, {column.name for column in version.fields} <= same | constant
        )


@dataclass(frozen=True)
class FileLayout:
    """How the columns of a table are read from one file."""

    fields: Mapping[str, TableField]
    layout: TableLayout
    schema: pa.Schema  # of the file
    file: DataFile

    @property
    def is_plain(self) -> bool:
        """Whether a scan by the names of the table returns the right rows."""
        return self.file.deleted is None and self.layout.is_plain

    def name(self, columns: set[str]) -> list[str]:
        """List the columns of the file that have the values of `columns`."""
        return [field.name for name, field in self.layout.stored.items() if name in columns]

    def lacks(self, column: str) -> bool:
        """Whether the rows of this file are null in a column because the file lacks it."""
        return column not in self.layout.stored and self._find_field(column).default is None

    def _find_field(self, column: str) -> TableField:
        """Return a column with the value that it has in this file, if the file lacks it."""
        field = self.fields[column]
        for values in (self.file.constants, self.file.defaults):
            if column in values:
                return with_default(field, values[column])
        return field

    def find_start(self, fragment: ds.Fragment) -> int:
        """Return the number of the first row of some row groups of the file."""
        first = fragment.row_groups[0].id if fragment.row_groups else 0
        metadata = fragment.metadata
        return sum(metadata.row_group(i).num_rows for i in range(first))

    def count_deleted(self, fragment: ds.Fragment) -> int:
        """Count the deleted rows of some row groups of the file, which follow each other."""
        if self.file.deleted is None:
            return 0
        start = self.find_start(fragment)
        return len(self._find_deleted(start, sum(g.num_rows for g in fragment.row_groups)))

    def _find_deleted(self, start: int, rows: int) -> memoryview:
        deleted = self.file.deleted
        if deleted is None:
            return memoryview(b"").cast("q")
        values = memoryview(deleted.buffers()[1]).cast("q")[deleted.offset :][: len(deleted)]
        return values[bisect_left(values, start) : bisect_left(values, start + rows)]

    def convert(self, batch: pa.RecordBatch, start: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return `columns` of the table for rows of the file from `start` on, without deleted ones.

        The batch has the columns that `name` lists.
        """
        import pyarrow as pa

        rows, deleted = batch.num_rows, self._find_deleted(start, batch.num_rows)
        mask = None
        if len(deleted):
            mask_bytes = bytearray(b"\1") * rows
            for row in deleted:
                mask_bytes[row - start] = 0
            mask = pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(mask_bytes)])
            mask, rows = mask.cast(pa.bool_()), rows - len(deleted)
        arrays, fields = [], []
        for name in columns:
            field, stored = self._find_field(name), self.layout.stored.get(name)
            column = None if stored is None else batch.column(stored.name)
            if column is not None and mask is not None:
                column = column.filter(mask)
            is_unchanged = column is not None and name in self.layout.unchanged
            arrays.append(column if is_unchanged else field.read(column, stored, rows))
            fields.append((name, field.type))
        if not arrays:  # a batch without columns has no rows
            arrays, fields = [pa.nulls(rows)], [("", pa.null())]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
