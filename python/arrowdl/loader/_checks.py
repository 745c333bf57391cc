"""Checks of single options."""

from __future__ import annotations

import importlib.util
import operator
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal, TypeVar, cast

T = TypeVar("T")
_BOOLS = ("bool_", "bool")  # of NumPy


def require_int(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """`value` as an int; NumPy's integers are accepted.

    Raises ValueError if `value` is not an integer, or is less than `least` or more than `most`.
    """
    limits = "" if least is None else f" of at least {least}"
    limits += "" if most is None else f" and at most {most}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{name}={value!r}: expected an int{limits}")
    number = operator.index(value)
    if (least is not None and number < least) or (most is not None and number > most):
        raise ValueError(f"{name}={value!r}: expected an int{limits}")
    return number


def is_number(value: Any) -> bool:
    """Whether `value` is an int, a float or a bool, of Python, NumPy or ml_dtypes."""
    kind = type(value)
    if isinstance(value, int | float) or kind.__module__ == "ml_dtypes":
        return True
    if kind.__module__ == "numpy" and (isinstance(value, Real) or kind.__name__ in _BOOLS):
        return True
    return hasattr(value, "__index__") and not getattr(value, "shape", ())


def require_choice(name: str, value: Any, choices: Sequence[str], others: str = "") -> None:
    """Raise ValueError unless `value` is one of `choices`; `others` are named beside them."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r}: expected {' or '.join(map(repr, choices))}{others}")


def require_bool(name: str, value: Any, others: str = "") -> bool:
    """`value` as a bool; NumPy's bools are accepted. `others` names what may be given instead.

    Raises TypeError if `value` is not a bool.
    """
    if isinstance(value, bool) or type(value).__name__ in _BOOLS:
        return bool(value)
    is_seed = name == "shuffle" and hasattr(value, "__index__")
    advice = f"; the seed of the shuffle is seed={value!r}" if is_seed else ""
    raise TypeError(f"{name}={value!r}: expected True or False{others}{advice}")


def require_function(name: str, value: Any) -> Callable[[Any], Any]:
    """`value` as a function of one batch.

    Raises TypeError if `value` cannot be called.
    """
    if not callable(value):
        raise TypeError(f"{name}({value!r}): give a function of one batch")
    return cast("Callable[[Any], Any]", value)


def require_names(name: str, value: Any) -> Sequence[str]:
    """`value` as names of columns.

    Raises TypeError if it is not a sequence of strings, or a single one.
    """
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(isinstance(item, str) for item in value):
        raise TypeError(f"{name}={value!r}: give a list of names")
    return cast("Sequence[str]", value)


def require_column(name: str, value: Any) -> str:
    """`value` as the name of a column.

    Raises TypeError if it is not a string, or an empty one.
    """
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name}={value!r}: give the name of a column")
    return value


def require_rows(name: str, value: Any) -> int | Literal["auto"]:
    """`value` as the rows of a buffer, or "auto".

    Raises ValueError if it is neither.
    """
    if isinstance(value, str) and value == "auto":
        return "auto"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f'{name}={value!r}: expected "auto" or a number of rows')
    return require_int(name, value, 1, 2**32 - 1)


def require_instance(
    name: str,  # the option
    value: Any,
    kind: type[T],  # of the value object
    others: str = "",  # what else the option may be, as in "True, False or "
) -> T:
    """`value` as a value object.

    Raises TypeError if `value` is of another type.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name}={value!r}: expected {others}arrowdl.{kind.__name__}(...)")
    return value


def require_installed(kind: str, **modules: str) -> None:
    """Raise ImportError unless libraries are installed, by the names that pip knows them by."""
    for name, module in modules.items():
        if importlib.util.find_spec(module) is None:
            needed = " ".join(modules)
            raise ImportError(
                f"arrowdl.{kind} needs {name}, which is not installed: pip install {needed}"
            )
