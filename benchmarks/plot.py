"""A plot of the ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.timing import format_seconds

REACHED = "#2a78b8"
MISSED = "#d1495b"
INK = "#333333"


def plot(data: dict[str, Any], path: Path) -> None:
    """Draw a bar for each row: our time as a fraction of the peer's, which is the line at 1."""
    rows = data["rows"][::-1]
    figure, axes = plt.subplots(figsize=(10, 0.72 * len(rows) + 1.4), layout="constrained")
    colors = [REACHED if row["reached"] else MISSED for row in rows]
    axes.barh(range(len(rows)), [row["ratio"] for row in rows], height=0.42, color=colors)
    for y, row in enumerate(rows):
        axes.plot([row["target"]] * 2, [y - 0.32, y + 0.32], color=INK, linewidth=2)
        ours, peer = (format_seconds(row[side]["median"]) for side in ("ours", "peer"))
        axes.annotate(
            f"{row['ratio']:.2f}   {ours} : {peer}",
            (max(row["ratio"], row["target"]), y),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=INK,
            fontsize=9,
        )
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rows)), [_label(row) for row in rows], fontsize=9)
    most = max(max(row["ratio"], row["target"]) for row in rows)
    axes.set_xlim(0, most * 1.6)  # room for the numbers
    # A label of the figure: the axes have only half of the width.
    figure.supxlabel("our time : the peer's time (a black mark is the target, shorter is better)")
    title = "arrowdl compared with its peers on the CPU, medians of one run"
    figure.suptitle(title, x=0.01, horizontalalignment="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _label(row: dict[str, Any]) -> str:
    ours, peer = (_shorten(row[side]["statement"]) for side in ("ours", "peer"))
    return f"{ours}\n: {peer}"


def _shorten(statement: str) -> str:
    return statement if len(statement) <= 46 else f"{statement[:43]}..."
