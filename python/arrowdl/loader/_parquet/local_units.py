"""`LocalUnits`: row groups whose footers the core has read, as fragments made when one is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

from arrowdl.loader._files.file_plan import PlannedFile
from arrowdl.loader._files.footers import Footers
from arrowdl.loader._parquet.planned import FragmentMaker, PlannedGroup, PlannedGroups
from arrowdl.loader._storage.readers import Stamp

_ANY = Stamp(None)  # `FileStamps` compares the files
_MOST_FILES = 256


def plan_local(footers: Footers, place: int) -> PlannedFile:
    """Return the file at a place in `footers`, which was read."""
    groups = slice(*footers.starts[place : place + 2])
    rows, nbytes = tuple(footers.rows[groups]), tuple(footers.nbytes[groups])
    return PlannedFile(footers.paths[place], _ANY, rows, nbytes, tuple(range(len(rows))), rows)


class LocalUnits(Sequence[Any]):
    """The row groups of files without columns of directories, each a `PlannedGroups`.

    The lists say of all of them what each would say.
    """

    def __init__(self, footers: Footers, maker: FragmentMaker) -> None:
        import pyarrow.dataset as ds

        self._footers = footers
        self._maker = maker
        self._partition = ds.scalar(True)
        self._files: dict[int, PlannedFile] = {}  # some, which may have thousands of row groups
        repeated = chain.from_iterable(map(repeat, footers.paths, footers.groups))
        self.paths = footers.paths if set(footers.groups) == {1} else list(repeated)
        self.rows = list(footers.rows)
        self.sizes = list(map(float, footers.nbytes))  # uncompressed bytes

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        unit, starts = range(len(self))[index], self._footers.starts
        place = bisect_right(starts, unit) - 1
        file = self._files.get(place)
        if file is None:
            file = plan_local(self._footers, place)
            if len(self._files) >= _MOST_FILES:  # of several threads, each adds one
                self._files = {}
            self._files[place] = file
        number, alike = unit - starts[place], self._footers.schemas[place]
        group = PlannedGroup(number, file.rows[number], file.nbytes[number])
        return PlannedGroups(file, self._partition, self._maker, alike, (group,))
