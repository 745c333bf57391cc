"""The command line: `python -m benchmarks.loader [--quick] [--peers] [NAME ...]`."""

from __future__ import annotations

import argparse
import json
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.loader import peers, shapes, walls
from benchmarks.loader.calls import measure_calls
from benchmarks.loader.cases import Case, make_cases
from benchmarks.loader.data import write_files
from benchmarks.loader.network import measure_network, to_markdown
from benchmarks.loader.other_loaders import make_loader_cases
from benchmarks.loader.random_rows import make_random_cases, make_random_peers
from benchmarks.loader.worker_batches import measure_rows
from benchmarks.machine import describe_machine
from benchmarks.timing import Budget, format_seconds, measure

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
DATA = ROOT / "build/benchmark-data"
FULL = Budget(loop_seconds=0, total_seconds=12.0, min_rounds=7)
# For peers that take seconds where arrowdl takes milliseconds.
PEERS = Budget(loop_seconds=0, total_seconds=4.0, min_rounds=3)
QUICK = Budget(loop_seconds=0, total_seconds=0, min_rounds=2)


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.loader", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, and write no files")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds each, rough; writes no files"
    )
    parser.add_argument(
        "--peers", action="store_true", help="compare with the loaders of `make bench BENCH=peers`"
    )
    arguments = parser.parse_args()
    write_files(DATA)
    budget = QUICK if arguments.quick else PEERS if arguments.peers else FULL
    cases = (
        chain(peers.make_peer_cases(DATA), make_loader_cases(DATA), make_random_peers(DATA))
        if arguments.peers
        else chain(make_cases(DATA), make_random_cases(DATA))
    )
    rows = [
        _run(case, budget) for case in cases if not arguments.names or case.name in arguments.names
    ]
    is_whole = not arguments.names and not arguments.peers
    if is_whole:
        rows += measure_rows(2 if arguments.quick else 5)
    calls = measure_calls(DATA) if is_whole else []
    seconds = 0 if arguments.quick else shapes.SECONDS
    found = shapes.measure_shapes(seconds=seconds) if is_whole else []
    network = [] if arguments.names else measure_network(2 if arguments.quick else 5)
    passes = walls.measure_walls(2 if arguments.quick else 9) if is_whole else []
    machine = describe_machine(peers.PACKAGES) if arguments.peers else describe_machine()
    data = {"machine": machine, "rows": rows, "calls": calls, "shapes": found, "network": network}
    data["walls"] = passes
    table = _to_markdown(data)
    print(f"\n{table}")
    if not arguments.names and not arguments.quick:
        stem = "loader-peers" if arguments.peers else "loader"
        (RESULTS / f"{stem}.json").write_text(json.dumps(data, indent=1) + "\n")
        (RESULTS / f"{stem}.md").write_text(table)


def _run(case: Case, budget: Budget) -> dict[str, Any]:
    names = {"ours": case.ours, "peer": case.peer}
    ours, peer = measure(["ours()", "peer()"], names, budget)
    ratio = ours.median / peer.median
    mark = "" if ratio <= case.target else "  <- missed"
    print(f"{case.name:26} {ratio:6.3f} (at most {case.target:g}){mark}", flush=True)
    return {
        "name": case.name,
        "ours": ours.to_json(),
        "peer": peer.to_json(),
        "peer_name": case.peer_name,
        "ratio": ratio,
        "target": case.target,
        "reached": ratio <= case.target,
    }


def _to_markdown(data: dict[str, Any]) -> str:
    lines = [
        "| pass | median | peer | median | ratio | at most | reached |",
        "|---|--:|---|--:|--:|--:|---|",
    ]
    for row in data["rows"]:
        cells = [
            f"`{row['name']}`",
            format_seconds(row["ours"]["median"]),
            row["peer_name"],
            format_seconds(row["peer"]["median"]),
            f"{row['ratio']:.2g}",
            f"{row['target']:g}",
            "yes" if row["reached"] else "**no**",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if data["calls"]:
        lines += ["", "| call | median | at most | reached | peer | median |"]
        lines += ["|---|--:|--:|---|---|--:|"]
    for call in data["calls"]:
        reached = "yes" if call["median"] <= call["target"] else "**no**"
        lines.append(
            f"| {call['name']} | {format_seconds(call['median'])} | "
            f"{format_seconds(call['target'])} | {reached} | "
            f"{call['peer_name']} | {format_seconds(call['peer'])} |"
        )
    if data["shapes"]:
        lines += ["", *shapes.to_markdown(data["shapes"])]
    if data["network"]:
        lines += ["", *to_markdown(data["network"])]
    if data.get("walls"):
        lines += ["", *walls.to_markdown(data["walls"])]
    lines += ["", ", ".join(f"{key} {value}" for key, value in data["machine"].items()) + "."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
