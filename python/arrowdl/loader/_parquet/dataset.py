"""`DatasetSource`: the files of a pyarrow dataset, read by row groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._clock import Clock
from arrowdl.loader._files.footers import Footers
from arrowdl.loader._parquet.codes import Codes
from arrowdl.loader._parquet.dataset_files import DatasetFiles
from arrowdl.loader._parquet.find_units import UnitFinder
from arrowdl.loader._parquet.fragments import find_row_bytes, has_ipc, is_memory_new
from arrowdl.loader._parquet.unit_reader import UnitReader
from arrowdl.loader._parquet.unit_scanner import UnitScanner
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.row_bytes import Held, estimate_row, measure_held

if TYPE_CHECKING:
    import pyarrow as pa


class DatasetSource(IndexedSource):
    """Row groups of Parquet files, or whole files of other formats.

    With a plan in `request`, no file is opened. Raises OSError if a file has changed since the
    dataset read its footer.
    """

    decodes_units = True
    clock: Clock
    scanner: UnitScanner

    def __init__(
        self,
        scanner: UnitScanner,
        request: Request,
        footers: Footers | None = None,  # as of `UnitFinder`
    ) -> None:
        self.clock = Clock()
        self._skips = request.skipped is not None
        finder, plan = UnitFinder(scanner, request.skipped, footers or Footers()), request.plan
        self._units_of_files = finder.find() if plan is None else finder.follow(plan)
        fragments, self.units = self._units_of_files
        self._use(scanner)
        is_new = is_memory_new(scanner.dataset, fragments)
        self.is_shared, self.is_decoded = not is_new, is_new and not has_ipc(fragments)

    def _use(self, scanner: UnitScanner) -> None:
        self.scanner = scanner
        codes = Codes(self.vocabulary, self._skips)
        self.reader = UnitReader(scanner, self._units_of_files, codes, self.clock)

    def __getstate__(self) -> dict[str, Any]:
        self.prepare()
        return self.__dict__

    def use_decoder(self, decoder: str) -> None:
        if has_ipc(self._units_of_files.fragments):
            super().use_decoder(decoder)
        self._use(self.scanner.change(decoder=decoder))

    def select(self, column: str) -> DatasetSource:
        selected = object.__new__(type(self))  # a copy would read the dictionaries
        selected.__dict__.update(self.__dict__)
        selected._use(self.scanner.change(query=replace(self.scanner.query, columns=[column])))
        return selected

    @property
    def column_names(self) -> list[str]:
        return self.scanner.query.column_names

    @property
    def files(self) -> DatasetFiles:
        return DatasetFiles(self.scanner, self._units_of_files)

    def check_unchanged(self) -> None:
        self.scanner.stamps.check()

    def check_read(self) -> None:
        if self.scanner.row_groups is not None:  # small files are read before they are asked for
            self.scanner.stamps.check(may_be_gone=True)

    def estimate_row_bytes(self) -> float:
        stored = sum(self.reader.sizes.nbytes) / max(1, sum(self.units))
        return estimate_row(
            self.reader.project(), find_row_bytes(self._units_of_files.fragments), stored
        )

    def measure_held(self) -> Held:
        return measure_held(
            find_row_bytes(self._units_of_files.fragments), max(self.units, default=0)
        )

    def prepare(self) -> None:
        self.reader.codes.find(self.reader)

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        super().use_vocabulary(vocabulary)
        self.reader = self.reader.with_vocabulary(vocabulary)

    def find_vocabulary(self, column: str) -> pa.Array | None:
        return self.reader.codes.find_values(self.reader, column)

    def describe_unread(self) -> str:
        return self.reader.codes.describe_unread(self.reader)

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        return self.reader.read(units, readers)

    def describe(self) -> str:
        return self.scanner.describe_rows(*self._units_of_files, self.scanner.describe_filter())
