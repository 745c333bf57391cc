"""Whole batches for the default collate function of PyTorch's DataLoader."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any


class WholeBatch:
    """The only item of a batch that needs no collating."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


def is_in_worker() -> bool:
    """Whether this is a worker process of a DataLoader."""
    torch_data = sys.modules.get("torch.utils.data")
    return torch_data is not None and torch_data.get_worker_info() is not None


def collates_by_default(
    caller: FrameType | None,  # of the function that called `__getitems__`
) -> bool:
    """Whether `caller` is a DataLoader that stacks items with its default collate function.

    A dataset is not told the DataLoader's ``collate_fn``; the fetcher that calls `__getitems__`
    knows it. A ``torch.utils.data.Subset`` between them passes on what it gets.
    """
    torch_data = sys.modules.get("torch.utils.data")
    while caller is not None and torch_data is not None:
        owner = caller.f_locals.get("self")
        if type(owner) is not torch_data.Subset:
            is_default = getattr(owner, "collate_fn", None) is torch_data.default_collate
            return is_default and bool(getattr(owner, "auto_collation", False)) and _register()
        caller = caller.f_back
    return False


def _register() -> bool:
    """Make ``default_collate([WholeBatch(batch)])`` return the batch; return whether it does."""
    # Source: PyTorch's documentation of ``torch.utils.data.default_collate``, whose registry of
    # functions by type is ``default_collate_fn_map``.
    collate = sys.modules.get("torch.utils.data._utils.collate")
    registry = getattr(collate, "default_collate_fn_map", None)
    if registry is None:
        return False
    registry.setdefault(WholeBatch, _get_batch)
    return True


def _get_batch(items: Any, *, collate_fn_map: Any = None) -> Any:
    return items[0].batch
