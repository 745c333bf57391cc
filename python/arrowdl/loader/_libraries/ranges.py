"""`RangeSource`: rows of a library that reads any range of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from arrowdl import _core
from arrowdl.loader._parquet.counted import BY_LOADER, check_counts
from arrowdl.loader._schema.dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._sources.base import IndexedSource

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_AHEAD = 4  # ranges that are read at a time


class RangeSource(IndexedSource):
    """Rows in units that cost little more to read one by one than together."""

    _dictionaries: Dictionaries | None = None

    @abstractmethod
    def _make_empty(self) -> pa.RecordBatch:
        """Return a batch without rows."""

    @abstractmethod
    def _read_units(self, units: Sequence[int], ahead: int) -> Iterator[_core.DeviceArray]:
        """Yield the rows of `units`, encoded; up to `ahead` ranges are read at a time."""

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        super().use_vocabulary(vocabulary)
        self._dictionaries = None

    def find_vocabulary(self, column: str) -> pa.Array | None:
        if column in self.vocabulary.tables:
            return self.vocabulary.tables[column]
        return self._find_dictionaries().find(column)

    def prepare(self) -> None:
        if has_dictionaries(self.read([]).schema):
            self._find_dictionaries()

    def _find_dictionaries(self) -> Dictionaries:
        """Return the dictionaries of the first rows, for every rank and epoch."""
        if self._dictionaries is None:
            self._dictionaries = Dictionaries()
            for array in islice(self._read_units(range(len(self.units)), 1), 1):
                self._dictionaries.check(array)
        return self._dictionaries

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        empty = _core.from_arrow(self._encode(self._make_empty()))
        arrays = self._read_units(units, max(1, _MOST_AHEAD // readers))
        counts = [self.units[unit] for unit in units]
        name = partial(self._name_unit, units)
        arrays = check_counts(arrays, counts, name, BY_LOADER, joins=True)
        stream = _core.from_arrow_stream(chain([empty], arrays))
        if not has_dictionaries(stream.schema):
            return stream
        return check_dictionaries(stream, self._find_dictionaries())

    def _name_unit(self, units: Sequence[int], position: int) -> str:
        """Name a unit for errors."""
        path, row = self.files.locate_row(sum(self.units[: units[position]]))
        return f"{path or 'the source'!r}, at row {row},"

    def _encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the codes of the user's vocabulary."""
        return self.vocabulary.encode(batch) if self.vocabulary.concerns(batch.schema) else batch
