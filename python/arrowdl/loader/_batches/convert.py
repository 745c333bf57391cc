"""Arrow arrays to tensors, as a `Loader` was asked for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    framework: str,
    columns: _core.ColumnOptions,
    # ``{"copy": True}`` or ``{"_own": True}`` of `to_torch` and its like: whose memory the tensors
    # are in
    access: Mapping[str, Any],
) -> Callable[[_core.DeviceArray], Any]:
    """Return the function that makes a batch of tensors from an array."""
    to_framework = CONVERTERS[framework]
    # A lambda is called in a fifth of the time of a partial with keywords, and each keyword counts.
    if access.get("copy"):
        return lambda array: to_framework(array, _options=columns, copy=True)
    if access.get("_own"):
        return lambda array: to_framework(array, _options=columns, _own=True)
    return lambda array: to_framework(array, _options=columns)
