"""Batches as Arrow messages: trees of tensors to record batches and back.

A tree is taken apart into its structure and its leaves. Tensors with as many rows become the
columns of one record batch, so that a usual batch is one message. What is no tensor, and tensors
that have no Arrow reading, are pickled beside it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from arrowdl import _core

if TYPE_CHECKING:
    import pyarrow as pa

CONVERTERS = {"torch": _core.to_torch, "jax": _core.to_jax, "numpy": _core.to_numpy}
_FRAMEWORKS = {"torch": "torch", "jaxlib": "jax", "jax": "jax", "numpy": "numpy"}


@dataclass(frozen=True)
class Layout:
    """What stays the same from batch to batch.

    Attributes
    ----------
    tree : object
        Nested tuples: see `_Flattener`.
    frameworks : tuple of str
        Of the tensors of each record batch.
    schemas : tuple of pyarrow.Schema
        Of each record batch.
    """

    tree: Any
    frameworks: tuple[str, ...]
    schemas: tuple[pa.Schema, ...]


@dataclass(frozen=True)
class Flat:
    """A batch taken apart.

    Attributes
    ----------
    tree, frameworks : object
        As of `Layout`.
    batches : list of pyarrow.RecordBatch
        The tensors.
    others : list
        Leaves that are pickled.
    """

    tree: Any
    frameworks: tuple[str, ...]
    batches: list[pa.RecordBatch]
    others: list[Any]


def flatten(tree: Any) -> Flat:
    """Take a batch apart; zero-copy where `to_arrow_device` is."""
    import pyarrow as pa

    flattener = _Flattener()
    structure = flattener.visit(tree)
    batches = [
        pa.record_batch(_join(arrays, framework))
        for (framework, _), arrays in flattener.groups.items()
    ]
    frameworks = tuple(framework for framework, _ in flattener.groups)
    return Flat(structure, frameworks, batches, flattener.others)


def _join(arrays: list[_core.DeviceArray], framework: str) -> _core.DeviceArray:
    struct = _core.make_struct(_name_columns(len(arrays)), arrays)
    if not _core.is_host_readable(struct.device):
        raise BufferError(
            f"a worker process hands over host memory, and the transform gave {framework} tensors "
            f"on {struct.device}: leave them on the host, and pass device= to the Loader"
        )
    return struct


@cache
def _name_columns(count: int) -> list[str]:
    return [str(i) for i in range(count)]


class _Flattener:
    """Makes the structure of a tree while it collects the leaves.

    A structure is ``("column", batch, i, is_scalar)``, ``("other", i)``,
    ``("dict", type, names, structures)`` or ``("sequence", type, structures)``.
    """

    def __init__(self) -> None:
        # By framework and number of rows, in the order of their first tensors.
        self.groups: dict[tuple[str, int], list[_core.DeviceArray]] = {}
        self._positions: dict[tuple[str, int], int] = {}
        self.others: list[Any] = []

    def visit(self, tree: Any) -> Any:
        kind: Any = type(tree)
        framework = _find_framework(kind)
        if framework is not None:
            leaf = self._add_tensor(tree, framework)
            if leaf is not None:
                return leaf
        elif kind is dict or (isinstance(tree, Mapping) and _is_made_of_dict(kind)):
            return "dict", kind, tuple(tree), tuple(map(self.visit, tree.values()))
        elif isinstance(tree, (tuple, list)):
            return "sequence", kind, tuple(map(self.visit, tree))
        self.others.append(tree)
        return "other", len(self.others) - 1

    def _add_tensor(self, tensor: Any, framework: str) -> Any:
        if framework == "numpy" and tensor.dtype.isbuiltin != 1:  # it could not read them back
            return None
        try:
            array = _core.to_arrow_device(tensor)
        except (BufferError, TypeError, ValueError):
            return None
        key = framework, len(array)
        group = self.groups.get(key)
        if group is None:
            self._positions[key] = len(self.groups)
            group = self.groups[key] = []
        group.append(array)
        # One row may be of a tensor without dimensions, which is told apart by asking.
        is_scalar = key[1] == 1 and tensor.ndim == 0
        return "column", self._positions[key], len(group) - 1, is_scalar


@cache
def _find_framework(kind: type) -> str | None:
    name = _FRAMEWORKS.get(kind.__module__.partition(".")[0])
    return name if hasattr(kind, "__dlpack__") else None


def _is_made_of_dict(kind: type) -> bool:
    """Whether `kind` takes a dict: other mappings, a TensorDict say, have their own ways."""
    return issubclass(kind, dict) and kind.__init__ is dict.__init__


def rebuild(tree: Any, columns: list[list[Any]], others: list[Any]) -> Any:
    """The batch of structure `tree` again: `columns` are the tensors of each record batch."""
    kind = tree[0]
    if kind == "column":
        tensor = columns[tree[1]][tree[2]]
        return tensor.reshape(()) if tree[3] else tensor
    if kind == "other":
        return others[tree[1]]
    values = [rebuild(part, columns, others) for part in tree[-1]]
    if kind == "dict":
        return tree[1](zip(tree[2], values, strict=True))
    return tree[1](*values) if hasattr(tree[1], "_fields") else tree[1](values)


def dump_layout(layout: Layout) -> bytes:
    schemas = [schema.serialize().to_pybytes() for schema in layout.schemas]
    return pickle.dumps((layout.tree, layout.frameworks, schemas))


def load_layout(data: bytes) -> Layout:
    import pyarrow as pa

    tree, frameworks, schemas = pickle.loads(data)
    return Layout(tree, frameworks, tuple(pa.ipc.read_schema(pa.py_buffer(s)) for s in schemas))
