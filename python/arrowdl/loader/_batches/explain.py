"""Errors of conversions in the words of a `Loader`: its own option, and where the nulls are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arrowdl import _core

_CAST = "cast it in transform_arrow=, or leave it out of columns="


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
            parts: Any = error
            if getattr(error, "hint", None) is not None:
                advice = _CAST if parts.option is None else f"give the Loader {parts.hint}"
                error.args = (f"{parts.reason}: {advice}",)
                if parts.option == "nulls" and parts.column:
                    _add_place(error, parts.column, find_nulls)
            raise

    return convert_or_explain


def _add_place(error: BufferError, column: str, find_nulls: Callable[[str], str]) -> None:
    """Add the file with the nulls of `column`, if it can be found."""
    try:
        where = find_nulls(column)
    except Exception as failure:
        error.add_note(f"arrowdl.Loader could not find the file with the nulls: {failure}")
    else:
        error.args = (f"{error}. {where}" if where else str(error),)
