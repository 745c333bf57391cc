"""`TableScanner`: row groups of a table, with its names and types, without deleted rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from arrowdl.loader._tables.file_layout import FileLayout, TableLayout
from arrowdl.loader._tables.snapshots import naming_snapshot
from arrowdl.loader._tables.version import TableVersion

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


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
            defaults = frozenset(name for name, own in file.defaults.items() if own is not None)
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
                own = [fragment.path for fragment in some]
                yield from super().scan(some, own, query, note, sizes=sizes)
                continue
            for fragment in some:
                if note is not None:
                    note(fragment.path)
                options = {**sizes.plan_scan(), **self.options}
                del options["fragment_readahead"]
                for batch in self._scan_file(fragment, query, options):
                    yield from _select(batch, query)

    def _scan_file(
        self,
        fragment: ds.Fragment,
        query: Query,
        options: Mapping[str, Any],
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
