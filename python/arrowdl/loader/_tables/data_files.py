"""`DataFilesSource`: the Parquet files of one version of a Delta or Iceberg table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, groupby
from operator import and_
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.locate import Candidate, describe_missing
from arrowdl.loader._files.stamps import FileStamps
from arrowdl.loader._parquet.counted import check_groups, list_counts
from arrowdl.loader._parquet.dataset import DatasetSource
from arrowdl.loader._parquet.dataset_files import DatasetFiles
from arrowdl.loader._parquet.fragments import find_shares, measure
from arrowdl.loader._parquet.int96 import make_parquet_format
from arrowdl.loader._parquet.network import Arrival, open_over_network
from arrowdl.loader._parquet.scan_limits import ScanLimits
from arrowdl.loader._parquet.scans import NotePath, Query, scan
from arrowdl.loader._schema.fields import select_fields
from arrowdl.loader._schema.filters import apply_filter
from arrowdl.loader._sources.forked import find_home_of_files
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables.fields import (
    TableField,
    get_field_id,
    set_field_ids,
    with_default,
)
from arrowdl.loader._tables.snapshots import naming_snapshot
from arrowdl.loader._tables.version import DataFile, TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class DataFilesSource(DatasetSource):
    """Row groups of the files of a table, with the names and types of the table.

    Files that store the columns as the table has them are read like those of a dataset. Of others,
    columns are converted and deleted rows left out batch by batch.

    Parameters
    ----------
    version : TableVersion
    request : Request
        With a plan of this version, or without one.
    """

    def __init__(self, version: TableVersion, request: Request) -> None:
        import pyarrow.dataset as ds

        plan, storage = request.plan, request.storage
        if plan is not None:
            plan.check(request.columns, request.filter)
        self._version = version
        self._files = {file.path: file for file in version.files}
        self._fields = {field.name: field for field in version.fields}
        self._plans: dict[str, _FilePlan] = {}
        self._layouts: dict[Any, _Layout] = {}
        schema, format = version.make_schema(), make_parquet_format()
        fragments = [
            format.make_fragment(file.path, version.filesystem, _make_expression(file, schema))
            for file in version.files
        ]
        dataset = ds.FileSystemDataset(fragments, schema, format, version.filesystem)
        query = Query(schema, request.columns, request.filter)
        with naming_snapshot(version.name):
            dataset = open_over_network(dataset, storage, version.secrets, plan)
            super().__init__(dataset, query, _Stamps(version.name), request)
        self.home = find_home_of_files(version.filesystem)

    def _use(self, query: Query) -> None:
        super()._use(query)
        if any(not self._plan(unit).is_plain for unit in self._fragments):
            chosen = set(query.roots or query.schema.names)
            names = {name for unit in self._fragments for name in self._plan(unit).name(chosen)}
            self._bytes = measure(self._fragments, find_shares(self._fragments), names)
            self._row_bytes = self._measure_row()

    def _plan(self, fragment: ds.Fragment) -> _FilePlan:
        """Return how a file is read, after its footer was read."""
        plan = self._plans.get(fragment.path)
        if plan is None:
            file = self._files[fragment.path]
            schema = fragment.physical_schema if file.schema is None else file.schema
            constants = frozenset(file.constants)
            defaults = frozenset(name for name, own in file.defaults.items() if own is not None)
            key = schema.serialize().to_pybytes(), constants, defaults
            if key not in self._layouts:
                self._layouts[key] = _Layout.make(self._version, schema, constants, defaults)
            plan = _FilePlan(self._fields, self._layouts[key], schema, file)
            self._plans[fragment.path] = plan
        return plan

    def _read_footers(self) -> None:
        super()._read_footers()
        if self._query.filter is None:
            self.units = [
                rows - self._plan(unit).count_deleted(unit)
                for unit, rows in zip(self._fragments, self.units, strict=True)
            ]

    @property
    def files(self) -> TableFiles:
        return TableFiles(self._version.name, self._list_lacking, **self._describe_files())

    def _list_lacking(self, column: str) -> list[str] | None:
        """List the files that lack a column; None if all files store the columns as the table."""
        if all(self._plan(unit).is_plain for unit in self._fragments):
            return None
        root = column if column in self._query.schema.names else column.partition(".")[0]
        return [unit.path for unit in self._fragments if self._plan(unit).lacks(root)]

    def _make_plan(self) -> FilePlan:
        plan = super()._make_plan()
        units = {unit.path: unit for unit in self._fragments}
        files = [
            replace(self._files[file.path], schema=self._plan(units[file.path]).schema)
            for file in plan.files
        ]
        return replace(plan, partitions=(), table=self._version.make_plan(files))

    def _list_prefixes(self, query: Query) -> Callable[[Any], Sequence[str] | None]:
        of_plain = super()._list_prefixes(query)
        names = set(self._list_needed(query))

        def find(unit: Any) -> Sequence[str] | None:
            plan = self._plan(unit)
            return of_plain(unit) if plan.is_plain else plan.name(names)

        return find

    def _prune(self, units: Sequence[ds.Fragment]) -> Sequence[int]:
        if all(self._plan(unit).is_plain for unit in units):
            return super()._prune(units)
        return range(len(units))  # its columns may have other names, and other types

    def _scan_unit(self, unit: ds.Fragment, query: Query) -> Iterator[pa.RecordBatch]:
        if self._plan(unit).is_plain:
            return super()._scan_unit(unit, query)
        batches = self._scan_file(unit, query, {} if self._fetching is None else self._options)
        if not query.column_names:  # counted: a table without columns has no rows
            return batches
        return chain.from_iterable(_select(batch, query) for batch in batches)

    def _scan_fragments(
        self,
        fragments: Sequence[ds.Fragment],
        paths: Sequence[str],
        query: Query,
        note: NotePath | None = None,
        *,
        limits: ScanLimits,
        arrival: Arrival | None = None,
    ) -> Iterator[pa.RecordBatch]:
        batches = self._scan_groups(fragments, query, note, limits)
        with naming_snapshot(self._version.name):
            yield from batches if arrival is None else arrival.use(batches)

    def _scan_groups(
        self,
        fragments: Sequence[ds.Fragment],
        query: Query,
        note: NotePath | None,
        limits: ScanLimits,
    ) -> Iterator[pa.RecordBatch]:
        for is_plain, group in groupby(fragments, lambda own: self._plan(own).is_plain):
            some = list(group)
            if is_plain:
                own = [fragment.path for fragment in some]
                yield from super()._scan_fragments(some, own, query, note, limits=limits)
                continue
            for fragment in some:
                if note is not None:
                    note(fragment.path)
                options = self._make_options(limits)
                del options["fragment_readahead"]
                for batch in self._scan_file(fragment, query, options):
                    yield from _select(batch, query)

    def _scan_file(
        self,
        fragment: ds.Fragment,
        query: Query,
        options: Mapping[str, Any],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one fragment with the whole columns that `query` and its filter need.

        Parameters
        ----------
        fragment : pyarrow.dataset.Fragment
        query : Query
        options : mapping
            Of the scanner.
        """
        import pyarrow as pa

        plan = self._plan(fragment)
        names = self._list_needed(query)
        stored = plan.name(set(names))
        scanner = fragment.scanner(plan.schema, columns=stored, **options)
        candidates = [Candidate(fragment.path, fragment)]
        find = partial(Query(plan.schema, stored, None).find_damage, candidates)
        row = plan.find_start(fragment)
        self._check_times([fragment], stored, find)
        batches = scan(scanner, [fragment.path], self._stamps.check, find)
        chosen, counts = {"columns": stored, **options}, list_counts([fragment])
        # Before rows are left out by their numbers.
        for batch in check_groups(batches, [fragment], counts, plan.schema, chosen):
            made = plan.convert(batch, row, names)
            row += batch.num_rows
            yield from apply_filter(pa.table(made), query.filter).to_batches()

    def _describe_rows(self, filter: str | None) -> str:
        names = [fragment.path.rpartition("/")[2] for fragment in self._fragments]
        return f"{self._version.identity} {names} {self.units} {filter}"


