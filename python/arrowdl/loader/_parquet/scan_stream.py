"""`Scan`: streams of datasets that are not read by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._files.locate import Candidate, split_row_groups
from arrowdl.loader._files.stamps import FileStamps, check_footers, check_fragment
from arrowdl.loader._ipc.in_memory import is_ipc
from arrowdl.loader._parquet.counted import check_rows
from arrowdl.loader._parquet.fragments import join_fragments
from arrowdl.loader._parquet.int96 import Int96Check
from arrowdl.loader._parquet.pruning import list_fragments, prune
from arrowdl.loader._parquet.scan_limits import DECODE_ROWS
from arrowdl.loader._parquet.scans import Query, naming_files, read_in_thread, scan, wait_for
from arrowdl.loader._schema.filters import find_columns, keep_rows
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class Scan:
    """Opens streams of a dataset that is not made of files, or has scan options of its own."""

    def __init__(self, dataset: ds.Dataset, query: Query) -> None:
        self._dataset = dataset
        self._query = query
        if is_of_pyarrow(dataset):  # it may have a filter itself
            combined = dataset._scanner_options({"filter": query.filter}).get("filter")
            self._query = replace(query, filter=combined)
            self._query.check_filter()
        self._stamps = FileStamps()
        self._int96 = Int96Check(is_given=True)
        wait_for(self._take_stamps)

    def __call__(self, epoch: int) -> _core.DeviceStream:
        fragments = self._list_fragments()
        paths = [fragment.path for fragment in fragments if hasattr(fragment, "path")]
        batches = self._stamps.guard(paths, self._scan(fragments, paths))
        return read_in_thread(batches, self._project())

    def _take_stamps(self) -> None:
        fragments = self._list_fragments()
        self._stamps.add_fragments(fragments)
        check_footers(fragments)
        for fragment in fragments:
            check_fragment(fragment)

    def _list_fragments(self) -> list[ds.Fragment]:
        if not is_of_pyarrow(self._dataset):
            return []
        return list(self._dataset._get_fragments(None))  # works for datasets with scan options

    def _scan(
        self, fragments: Sequence[ds.Fragment], paths: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        query = self._query
        options: dict[str, Any] = {"batch_size": DECODE_ROWS}
        if not is_of_pyarrow(self._dataset):
            return self._scan_foreign(options)
        if any(map(is_ipc, fragments)):
            wanted = list_fragments(self._dataset, query.filter)
            return query.scan_each(wanted, self._stamps.check, **options)
        if query.filter is not None:
            return self._scan_filtered(options)
        self._check_times(fragments)
        scanner = self._dataset.scanner(columns=query.projection, **options)
        with_paths = [fragment for fragment in fragments if hasattr(fragment, "path")]
        candidates = list(map(Candidate, paths, with_paths))
        find = partial(query.find_damage, candidates)
        batches = scan(scanner, paths, self._stamps.check, find)
        options["columns"] = query.projection
        return check_rows(batches, fragments, query.schema, options)

    def _scan_filtered(self, options: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Scan the row groups of which the filter may keep rows, some files at a time."""
        dataset, query = self._dataset, self._query
        wanted = list_fragments(dataset, query.filter)
        for start in range(0, len(wanted), FILES_AT_ONCE):
            some = wanted[start : start + FILES_AT_ONCE]
            parts = [
                part for group in map_in_threads(self._prune, some, FILES_AT_ONCE) for part in group
            ]
            self._check_times(parts)
            if type(dataset).__name__ == "FileSystemDataset":
                yield from query.scan_files(dataset, parts, self._stamps.check, **options)
            else:  # of several formats
                yield from query.scan_each(parts, self._stamps.check, **options)

    def _check_times(self, fragments: Sequence[ds.Fragment]) -> None:
        query = self._query
        needed = find_columns(query.schema.names, query.roots, query.filter)
        self._int96.check(fragments, needed, {})

    def _prune(self, fragment: ds.Fragment) -> list[ds.Fragment]:
        """Return the row groups of a fragment that the filter may keep rows of."""
        query, path = self._query, getattr(fragment, "path", "")
        find = partial(query.find_damage, [Candidate(path, fragment)])
        with naming_files([path] if path else [], find):
            units = split_row_groups(fragment)
            chosen = prune(units, query.filter, query.read_schema)
        return join_fragments([units[i] for i in chosen])

    def _scan_foreign(self, options: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Scan a dataset that is written in Python, whose own filter need not be Arrow's."""
        query = self._query
        filter = None if isinstance(query.filter, str) else query.filter
        # Lance 14's scan_batches() cannot end.
        batches = self._make_foreign(options).to_batches()
        return keep_rows(batches, filter, query.columns)

    def _make_foreign(self, options: Mapping[str, Any]) -> Any:
        """Return a scanner of whole columns, which evaluates SQL alone."""
        query = self._query
        chosen: dict[str, Any] = dict(options)
        if query.columns is not None:
            filter = None if isinstance(query.filter, str) else query.filter
            needed = find_columns(query.schema.names, query.roots, filter)
            chosen["columns"] = [name for name in query.schema.names if name in needed]
        if isinstance(query.filter, str):
            saved_filter = (getattr(self._dataset, "_default_scan_options", None) or {}).get(
                "filter"
            )
            chosen["filter"] = (
                query.filter if saved_filter is None else f"({saved_filter}) AND ({query.filter})"
            )
        return self._dataset.scanner(**chosen)

    def _project(self) -> pa.Schema:
        """Return the schema of the batches; a scanner's own options may add columns."""
        query = self._query
        if is_of_pyarrow(self._dataset):
            return query.project(self._dataset)
        if query.columns is None:
            return self._make_foreign({}).projected_schema
        return query.project_names()


def is_of_pyarrow(dataset: ds.Dataset) -> bool:
    """Return False for a subclass written in Python, such as Lance's: it holds no C++ dataset, and
    pyarrow's own methods on it, unless overridden, read a null pointer.
    """
    return type(dataset).__module__.startswith("pyarrow.")
