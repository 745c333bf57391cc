"""`DatasetFiles`: the files of a dataset of row groups, or of whole files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._files.locate import find_nulls
from arrowdl.loader._files.stamps import FileStamps
from arrowdl.loader._parquet.fragments import count_rows, count_rows_before, find_group
from arrowdl.loader._parquet.network import find_footers, find_revisions
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._storage.readers import Stamp

if TYPE_CHECKING:
    import pyarrow.dataset as ds


class DatasetFiles(SourceFiles):
    """The files of the units of a dataset."""

    def __init__(
        self,
        dataset: ds.FileSystemDataset,
        fragments: Sequence[ds.Fragment],  # of each unit
        units: Sequence[int],  # rows of each
        stamps: FileStamps,
        *,
        is_filtered: bool,  # whether units have fewer rows than their row groups
        plan: Callable[[], FilePlan],  # returns what was found out about the files
    ) -> None:
        super().__init__("")
        self._filesystem = dataset.filesystem
        self._fragments = fragments
        self._units = units
        self._stamps = stamps
        self._is_filtered = is_filtered
        self._plan = plan

    @property
    def snapshot(self) -> str:
        return find_revisions(self._filesystem, self._fragments)

    @property
    def footers(self) -> Any:
        return find_footers(self._filesystem)

    def count(self) -> int:
        return len({fragment.path for fragment in self._fragments})

    def count_unfiltered(self) -> int | None:
        if not all(hasattr(unit, "row_groups") for unit in self._fragments):
            return None
        return sum(map(count_rows, self._fragments))

    def list_stamps(self) -> list[Stamp]:
        paths = dict.fromkeys(fragment.path for fragment in self._fragments)
        return [self._stamps.find(path) for path in paths]

    def find_nulls(self, column: str) -> str:
        return find_nulls(self._fragments, column)

    def locate_row(self, row: int) -> tuple[str, int]:
        starts = self._starts
        unit = bisect_right(starts, row) - 1
        fragment = self._fragments[unit]
        if not self._is_filtered and (group := self.find_group(unit)) is not None:
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
        return self._plan()