class TableFiles(DatasetFiles):
    """The data files of a version of a table.

    Parameters
    ----------
    snapshot : str
    list_lacking : callable
        Lists the files that lack a column; returns None if they store columns as the table does.
    **dataset
        As of `DatasetFiles`.
    """

    def __init__(
        self, snapshot: str, list_lacking: Callable[[str], list[str] | None], **dataset: Any
    ) -> None:
        super().__init__(**dataset)
        self._snapshot = snapshot
        self._list_lacking = list_lacking

    @property
    def snapshot(self) -> str:
        return self._snapshot

    def find_nulls(self, column: str) -> str:
        lacking = self._list_lacking(column)
        return super().find_nulls(column) if lacking is None else describe_missing(lacking)


class _Stamps(FileStamps):
    """Stamps whose errors name the version of the table."""

    def __init__(self, snapshot: str) -> None:
        super().__init__()
        self._snapshot = snapshot

    def check(self, paths: Iterable[str] | None = None, *, may_be_gone: bool = False) -> None:
        with naming_snapshot(self._snapshot):
            super().check(paths, may_be_gone=may_be_gone)


@dataclass(frozen=True)
class _Layout:
    """Where the columns of a table are in files of one schema.

    Attributes
    ----------
    stored : dict of str to pyarrow.Field
        The columns of the files, with field ids, by the names in the table. Those that the files
        lack, and constants, are left out.
    unchanged : set of str
        Columns that need no conversion.
    is_plain : bool
        Whether a scan by the names of the table returns the right values.
    """

    stored: Mapping[str, pa.Field]
    unchanged: set[str]
    is_plain: bool

    @classmethod
    def make(
        cls, version: TableVersion, schema: pa.Schema, constants: Set[str], defaults: Set[str]
    ) -> _Layout:
        """Find the columns in `schema`, for files with values of `constants` and `defaults`."""
        stored = list(schema)
        if version.field_ids is not None and all(get_field_id(own) is None for own in stored):
            stored = set_field_ids(stored, version.field_ids)
        found, same, unchanged = {}, set(), set()
        for own in version.fields:
            field = None if own.name in constants else own.find_in(stored)
            if field is not None:
                found[own.name] = field
            if (with_default(own, True) if own.name in defaults else own).is_as_in(stored):
                same.add(own.name)
                if field is not None and field.type == own.type:
                    unchanged.add(own.name)
        # A constant is read from its partition expression, if the file has no such column.
        constant = constants - set(schema.names)
        return cls(found, unchanged, {own.name for own in version.fields} <= same | constant)


