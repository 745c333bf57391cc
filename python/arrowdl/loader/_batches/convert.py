"""What becomes of a batch between the Arrow array and the training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._workers.wire import CONVERTERS

# Lengths and ends that are read where the data lies, and so on the host: bytes, texts, lists, maps,
# run ends, unions; and what has no tensor at all.
_READ_ON_THE_HOST = ("z", "Z", "u", "U", "v", "n", "+l", "+L", "+v", "+m", "+r", "+u")


def can_convert_there(schema: _core.Schema) -> bool:
    """Whether arrays of `schema` become tensors on a device that the host cannot read."""
    is_own = schema.dictionary is not None or not schema.format.startswith(_READ_ON_THE_HOST)
    return is_own and all(map(can_convert_there, schema.children))


def choose_converter(
    framework: str, stack: bool | Mapping[str, Sequence[str]], options: Mapping[str, Any]
) -> Callable[[_core.DeviceArray], Any]:
    """What makes the tensors of an array.

    Parameters
    ----------
    framework : str
        One of `CONVERTERS`.
    stack, options : object
        As the loader was given them; `nulls`, `ragged` and whose memory it is are the options.
    """
    to_framework: Callable[..., Any] = CONVERTERS[framework]
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
    """The columns of each group side by side under its name, and the others."""
    stacked = {name for columns in groups.values() for name in columns}
    rest = [name for name in array.field_names if name not in stacked]
    for name in groups:
        if name in rest:
            raise ValueError(
                f'stack: "{name}" is a column that is not stacked, and has its place in the batch: '
                "give the matrix another name"
            )
    batch: dict[str, Any] = {}
    for name, columns in groups.items():
        fields = _core.make_struct(columns, [array.field(column) for column in columns])
        batch[name] = to_framework(fields, stack=True, **options)
    for name in rest:
        batch[name] = to_framework(array.field(name), **options)
    return batch


def pin(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {name: pin(value) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pin, batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(pin(value) for value in batch)
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch
