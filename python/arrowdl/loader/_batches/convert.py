"""Arrow arrays to tensors, as a `Loader` was asked for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._columns import ColumnOptions

CONVERTERS: dict[str, Callable[..., Any]] = {
    "torch": _core.to_torch,
    "jax": _core.to_jax,
    "numpy": _core.to_numpy,
}

# Types whose lengths or offsets the host reads while it converts (bytes, strings, lists, maps, run
# ends, unions), and the null type, which has no tensor.
_READ_ON_THE_HOST = ("z", "Z", "u", "U", "v", "n", "+l", "+L", "+v", "+m", "+r", "+u")


def can_convert_on_device(schema: _core.Schema) -> bool:
    """Whether arrays of `schema` become tensors on a device that the host cannot read."""
    is_fixed = schema.dictionary is not None or not schema.format.startswith(_READ_ON_THE_HOST)
    return is_fixed and all(map(can_convert_on_device, schema.children))


def choose_converter(
    framework: str,
    stack: bool | Mapping[str, Sequence[str]] | None,  # see `Loader`
    columns: ColumnOptions,
    # keyword arguments of `to_torch`, `to_jax` and `to_numpy` that say whose memory the tensors are
    # in
    access: Mapping[str, Any],
) -> Callable[[_core.DeviceArray], Any]:
    """Return the function that makes a batch of tensors from an array."""
    to_framework = CONVERTERS[framework]
    if not isinstance(stack, Mapping):
        arguments = {**columns.list_arguments(), **access}
        if stack:
            arguments["stack"] = True
        # A lambda is called in a fifth of the time of a partial with keywords.
        if arguments == {"_own": True}:
            return lambda array: to_framework(array, _own=True)
        return partial(to_framework, **arguments) if arguments else to_framework
    stacked = {name for names in stack.values() for name in names}
    matrices = [
        _Matrix(name, list(names), {**columns.list_arguments_of(names, name), **access})
        for name, names in stack.items()
    ]
    rest = {**columns.list_arguments_without([*stacked, *stack]), **access}
    return partial(_stack, to_framework, matrices, stacked, rest)


@dataclass(frozen=True)
class _Matrix:
    """A matrix of a batch: its columns, and the keyword arguments of `to_torch` for them."""

    name: str
    columns: list[str]
    arguments: dict[str, Any]


def _stack(
    to_framework: Callable[..., Any],
    matrices: Sequence[_Matrix],
    stacked: set[str],
    rest_arguments: Mapping[str, Any],
    array: _core.DeviceArray,
) -> dict[str, Any]:
    """Return each matrix under its name, which no other column may have, and the other columns."""
    rest = [name for name in array.field_names if name not in stacked]
    for matrix in matrices:
        if matrix.name in rest:
            raise ValueError(
                f'stack: the batch has a column "{matrix.name}" that is not stacked: give the '
                "matrix another name"
            )
    batch: dict[str, Any] = {}
    for matrix in matrices:
        fields = _select(array, matrix.columns)
        batch[matrix.name] = to_framework(fields, stack=True, **matrix.arguments)
    if rest:
        batch |= to_framework(_select(array, rest), **rest_arguments)
    return batch


def _select(array: _core.DeviceArray, names: Sequence[str]) -> _core.DeviceArray:
    return _core.make_struct(names, [array.field(name) for name in names])
