"""Checks what is given as `filter`."""

from __future__ import annotations

from typing import Any


def check_filter(filter: Any, also: str = "") -> None:
    """Raise TypeError unless `filter` is None or a pyarrow expression; `also` ends the advice."""
    import pyarrow.compute as pc

    if filter is not None and not isinstance(filter, pc.Expression):
        raise TypeError(
            f"filter={filter!r}: give a pyarrow expression, such as "
            'pyarrow.dataset.field("x") > 3; pyarrow.parquet.filters_to_expression makes one from '
            f"tuples{also}"
        )
