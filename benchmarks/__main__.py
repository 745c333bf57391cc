"""The command line: `python -m benchmarks [--quick] [NAME ...]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, Case
from benchmarks.imports import measure_import, summarize
from benchmarks.machine import describe_machine
from benchmarks.plot import plot
from benchmarks.report import Result, to_json, to_markdown
from benchmarks.timing import FULL, QUICK, Budget, measure

RESULTS = Path(__file__).parent / "results"
IMPORT = "import"


def main() -> None:
    arguments = _parse_arguments()
    budget = QUICK if arguments.quick else FULL
    cases = [case for case in CASES if not arguments.names or case.name in arguments.names]
    machine = describe_machine()
    imports = None
    if not arguments.names or IMPORT in arguments.names:
        imports = summarize(measure_import(5 if arguments.quick else 25))
    data = to_json([_run(case, budget) for case in cases], imports, machine)
    table = to_markdown(data)
    print(f"\n{table}")
    if not arguments.names:
        _write(data, table, arguments.results)


def _parse_arguments() -> argparse.Namespace:
    names = [IMPORT, *(case.name for case in CASES)]
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*names, []],
        metavar="NAME",
        help=f"only these, and write no files: {', '.join(names)}",
    )
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, rough")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the files go")
    return parser.parse_args()


def _run(case: Case, budget: Budget) -> Result:
    ours, peer = measure([case.ours, case.peer], case.make_names(), budget)
    result = Result(case, ours, peer)
    mark = "" if result.is_reached else "  <- missed"
    print(f"{case.name:20} {result.ratio:5.2f} (at most {case.target:.2f}){mark}", flush=True)
    return result


def _write(data: dict[str, Any], table: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / "cpu.md").write_text(table)
    plot(data, folder / "cpu.png")
    print(f"written: {folder}/cpu.json, cpu.md, cpu.png")


if __name__ == "__main__":
    main()
