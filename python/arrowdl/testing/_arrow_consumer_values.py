"""The cases of `check_arrow_consumer` that are about the values that it reads."""

from __future__ import annotations

import functools
from typing import Any

from arrowdl.testing._arrow_cases import COLUMNS, Column
from arrowdl.testing._arrow_consumer import Consumer, Panic
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote


def _column(column: Column, consumer: Consumer, to: Recorder) -> None:
    made = consumer.offer(column.make)
    seen = consumer.read_from(made)
    if isinstance(seen, Exception):
        types = consumer.types
        lacks = [] if types is None else [name for name in column.types if name not in types]
        if lacks and not isinstance(seen, Panic):
            to.skip(column.rule, f"types= has no {lacks[0]}, which is refused: {quote(seen)}")
            return
        has_to = column.common if types is None else not lacks
        to.expect(
            column.rule,
            not has_to and not isinstance(seen, Panic),
            f"raised {quote(seen)}",
            "import it, or raise an exception that `except Exception` catches, and leave the type "
            "out of types=",
            "error" if has_to else "warning",
        )
        return
    to.expect(
        column.rule,
        same(seen, column.values),
        f"reads {seen!r:.70}, not {column.values!r:.70}",
        "read the field, or raise an exception",
    )


def _case_of(column: Column) -> Case:
    """Each column is a case: it may crash without the others."""
    return Case(column.name, column.rule, functools.partial(_column, column))


def same(seen: Any, wanted: Any) -> bool:
    """Whether rows have equal values, of which true and 1 are two."""
    if isinstance(wanted, list):
        return (
            isinstance(seen, list | tuple)
            and len(seen) == len(wanted)
            and all(map(same, seen, wanted))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(seen, dict)
            and seen.keys() == wanted.keys()
            and all(same(seen[key], wanted[key]) for key in wanted)
        )
    try:
        return bool(seen == wanted) and isinstance(seen, bool) == isinstance(wanted, bool)
    except Exception:  # an array in the place of a value
        return False


CASES = tuple(map(_case_of, COLUMNS))
