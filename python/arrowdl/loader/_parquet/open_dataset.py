"""Opens a pyarrow dataset: its files by row groups, or a dataset without files as a stream."""

from __future__ import annotations

from typing import Any

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.stamps import FileStamps
from arrowdl.loader._parquet.dataset import DatasetSource
from arrowdl.loader._parquet.network import open_over_network
from arrowdl.loader._parquet.planned import describe_dataset
from arrowdl.loader._parquet.scan_stream import Scan, is_of_pyarrow
from arrowdl.loader._parquet.scans import Query
from arrowdl.loader._schema.fields import choose_columns, find_paths
from arrowdl.loader._schema.filters import check_filter
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.forked import find_home, find_home_of_files
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._storage.access import Access


def reads_units(dataset: Any) -> bool:
    """Whether a pyarrow dataset has files that are read in any order; others are streams."""
    has_files = hasattr(dataset, "filesystem") and is_of_pyarrow(dataset)
    return has_files and not dataset._scan_options


def open_dataset(
    dataset: Any,
    columns: list[str] | None,
    filter: Any,
    memory_map: bool,
    stamps: FileStamps | None = None,  # of files whose footers have been read
    # files and row groups that cannot be read now are added, and left out. None: their errors are
    # raised
    left_out: list[Skipped] | None = None,
    plan: FilePlan | None = None,  # of the files
    # how the files of a dataset that a user gave are read over a network
    access: Access | None = None,
) -> Source:
    """Open a pyarrow dataset.

    Raises TypeError if `filter` is not an expression. Raises ValueError if the dataset lacks a
    column, or the plan is of something else.
    """
    check_filter(filter)
    if columns is not None:
        find_paths(columns, dataset.schema)
    query = Query(dataset.schema, choose_columns(columns, dataset.schema), filter, memory_map)
    home = find_home(dataset) or find_home_of_files(getattr(dataset, "filesystem", None))
    if reads_units(dataset):
        is_given = access is not None
        if plan is not None and is_given:
            own = describe_dataset(dataset)
            plan.check_source(own.identity, own.name)
            plan.check(columns, filter)
        dataset = open_over_network(dataset, access or Access(), plan=plan)
        known = stamps or FileStamps()
        made = DatasetSource(dataset, query, known, left_out, plan, is_given=is_given)
        made.home = home
        return made
    return StreamSource(Scan(dataset, query), True, query.column_names, home=home)
