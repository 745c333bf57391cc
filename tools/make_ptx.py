"""Compiles cpp/src/backends/kernels/bitmap.cu to PTX, and writes it to bitmap_ptx.hpp beside it.

Needs nvcc and ptxas of a CUDA toolkit. `--check` writes nothing, and fails if the file differs
from what this toolkit compiles.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "cpp/src/backends/kernels/bitmap.cu"
HEADER = SOURCE.with_name("bitmap_ptx.hpp")

# The oldest GPUs and drivers that take such code: Maxwell, and those of CUDA 9. A driver compiles
# PTX for its GPU, of any later kind. nvcc names newer ones than the code needs; ptxas checks that.
VERSION = "6.0"
TARGET = "sm_52"
OLDEST_OF_NVCC = "compute_75"
CHECKED_ON = ("sm_75", "sm_80", "sm_90", "sm_100")

TEMPLATE = """\
// Made by tools/make_ptx.py of bitmap.cu with CUDA {release}: not to be edited.
#pragma once

namespace arrowdl {{

// clang-format off
inline constexpr char kExpandPtx[] = R"ptx(
{ptx}
)ptx";
// clang-format on

}}  // namespace arrowdl
"""


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def find_release() -> str:
    """The toolkit's "13.0"."""
    match = re.search(r"release (\d+\.\d+)", run("nvcc", "--version"))
    assert match is not None
    return match.group(1)


def compile_ptx(folder: Path) -> str:
    made = folder / "expand.ptx"
    run("nvcc", "-ptx", f"-arch={OLDEST_OF_NVCC}", "-std=c++17", SOURCE, "-o", made)
    ptx = re.sub(r"//.*", "", made.read_text())
    ptx = re.sub(r"^\.version .*$", f".version {VERSION}", ptx, flags=re.MULTILINE)
    ptx = re.sub(r"^\.target .*$", f".target {TARGET}", ptx, flags=re.MULTILINE)
    ptx = "\n".join(line.rstrip() for line in ptx.splitlines() if line.strip())
    made.write_text(ptx + "\n")
    for architecture in CHECKED_ON:
        run("ptxas", f"-arch={architecture}", made, "-o", folder / "bitmap.cubin")
    return ptx


def make_header() -> str:
    with tempfile.TemporaryDirectory() as folder:
        ptx = compile_ptx(Path(folder))
    # One literal for each kernel: MSVC takes no longer ones than 16,380 bytes.
    literals = ptx.replace("\n.visible", '\n)ptx"\n    R"ptx(.visible')
    return TEMPLATE.format(release=find_release(), ptx=literals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    header = make_header()
    if not parser.parse_args().check:
        HEADER.write_text(header)
    elif HEADER.read_text() != header:
        sys.exit(f"{HEADER.name} is not what {SOURCE.name} compiles to: run {sys.argv[0]}")


if __name__ == "__main__":
    main()
