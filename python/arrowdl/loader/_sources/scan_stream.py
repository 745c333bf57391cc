"""`Scan`: streams of datasets that are not read by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._sources.file_stamps import FileStamps, check_footers
from arrowdl.loader._sources.int96 import Int96Check
from arrowdl.loader._sources.ipc import find_columns, is_ipc
from arrowdl.loader._sources.locate import Candidate
from arrowdl.loader._sources.scan_limits import DECODE_ROWS
from arrowdl.loader._sources.scans import Query, read_in_thread, scan, wait_for

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class Scan:
    """Opens streams of a dataset that is not made of files, or has scan options of its own.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    query : Query
    """

    def __init__(self, dataset: ds.Dataset, query: Query) -> None:
        self._dataset = dataset
        self._query = query
        self._stamps = FileStamps()
        self._int96 = Int96Check(is_given=True)
        wait_for(self._take_stamps)

    def __call__(self, epoch: int) -> _core.DeviceStream:
        fragments = self._list_fragments()
        paths = [fragment.path for fragment in fragments if hasattr(fragment, "path")]
        batches = self._stamps.guard(paths, self._scan(fragments, paths))
        return read_in_thread(batches, self._query.project(self._dataset))

    def _take_stamps(self) -> None:
        fragments = self._list_fragments()
        self._stamps.add_fragments(fragments)
        check_footers(fragments)

    def _list_fragments(self) -> list[ds.Fragment]:
        if not is_of_pyarrow(self._dataset):
            return []
        return list(self._dataset._get_fragments(None))  # works for datasets with scan options

    def _scan(
        self, fragments: Sequence[ds.Fragment], paths: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        query = self._query
        options: dict[str, Any] = {"batch_size": DECODE_ROWS}
        if any(map(is_ipc, fragments)):
            combined = self._dataset._scanner_options({"filter": query.filter})["filter"]
            return replace(query, filter=combined).scan_each(
                fragments, self._stamps.check, **options
            )
        scanner = self._dataset.scanner(columns=query.projection, filter=query.filter, **options)
        if not is_of_pyarrow(self._dataset):
            return iter(scanner.to_batches())  # Lance 14's scan_batches() cannot end
        combined = self._dataset._scanner_options({"filter": query.filter})["filter"]
        self._int96.check(fragments, find_columns(query.schema.names, query.roots, combined), {})
        found = [fragment for fragment in fragments if hasattr(fragment, "path")]
        candidates = list(map(Candidate, paths, found))
        return scan(scanner, paths, self._stamps.check, partial(query.find_damage, candidates))


def is_of_pyarrow(dataset: ds.Dataset) -> bool:
    """Return False for a subclass written in Python, such as Lance's: it holds no C++ dataset, and
    pyarrow's own methods on it, unless overridden, read a null pointer.
    """
    return type(dataset).__module__.startswith("pyarrow.")
