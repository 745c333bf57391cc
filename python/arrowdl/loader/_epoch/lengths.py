"""`LengthsSource`: the lengths of a source's rows, by which steps are planned and rows sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

from arrowdl import _core
from arrowdl.loader._skip.numbered import NumberedSource
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._skipped import Skipped, describe_units, simplify
from arrowdl.loader._sources.base import IndexedSource

if TYPE_CHECKING:
    import pyarrow as pa

LENGTH = "length"  # the column of `LengthsSource`
NAME_IT = (
    "its lengths are read with the rows, so name it in columns= too. transform= can drop it from "
    "the batches"
)
_MOST = 2**31 - 1


class LengthsSource(IndexedSource):
    """The length of each row of a source, in its units, so that it is read in the same order.

    The first use reads one column of all rows once. Four bytes a row are kept, also in a pickle.

    Raises ValueError if the source has no such column.
    """

    is_shared = True

    def __init__(
        self,
        source: IndexedSource,  # not a mixture: each of its sources has lengths of its own
        # a column with rows of several lengths, such as a list or a string (of which the bytes
        # count), or of integers, which are the lengths themselves. Null is 0
        column: str,
        *,
        # whether rows of units that cannot be read have length 0; otherwise the error is raised
        skips: bool = False,
    ) -> None:
        if source.column_names is not None and column not in source.column_names:
            raise ValueError(
                f'"{column}" is not one of the columns that are read, {list(source.column_names)}'
            )
        self.units = source.units
        self.decodes_units = source.decodes_units
        self._source = source
        self._column = column
        self._skips = skips
        self._lengths: pa.RecordBatch | None = None
        self._lost: dict[int, Exception] = {}
        self._entries: list[Skipped] = []

    @property
    def column_names(self) -> list[str]:
        return [LENGTH]

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        """Read the lengths of `units`: structs of one int32, in memory of the CPU.

        Raises TypeError or ValueError as `measure_rows` does. Raises OSError if a file has changed.
        """
        lengths = _core.from_arrow(self._find())
        ends = list(accumulate(self.units))
        parts = [lengths[ends[unit] - self.units[unit] : ends[unit]] for unit in units]
        return _core.chain(parts or [lengths[:0]])

    def find_longest(self) -> tuple[int, int]:
        """Return the number of the longest row in the source, and its length; 0 without rows."""
        import pyarrow.compute as pc

        lengths = self._find().column(0)
        if not len(lengths):
            return 0, 0
        most = pc.max(lengths)
        return pc.index(lengths, most).as_py(), most.as_py()

    def find_lost(self) -> dict[int, Exception]:
        """Return the units whose lengths cannot be read, and why; errors have their text alone."""
        self._find()
        return self._lost

    def list_lost(self) -> list[Skipped]:
        """Name the units of `find_lost`."""
        self._find()
        return self._entries

    def prepare(self) -> None:
        self._find()

    def describe(self) -> str:
        return f"lengths of {self._column!r} {self._source.describe()}"

    def check_unchanged(self) -> None:
        self._source.check_unchanged()

    def __getstate__(self) -> dict[str, Any]:
        self.prepare()
        return self.__dict__

    def _find(self) -> pa.RecordBatch:
        if self._lengths is None:
            self._lengths = self._read()
        return self._lengths

    def _read(self) -> pa.RecordBatch:
        import pyarrow as pa

        source = self._source.select(self._column)
        numbered = NumberedSource(source, 0) if self._skips else None
        source = numbered or source
        parts = [
            measure_rows(array.field(self._column), self._column)
            for array in source.read(range(len(source.units)))
        ]
        source.check_read()
        if numbered is not None and numbered.has_failures:
            self._lost = {i: simplify(error) for i, error in sorted(numbered.failures.items())}
            named = NumberedSource(self._source, 0, Faults(self._lost))
            self._entries = [named.describe_unit(unit) for unit in self._lost]
            if numbered.failed:
                self._entries += numbered.report_missing(list(numbered.failed)).entries
        lengths = pa.concat_arrays([pa.array([], pa.int32()), *parts])
        if len(lengths) != self.num_rows:
            raise OSError(
                f'"{self._column}" has {len(lengths)} rows now, and {self.num_rows} when this '
                "Loader was made: a file has changed, make a new Loader"
            )
        return pa.record_batch([lengths], names=[LENGTH])


def open_lengths(source: IndexedSource, column: str, *, skips: bool) -> IndexedSource:
    """Return the lengths of the rows of a source, or the mixture of those of a mixture."""
    return source.map_members(partial(LengthsSource, column=column, skips=skips))


def list_lengths(lengths: IndexedSource) -> list[LengthsSource]:
    """List the sources of `open_lengths`: one, or those of a mixture."""
    return [cast("LengthsSource", member) for _, member in lengths.list_members()]


def describe_lost(lengths: IndexedSource) -> str:
    """Say for states which rows have no known length; empty if all have."""
    sources = list_lengths(lengths)
    lost = [list(source.find_lost()) for source in sources]
    return describe_units(lost, [source.units for source in sources])


def measure_rows(
    column: _core.DeviceArray,
    name: str,  # for errors
) -> pa.Array:
    """Return the length of each row of a column as int32; that of null is 0.

    Only the offsets of a list or string are read, not the values; also from a device.

    Raises TypeError if the column has no lengths. Raises ValueError if a length is negative, or
    does not fit into int32.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        lengths = pc.fill_null(_measure(column, name), 0)
        if len(lengths) and pc.min(lengths).as_py() < 0:
            raise ValueError(f'"{name}" has {pc.min(lengths)} for a length: give 0 or more')
        return lengths.cast(pa.int32())
    except pa.ArrowInvalid:
        raise ValueError(
            f'"{name}" has a length of more than {_MOST}, the most that a row may have'
        ) from None


