"""Tables and numbers as text."""

from __future__ import annotations

from collections.abc import Sequence


def escape(text: str) -> str:
    """Return a text whose control characters, which a terminal obeys, are escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def align(rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return rows of equally many cells as lines; columns of `numbers` are at the right."""
    rows = [list(map(escape, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def pad(i: int, cell: str) -> str:
        return cell.rjust(widths[i]) if i in numbers else cell.ljust(widths[i])

    return "\n".join("  ".join(pad(i, cell) for i, cell in enumerate(row)).rstrip() for row in rows)
