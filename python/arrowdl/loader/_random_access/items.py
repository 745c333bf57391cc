"""The rows of a batch as items of a map-style dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What stays as it is in each item.
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def split_rows(
    batch: Any,  # of tensors whose first dimension is the rows, in mappings, tuples and lists
    rows: int,
) -> list[Any]:
    """Return the rows of a batch, each a tree like the batch, without the dimension of rows.

    A row of a ragged pair (values, offsets) is the values of the row.

    Raises ValueError if a leaf has another number of rows, or is not a tensor.
    """
    if isinstance(batch, Mapping):
        parts = [split_rows(value, rows) for value in batch.values()]
        return [dict(zip(batch, values, strict=True)) for values in _transpose(parts, rows)]
    if isinstance(batch, (tuple, list)):
        if _is_ragged(batch, rows):
            return _split_ragged(batch, rows)
        parts = [split_rows(value, rows) for value in batch]
        make: Any = type(batch)
        make = getattr(make, "_make", make)  # of a namedtuple
        return [make(values) for values in _transpose(parts, rows)]
    if isinstance(batch, _PLAIN):
        return [batch] * rows
    if getattr(batch, "is_nested", False):  # torch's nested tensors may have no shape
        return list(batch.unbind())
    shape: Any = getattr(batch, "shape", ())
    if len(shape) == 0 or shape[0] != rows:
        found = f"shape {tuple(shape)}" if hasattr(batch, "shape") else type(batch).__name__
        raise ValueError(
            "an item is a row of each tensor of the batch, and transform= returned "
            f"{found} for {rows} rows: read whole batches, dataset[[0, 5, 7]]; in a DataLoader by "
            "batch_size=None and a BatchSampler as its sampler"
        )
    return list(batch.unbind() if hasattr(batch, "unbind") else batch)


def _transpose(parts: list[list[Any]], rows: int) -> list[Any]:
    return list(zip(*parts, strict=True)) if parts else [()] * rows


def _is_ragged(batch: Any, rows: int) -> bool:
    """Whether a tuple is (values, offsets) or (values, offsets, shapes): there is one offset more
    than rows."""
    return len(batch) in (2, 3) and tuple(getattr(batch[1], "shape", ())) == (rows + 1,)


def _split_ragged(batch: Any, rows: int) -> list[Any]:
    values, offsets, *shapes = batch
    ends = offsets.tolist()
    items = [_slice(values, ends[i], ends[i + 1], ends[-1]) for i in range(rows)]
    if not shapes:
        return items
    return [item.reshape(shape) for item, shape in zip(items, shapes[0].tolist(), strict=True)]


def _slice(values: Any, start: int, stop: int, rows: int) -> Any:
    """Return rows `start` to `stop` of a tree of `rows` rows."""
    if isinstance(values, Mapping):
        return {name: _slice(value, start, stop, rows) for name, value in values.items()}
    if not isinstance(values, tuple):
        return values[start:stop]
    if not _is_ragged(values, rows):
        return tuple(_slice(value, start, stop, rows) for value in values)
    inner, offsets, *shapes = values
    begin, end = int(offsets[start]), int(offsets[stop])
    sliced = _slice(inner, begin, end, int(offsets[-1]))
    return (sliced, offsets[start : stop + 1] - begin, *(shape[start:stop] for shape in shapes))