def check_lengths(
    rows: _core.DeviceStream, column: str, lengths: str
) -> Iterator[_core.DeviceArray]:
    """Yield the arrays of a stream, whose lists have the lengths that another column says.

    Raises ValueError if a list has another length.
    """
    import pyarrow.compute as pc

    for array in rows:
        sizes = measure_rows(array.field(column), column)
        said = measure_rows(array.field(lengths), lengths)
        if not sizes.equals(said):
            i = pc.index(pc.not_equal(sizes, said), True).as_py()
            raise ValueError(
                f'"{lengths}" says that a row has {said[i]} tokens, and "{column}" has {sizes[i]}: '
                "lengths= is a column with the number of items of each list. Write it again, or "
                "leave lengths= out"
            )
        yield array


def _measure(column: _core.DeviceArray, name: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = pa.field(column.schema).type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_integer(kind):
        return _to_plain(column)
    has_offsets = (
        types.is_list,
        types.is_large_list,
        types.is_map,
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
    )
    if any(check(kind) for check in has_offsets):
        if not len(column):
            return pa.array([], pa.int64())
        offsets = pa.array(column.offsets.to("cpu"))
        lengths = pc.subtract(offsets[1:], offsets[:-1])
        valid = column.validity
        return lengths if valid is None else pc.if_else(pa.array(valid.to("cpu")), lengths, 0)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pc.binary_length(_to_plain(column).cast(pa.large_binary()))
    measured = (types.is_list_view, types.is_large_list_view, types.is_fixed_size_list)
    if any(check(kind) for check in measured):
        return pc.list_value_length(_to_plain(column))
    raise TypeError(
        f'"{name}" is {kind}, which has no lengths: name a column of lists, strings or integers'
    )


def _to_plain(column: _core.DeviceArray) -> pa.Array:
    """Return a column in memory of the CPU, without its extension type."""
    import pyarrow as pa

    array = pa.array(column.to("cpu"))
    return array.storage if isinstance(array, pa.ExtensionArray) else array
