"""Errors of conversions in the words of a `Loader`: its own option, and where the nulls are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from arrowdl import _core

# What messages of `to_torch` and its like advise against nulls; the rest lists the policies.
_NULL_ADVICE = re.compile(
    r"(use to_torch\(\), to_jax\(\) or to_numpy\(\) with |use |choose )(?=nulls=)"
)
_CAST_ADVICE = {
    "cast it to an integer or floating point type": (
        "cast it in transform_arrow=, or leave it out of columns="
    ),
    "or cast the data": "or cast with dtype=",
}


def explain_errors(
    convert: Callable[[_core.DeviceArray], Any],
    # takes a column; returns a sentence that says which file has its nulls, or ""
    find_nulls: Callable[[str], str],
) -> Callable[[_core.DeviceArray], Any]:
    """Return `convert` with errors that name the Loader's option, and a file with nulls."""

    def convert_or_explain(array: _core.DeviceArray) -> Any:
        try:
            return convert(array)
        except BufferError as error:
            text = str(error)
            own = _NULL_ADVICE.sub("give the Loader ", text, count=1)
            if own != text:
                error.args = (own,)
                _add_place(error, find_nulls, _find_columns(text, array))
            else:
                for advice, ours in _CAST_ADVICE.items():
                    text = text.replace(advice, ours)
                error.args = (text,)
            raise
        except ValueError as error:
            error.args = (str(error).replace("pad_value=", "Padded.value="),)
            raise

    return convert_or_explain


def _add_place(error: BufferError, find_nulls: Callable[[str], str], columns: list[str]) -> None:
    """Add the file with the nulls of the first of `columns`, if it can be found."""
    try:
        where = find_nulls(columns[0]) if columns else ""
    except Exception as failure:
        error.add_note(f"arrowdl.Loader could not find the file with the nulls: {failure}")
    else:
        error.args = (f"{error}. {where}" if where else str(error),)


def _find_columns(text: str, array: _core.DeviceArray) -> list[str]:
    """Return the column that an error is about, or those with nulls if it names none."""
    names = array.field_names
    named = [name for name in names if text.startswith(f'field "{name}": ')]
    if named:
        return [max(named, key=len)]
    return [name for name in names if array.field(name).null_count > 0]
