"""Compiles the kernels in cpp/src/backends/kernels to kernels.ptx, which the build embeds.

The file is committed, so that builds need no CUDA toolkit. This script needs nvcc and ptxas.
`--check` writes nothing, and fails if the file differs from what this script makes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "cpp/src/backends/kernels"
PTX = FOLDER / "kernels.ptx"

# The oldest GPUs (Maxwell) and drivers (CUDA 9) that run such code. A driver compiles PTX for its
# own GPU. nvcc writes newer versions than the code needs; ptxas checks the older ones.
VERSION = "6.0"
TARGET = "sm_52"
OLDEST_OF_NVCC = "compute_75"
CHECKED_ON = ("sm_75", "sm_80", "sm_90", "sm_100")

OPENING = "// Compiled by tools/make_ptx.py from the .cu files with CUDA {release}: do not edit."


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def find_release() -> str:
    """Return the toolkit's release, such as "13.0"."""
    match = re.search(r"release (\d+\.\d+)", run("nvcc", "--version"))
    assert match is not None
    return match.group(1)


def compile_ptx(folder: Path) -> str:
    whole, made = folder / "kernels.cu", folder / "kernels.ptx"
    names = sorted(path.name for path in FOLDER.glob("*.cu"))
    whole.write_text("".join(f'#include "{name}"\n' for name in names))
    run("nvcc", "-ptx", f"-arch={OLDEST_OF_NVCC}", "-std=c++17", f"-I{FOLDER}", whole, "-o", made)
    ptx = re.sub(r"//.*", "", made.read_text())
    ptx = re.sub(r"^\.version .*$", f".version {VERSION}", ptx, flags=re.MULTILINE)
    ptx = re.sub(r"^\.target .*$", f".target {TARGET}", ptx, flags=re.MULTILINE)
    ptx = re.sub(r"\b\w+_param_(\d+)", r"p\1", ptx)  # names of parameters are local
    ptx = re.sub(r"\$L__BB\d+_(\d+)", r"$L\1", ptx)  # and so are labels
    ptx = "\n".join(line.strip() for line in ptx.splitlines() if line.strip())
    made.write_text(ptx + "\n")
    for architecture in CHECKED_ON:
        run("ptxas", f"-arch={architecture}", made, "-o", folder / "kernels.cubin")
    return ptx


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = f"{OPENING.format(release=find_release())}\n{compile_ptx(Path(folder))}\n"
    if not options.check:
        PTX.write_text(text)
    elif PTX.read_text() != text:
        sys.exit(f"{PTX.name} is not what the kernels make: run {sys.argv[0]}")


if __name__ == "__main__":
    main()
