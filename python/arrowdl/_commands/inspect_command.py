"""``python -m arrowdl inspect``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from arrowdl._commands.advise import advise
from arrowdl._commands.inspection import inspect_source
from arrowdl._commands.sources import add_source, choose_framework, fail, open_named


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code: 1 if the source cannot be read, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m arrowdl inspect",
        description="Say what a source has, and what a Loader makes of it. Only metadata is read.",
    )
    add_source(parser)
    parser.add_argument("--framework", choices=["torch", "jax", "numpy"], help="default: torch")
    parsed = parser.parse_args(arguments)
    try:
        source = open_named(parsed.source, parsed.as_)
        found = inspect_source(source, choose_framework(parsed.framework))
    except (OSError, TypeError, ValueError, ImportError) as error:
        return fail(error)
    found.advice = advise(found)
    print(json.dumps(found.to_dict(), indent=2, default=str) if parsed.json else found)
    return 0
