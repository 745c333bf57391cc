"""Checks what is given as `filter`, and describes it."""

from __future__ import annotations

import hashlib
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


def describe_filter(filter: Any) -> str:
    """Return a text that is the same for the same filter alone.

    pyarrow's own leaves out values in the middle of long lists, and ends of long strings.
    """
    text = str(filter)
    if isinstance(filter, str) or "..." not in text:
        return text
    import pyarrow as pa

    (pickled,) = filter.__reduce__()[1]  # an Arrow file with the values
    with pa.ipc.open_file(pickled) as file:
        values = [column.to_pylist() for column in file.read_all().columns]
    return f"{text} {hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()}"
