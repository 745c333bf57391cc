"""Opens a pyarrow dataset: its files by row groups, or one without files as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.footers import Footers, read_footers
from arrowdl.loader._files.stamps import FileStamps, has_footer, is_local
from arrowdl.loader._parquet.dataset import DatasetSource
from arrowdl.loader._parquet.network import open_over_network
from arrowdl.loader._parquet.planned import describe_dataset
from arrowdl.loader._parquet.scan_stream import Scan, is_of_pyarrow
from arrowdl.loader._parquet.scans import Query
from arrowdl.loader._parquet.unit_scanner import UnitScanner
from arrowdl.loader._schema.fields import choose_columns, find_paths
from arrowdl.loader._schema.filters import check_filter
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.forked import find_home, find_home_of_files
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.stream import StreamSource

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def reads_units(dataset: Any) -> bool:
    """Whether a pyarrow dataset has files that are read in any order; others are streams."""
    has_files = hasattr(dataset, "filesystem") and is_of_pyarrow(dataset)
    return has_files and not dataset._scan_options


def check_dataset_plan(dataset: Any) -> None:
    """Raise ValueError if there can be no plan of a dataset that a user gave."""
    if not reads_units(dataset):
        raise ValueError(
            "Storage.plan works on datasets of files, not on one of several datasets, of fragments "
            "in memory or with scan options"
        )
    describe_dataset(dataset)


def open_dataset(dataset: Any, request: Request) -> Source:
    """Open a pyarrow dataset that a user gave.

    Raises TypeError if the filter is not an expression, and ValueError if a column is missing or
    the plan is of another source.
    """
    query = _make_query(dataset, request)
    home = find_home(dataset) or find_home_of_files(getattr(dataset, "filesystem", None))
    if not reads_units(dataset):
        return StreamSource(Scan(dataset, query), True, query.column_names, home=home)
    if request.plan is not None:
        described = describe_dataset(dataset)
        request.plan.check_source(described.identity, described.name)
        request.plan.check(request.columns, request.filter)
    opened = open_over_network(dataset, request.storage, plan=request.plan)
    stamps = FileStamps()
    footers = _read_unread(opened)
    stamps.add_footers(footers)
    source = DatasetSource(UnitScanner(opened, query, stamps, is_given=True), request, footers)
    source.home = home
    return source


def _read_unread(dataset: ds.FileSystemDataset) -> Footers:
    """Read the footers of local Parquet files whose footers pyarrow has not read."""
    import pyarrow.dataset as ds

    if not (isinstance(dataset.format, ds.ParquetFileFormat) and is_local(dataset.filesystem)):
        return Footers()
    fragments = list(dataset._get_fragments(None))
    unread = [fragment.path for fragment in fragments if not has_footer(fragment)]
    return read_footers(unread) if len(set(unread)) == len(fragments) else Footers()


def open_files(
    dataset: ds.FileSystemDataset,
    request: Request,
    stamps: FileStamps,  # of the files whose footers have been read
    footers: Footers | None = None,  # of those that the core has read
) -> Source:
    """Open a dataset of files that the Loader has listed."""
    query = _make_query(dataset, request)
    opened = open_over_network(dataset, request.storage, plan=request.plan)
    source = DatasetSource(UnitScanner(opened, query, stamps), request, footers)
    source.home = find_home_of_files(dataset.filesystem)
    return source


def _make_query(dataset: ds.Dataset, request: Request) -> Query:
    columns, schema = request.columns, dataset.schema
    check_filter(request.filter)
    if columns is not None:
        find_paths(columns, schema)
    return Query(schema, choose_columns(columns, schema), request.filter, request.memory_map)
