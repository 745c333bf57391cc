"""How the results of a consumer are read and written: by the names that libraries have for it."""

from __future__ import annotations

from typing import Any

from arrowdl.testing._managed import can_read, export_newest, read_values

_READERS = ("to_pylist", "to_dicts", "tolist", "to_list")


def read_result(result: Any) -> Any:
    """Return the values of `result` as Python's own: lists, numbers, text."""
    if isinstance(result, int | float | str):  # bool is an int
        return result
    for name in _READERS:
        method = getattr(result, name, None)
        if callable(method):
            return method()
    if hasattr(result, "__dlpack__"):
        exported = export_newest(result)
        if can_read(exported.tensor):
            return read_values(exported.tensor)
    try:
        return [value.as_py() if hasattr(value, "as_py") else value for value in result]
    except TypeError:
        raise TypeError(
            f"cannot read the values of {type(result).__name__}: pass read=, a function that "
            "returns them as lists"
        ) from None


def write_result(result: Any) -> None:
    """Write to the first element of `result`, which may refuse."""
    first = result
    while getattr(first, "ndim", 1) > 1:
        first = first[0]
    first[0] = 42


def flat(values: Any) -> list[Any]:
    """The leaves of nested lists, or of an array that has `tolist`."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, list | tuple):
        return [values]
    return [leaf for value in values for leaf in flat(value)]


def same_values(seen: Any, wanted: list[Any]) -> bool:
    """Whether `seen`, nested or not, has the leaves `wanted` of the same kinds."""
    leaves = flat(seen)
    return len(leaves) == len(wanted) and all(
        (type(leaf) is type(want) and leaf == want) or _equal_numbers(leaf, want)
        for leaf, want in zip(leaves, wanted, strict=True)
    )


def _equal_numbers(leaf: Any, want: Any) -> bool:
    numbers = isinstance(leaf, int | float) and isinstance(want, int | float)
    same_kind = isinstance(leaf, bool) == isinstance(want, bool)
    return numbers and same_kind and leaf == want
