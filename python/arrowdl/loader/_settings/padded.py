"""`Padded`: how lists of several lengths become one padded tensor."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from arrowdl.loader._checks import is_number, require_int
from arrowdl.loader._settings.value_object import value_object


@value_object
@dataclass(frozen=True, slots=True)
class Padded:
    """Rows of lists are padded to one length, for ``Loader(ragged=Padded(-1, max_length=512))``.

    ``ragged="padded"`` is ``Padded()``. A mapping of columns to these pads each in its own way.

    Parameters
    ----------
    value : int, float or bool
        What rows end with.
    max_length : int, optional
        Values of a row that are kept: longer rows are cut.
    multiple : int, optional
        The width is rounded up to a multiple of this. It is the same for all padded columns.

    Raises
    ------
    TypeError, ValueError
        `value` is not a number, or `max_length` or `multiple` is not a positive integer.
    """

    value: float = 0
    _: KW_ONLY
    max_length: int | None = None
    multiple: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _read_number(self.value))
        for name in ("max_length", "multiple"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, require_int(f"Padded.{name}", value, 1, 2**63 - 1))


def split_padded(ragged: Any) -> dict[str, Any]:
    """Return `ragged=` as the arguments `ragged`, `pad_value`, `max_length`, `pad_to_multiple`.

    Raises
    ------
    ValueError
        Padded columns have several multiples.
    """
    if not isinstance(ragged, Mapping):
        padded = ragged if isinstance(ragged, Padded) else Padded()
        return {
            "ragged": _name_form(ragged),
            "pad_value": padded.value,
            "max_length": padded.max_length,
            "pad_to_multiple": padded.multiple,
        }
    forms = {column: _name_form(form) for column, form in ragged.items()}
    padded_columns = {
        column: form if isinstance(form, Padded) else Padded()
        for column, form in ragged.items()
        if forms[column] == "padded"
    }
    values = {column: form.value for column, form in padded_columns.items()}
    lengths = {
        column: form.max_length
        for column, form in padded_columns.items()
        if form.max_length is not None
    }
    return {
        "ragged": forms,
        "pad_value": 0 if all(map(_is_zero, values.values())) else values,
        "max_length": lengths or None,
        "pad_to_multiple": _find_multiple(padded_columns),
    }


def _find_multiple(padded_columns: Mapping[str, Padded]) -> int | None:
    """Return the one multiple of all padded columns."""
    multiples = {form.multiple for form in padded_columns.values()}
    if len(multiples) > 1:
        given = ", ".join(f'"{name}": {form!r}' for name, form in padded_columns.items())
        raise ValueError(
            f"ragged={{{given}}}: the columns of a batch are padded to one multiple, give the same "
            "Padded.multiple to all of them"
        )
    return multiples.pop() if multiples else None


def _name_form(form: Any) -> Any:
    return "padded" if isinstance(form, Padded) else form


def _is_zero(value: float) -> bool:
    return type(value) is int and value == 0


def _read_number(value: Any) -> int | float:
    if not is_number(value):
        raise TypeError(f"Padded.value={value!r}: expected an int, a float or a bool")
    return operator.index(value) if hasattr(value, "__index__") else float(value)
