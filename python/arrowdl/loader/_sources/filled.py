"""Rows whose nulls are replaced in the memory that they were decoded to."""

from __future__ import annotations

from collections.abc import Sequence

from arrowdl import _core
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.wrapped import WrappedSource


class FilledSource(WrappedSource):
    """Rows of another source, with values in place of the nulls of some columns.

    Batches then share the memory of the rows, where a conversion would copy each column with nulls,
    and a shuffle moves no validity bits.
    """

    def __init__(
        self,
        source: IndexedSource,  # whose rows are decoded
        columns: _core.ColumnOptions,  # the null policies
    ) -> None:
        super().__init__(source)
        self._columns = columns

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        return self._fill(super().read(units, readers))

    def read_rows(
        self, start: int, stop: int, order: UnitOrder, readers: int = 1
    ) -> _core.DeviceStream:
        return self._fill(super().read_rows(start, stop, order, readers))

    def _fill(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        return _core.fill_nulls(stream, self._columns)
