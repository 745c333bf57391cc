"""`WrappedSource`: the rows of another source, changed."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from arrowdl import _core
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.files import SourceFiles

if TYPE_CHECKING:
    from arrowdl.loader._schema.vocabulary import Vocabulary

Method = TypeVar("Method", bound=Callable[..., Any])


class _Forward:
    """Is a method of the wrapped source, under the name that it is assigned to."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, wrapper: WrappedSource | None, owner: type) -> Any:
        return self if wrapper is None else getattr(wrapper._source, self._name)


def _forward(method: Method) -> Method:
    """Return what calls the wrapped source, with the type of `method`."""
    return cast("Method", _Forward())


class WrappedSource(IndexedSource):
    """Rows of another source, in the same units and with the same files.

    What a subclass does not override is forwarded to the source, except `find_arrays`: the rows in
    memory are not the changed ones. A method that returns a source wraps it again.
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

    @property
    def num_rows(self) -> int:
        return self._source.num_rows

    refuse_plan = _forward(IndexedSource.refuse_plan)
    read = _forward(IndexedSource.read)
    read_rows = _forward(IndexedSource.read_rows)
    describe = _forward(IndexedSource.describe)
    identify = _forward(IndexedSource.identify)
    list_user_objects = _forward(IndexedSource.list_user_objects)
    find_failed = _forward(IndexedSource.find_failed)
    explain_empty = _forward(IndexedSource.explain_empty)
    use_decoder = _forward(IndexedSource.use_decoder)
    find_vocabulary = _forward(IndexedSource.find_vocabulary)
    describe_unread = _forward(IndexedSource.describe_unread)
    prepare = _forward(IndexedSource.prepare)
    list_buffers = _forward(IndexedSource.list_buffers)
    measure_held = _forward(IndexedSource.measure_held)
    estimate_row_bytes = _forward(IndexedSource.estimate_row_bytes)
    check_process = _forward(IndexedSource.check_process)
    check_unchanged = _forward(IndexedSource.check_unchanged)
    check_read = _forward(IndexedSource.check_read)

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        self._source.use_vocabulary(vocabulary)
        self.vocabulary = vocabulary

    def cut_for_shuffle(self, rows: int) -> Self:
        return self._wrap(self._source.cut_for_shuffle(rows))

    def select(self, column: str) -> Self:
        return self._wrap(self._source.select(column))

    def for_writing(self) -> Self:
        return self._wrap(self._source.for_writing())

    def find_arrays(self) -> list[_core.DeviceArray] | None:
        return None
