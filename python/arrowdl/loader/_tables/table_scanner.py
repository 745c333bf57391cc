"""`TableScanner`: row groups of a table, with its names and types, without deleted rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.locate import Candidate
from arrowdl.loader._files.stamps import FileStamps
from arrowdl.loader._parquet.counted import check_groups, list_counts
from arrowdl.loader._parquet.network import Arrival
from arrowdl.loader._parquet.scans import NotePath, Query, scan
from arrowdl.loader._parquet.unit_scanner import UnitScanner
from arrowdl.loader._parquet.unit_sizes import UnitSizes
from arrowdl.loader._schema.fields import select_fields
from arrowdl.loader._schema.filters import apply_filter
from arrowdl.loader._tables.fields import TableField, get_field_id, set_field_ids
from arrowdl.loader._tables.snapshots import naming_snapshot
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
            planned = replace(column, default=True) if column.name in defaults else column
            if planned.is_as_in(stored):
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
                return replace(field, default=values[column])
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


class TableScanner(UnitScanner):
    """Reads the data files of a version of a table.

    Files that store the columns as the table has them are read like those of a dataset. From other
    files, columns are converted and deleted rows left out batch by batch.
    """

    def __init__(self, version: TableVersion, dataset: ds.FileSystemDataset, query: Query) -> None:
        super().__init__(dataset, query, _Stamps(version.name))
        self.version = version
        self._files = {file.path: file for file in version.files}
        self._fields = {field.name: field for field in version.fields}
        self._plans: dict[str, FileLayout] = {}
        self._layouts: dict[Any, TableLayout] = {}

    def plan(self, fragment: ds.Fragment) -> FileLayout:
        """Return how a file is read, after its footer was read."""
        plan = self._plans.get(fragment.path)
        if plan is None:
            file = self._files[fragment.path]
            schema = fragment.physical_schema if file.schema is None else file.schema
            constants = frozenset(file.constants)
            defaults = frozenset(
                name for name, default in file.defaults.items() if default is not None
            )
            key = schema.serialize().to_pybytes(), constants, defaults
            if key not in self._layouts:
                self._layouts[key] = TableLayout.make(self.version, schema, constants, defaults)
            plan = FileLayout(self._fields, self._layouts[key], schema, file)
            self._plans[fragment.path] = plan
        return plan

    def is_plain(self, unit: ds.Fragment) -> bool:
        """Whether a scan by the names of the table returns the right rows of a unit."""
        return self.plan(unit).is_plain

    def list_lacking(self, fragments: Sequence[ds.Fragment], column: str) -> list[str] | None:
        """List the files that lack a column; None if all files store the columns as the table."""
        if all(map(self.is_plain, fragments)):
            return None
        root = column if column in self.query.schema.names else column.partition(".")[0]
        return [unit.path for unit in fragments if self.plan(unit).lacks(root)]

    def describe_rows(
        self, fragments: Sequence[ds.Fragment], rows: Sequence[int], filter: str | None
    ) -> str:
        names = [fragment.path.rpartition("/")[2] for fragment in fragments]
        return f"{self.version.identity} {names} {rows} {filter}"

    def _list_stored(self, fragments: Sequence[ds.Fragment], columns: set[str]) -> set[str] | None:
        if all(map(self.is_plain, fragments)):
            return None
        return {name for unit in fragments for name in self.plan(unit).name(columns)}

    def count_rows(self, unit: ds.Fragment) -> int:
        return super().count_rows(unit) - self.plan(unit).count_deleted(unit)

    def list_prefixes(self, query: Query) -> Callable[[Any], Sequence[str] | None]:
        of_plain = super().list_prefixes(query)
        names = set(self.list_needed(query))

        def find(unit: Any) -> Sequence[str] | None:
            plan = self.plan(unit)
            return of_plain(unit) if plan.is_plain else plan.name(names)

        return find

    def prune(self, units: Sequence[ds.Fragment]) -> Sequence[int]:
        if all(map(self.is_plain, units)):
            return super().prune(units)
        return range(len(units))  # its columns may have other names, and other types

    def scan_unit(self, unit: ds.Fragment, query: Query) -> Iterator[pa.RecordBatch]:
        if self.is_plain(unit):
            return super().scan_unit(unit, query)
        batches = self._scan_file(unit, query, {} if self.fetching is None else self.options)
        if not query.column_names:  # counted: a table without columns has no rows
            return batches
        return chain.from_iterable(_select(batch, query) for batch in batches)

    def scan(
        self,
        fragments: Sequence[ds.Fragment],
        paths: Sequence[str],
        query: Query,
        note: NotePath | None = None,
        *,
        sizes: UnitSizes,
        arrival: Arrival | None = None,
    ) -> Iterator[pa.RecordBatch]:
        batches = self._scan_groups(fragments, query, note, sizes)
        with naming_snapshot(self.version.name):
            yield from batches if arrival is None else arrival.use(batches)

    def _scan_groups(
        self,
        fragments: Sequence[ds.Fragment],
        query: Query,
        note: NotePath | None,
        sizes: UnitSizes,
    ) -> Iterator[pa.RecordBatch]:
        for is_plain, group in groupby(fragments, self.is_plain):
            some = list(group)
            if is_plain:
                paths = [fragment.path for fragment in some]
                yield from super().scan(some, paths, query, note, sizes=sizes)
                continue
            for fragment in some:
                if note is not None:
                    note(fragment.path)
                options = {**sizes.plan_scan(), **self.options}
                del options["fragment_readahead"]
                for batch in self._scan_file(fragment, query, options):
                    yield from _select(batch, query)

    def _scan_file(
        self, fragment: ds.Fragment, query: Query, options: Mapping[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one fragment, with all columns that `query` and its filter need."""
        import pyarrow as pa

        plan = self.plan(fragment)
        names = self.list_needed(query)
        stored = plan.name(set(names))
        scanner = fragment.scanner(plan.schema, columns=stored, **options)
        candidates = [Candidate(fragment.path, fragment)]
        find = partial(Query(plan.schema, stored, None).find_damage, candidates)
        row = plan.find_start(fragment)
        self.check_times([fragment], stored, find)
        batches = scan(scanner, [fragment.path], self.stamps.check, find)
        chosen, counts = {"columns": stored, **options}, list_counts([fragment])
        # Before rows are left out by their numbers.
        for batch in check_groups(batches, [fragment], counts, plan.schema, chosen):
            arrays = plan.convert(batch, row, names)
            row += batch.num_rows
            yield from apply_filter(pa.table(arrays), query.filter).to_batches()


class _Stamps(FileStamps):
    """Stamps whose errors name the version of the table."""

    def __init__(self, snapshot: str) -> None:
        super().__init__()
        self._snapshot = snapshot

    def check(self, paths: Iterable[str] | None = None, *, may_be_gone: bool = False) -> None:
        with naming_snapshot(self._snapshot):
            super().check(paths, may_be_gone=may_be_gone)


def _select(batch: pa.RecordBatch, query: Query) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    yield from select_fields(pa.table(batch), query.column_names).to_batches()
