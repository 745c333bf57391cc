"""`make_table`: a small HTML table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def make_table(
    caption: str,
    rows: Iterable[Sequence[object]],  # the first cell of each is its name
    header: Sequence[str] = (),
) -> str:
    """Return a table whose cells are the texts of objects."""
    lines = [_make_row(header, "th", "th")] if header else []
    lines += [_make_row(row, "th", "td") for row in rows]
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def _make_row(cells: Sequence[object], first: str, other: str) -> str:
    kinds = [first, *[other] * (len(cells) - 1)]
    tagged = zip(kinds, map(str, cells), strict=True)
    return f"<tr>{''.join(f'<{kind}>{escape(text)}</{kind}>' for kind, text in tagged)}</tr>"
