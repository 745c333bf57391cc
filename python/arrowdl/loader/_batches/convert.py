"""Arrow arrays to tensors, as a `Loader` was asked for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from arrowdl import _core

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
    framework: str, stack: bool | Mapping[str, Sequence[str]] | None, options: Mapping[str, Any]
) -> Callable[[_core.DeviceArray], Any]:
    """Return the function that makes a batch of tensors from an array.

    Parameters
    ----------
    framework : {'torch', 'jax', 'numpy'}
    stack : bool or mapping of str to sequence of str
        As of `Loader`.
    options : mapping
        Keyword arguments of `to_torch`, `to_jax` and `to_numpy`: `nulls`, `ragged`, `copy`.
    """
    to_framework = CONVERTERS[framework]
    if not stack:
        return partial(to_framework, **options)
    if stack is True:
        return partial(to_framework, stack=True, **options)
    return partial(stack_groups, to_framework, stack, options)


def stack_groups(
    to_framework: Callable[..., Any],
    groups: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
    array: _core.DeviceArray,
) -> dict[str, Any]:
    """Return the columns of each group as one matrix under its name, and the other columns.

    Raises
    ------
    ValueError
        A group has the name of a column that is in no group.
    """
    stacked = {name for columns in groups.values() for name in columns}
    rest = [name for name in array.field_names if name not in stacked]
    for name in groups:
        if name in rest:
            raise ValueError(
                f'stack: the batch has a column "{name}" that is not stacked: give the matrix '
                "another name"
            )
    batch: dict[str, Any] = {}
    for name, columns in groups.items():
        fields = _core.make_struct(columns, [array.field(column) for column in columns])
        batch[name] = to_framework(fields, stack=True, **options)
    for name in rest:
        batch[name] = to_framework(array.field(name), **options)
    return batch
