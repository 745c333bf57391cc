"""Results on a GPU as JSON and as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu.cases import MEGABYTE, Call, Direction
from benchmarks.gpu.operations import Operation
from benchmarks.timing import Timing, find_ratio, format_seconds


@dataclass(frozen=True)
class CallResult:
    call: Call
    ours: Timing
    peer: Timing
    waits: bool | None  # whether a call of ours waits for the GPU; None: it has to

    @property
    def ratio(self) -> float:
        return find_ratio(self.ours, self.peer)


@dataclass(frozen=True)
class CopyResult:
    direction: Direction
    size: int
    pinned: Timing
    others: list[Timing]

    def share(self, timing: Timing) -> float:
        """Return the share of the bandwidth that a copy of pinned memory has."""
        return self.pinned.median / timing.median

    def bandwidth(self, timing: Timing) -> float:
        """Bytes per second."""
        return self.size / timing.median


@dataclass(frozen=True)
class OperationResult:
    operation: Operation
    rows: int
    timing: Timing
    copy_bandwidth: float  # bytes read and written per second, of a copy in device memory

    @property
    def bandwidth(self) -> float:
        return self.operation.bytes_per_row * self.rows / self.timing.median

    @property
    def share(self) -> float:
        return self.bandwidth / self.copy_bandwidth


def to_json(
    calls: list[CallResult],
    copies: list[CopyResult],
    operations: list[OperationResult],
    machine: dict[str, str],
    command: str,
    missing: Sequence[str] = (),  # rows that could not run, with the reason
) -> dict[str, Any]:
    return {
        "machine": machine,
        "command": command,
        "missing": list(missing),
        "calls": [
            {
                "name": result.call.name,
                "ratio": result.ratio,
                "target": result.call.target,
                "waits": result.waits,
                "ours": result.ours.to_json(),
                "peer": result.peer.to_json(),
            }
            for result in calls
        ],
        "copies": [
            {
                "direction": result.direction.name,
                "bytes": result.size,
                "share": result.share(timing),
                "target": result.direction.targets.get(timing.statement),
                "bandwidth": result.bandwidth(timing),
                "timing": timing.to_json(),
            }
            for result in copies
            for timing in [result.pinned, *result.others]
        ],
        "operations": [
            {
                "name": result.operation.name,
                "rows": result.rows,
                "share": result.share,
                "target": result.operation.target,
                "bandwidth": result.bandwidth,
                "timing": result.timing.to_json(),
            }
            for result in operations
        ],
    }


def to_markdown(data: dict[str, Any]) -> str:
    lines = [
        "# On a GPU",
        "",
        ", ".join(f"{key} {value}" for key, value in data["machine"].items()) + ".",
        "",
        f"`{data['command']}`",
    ]
    if data["calls"]:
        lines += ["", "| call | median | peer | median | ratio | at most | waits |"]
        lines += ["|---|--:|---|--:|--:|--:|---|"]
        lines += [_format_call(row) for row in data["calls"]]
    if data["missing"]:
        lines += ["", *(f"- Not run: {reason}" for reason in data["missing"])]
    if data["copies"]:
        lines += ["", "| copy | MiB | median | GB/s | of pinned | at least |"]
        lines += ["|---|--:|--:|--:|--:|--:|"]
        lines += [_format_copy(row) for row in data["copies"]]
    if data["operations"]:
        lines += ["", "| operation | median | GB/s | of a copy | at least |"]
        lines += ["|---|--:|--:|--:|--:|"]
        lines += [_format_operation(row) for row in data["operations"]]
    return "\n".join(lines) + "\n"


def _format_call(row: dict[str, Any]) -> str:
    cells = []
    for timing in row["ours"], row["peer"]:
        cells += [f"`{timing['statement']}`", format_spread(timing)]
    waits = {None: "", False: "no", True: "**yes**"}[row["waits"]]
    most = "" if row["target"] is None else f"{row['target']:.2f}"
    return f"| {' | '.join(cells)} | {row['ratio']:.2f} | {most} | {waits} |"


def _format_copy(row: dict[str, Any]) -> str:
    timing = row["timing"]
    cells = [
        f"`{timing['statement']}`",
        str(row["bytes"] // MEGABYTE),
        format_spread(timing),
        f"{row['bandwidth'] / 1e9:.2f}",
        f"{row['share']:.0%}",
        "" if row["target"] is None else f"{row['target']:.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def _format_operation(row: dict[str, Any]) -> str:
    cells = [
        f"{row['name']}: `{row['timing']['statement']}`",
        format_spread(row["timing"]),
        f"{row['bandwidth'] / 1e9:.2f}",
        f"{row['share']:.0%}",
        "" if row["target"] is None else f"{row['target']:.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def format_spread(timing: dict[str, Any]) -> str:
    low, high = timing["quartiles"]
    return f"{format_seconds(timing['median'])} ± {(high - low) / 2 / timing['median']:.0%}"
