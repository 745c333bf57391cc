"""The commands of ``python -m arrowdl``: inspect, bench, doctor, check and cmake-dir."""

from __future__ import annotations

import sys
from pathlib import Path

import arrowdl
from arrowdl import _core

_USAGE = (
    "usage: python -m arrowdl [--help | --version] "
    "{inspect SOURCE | bench SOURCE | doctor | check module:object | cmake-dir}"
)
_HELP = f"""{_USAGE}

  inspect    say what files have, and what a Loader makes of them: inspect --help
  bench      measure a Loader beside pyarrow and torch: bench --help
  doctor     say what arrowdl finds on this machine, for a bug report
  check      check how an object exchanges data by DLPack or Arrow: check --help
  cmake-dir  print the folder of the CMake package: cmake -Darrowdl_DIR="$(...)"
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
        case ["inspect", *rest]:
            from arrowdl._commands.inspect_command import main as inspect

            return inspect(rest)
        case ["bench", *rest]:
            from arrowdl._commands.bench_command import main as bench

            return bench(rest)
        case ["cmake-dir"]:
            return _print_cmake_dir()
        case ["--help" | "-h"]:
            print(_HELP, end="")
        case ["--version" | "-V"]:
            print(f"arrowdl {arrowdl.__version__}")
        case _:
            print(_USAGE, file=sys.stderr)
            return 2
    return 0


def _print_cmake_dir() -> int:
    """Print where CMake finds the package: beside the extension, also of an editable install."""
    folder = Path(_core.__file__).parent / "lib/cmake/arrowdl"
    if not (folder / "arrowdlConfig.cmake").is_file():
        print(f"this build of arrowdl has no CMake package in {folder}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
