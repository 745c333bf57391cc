"""Counts the instructions of a batch, which other work on the machine does not change.

Run it with ``python -m benchmarks.loader.instructions [SHAPE ...]``. It needs valgrind with its
headers, a C compiler, and two minutes: callgrind counts the instructions of an epoch of 21-column
batches of memory-mapped IPC, once as it is and once without the lines of the loop that measure for
`stats`: those that read the clock, and those that add to its counters (one of which is a batch's
bytes).

With names of `shapes`, it counts their passes: of pyarrow's scanner, of a Loader, and by hand. The
floor is the scanner's, and what torch takes to make and free as many tensors (``Tensor.detach``).
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import gc
import inspect
import math
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
from arrowdl.loader import _iterate, _reader

from benchmarks.loader import shapes
from benchmarks.loader.data import BATCH_ROWS, write_files

ROOT = Path(__file__).parents[2]
DATA = ROOT / "build/benchmark-data"
# What callgrind takes from the program that it runs.
_REQUESTS = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(const char* name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
# callgrind counts a copy by `rep movsb` as an instruction a byte: memcpy gets a loop of vectors.
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "GLIBC_TUNABLES": f"glibc.cpu.x86_rep_movsb_threshold={2**32}",
}
_DUMP = re.compile(r"^desc: Trigger: Client Request: (.*?)$.*?^totals: (\d+)", re.M | re.S)


class _Unmeasured(ast.NodeTransformer):
    """Removes the lines that read a clock or write to `stats`."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        return ast.Pass() if ast.unparse(node.target).startswith("stats.") else node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return ast.Pass() if ast.unparse(node).startswith("add_wait(") else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if ast.unparse(node.value) == "now()":
            node.value = ast.Constant(0.0)
        return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        is_empty = all(isinstance(line, ast.Pass) for line in [*node.body, *node.orelse])
        return ast.Pass() if is_empty else node


def make_unmeasured() -> Callable[..., Any]:
    """Return `iterate` without what it measures."""
    source = ast.parse(textwrap.dedent(inspect.getsource(_iterate.iterate)))
    tree = ast.fix_missing_locations(_Unmeasured().visit(source))
    names = dict(vars(_iterate))
    exec(compile(tree, "unmeasured", "exec"), names)
    made: Callable[..., Any] = names["iterate"]
    return made


def count_instructions() -> dict[str, float]:
    """Return the instructions of a batch, by what is counted."""
    write_files(DATA)
    batches, totals = _count([])
    ours, unmeasured = (totals[name] / batches for name in ("ours", "unmeasured"))
    return {"a batch": ours, "of it for stats()": ours - unmeasured}


def count_shape(name: str) -> dict[str, float]:
    """Return the instructions of each pass over a shape, as multiples of the scanner's."""
    _, totals = _count([name])
    totals["floor"] = totals["scanner"] + totals.pop("tensors")
    return {kind: total / totals["scanner"] for kind, total in totals.items()}


def _count(arguments: list[str]) -> tuple[int, dict[str, int]]:
    """Return what `_run` or `_run_shape` prints in a new process, and the instructions of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "requests.c").write_text(_REQUESTS)
        library = folder / "requests.so"
        compiler = os.environ.get("CC", "cc")
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library)]
        subprocess.run([*command, str(folder / "requests.c")], check=True)
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no"]
        out = f"--callgrind-out-file={folder}/counts"
        program = [sys.executable, "-m", "benchmarks.loader.instructions", "--run", str(library)]
        done = subprocess.run(
            [*valgrind, out, *program, *arguments],
            check=True,
            cwd=ROOT,
            env=os.environ | _ENVIRONMENT,
            text=True,
            stdout=subprocess.PIPE,
        )
        dumps = [_DUMP.search(path.read_text()) for path in folder.glob("counts*")]
        return int(done.stdout), {dump[1]: int(dump[2]) for dump in dumps if dump is not None}


def _run(library: str) -> None:
    """Make the epochs that callgrind counts, and print the batches of each."""
    requests = ctypes.CDLL(library)
    loader = arrowdl.Loader(DATA / "tab.arrow", BATCH_ROWS["tab"], nulls="fill", prefetch=0)
    # A wait for a batch is short, as without valgrind.
    vars(_iterate)["NOTICED_SECONDS"] = math.inf
    for name, iterate in (("ours", _iterate.iterate), ("unmeasured", make_unmeasured())):
        vars(_reader)["iterate"] = iterate
        deque(loader, maxlen=0)  # maps the file, and fills caches
        requests.start()
        deque(loader, maxlen=0)
        requests.stop(name.encode())
    print(len(loader))


def _run_shape(name: str, library: str) -> None:
    """Make the passes over a shape that callgrind counts, and print the batches of each."""
    requests = ctypes.CDLL(library)
    vars(_iterate)["NOTICED_SECONDS"] = math.inf
    passes, batch, batches = shapes.make_passes(name)
    passes["tensors"] = lambda: deque((_detach(batch) for _ in range(batches)), maxlen=0)
    gc.disable()
    for kind, run in passes.items():
        run()
        requests.start()
        run()
        requests.stop(kind.encode())
    print(batches)


def _detach(value: Any) -> Any:
    """Make as many tensors as a batch has."""
    if isinstance(value, dict):
        return {name: _detach(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_detach, value))
    return value.detach()


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.loader.instructions", description=__doc__
    )
    parser.add_argument("--run", metavar="LIBRARY", help=argparse.SUPPRESS)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="rows of `shapes`")
    arguments = parser.parse_args()
    if arguments.run and arguments.shapes:
        return _run_shape(arguments.shapes[0], arguments.run)
    if arguments.run:
        return _run(arguments.run)
    for shape in arguments.shapes:
        counts = count_shape(shape).items()
        print(f"{shape:20}", *(f"{kind} {ratio:.2f}" for kind, ratio in counts), flush=True)
    if arguments.shapes:
        return None
    for name, count in count_instructions().items():
        print(f"{name:30} {count:10,.0f} instructions")


if __name__ == "__main__":
    main()
