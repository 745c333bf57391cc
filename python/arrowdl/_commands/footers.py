"""What the footers of Parquet files say of their columns: codecs, sizes, nulls, orders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.footers import read_statistics
from arrowdl.loader._storage.threads import FILES_AT_ONCE, map_in_threads

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MOST_FILES = 1_000  # whose footers are read: those of more files are not in the memory at once
_FEW_GROUPS = 3  # of which orders say nothing


@dataclass
class ColumnFacts:
    """Sums over the row groups of a column."""

    stored_bytes: int = 0
    plain_bytes: int = 0
    values: int = 0
    has_dictionary: bool = True  # in each row group
    nulls: int | None = 0  # None if a row group does not say it
    bounds: list[tuple[Any, Any]] | None = field(default_factory=list)

    def add(self, chunk: Any) -> None:
        """Add a leaf of a row group."""
        self.stored_bytes += chunk.total_compressed_size
        self.plain_bytes += chunk.total_uncompressed_size
        self.values += chunk.num_values
        self.has_dictionary &= chunk.has_dictionary_page
        statistics = read_statistics(chunk)
        if "." in chunk.path_in_schema:  # empty lists count as nulls of their items
            self.nulls = self.bounds = None
            return
        if statistics is None or not statistics.has_null_count or self.nulls is None:
            self.nulls = None
        else:
            self.nulls += statistics.null_count
        if statistics is None or not statistics.has_min_max or self.bounds is None:
            self.bounds = None
        else:
            self.bounds.append((statistics.min, statistics.max))

    @property
    def is_sorted(self) -> bool:
        """Whether the row groups have ranges that follow each other, in the order of the files."""
        bounds = self.bounds
        if bounds is None or len(bounds) < _FEW_GROUPS or bounds[0][0] == bounds[-1][1]:
            return False
        try:
            return all(one[1] <= other[0] for one, other in pairwise(bounds))
        except TypeError:
            return False


@dataclass
class Footers:
    """The footers of files, added up."""

    files: int  # that were read
    codecs: list[str]
    group_bytes: list[int]  # of each row group, before compression
    group_rows: list[int]
    columns: dict[str, ColumnFacts]


def read_footers(filesystem: Any, paths: Sequence[str]) -> Footers:
    """Read the footers of Parquet files; of very many, some from all parts."""
    step = -(-len(paths) // _MOST_FILES)
    chosen = paths[::step]
    footers = map_in_threads(partial(_read_footer, filesystem), chosen, FILES_AT_ONCE)
    return _add_up(len(chosen), (f.row_group(i) for f in footers for i in range(f.num_row_groups)))


def _read_footer(filesystem: Any, path: str) -> pq.FileMetaData:
    import pyarrow.parquet as pq

    with filesystem.open_input_file(path) as file:
        return pq.ParquetFile(file).metadata


def _add_up(files: int, groups: Iterable[Any]) -> Footers:
    codecs: dict[str, None] = {}
    footers = Footers(files, [], [], [], {})
    for group in groups:
        footers.group_bytes.append(group.total_byte_size)
        footers.group_rows.append(group.num_rows)
        for chunk in map(group.column, range(group.num_columns)):
            codecs[chunk.compression.lower()] = None
            name = chunk.path_in_schema.partition(".")[0]
            footers.columns.setdefault(name, ColumnFacts()).add(chunk)
    footers.codecs = list(codecs)
    return footers