@dataclass(frozen=True)
class _FilePlan:
    """How the columns of a table are read from one file.

    Attributes
    ----------
    fields : dict of str to TableField
    layout : _Layout
    schema : pyarrow.Schema
        Of the file.
    file : DataFile
    """

    fields: Mapping[str, TableField]
    layout: _Layout
    schema: pa.Schema
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
        own = self.fields[column]
        for values in (self.file.constants, self.file.defaults):
            if column in values:
                return with_default(own, values[column])
        return own

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
            kept = bytearray(b"\1") * rows
            for row in deleted:
                kept[row - start] = 0
            mask = pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(kept)])
            mask, rows = mask.cast(pa.bool_()), rows - len(deleted)
        arrays, fields = [], []
        for name in columns:
            own, stored = self._find_field(name), self.layout.stored.get(name)
            column = None if stored is None else batch.column(stored.name)
            if column is not None and mask is not None:
                column = column.filter(mask)
            is_unchanged = column is not None and name in self.layout.unchanged
            arrays.append(column if is_unchanged else own.read(column, stored, rows))
            fields.append((name, own.type))
        if not arrays:  # a batch without columns has no rows
            arrays, fields = [pa.nulls(rows)], [("", pa.null())]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _make_expression(file: DataFile, schema: pa.Schema) -> Any:
    """Return the partition expression of a file, by which a filter leaves files out."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    terms = []
    for name, value in file.constants.items():
        scalar = pa.scalar(value, schema.field(name).type)
        terms.append(ds.field(name) == scalar if scalar.is_valid else ds.field(name).is_null())
    return reduce(and_, terms) if terms else None


def _select(batch: pa.RecordBatch, query: Query) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    yield from select_fields(pa.table(batch), query.column_names).to_batches()
