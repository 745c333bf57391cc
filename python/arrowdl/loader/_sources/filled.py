"""Rows whose nulls are replaced in the memory that they were decoded to."""

from __future__ import annotations

from collections.abc import Sequence

from arrowdl import _core
from arrowdl.loader._sources.base import IndexedSource, UnitOrder


class FilledSource(IndexedSource):
    """Rows of another source, with values in place of the nulls of some columns.

    Batches then share the memory of the rows, where a conversion would copy each column with nulls,
    and a shuffle moves no validity bits.

    Parameters
    ----------
    source : IndexedSource
        Whose rows are decoded.
    zeros, nans : sequence of str
        Columns, as of `fill_nulls`.
    """

    def __init__(self, source: IndexedSource, zeros: Sequence[str], nans: Sequence[str]) -> None:
        self._source = source
        self._zeros = zeros
        self._nans = nans
        self.units = source.units
        self.is_shared = source.is_shared
        self.is_decoded = source.is_decoded
        self.decodes_units = source.decodes_units
        self.rows_at_once = source.rows_at_once
        self.is_small = source.is_small
        self.vocabulary = source.vocabulary
        self.clock = source.clock

    @property
    def column_names(self) -> list[str] | None:
        return self._source.column_names

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        return self._fill(self._source.read(units, readers))

    def read_rows(
        self, start: int, stop: int, order: UnitOrder, readers: int = 1
    ) -> _core.DeviceStream:
        return self._fill(self._source.read_rows(start, stop, order, readers))

    def _fill(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        return _core.fill_nulls(stream, self._zeros, self._nans)

    def describe(self) -> str:
        return self._source.describe()

    def check_unchanged(self) -> None:
        self._source.check_unchanged()
