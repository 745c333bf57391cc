"""The rows of a batch as an array: padded, taken by their numbers, without a column."""

from __future__ import annotations

from collections.abc import Sequence

from arrowdl import _core
from arrowdl.loader._options.options import MASK
from arrowdl.loader._skipped import NUMBER


def pad_rows(array: _core.DeviceArray, valid: int, rows: int) -> _core.DeviceArray:
    """Repeat the rows of `array` up to `rows`, with `MASK`: the first `valid` rows are valid."""
    bools = bytearray(b"\1" * valid + b"\0" * (rows - valid))  # the training may write to it
    mask = _core.to_arrow_device(memoryview(bools).cast("?"))
    if not _core.is_host_readable(array.device):
        mask = mask.to(array.device)
    names, columns = array.field_names, _repeat_rows(array, rows)
    return _core.make_struct([*names, MASK], [*map(columns.field, range(len(names))), mask])


def drop_column(array: _core.DeviceArray, name: str) -> _core.DeviceArray:
    """Return the rows without the column `name`; others may share a name."""
    others = [(i, other) for i, other in enumerate(array.field_names) if other != name]
    return _core.make_struct([other for _, other in others], [array.field(i) for i, _ in others])


def _repeat_rows(array: _core.DeviceArray, rows: int) -> _core.DeviceArray:
    """Repeat the rows of `array` up to `rows`: they are valid values of every type."""
    if len(array) == rows:
        return array
    times, remainder = divmod(rows, len(array))
    return _core.concatenate([array] * times + [array[:remainder]])


def remove_numbers(array: _core.DeviceArray) -> _core.DeviceArray:
    """Return the rows without the column of their numbers."""
    return drop_column(array, NUMBER)


def take_rows(array: _core.DeviceArray, index: Sequence[int]) -> _core.DeviceArray:
    """Return the rows of `index`, at least one."""
    rows = _core.number_rows([array], _core.read_row_numbers([0], 1))
    taken, _ = _core.take_rows(rows, _core.read_row_numbers(index, len(array)))
    return taken
