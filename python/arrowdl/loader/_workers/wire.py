"""Batches on their way to another process or device: what of them lies in memory, what is told.

A batch is taken apart into its tree and its leaves. Its tensors are copied into one block of
memory; leaves that are no tensors, and tensors that cannot be read, are pickled beside it. What
lies where in the block is a table of numbers of its own for each batch, the rest is a `Layout`,
which is sent when it has changed.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from arrowdl import _core, _frameworks

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

CONVERTERS = {"torch": _core.to_torch, "jax": _core.to_jax, "numpy": _core.to_numpy}
_FRAMEWORKS = {"torch": "torch", "jaxlib": "jax", "jax": "jax", "numpy": "numpy"}
_WITH_DEVICES: tuple[str | None, ...] = ("torch", "jax")
_JAGGED = "jagged"


@dataclass(frozen=True)
class Layout:
    """What stays the same from batch to batch, as a rule.

    Attributes
    ----------
    tree : object
        None is a leaf. A tuple ``(type, names, trees)`` is a dict, where it has names, or a
        sequence; with ``"jagged"`` for a type it is a torch nested tensor of values and offsets.
    frameworks : tuple of str or None
        Of each leaf that is a tensor.
    """

    tree: Any
    frameworks: tuple[str | None, ...]


@dataclass(frozen=True)
class Message:
    """A batch as it came: its memory is kept as long as anything made of it.

    Attributes
    ----------
    rows : int
    layout : Layout
    block : DeviceArray
        The bytes of the tensors.
    table : bytes
        Where they lie in it.
    others : dict of int to object
        The leaves that are not in the block.
    """

    rows: int
    layout: Layout
    block: _core.DeviceArray
    table: bytes
    others: dict[int, Any]

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        return self.block.nbytes

    def to(self, device: Any) -> Message:
        """The same with its tensors on their way to `device`, all of them by one copy.

        Raises
        ------
        BufferError
            A tensor of torch or JAX is not in the block: it would stay on the host.
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
        """The batch, as the worker's loader gave it out; zero-copy."""
        leaves = _core.read_tensors(self.block, self.table, self.layout.frameworks)
        for i, leaf in self.others.items():
            leaves[i] = leaf
        return rebuild(self.layout.tree, iter(leaves))


def pack(tree: Any, rows: int) -> Message:
    """A batch in a block of new memory: all of its tensors go to a device by one copy."""
    layout, leaves = flatten(tree)
    block = _core.TensorBlock(leaves, layout.frameworks)
    memory = bytearray(block.nbytes)
    block.write(memory)
    others = {i: leaves[i] for i in block.left_out}
    return Message(rows, layout, _core.to_arrow_device(memory), block.table, others)


def flatten(tree: Any) -> tuple[Layout, list[Any]]:
    """The layout of a batch and its leaves, which share its memory."""
    leaves: list[Any] = []
    frameworks: list[str | None] = []

    def visit(tree: Any) -> Any:
        kind: Any = type(tree)
        framework = _find_framework(kind)
        if framework is None:
            if kind is dict or _is_made_of_dict(kind):
                return kind, tuple(tree), tuple(map(visit, tree.values()))
            if isinstance(tree, (tuple, list)):
                return kind, None, tuple(map(visit, tree))
        elif framework == "torch" and tree.is_nested:
            if parts := _split_jagged(tree):
                leaves.extend(parts)
                frameworks.extend(["torch", "torch"])
                return _JAGGED, None, (None, None)
            framework = None
        elif framework == "numpy" and tree.dtype.isbuiltin != 1:  # it could not read them back
            framework = None
        leaves.append(tree)
        frameworks.append(framework)
        return None

    structure = visit(tree)
    return Layout(structure, tuple(frameworks)), leaves


@cache
def _find_framework(kind: type) -> str | None:
    name = _FRAMEWORKS.get(kind.__module__.partition(".")[0])
    return name if hasattr(kind, "__dlpack__") else None


@cache
def _is_made_of_dict(kind: type) -> bool:
    """Whether `kind` takes a dict: other mappings, a TensorDict say, have their own ways."""
    return kind is OrderedDict or (issubclass(kind, dict) and kind.__init__ is dict.__init__)


def _split_jagged(tensor: Any) -> tuple[_core.DeviceArray, _core.DeviceArray] | None:
    """The values and offsets of a torch nested tensor, where it is a list array."""
    try:
        array = _core.to_arrow_device(tensor)
    except (BufferError, TypeError, ValueError):
        return None
    return array.values, array.offsets


def rebuild(tree: Any, leaves: Iterator[Any]) -> Any:
    """The batch again."""
    if tree is None:
        return next(leaves)
    kind, names, trees = tree
    values = [next(leaves) if part is None else rebuild(part, leaves) for part in trees]
    if names is not None:
        return kind(zip(names, values, strict=True))
    if kind == _JAGGED:
        return _frameworks.load("torch").make_jagged(*values)
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def send(connection: Connection, *message: Any) -> None:
    """Send numbers, strings, bytes, None, and lists and dicts of them.

    They are written in a quarter of the time that pickle takes; the interpreter at the other end is
    the same one.
    """
    connection.send_bytes(marshal.dumps(message))


def receive(connection: Connection) -> tuple[Any, ...]:
    """What `send` sent at the other end."""
    message: tuple[Any, ...] = marshal.loads(connection.recv_bytes())
    return message
