"""`UnitFinder`: the row groups, or files, of a dataset, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.footers import Footers
from arrowdl.loader._files.stamps import check_footers
from arrowdl.loader._parquet.fragments import count_filtered, find_group
from arrowdl.loader._parquet.local_units import LocalUnits, plan_local
from arrowdl.loader._parquet.planned import FragmentMaker, make_units, split_planned
from arrowdl.loader._parquet.pruning import drop_ranges, list_fragments
from arrowdl.loader._parquet.scans import dropping_unreadable, naming_files, open_file, wait_for
from arrowdl.loader._parquet.unit_scanner import UnitScanner
from arrowdl.loader._progress import OpeningLine
from arrowdl.loader._skipped import Skipped, can_skip, describe, opening
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    import pyarrow.dataset as ds

T = TypeVar("T")

# Each scan that counts rows holds decoded row groups.
_SCANS_AT_ONCE = 4


class Units(NamedTuple):
    """The units of a dataset: pyarrow's fragment of each, and its rows."""

    fragments: Sequence[Any]
    rows: list[int]


class UnitFinder:
    """Finds units, by the footers of the files or by a plan of them."""

    # Files and row groups that cannot be read are added to `skipped`. With None, their errors are
    # raised.
    def __init__(
        self,
        scanner: UnitScanner,
        skipped: list[Skipped] | None,
        footers: Footers,  # of files that pyarrow need not look at
    ) -> None:
        self._scanner = scanner
        self._skipped = skipped
        self._footers = footers
        self._maker = FragmentMaker(scanner.dataset, None)

    def find(self) -> Units:
        """Read the footers of all files.

        Raises OSError if a file has changed since the dataset read its footer.
        """
        dataset, filter = self._scanner.dataset, self._scanner.query.filter
        fragments = wait_for(lambda: list_fragments(dataset, filter))
        if self._footers.are_all and filter is None and not fragments:
            local_units = LocalUnits(self._footers, self._maker)
            return Units(local_units, local_units.rows)
        if self._scanner.stamps.add_fragments(fragments):
            wait_for(lambda: self._check_footers(fragments))
        files = self._open_files(fragments)
        units: list[Any] = [fragment for file in files for fragment in file]
        if filter is None and all(hasattr(unit, "row_groups") for unit in units):
            return Units(units, list(map(self._scanner.count_rows, units)))
        return Units(units, self._count_files(files))

    def follow(self, plan: FilePlan) -> Units:
        """Take the units from a plan, and open no file.

        Raises ValueError if the plan is of other files.
        """
        scanner, dataset = self._scanner, self._scanner.dataset
        fragments = map(drop_ranges, dataset._get_fragments(None))
        partitions = {fragment.path: fragment.partition_expression for fragment in fragments}
        units = make_units(plan, dataset, partitions, None)
        rows = [count for file in plan.files for count in file.counts]
        plan.check_fingerprint(scanner.describe_rows(units, rows, plan.filter))
        scanner.stamps.add_fragments(units)
        scanner.stamps.compare({file.path: file.stamp for file in plan.files})
        if plan.filter != scanner.describe_filter():
            units = make_units(plan, dataset, partitions, scanner.query.filter)
            rows = self._count_files([[unit] for unit in units])
        return Units(units, rows)

    def _count_files(self, files: Sequence[Sequence[ds.Fragment]]) -> list[int]:
        line = OpeningLine("counts the rows", len(files))
        counts = map_in_threads(self._count_file, files, _SCANS_AT_ONCE, line)
        return [rows for file in counts for rows in file]

    def _count_file(self, units: Sequence[ds.Fragment]) -> list[int]:
        scanner = self._scanner
        filter = scanner.query.filter
        paths = [unit.path for unit in units]
        with (
            opening(self._skipped, has_filter=filter is not None),
            naming_files(paths),
            dropping_unreadable(*units[:1]),
        ):
            if filter is None:
                return list(map(scanner.count_rows, units))
            # By scans: pyarrow counts by statistics, which is wrong for casts and NaN.
            query = replace(scanner.query, columns=[])
            read = scanner.prune(units)
            scans = scanner.scan_each([units[i] for i in read], query, _SCANS_AT_ONCE)
            counts = [0] * len(units)
            for i, batches in zip(read, scans, strict=True):
                count = partial(count_filtered, batches)
                counts[i] = self._try(count, units[i], 0, find_group(units[i]))
            return counts

    def _open_files(self, fragments: Sequence[ds.Fragment]) -> list[list[Any]]:
        """List the units of each file; pyarrow opens those whose footers have not been read."""
        footers = self._footers
        files: dict[int, list[Any]] = {}
        for i, fragment in enumerate(fragments):
            if (place := footers.places.get(fragment.path)) is not None:
                file, partition = plan_local(footers, place), fragment.partition_expression
                units = split_planned(file, partition, self._maker, footers.schemas[place])
                files[i] = units if file.rows else []
        rest = [i for i in range(len(fragments)) if i not in files]
        line = OpeningLine("reads the footers", len(rest))
        opened = map_in_threads(self._open_file, [fragments[i] for i in rest], FILES_AT_ONCE, line)
        files.update(zip(rest, opened, strict=True))
        return [files[i] for i in range(len(fragments))]

    def _open_file(self, fragment: ds.Fragment) -> list[ds.Fragment]:
        with opening(self._skipped):
            return self._try(open_file, fragment, [])

    def _check_footers(self, fragments: Iterable[ds.Fragment]) -> None:
        for fragment in fragments:
            self._try(lambda fragment: check_footers([fragment]), fragment, None)

    def _try(
        self,
        function: Callable[[ds.Fragment], T],
        fragment: ds.Fragment,
        default: T,
        group: int | None = None,
    ) -> T:
        """Return what `function` returns, or `default` if it fails and the rows may be left out."""
        try:
            return function(fragment)
        except Exception as error:
            if self._skipped is None or not can_skip(error):
                raise
            self._skipped.append(Skipped(fragment.path, (), describe(error), group))
        return default
