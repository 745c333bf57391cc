"""Tables and numbers as text."""

from __future__ import annotations

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return rows of equally many cells as lines; columns of `numbers` are at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def pad(i: int, cell: str) -> str:
        return cell.rjust(widths[i]) if i in numbers else cell.ljust(widths[i])

    return "\n".join("  ".join(pad(i, cell) for i, cell in enumerate(row)).rstrip() for row in rows)
