"""The commands ``python -m arrowdl doctor`` and ``python -m arrowdl check``."""

from __future__ import annotations

import sys

import arrowdl

_USAGE = "usage: python -m arrowdl [--help | --version] {doctor | check module:object}"
_HELP = f"""{_USAGE}

  doctor     say what arrowdl finds on this machine, for a bug report
  check      check how an object exchanges data by DLPack or Arrow: check --help
  --version  print the version
"""


def main(arguments: list[str]) -> int:
    """Run a command; return its exit code, 2 for wrong usage."""
    match arguments:
        case ["doctor"]:
            print(arrowdl.doctor())
        case ["check", *rest]:
            from arrowdl.testing._command import main as check

            return check(rest)
        case ["--help" | "-h"]:
            print(_HELP, end="")
        case ["--version" | "-V"]:
            print(f"arrowdl {arrowdl.__version__}")
        case _:
            print(_USAGE, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
