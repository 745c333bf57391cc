"""`DatasetSource`: files by row groups, through pyarrow's scanner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._sources import IndexedSource, Source, StreamSource, check_columns

if TYPE_CHECKING:
    import pyarrow.dataset as ds

# Decoding more rows at once is quicker up to about here, and takes more memory.
DECODE_ROWS = 131_072
# A few times this much is held while Parquet is read, where row groups are no larger.
_DECODE_BYTES = 32 * 2**20


class DatasetSource(IndexedSource):
    """Row groups of Parquet files, whole files of other formats, read by pyarrow's scanner."""

    def __init__(
        self,
        dataset: ds.FileSystemDataset,
        columns: list[str] | None,
        filter: ds.Expression | None,
    ) -> None:
        self._dataset = dataset
        self._columns = columns
        self._filter = filter
        self._fragments = [
            unit for fragment in dataset.get_fragments(filter) for unit in _split_fragment(fragment)
        ]
        self.units = [self._count(unit) for unit in self._fragments]
        self._options = _choose_options(self._fragments, self._read_columns(), dataset)
        self._dictionaries: Dictionaries | None = None

    def _read_columns(self) -> list[str]:
        return self._dataset.schema.names if self._columns is None else self._columns

    def _count(self, fragment: ds.Fragment) -> int:
        if self._filter is None and hasattr(fragment, "row_groups"):
            return sum(group.num_rows for group in fragment.row_groups)
        return int(fragment.count_rows(filter=self._filter))

    def read(self, units: Sequence[int]) -> _core.DeviceStream:
        stream = self._scan(units)
        if not has_dictionaries(stream.schema):
            return stream
        if self._dictionaries is None:  # of the first rows, for every rank and epoch
            self._dictionaries = Dictionaries()
            first = next((unit for unit, rows in enumerate(self.units) if rows > 0), None)
            if first is not None:
                self._dictionaries.check(next(self._scan([first])))
        return check_dictionaries(stream, self._dictionaries)

    def _scan(self, units: Sequence[int]) -> _core.DeviceStream:
        import pyarrow.dataset as ds

        dataset = self._dataset
        chosen = ds.FileSystemDataset(
            _join_fragments([self._fragments[unit] for unit in units], dataset.filesystem),
            dataset.schema,
            dataset.format,
            dataset.filesystem,
        )
        scanner = chosen.scanner(
            columns=self._columns,
            filter=self._filter,
            batch_readahead=2,
            fragment_readahead=2,
            **self._options,
        )
        return _core.stream(scanner.to_reader())

    def describe(self) -> str:
        names = [os.path.basename(fragment.path) for fragment in self._fragments]
        return f"{self._dataset.schema.to_string()} {names} {self.units} {self._filter}"


def _split_fragment(fragment: ds.Fragment) -> list[ds.Fragment]:
    if not hasattr(fragment, "row_groups"):
        return [fragment]
    return [fragment.subset(row_group_ids=[group.id]) for group in fragment.row_groups]


def _choose_options(
    fragments: Sequence[ds.Fragment], columns: Sequence[str], dataset: ds.FileSystemDataset
) -> dict[str, Any]:
    """What bounds the memory of a scan: the scanner reads so many *rows* ahead, of any size."""
    import pyarrow.dataset as ds

    options: dict[str, Any] = {"batch_size": DECODE_ROWS}
    if not isinstance(dataset.format, ds.ParquetFileFormat):
        return options
    options["batch_size"] = min(DECODE_ROWS, max(1, _DECODE_BYTES // _measure(fragments, columns)))
    if _is_local(dataset.filesystem):  # nothing is won there by fetching all row groups at once
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True
        )
    return options


def _measure(fragments: Sequence[ds.Fragment], columns: Sequence[str]) -> int:
    """Bytes of a row, about, in the row group where they are most."""

    def measure_whole(fragment: ds.Fragment) -> float:
        (group,) = fragment.row_groups
        return float(group.total_byte_size / max(1, group.num_rows))

    worst = max(fragments, key=measure_whole, default=None)
    if worst is None or measure_whole(worst) * DECODE_ROWS <= _DECODE_BYTES:
        return 1
    group = worst.metadata.row_group(worst.row_groups[0].id)
    chunks = [group.column(i) for i in range(group.num_columns)]
    size = sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema.split(".")[0] in columns
    )
    return int(max(1, size // max(1, group.num_rows)))


def _is_local(filesystem: Any) -> bool:
    return type(filesystem).__name__ == "LocalFileSystem"


def _join_fragments(fragments: Sequence[ds.Fragment], filesystem: Any) -> list[ds.Fragment]:
    """Consecutive row groups of one file as one fragment: the scanner reads them ahead.

    Not of remote files, of which it would fetch all of them at once.
    """
    if not _is_local(filesystem):
        return list(fragments)
    joined: list[ds.Fragment] = []
    groups: list[int] = []
    for fragment in fragments:
        if not hasattr(fragment, "row_groups"):
            joined.append(fragment)
            groups = []
            continue
        new = [group.id for group in fragment.row_groups]
        if groups and joined[-1].path == fragment.path and new[0] == groups[-1] + 1:
            groups += new
            joined[-1] = fragment.subset(row_group_ids=groups)
        else:
            joined.append(fragment)
            groups = new
    return joined


class Scan:
    """Opens a stream of a dataset that has no row groups to choose from."""

    def __init__(self, dataset: ds.Dataset, columns: list[str] | None, filter: Any) -> None:
        self._dataset = dataset
        self._columns = columns
        self._filter = filter

    def __call__(self, epoch: int) -> Any:
        scanner = self._dataset.scanner(
            columns=self._columns, filter=self._filter, batch_size=DECODE_ROWS
        )
        return scanner.to_reader()


def open_dataset(dataset: Any, columns: list[str] | None, filter: Any) -> Source:
    """The rows of a pyarrow dataset that `filter` wants."""
    import pyarrow.compute as pc

    if filter is not None and not isinstance(filter, pc.Expression):
        raise TypeError(
            f"filter={filter!r}: give a pyarrow expression, such as "
            'pyarrow.dataset.field("x") > 3; pyarrow.parquet.filters_to_expression makes one of '
            "tuples"
        )
    if columns is not None:
        check_columns(columns, dataset.schema.names)
    if hasattr(dataset, "filesystem") and not dataset._scan_options:
        return DatasetSource(dataset, columns, filter)
    return StreamSource(Scan(dataset, columns, filter), replayable=True)
