"""`DatasetFiles`: the files of a dataset of row groups, or of whole files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any

from arrowdl.loader._files.file_plan import FilePlan, digest
from arrowdl.loader._files.locate import find_nulls
from arrowdl.loader._parquet.find_units import Units
from arrowdl.loader._parquet.fragments import (
    count_rows,
    count_rows_before,
    find_group,
    find_row_bytes,
    find_shares,
    has_ipc,
    list_paths,
)
from arrowdl.loader._parquet.network import find_footers, find_revisions, list_revisions
from arrowdl.loader._parquet.planned import describe_dataset, list_files, list_partitions
from arrowdl.loader._parquet.unit_scanner import UnitScanner
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._storage.readers import Stamp


class DatasetFiles(SourceFiles):
    """The files of the units of a dataset."""

    def __init__(self, scanner: UnitScanner, units: Units) -> None:
        super().__init__("")
        self._scanner = scanner
        self._fragments, self._units = units

    @property
    def snapshot(self) -> str:
        return find_revisions(self._scanner.dataset.filesystem, self._fragments)

    @property
    def footers(self) -> Any:
        return find_footers(self._scanner.dataset.filesystem)

    def count(self) -> int:
        return len(set(list_paths(self._fragments)))

    def count_unfiltered(self) -> int | None:
        if not all(hasattr(unit, "row_groups") for unit in self._fragments):
            return None
        return sum(map(count_rows, self._fragments))

    def list_stamps(self) -> list[Stamp]:
        paths = dict.fromkeys(list_paths(self._fragments))
        if self.footers is not None:
            self.footers.add_etags(paths)
        return [self._scanner.stamps.find(path) for path in paths]

    def list_rows(self) -> Iterator[tuple[str, int]]:
        return zip(list_paths(self._fragments), self._units, strict=True)

    def find_nulls(self, column: str) -> str:
        return find_nulls(self._fragments, column)

    def locate_row(self, row: int) -> tuple[str, int]:
        starts = self._starts
        unit = bisect_right(starts, row) - 1
        fragment = self._fragments[unit]
        if self._scanner.query.filter is None and (group := self.find_group(unit)) is not None:
            return fragment.path, row - starts[unit] + count_rows_before(fragment, group)
        while unit and self._fragments[unit - 1].path == fragment.path:
            unit -= 1
        return fragment.path, row - starts[unit]

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(self._units, initial=0))

    def find_group(self, unit: int) -> int | None:
        return find_group(self._fragments[unit])

    def make_plan(self) -> FilePlan:
        self.list_stamps()  # asks for what the plan has
        scanner, fragments = self._scanner, self._fragments
        dataset, roots, filter = scanner.dataset, scanner.query.roots, scanner.describe_filter()
        return FilePlan(
            digest(scanner.describe_rows(fragments, self._units, filter).encode()),
            "ipc" if has_ipc(fragments) else "parquet",
            dataset.schema,
            list_files(fragments, self._units, scanner.stamps.find),
            list_partitions(fragments),
            None if roots is None else tuple(roots),
            filter,
            find_shares(fragments),
            find_row_bytes(fragments),
            describe_dataset(dataset) if scanner.is_given else None,
            list_revisions(dataset.filesystem),
        )
