"""Opens a Hugging Face dataset: as its table, or as a `SelectedSource` of rows of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl._libraries import require_no_transform
from arrowdl.loader._libraries.ranges import RangeSource
from arrowdl.loader._schema.fields import choose_columns, select_fields
from arrowdl.loader._schema.vocabulary import make_empty, make_table
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.files import NamedVersion, SourceFiles
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.table import TableSource

if TYPE_CHECKING:
    import pyarrow as pa

# As many as the library reads at once.
_UNIT_ROWS = 1_000


def open_huggingface(dataset: Any, request: Request) -> Source:
    """Open a ``datasets.Dataset``, whose files are mapped."""
    require_no_transform(dataset)
    if dataset._indices is not None:
        return SelectedSource(dataset, request.columns)
    table = dataset.data.table.select(dataset.format["columns"])
    return TableSource(table, request.columns, name_revision(dataset))


class SelectedSource(RangeSource):
    """Rows that a dataset's indices mapping selects: after shuffle(), select(), filter()."""

    decodes_units = True

    def __init__(
        self,
        dataset: Any,  # without a transform
        columns: list[str] | None,
    ) -> None:
        self._dataset = dataset.with_format("arrow", columns=dataset.format["columns"])
        self._snapshot = name_revision(dataset)
        rows = len(dataset)
        self._schema = self._dataset[:0].schema
        self._columns = choose_columns(columns, self._schema)
        self._names = self._make_empty().schema.names
        self.units = [min(_UNIT_ROWS, rows - start) for start in range(0, rows, _UNIT_ROWS)]

    @property
    def column_names(self) -> list[str]:
        return list(self._names)

    @property
    def files(self) -> SourceFiles:
        return NamedVersion(self._snapshot, self.refuse_plan())

    def describe(self) -> str:
        return f"{self._schema.to_string()} {self.num_rows} selected {self._snapshot}"

    def _make_empty(self) -> pa.RecordBatch:
        return make_empty(self._select(make_table(self._schema)).schema)

    def _select(self, table: pa.Table) -> pa.Table:
        return table if self._columns is None else select_fields(table, self._columns)

    def _read_units(self, units: Sequence[int], ahead: int) -> Iterator[_core.DeviceArray]:
        for unit in units:
            start = unit * _UNIT_ROWS
            table = self._select(self._dataset[start : start + self.units[unit]])
            for batch in table.to_batches():
                yield _core.from_arrow(self._encode(batch))


def name_revision(dataset: Any) -> str:
    """Return the revision that load_dataset() downloaded; empty for other datasets.

    The folder of the cached files is named for it: NAMESPACE___NAME/CONFIG/VERSION/COMMIT.
    """
    folders = {PurePath(file["filename"]).parent for file in dataset.cache_files}
    if len(folders) != 1:
        return ""
    *_, name, config, _, commit = ("", "", "", *folders.pop().parts)
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        return ""
    name = name.replace("___", "/")
    return f"Hugging Face dataset {name!r} ({config}, {dataset.split}), revision {commit}"
