"""Chooses the source that reads what a `Loader` was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from arrowdl import _core
from arrowdl._libraries import find_advice, is_of, name_class
from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.find_local import check_named, expand_paths, list_paths
from arrowdl.loader._files.find_remote import expand_urls, open_filesystem
from arrowdl.loader._libraries.huggingface import SelectedSource, name_revision
from arrowdl.loader._libraries.lance import open_lance
from arrowdl.loader._libraries.objects import (
    find_batch,
    find_device_arrays,
    find_opener,
    find_table,
)
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._open.file_objects import find_paths, list_file_objects, read_tables
from arrowdl.loader._open.paths import open_paths, open_planned
from arrowdl.loader._parquet.open_dataset import open_dataset, reads_units
from arrowdl.loader._parquet.planned import describe_dataset
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.forked import find_home
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._sources.table import DeviceSource, TableSource
from arrowdl.loader._storage.access import Access
from arrowdl.loader._tables.delta import open_delta
from arrowdl.loader._tables.iceberg import open_iceberg


def open_source(
    source: Any,
    columns: Sequence[str] | None,
    filter: Any,
    memory_map: bool = True,
    vocabulary: Mapping[str, Any] | None = None,
    left_out: list[Skipped] | None = None,
    access: Access | None = None,
    plan: FilePlan | None = None,
) -> Source:
    """Open what a `Loader` was given.

    Parameters
    ----------
    source : object
        As in `Loader`.
    columns : sequence of str, optional
        Columns to read, in this order.
    filter : pyarrow.dataset.Expression, optional
        Rows to read, of files and datasets.
    memory_map : bool
        Whether local IPC files are mapped.
    vocabulary : mapping of str to sequence, optional
        Values of columns that are read as codes.
    left_out : list of Skipped, optional
        Files that cannot be opened are added, and left out. None: their errors are raised.
    access : Access, optional
        How paths are reached.
    plan : FilePlan, optional
        Of the files: they are neither listed nor opened.

    Raises
    ------
    TypeError
        `source` cannot be read, or `columns` is no list of names.
    ValueError
        `source` takes no filter, or does not have a column.
    FileNotFoundError
        No file matches.
    """
    if plan is not None:
        check_has_plan(source)
    if isinstance(source, MixedSource):
        return source
    names = None if columns is None else _read_names(columns)
    tables = Vocabulary.of_user(vocabulary)
    found: Source | None
    reached = access or Access()
    found = _open_files(source, names, filter, memory_map, left_out, reached, plan)
    if found is None and filter is not None:
        raise ValueError(
            "filter= works on files, pyarrow datasets and tables of Delta Lake, Iceberg and Lance, "
            f"not on {type(source).__name__}: filter the rows in the source itself"
        )
    if found is None:
        found = _open_unfiltered(source, names)
    if found is None:
        raise TypeError(f"a Loader cannot read {name_class(source)}: {_advise(source)}")
    found.use_vocabulary(tables)
    return found


def check_has_plan(source: Any) -> None:
    """Raise ValueError if there can be no plan of what a user gave."""
    if list_paths(source) is not None or _is_delta(source) or _is_iceberg(source):
        return
    if is_of(source, "pyarrow._dataset", "Dataset"):
        if not reads_units(source):
            raise ValueError(
                "Storage.plan works on datasets of files, not on one of several datasets, of "
                "fragments in memory or with scan options"
            )
        describe_dataset(source)
        return
    if is_of(source, "lance", "LanceDataset"):
        raise ValueError(
            "Storage.plan has nothing to share of a Lance dataset, whose manifest has its files "
            "and their rows: open it on each rank at the same version"
        )
    raise ValueError(
        "Storage.plan works on paths and URLs, tables of Delta Lake and Iceberg, and pyarrow "
        f"datasets of files, not on {type(source).__name__}"
    )


def _is_delta(source: Any) -> bool:
    return is_of(source, "deltalake", "DeltaTable")


def _is_iceberg(source: Any) -> bool:
    return is_of(source, "pyiceberg.table", "Table", "DataScan")


def collect(source: StreamSource) -> TableSource:
    """Return the rows of a stream, with its vocabulary, as a table."""
    import pyarrow as pa

    table = TableSource(pa.table(source.open(0)), None)
    table.vocabulary = source.vocabulary  # its columns are encoded
    return table


def _advise(source: Any) -> str:
    """Say what to give instead of an object that a Loader cannot read."""
    return find_advice(source, of_loader=True) or (
        "give paths, a pyarrow dataset, a table or frame, a file object, an object with "
        "__arrow_c_stream__, an iterator of record batches, or a function that makes one of the "
        "last three; tensors by arrowdl.to_arrow_device()"
    )


def _read_names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, (str, Set, Mapping)) or not isinstance(columns, Iterable):
        rename = "; transform= can rename the tensors" if isinstance(columns, Mapping) else ""
        raise TypeError(
            f"columns={columns!r}: give a list of names, in the order of the batch's columns"
            + rename
        )
    names = list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns={names!r}: {name!r} is no str")
        if names.count(name) > 1:
            raise ValueError(f'columns={names!r}: "{name}" is listed twice')
    return names


def _open_files(
    source: Any,
    columns: list[str] | None,
    filter: Any,
    memory_map: bool,
    left_out: list[Skipped] | None,
    access: Access,
    plan: FilePlan | None,
) -> Source | None:
    if (files := list_file_objects(source)) is not None:
        source = find_paths(files)
        if source is None:
            return TableSource(read_tables(files, columns, filter), columns)
    if (paths := list_paths(source)) is not None:
        if plan is not None:
            return _open_planned(paths, columns, filter, memory_map, left_out, access, plan)
        is_remote = access.is_remote(paths)
        roots = expand_urls(paths, access) if is_remote else expand_paths(source)
        return open_paths(roots or [], columns, filter, memory_map, left_out)
    if access.is_given:
        raise ValueError(
            f"Storage.filesystem and Storage.options work on paths and URLs, not on "
            f"{type(source).__name__}"
        )
    if _is_delta(source):
        return open_delta(source, columns, filter, left_out, access, plan)
    if _is_iceberg(source):
        return open_iceberg(source, columns, filter, left_out, access, plan)
    if is_of(source, "lance", "LanceDataset"):
        return open_lance(source, columns, filter)
    if is_of(source, "pyarrow._dataset", "Dataset"):
        return open_dataset(source, columns, filter, memory_map, None, left_out, plan, access)
    return None


def _open_planned(
    paths: list[str],
    columns: list[str] | None,
    filter: Any,
    memory_map: bool,
    left_out: list[Skipped] | None,
    access: Access,
    plan: FilePlan,
) -> Source:
    """Open the files of a plan, in the stores that `paths` name."""
    plan.check_source("", "paths or URLs")
    plan.check(columns, filter)
    known = {file.path: file.stamp for file in plan.files}
    filesystem = None
    if access.is_remote(paths):
        filesystem = open_filesystem(paths, access, known, plan.revisions)
    else:
        check_named(known, paths)
    return open_planned(plan, filesystem, columns, filter, memory_map, left_out)


def _open_unfiltered(source: Any, columns: list[str] | None) -> Source | None:
    if (arrays := find_device_arrays(source)) is not None:
        return DeviceSource(arrays, columns)
    if (table := find_table(source, columns)) is not None:
        is_downloaded = is_of(source, "datasets", "Dataset")
        return TableSource(table, columns, name_revision(source) if is_downloaded else "")
    if is_of(source, "datasets", "Dataset"):
        return SelectedSource(source, columns)
    if (opener := find_opener(source, columns)) is not None:
        is_in_memory = isinstance(source, (list, tuple))
        home = None if is_in_memory else find_home(source)
        return StreamSource(opener, not opener.is_for_one_pass, columns, is_in_memory, home)
    if hasattr(source, "__dataframe__"):  # of several protocols, the last choice
        table = find_batch(_core.from_arrow(source))
        return None if table is None else TableSource(table, columns)
    return None
