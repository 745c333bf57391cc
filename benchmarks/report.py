"""Results as JSON and as a Markdown table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.cases import Case
from benchmarks.timing import Timing, find_ratio, format_seconds


@dataclass(frozen=True)
class Result:
    """One row: a case and its times."""

    case: Case
    ours: Timing
    peer: Timing

    @property
    def ratio(self) -> float:
        return find_ratio(self.ours, self.peer)

    @property
    def is_reached(self) -> bool:
        return self.ratio <= self.case.target


def to_json(
    results: list[Result], imports: dict[str, Any] | None, machine: dict[str, str]
) -> dict[str, Any]:
    rows = [
        {
            "name": result.case.name,
            "target": result.case.target,
            "ratio": result.ratio,
            "reached": result.is_reached,
            "ours": result.ours.to_json(),
            "peer": result.peer.to_json(),
        }
        for result in results
    ]
    return {"machine": machine, "import": imports, "rows": rows}


def to_markdown(data: dict[str, Any]) -> str:
    lines = [
        "| call | median | peer | median | ratio | at most | reached |",
        "|---|--:|---|--:|--:|--:|---|",
    ]
    for row in data["rows"]:
        cells = [
            f"`{row['ours']['statement']}`",
            _format_spread(row["ours"]),
            f"`{row['peer']['statement']}`",
            _format_spread(row["peer"]),
            f"{row['ratio']:.2f}",
            f"{row['target']:.2f}",
            "yes" if row["reached"] else "**no**",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    if data["import"] is not None:
        imports = data["import"]
        lines += [
            f"`import arrowdl`: {imports['median'] * 1e3:.1f} ms in a fresh interpreter (at most "
            f"{imports['target'] * 1e3:.0f} ms: {'yes' if imports['reached'] else '**no**'}).",
            "",
        ]
    lines.append(", ".join(f"{key} {value}" for key, value in data["machine"].items()) + ".")
    return "\n".join(lines) + "\n"


def _format_spread(timing: dict[str, Any]) -> str:
    low, high = timing["quartiles"]
    half = (high - low) / 2 / timing["median"]
    return f"{format_seconds(timing['median'])} ± {half:.0%}"
