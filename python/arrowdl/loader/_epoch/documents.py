"""`Documents`: lists of the lengths of rows that cannot be read, of items that are 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arrowdl.loader._epoch.lengths import LENGTH, LengthsSource
from arrowdl.loader._skip.stand_ins import Faults

if TYPE_CHECKING:
    import pyarrow as pa


class Documents:
    """What stands in for documents, so that blocks are packed as they were planned."""

    def __init__(
        self,
        lengths: LengthsSource,
        packed: frozenset[str],  # columns with an item for each token
        column: str | None,  # that of the lengths themselves
    ) -> None:
        self._lengths = lengths
        self._packed = packed
        self._column = column

    def make_column(self, field: pa.Field, unit: int) -> pa.Array | None:
        """As in `Faults`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if field.name != self._column and field.name not in self._packed:
            return None
        (rows,) = self._lengths.read([unit]).rebatch(max(1, self._lengths.units[unit]))
        lengths = pa.array(rows.field(LENGTH))
        if field.name == self._column:
            return lengths.cast(field.type)
        ends = pc.cumulative_sum(lengths.cast(pa.int64()))
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
        kind = field.type
        storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        items = _make_zeros(storage.value_type, offsets[-1].as_py())
        lists = pa.LargeListArray.from_arrays(offsets, items).cast(storage)
        return lists if storage is kind else pa.ExtensionArray.from_storage(kind, lists)


def find_faults(
    lengths: LengthsSource,
    # if the rows are packed: columns with an item for each token
    packed: frozenset[str] | None = None,
    column: str | None = None,  # that of the lengths themselves, if it is another one
) -> Faults:
    """Return what is known of a source by the lengths of its rows."""
    make = None if packed is None else Documents(lengths, packed, column).make_column
    return Faults(lengths.find_lost(), make)


def _make_zeros(kind: pa.DataType, count: int) -> pa.Array:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _make_zeros(kind.storage_type, count))
    if pa.types.is_fixed_size_list(kind):
        items = _make_zeros(kind.value_type, count * kind.list_size)
        return pa.FixedSizeListArray.from_arrays(items, type=kind)
    data = pa.py_buffer(bytes(-(-count * kind.bit_width // 8)))
    return pa.Array.from_buffers(kind, count, [None, data])
