"""`value_object`: lets a dataclass say in errors of its call which fields it has."""

from __future__ import annotations

from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

from arrowdl.loader._settings.unknown import join_names, refuse_unknown_fields

T = TypeVar("T")


def value_object(kind: type[T]) -> type[T]:
    """Return `kind`, whose call raises a TypeError with its fields for what it does not take."""
    init: Any = kind.__init__
    own_fields = fields(kind)  # type: ignore[arg-type]  # a dataclass, which no type says
    names = [field.name for field in own_fields]
    unnamed = [field.name for field in own_fields if not field.kw_only]
    named = [name for name in names if name not in unnamed]

    @wraps(init)
    def check(self: T, *values: Any, **keywords: Any) -> None:
        if unknown := [name for name in keywords if name not in names]:
            refuse_unknown_fields(kind.__name__, unknown, names)
        if len(values) > len(unnamed):
            _refuse_values(kind.__name__, len(values), unnamed, named)
        init(self, *values, **keywords)

    type.__setattr__(kind, "__init__", check)
    return kind


def _refuse_values(kind: str, number: int, unnamed: list[str], named: list[str]) -> None:
    """Raise TypeError, since a call has more values without names than may be."""
    most = f"{len(unnamed)} ({join_names(unnamed)})" if unnamed else "none"
    advice = f": give {join_names(named)} by name" if named else ""
    raise TypeError(f"{kind}() takes {most} of its values without a name, got {number}{advice}")
