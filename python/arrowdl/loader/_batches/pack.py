"""A batch of tensors as one block of memory, for another process or device.

A batch is a tree with leaves. Its tensors are copied into one block of memory; leaves that are not
tensors, and tensors that DLPack cannot describe, are pickled beside it. Each batch has its own
table of offsets, dtypes and shapes in the block. The rest is a `Layout`, which is sent when it
changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from typing import Any

from arrowdl import _core, _frameworks
from arrowdl.loader._batches.padding import Counts

_FRAMEWORKS = {"torch": "torch", "jaxlib": "jax", "jax": "jax", "numpy": "numpy"}
_WITH_DEVICES: tuple[str | None, ...] = ("torch", "jax")
_JAGGED = "jagged"


@dataclass(frozen=True)
class Layout:
    """What usually stays the same from batch to batch."""

    # None is a leaf. A tuple ``(type, names, trees)`` is a dict if it has names, and a sequence
    # otherwise; the type ``"jagged"`` is a torch nested tensor of values and offsets
    tree: Any
    # the framework of each leaf; None for a leaf that is not a tensor
    frameworks: tuple[str | None, ...]


@dataclass(frozen=True)
class Message:
    """A packed batch. What `read` returns keeps its memory alive."""

    rows: int  # rows of the batch, and those of this rank, which come first
    valid: int
    layout: Layout
    block: _core.DeviceArray  # the bytes of the tensors
    table: bytes  # offset, dtype and shape of each tensor in the block
    others: dict[int, Any]  # the leaves that are not in the block, by index
    padding: Counts = (0, 0)  # of `Padding.count`
    outcome: bytes | None = None  # a pickle of what became of its rows in a worker
    array: _core.DeviceArray | None = None  # what it was made of, if it may be made again
    spent: tuple[float, ...] = ()  # seconds of each of `WORKS`, in a worker
    is_first: bool = False  # whether it is the first one of its worker, which had to start

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        return self.block.nbytes

    def to(self, device: Any) -> Message:
        """Return the message with its tensors on `device`: one asynchronous copy.

        Raises BufferError if a tensor of torch or JAX is not in the block, and would stay on the
        host.
        """
        for leaf in self.others.values():
            kind: Any = type(leaf)
            if _find_framework(kind) in _WITH_DEVICES:
                raise BufferError(
                    f"a batch has a {kind.__name__} that is more than plain memory (nested "
                    "with rows of several shapes, sparse, conjugate, or it requires a gradient) "
                    f"and cannot be copied to {device}: make plain tensors, or copy it yourself "
                    "and leave device= out"
                )
        return replace(self, block=self.block.to(device))

    def read(self) -> Any:
        """Return the batch; its tensors are zero-copy views of the block."""
        leaves = _core.read_tensors(self.block, self.table, self.layout.frameworks)
        for i, leaf in self.others.items():
            leaves[i] = leaf
        return rebuild(self.layout.tree, iter(leaves))


def pack(tree: Any, rows: int, padding: Counts, device: Any) -> Message:
    """Copy a batch into one block of host memory that is fast to copy to `device`."""
    layout, leaves = flatten(tree)
    block = _core.TensorBlock(leaves, layout.frameworks)
    others = {i: leaves[i] for i in block.left_out}
    array = block.make_array(device)
    return Message(rows, rows, layout, array, block.table, others, padding)


def flatten(tree: Any) -> tuple[Layout, list[Any]]:
    """Return the layout of a batch and its leaves, which share its memory."""
    leaves: list[Any] = []
    frameworks: list[str | None] = []
    structure = _visit(tree, leaves, frameworks)
    return Layout(structure, tuple(frameworks)), leaves


# Not a closure of `flatten`: one that calls itself would hold the leaves until the garbage
# collector runs.
def _visit(tree: Any, leaves: list[Any], frameworks: list[str | None]) -> Any:
    kind: Any = type(tree)
    framework = _find_framework(kind)
    if framework is None:
        if kind is dict or _is_made_of_dict(kind):
            return kind, tuple(tree), _visit_all(tree.values(), leaves, frameworks)
        if isinstance(tree, (tuple, list)):
            return kind, None, _visit_all(tree, leaves, frameworks)
    elif framework == "torch" and tree.is_nested:
        if parts := _split_jagged(tree):
            leaves.extend(parts)
            frameworks.extend(["torch", "torch"])
            return _JAGGED, None, (None, None)
        framework = None
    elif framework == "numpy" and tree.dtype.isbuiltin != 1:  # DLPack has no such dtype
        framework = None
    leaves.append(tree)
    frameworks.append(framework)
    return None


def _visit_all(
    trees: Iterable[Any], leaves: list[Any], frameworks: list[str | None]
) -> tuple[Any, ...]:
    return tuple(map(_visit, trees, repeat(leaves), repeat(frameworks)))


@cache
def _find_framework(kind: type) -> str | None:
    name = _FRAMEWORKS.get(kind.__module__.partition(".")[0])
    return name if hasattr(kind, "__dlpack__") else None


@cache
def _is_made_of_dict(kind: type) -> bool:
    """Whether ``kind(dict)`` makes one; other mappings, such as a TensorDict, are leaves."""
    return kind is OrderedDict or (issubclass(kind, dict) and kind.__init__ is dict.__init__)


def _split_jagged(tensor: Any) -> tuple[_core.DeviceArray, _core.DeviceArray] | None:
    """Return values and offsets of a torch nested tensor, or None if it is not a list array."""
    try:
        array = _core.to_arrow_device(tensor)
    except (BufferError, TypeError, ValueError):
        return None
    return array.values, array.offsets


def rebuild(tree: Any, leaves: Iterator[Any]) -> Any:
    """Return the batch of a layout's tree and its leaves."""
    if tree is None:
        return next(leaves)
    kind, names, trees = tree
    values = [next(leaves) if part is None else rebuild(part, leaves) for part in trees]
    if names is not None:
        return kind(zip(names, values, strict=True))
    if kind == _JAGGED:
        return _frameworks.load("torch").make_jagged(*values)
    return kind(*values) if hasattr(kind, "_fields") else kind(values)
