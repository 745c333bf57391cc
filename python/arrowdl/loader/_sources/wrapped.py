"""`WrappedSource`: the rows of another source, changed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from arrowdl import _core
from arrowdl.loader._sources.base import IndexedSource, UnitOrder
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._sources.row_bytes import Held

if TYPE_CHECKING:
    import pyarrow as pa

    from arrowdl.loader._schema.vocabulary import Vocabulary


class WrappedSource(IndexedSource):
    """Rows of another source, in the same units and with the same files.

    All that a subclass does not override is that of the source, but for `find_arrays`: the rows in
    memory are not the changed ones. What returns a source wraps it again.

    Parameters
    ----------
    source : IndexedSource
    """

    def __init__(self, source: IndexedSource) -> None:
        self._adopt(source)

    def _adopt(self, source: IndexedSource) -> None:
        """Read the rows of `source` from now on."""
        self._source = source
        self.units = source.units
        self.schedule, self.phases = source.schedule, source.phases
        self.is_shared = source.is_shared
        self.is_decoded = source.is_decoded
        self.decodes_units = source.decodes_units
        self.is_small = source.is_small
        self.is_endless = source.is_endless
        self.rows_at_once = source.rows_at_once
        self.vocabulary = source.vocabulary
        self.clock = source.clock
        self.home = source.home

    def _wrap(self, source: IndexedSource) -> Self:
        """Return the same change of another source."""
        wrapped = copy(self)
        wrapped._adopt(source)
        return wrapped

    @property
    def column_names(self) -> list[str] | None:
        return self._source.column_names

    @property
    def files(self) -> SourceFiles:
        return self._source.files

    def refuse_plan(self) -> str:
        return self._source.refuse_plan()

    @property
    def num_rows(self) -> int:
        return self._source.num_rows

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        return self._source.read(units, readers)

    def read_rows(
        self, start: int, stop: int, order: UnitOrder, readers: int = 1
    ) -> _core.DeviceStream:
        return self._source.read_rows(start, stop, order, readers)

    def describe(self) -> str:
        return self._source.describe()

    def identify(self) -> str:
        return self._source.identify()

    def list_given(self) -> list[Any]:
        return self._source.list_given()

    def explain_empty(self) -> str:
        return self._source.explain_empty()

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        self._source.use_vocabulary(vocabulary)
        self.vocabulary = vocabulary

    def use_decoder(self, decoder: str) -> None:
        self._source.use_decoder(decoder)

    def find_vocabulary(self, column: str) -> pa.Array | None:
        return self._source.find_vocabulary(column)

    def describe_unread(self) -> str:
        return self._source.describe_unread()

    def prepare(self) -> None:
        self._source.prepare()

    def list_buffers(self, rows: int) -> list[tuple[str, IndexedSource, int]]:
        return self._source.list_buffers(rows)

    def measure_held(self) -> Held:
        return self._source.measure_held()

    def estimate_row_bytes(self) -> float:
        return self._source.estimate_row_bytes()

    def cut_for_shuffle(self, rows: int) -> Self:
        return self._wrap(self._source.cut_for_shuffle(rows))

    def select(self, column: str) -> Self:
        return self._wrap(self._source.select(column))

    def for_writing(self) -> Self:
        return self._wrap(self._source.for_writing())

    def find_arrays(self) -> list[_core.DeviceArray] | None:
        return None

    def check_process(self) -> None:
        self._source.check_process()

    def check_unchanged(self) -> None:
        self._source.check_unchanged()

    def check_read(self) -> None:
        self._source.check_read()
