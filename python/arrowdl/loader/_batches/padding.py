"""`Padding`: how much of the padded columns of a batch is padding, for `Stats`."""

from __future__ import annotations

from operator import sub
from typing import Any

from arrowdl import _core
from arrowdl.loader._epoch.lengths import measure_rows

Counts = tuple[int, int]  # values of rows, and values that are padding
_FEW = 256  # rows, for which a loop takes less time than calls of pyarrow
_RAGGED = ("+l", "+L", "u", "U", "z", "Z")


class Padding:
    """Counts the values and the padding of a batch before it is made, from its offsets."""

    def __init__(
        self,
        schema: _core.Schema,  # of the rows
        columns: _core.ColumnOptions,
    ) -> None:
        self._multiple = columns.pad_to_multiple
        self._most = {
            field.name: columns.find_max_length(field.name)
            for field in schema.children
            if field.format in _RAGGED and columns.pads(field.name)
        }

    def __bool__(self) -> bool:
        """Whether a column is padded."""
        return bool(self._most)

    def count(self, rows: _core.DeviceArray) -> Counts:
        """Count the values of the rows of a batch, in memory of the CPU, and the padding."""
        values = padded = 0
        for name, max_length in self._most.items():
            lengths, longest = _measure(rows.field(name), name, max_length)
            values += lengths
            padded += len(rows) * -(-longest // self._multiple) * self._multiple
        return values, padded - values


def _measure(column: _core.DeviceArray, name: str, max_length: int | None) -> Counts:
    """Return the values of the rows, at most `max_length` of each, and those of the longest."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (
        max_length is None and len(column) and column.validity is None
    ):  # the usual case, in few steps
        offsets = pa.array(column.offsets)
        bytes_ = memoryview(offsets.buffers()[1])
        values = bytes_.cast("i") if offsets.type.bit_width == 32 else bytes_.cast("q")
        values = values[offsets.offset : offsets.offset + len(offsets)]
        if len(column) <= _FEW:
            longest = max(map(sub, values[1:], values))
        else:
            longest = pc.max(pc.subtract(offsets[1:], offsets[:-1])).as_py()
        return values[-1] - values[0], longest
    lengths: Any = measure_rows(column, name)
    if max_length is not None:
        lengths = pc.min_element_wise(lengths, max_length)
    return pc.sum(lengths).as_py() or 0, pc.max(lengths).as_py() or 0
