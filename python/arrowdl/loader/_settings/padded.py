"""`Padded`: how lists of several lengths become one padded tensor."""

from __future__ import annotations

import operator
from dataclasses import KW_ONLY, dataclass
from typing import Any, SupportsFloat

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

    value: SupportsFloat = 0
    _: KW_ONLY
    max_length: int | None = None
    multiple: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _read_number(self.value))
        for name in ("max_length", "multiple"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, require_int(f"Padded.{name}", value, 1, 2**63 - 1))


def _read_number(value: Any) -> int | float:
    if not is_number(value):
        raise TypeError(f"Padded.value={value!r}: expected an int, a float or a bool")
    return operator.index(value) if hasattr(value, "__index__") else float(value)
