"""Errors of keywords that a `Loader` or a value object does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from arrowdl.loader._settings.advice import ADVICE, FIELDS, LOADER, OF_MIX


class NoOptions(TypedDict):
    """The keywords that a `Loader` takes beside its own: none, which type checkers know by this."""


def refuse_unknown(given: Iterable[str], ours: Iterable[str]) -> None:
    """Raise TypeError if keywords are `given` that `Loader` does not have."""
    _refuse("Loader", {name: f"give {_advise(name, ADVICE, ours)}" for name in given})


def refuse_unknown_of_mix(given: Iterable[str], ours: Iterable[str]) -> None:
    """Raise TypeError if keywords are `given` that `Loader.mix` does not have."""
    table = {**ADVICE, **OF_MIX}
    _refuse("Loader.mix", {name: f"give {_advise(name, table, ours)}" for name in given})


def refuse_unknown_fields(kind: str, given: Iterable[str], fields: Iterable[str]) -> None:
    """Raise TypeError if keywords are `given` that the value object `kind` does not have."""
    names = list(fields)
    told = {name: _advise_field(kind, name, names) for name in given}
    _refuse(kind, told, f"; {kind} has {join_names(names)}")


def join_names(names: Iterable[str]) -> str:
    """Return keywords as they are written in calls."""
    return ", ".join(f"{name}=" for name in names)


def _refuse(who: str, told: Mapping[str, str], end: str = "") -> None:
    if told:
        what = "unexpected keyword arguments" if len(told) > 1 else "an unexpected keyword argument"
        texts = "; ".join(f"{name!r}: {text}" for name, text in told.items())
        raise TypeError(f"{who}() got {what} {texts}{end}")


def _advise(name: str, table: Mapping[str, str], ours: Iterable[str]) -> str:
    """Return what to write in place of a keyword."""
    if name in table:
        return table[name]
    options = sorted(ours)
    close = _find_close(name, options)
    return f"{close}=" if close else f"one of {join_names(options)}"


def _advise_field(kind: str, name: str, fields: list[str]) -> str:
    """Return what to write in place of a field: one of the object, or what the Loader takes."""
    if name in FIELDS[kind]:
        return f"give {FIELDS[kind][name]}"
    if name in LOADER:
        return f"it is an option of the Loader, give Loader({name}=...)"
    if name in ADVICE:
        return f"give the Loader {ADVICE[name]}"
    close = _find_close(name, fields)
    return f"give {close}=" if close else "there is no such field"


def _find_close(name: str, names: list[str]) -> str | None:
    """Return the keyword that is spelled like `name`."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, 1)), None)
