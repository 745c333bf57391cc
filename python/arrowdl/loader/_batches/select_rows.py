"""Rows of a batch of tensors, and masks of rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

_ADVICE = "call filter() before the map() that makes it, or drop the rows in map()"


def read_mask(mask: Any, rows: int) -> list[bool]:
    """Return what the function of `Loader.filter` returned for a batch of `rows` rows.

    Raises TypeError if it is not a sequence of bools. Raises ValueError if it has another length.
    """
    values = mask.tolist() if hasattr(mask, "tolist") else mask
    advice = "return a bool for each row of the batch, as a tensor, array or list"
    is_list = isinstance(values, (list, tuple))
    if not is_list or not all(isinstance(value, bool) for value in values):
        raise TypeError(f"the function of filter() returned {_describe(mask)}: {advice}")
    if len(values) != rows:
        raise ValueError(
            f"the function of filter() returned {len(values)} bools for a batch of {rows} rows: "
            f"{advice}"
        )
    return list(values)


def _describe(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else f"{type(value).__name__} of {dtype}"


def select_rows(
    batch: Any,
    index: Sequence[int],
    rows: int,  # of the batch
) -> Any:
    """Return rows of each tensor of a batch, in dicts, tuples and lists of them.

    Strings, numbers and tensors without dimensions stay as they are.

    Raises TypeError if the batch has a tensor of another length, or another object.
    """
    if batch is None or isinstance(batch, (str, bytes, bool, int, float, complex)):
        return batch
    if isinstance(batch, Mapping):
        items = {key: select_rows(value, index, rows) for key, value in batch.items()}
        return items if type(batch) is dict else type(batch)(items)  # type: ignore[call-arg]
    if isinstance(batch, (list, tuple)):
        if batch and all(value is None or isinstance(value, (str, bytes)) for value in batch):
            selected: list[Any] = [_require(batch, rows)[i] for i in index]
        else:
            selected = [select_rows(value, index, rows) for value in batch]
        has_names = hasattr(batch, "_fields")
        return type(batch)(*selected) if has_names else type(batch)(selected)
    if getattr(batch, "is_nested", False):
        import torch

        parts = _require(batch.unbind(), rows)
        return torch.nested.as_nested_tensor([parts[i] for i in index], layout=batch.layout)
    shape = getattr(batch, "shape", None)
    if shape is None:
        raise TypeError(f"filter() cannot drop rows of a {type(batch).__name__}: {_ADVICE}")
    if len(shape) == 0:
        return batch
    if shape[0] != rows:
        raise TypeError(
            f"filter() cannot drop rows of a tensor of shape {tuple(shape)} in a batch of {rows} "
            f"rows: {_ADVICE}"
        )
    torch_module = sys.modules.get("torch")
    if torch_module is not None and isinstance(batch, torch_module.Tensor):
        return batch[torch_module.tensor(index, device=batch.device)]
    if type(batch).__module__.startswith("jax"):
        return batch.take(sys.modules["jax"].numpy.asarray(list(index)), axis=0)
    return batch[list(index)]


def clear_end(mask: Any, start: int) -> Any:
    """Return a mask that is False from `start` on; it may be written to."""
    if type(mask).__module__.startswith("jax"):
        return mask.at[start:].set(False)
    mask[start:] = False
    return mask


def _require(rows: Sequence[Any], count: int) -> Sequence[Any]:
    if len(rows) != count:
        raise TypeError(
            f"filter() cannot drop rows of {len(rows)} values in a batch of {count} rows: {_ADVICE}"
        )
    return rows
