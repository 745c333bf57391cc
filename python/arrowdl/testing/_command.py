"""The command ``python -m arrowdl check``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from arrowdl.testing._checks import CHECKS
from arrowdl.testing._report import Report
from arrowdl.testing._run import OpenError, guess_isolated, run_check

_LONGEST = 1e6  # seconds; more is not a limit, and more than the watch can count

# Options of the command: the checks that take them.
_OPTIONS = {
    "read": ("dlpack-consumer", "arrow-consumer"),
    "raw_capsules": ("dlpack-consumer",),
    "protocol": ("arrow-consumer",),
    "tables": ("arrow-consumer",),
    "types": ("arrow-consumer",),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code: 0 without errors, 1 with some, 2 for wrong usage."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    try:
        names = parsed.as_ or guess_isolated(parsed.target, parsed.timeout)
        if not names:
            parser.error(
                f"{parsed.target} has neither __dlpack__ nor Arrow's methods: "
                "say what it is with --as"
            )
        reports = [_run(parser, name, parsed) for name in names]
    except OpenError as error:
        parser.error(str(error))
    if parsed.json:
        print(json.dumps([report.to_dict() for report in reports], indent=2))
    else:
        print("\n\n".join(map(str, reports)))
    return int(any(report.errors for report in reports))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m arrowdl check",
        description="Check how an object or a function exchanges data by DLPack or Arrow.",
        epilog="Exit code: 0 without errors, 1 with some, 2 for wrong usage.",
    )
    parser.add_argument("target", metavar="module:object", help="such as numpy:from_dlpack")
    parser.add_argument(
        "--as",
        dest="as_",
        action="append",
        choices=sorted(CHECKS),
        help="what it is; by default what its methods say. Needed for consumers and functions",
    )
    parser.add_argument("--json", action="store_true", help="print a list of reports as JSON")
    parser.add_argument("--read", metavar="module:function", help="reads the result of a consumer")
    parser.add_argument("--raw-capsules", action="store_true", help="the consumer takes capsules")
    protocols = ["array", "stream", "device_array", "device_stream"]
    parser.add_argument("--protocol", choices=protocols, help="what an Arrow consumer takes")
    parser.add_argument("--tables", action="store_true", help="an Arrow consumer takes tables")
    parser.add_argument(
        "--types",
        metavar="int32,float64",
        type=lambda text: text.split(","),
        help="the types that an Arrow consumer has",
    )
    parser.add_argument("--timeout", type=_seconds, default=60, help="seconds for each case")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < _LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return seconds


def _run(parser: argparse.ArgumentParser, name: str, parsed: argparse.Namespace) -> Report:
    options = {key: getattr(parsed, key) for key in _OPTIONS if getattr(parsed, key)}
    for key in options:
        if name not in _OPTIONS[key]:
            parser.error(f"--{key.replace('_', '-')} is not an option of {name}")
    return run_check(CHECKS[name], parsed.target, options, isolate=True, timeout=parsed.timeout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
