"""`DataFilesSource`: the Parquet files of one version of a Delta or Iceberg table."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.locate import describe_missing
from arrowdl.loader._parquet.dataset import DatasetSource
from arrowdl.loader._parquet.dataset_files import DatasetFiles
from arrowdl.loader._parquet.int96 import make_parquet_format
from arrowdl.loader._parquet.network import open_over_network
from arrowdl.loader._parquet.scans import Query
from arrowdl.loader._sources.forked import find_home_of_files
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables.snapshots import naming_snapshot
from arrowdl.loader._tables.table_scanner import TableScanner
from arrowdl.loader._tables.version import DataFile, TableVersion

if TYPE_CHECKING:
    import pyarrow as pa


class DataFilesSource(DatasetSource):
    """Row groups of the files of a table, with the names and types of the table."""

    scanner: TableScanner

    def __init__(self, version: TableVersion, request: Request) -> None:
        import pyarrow.dataset as ds

        plan = request.plan
        if plan is not None:
            plan.check(request.columns, request.filter)
        schema, format = version.make_schema(), make_parquet_format()
        fragments = [
            format.make_fragment(file.path, version.filesystem, _make_expression(file, schema))
            for file in version.files
        ]
        dataset = ds.FileSystemDataset(fragments, schema, format, version.filesystem)
        query = Query(schema, request.columns, request.filter)
        with naming_snapshot(version.name):
            dataset = open_over_network(dataset, request.storage, version.secrets, plan)
            super().__init__(TableScanner(version, dataset, query), request)
        self.home = find_home_of_files(version.filesystem)

    @property
    def files(self) -> TableFiles:
        return TableFiles(self.scanner, self._units_of_files)


class TableFiles(DatasetFiles):
    """The data files of a version of a table."""

    _scanner: TableScanner

    @property
    def snapshot(self) -> str:
        return self._scanner.version.name

    def find_nulls(self, column: str) -> str:
        lacking = self._scanner.list_lacking(self._fragments, column)
        return super().find_nulls(column) if lacking is None else describe_missing(lacking)

    def make_plan(self) -> FilePlan:
        plan, version = super().make_plan(), self._scanner.version
        units = {unit.path: unit for unit in self._fragments}
        by_path = {file.path: file for file in version.files}
        files = [
            replace(by_path[file.path], schema=self._scanner.plan(units[file.path]).schema)
            for file in plan.files
        ]
        return replace(plan, partitions=(), table=version.make_plan(files))


def _make_expression(file: DataFile, schema: pa.Schema) -> Any:
    """Return the partition expression of a file, by which a filter leaves files out."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    terms = []
    for name, value in file.constants.items():
        scalar = pa.scalar(value, schema.field(name).type)
        terms.append(ds.field(name) == scalar if scalar.is_valid else ds.field(name).is_null())
    return reduce(and_, terms) if terms else None
