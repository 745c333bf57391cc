"""The first batch of a new Loader of thousands of small files, beside pyarrow's.

``python -m benchmarks.loader.cold [FILES [ROUNDS]]`` prints a table: medians of the wall time,
of the CPU time and of the memory beyond the imports, each round in a new process, turn about. The
files are links to one of 500 rows and 17 columns. `bare_calls.c` is the floor: it needs a compiler,
``cc``.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.machine import describe_machine

ROWS, COLUMNS, BATCH_ROWS = 500, 17, 256
# As large as the default of arrowdl 8ccbd242: that of today decodes 256 MiB before the first batch.
BUFFER_ROWS = 65_536
CALLS = "calls"  # the program of `bare_calls.c`, beside the folders


def scan(folder: str) -> None:
    next(iter(ds.dataset(folder).to_batches()))


def read_footers(folder: str) -> None:
    """Two threads read all footers: what an order of all rows needs, read by pyarrow."""
    paths = [entry.path for entry in os.scandir(folder)]
    with ThreadPoolExecutor(2) as threads:
        sum(threads.map(lambda path: pq.read_metadata(path).num_rows, paths))


def call_system(folder: str) -> None:
    """List the files, read the end of each, and ask for the stamp of each, in C."""
    subprocess.run([Path(folder).with_name(CALLS), folder], check=True)


def load_in_order(folder: str) -> None:
    next(iter(arrowdl.Loader(folder, BATCH_ROWS)))


def load_shuffled(folder: str) -> None:
    shuffle = arrowdl.Shuffle(buffer_size=BUFFER_ROWS)
    next(iter(arrowdl.Loader(folder, BATCH_ROWS, shuffle=shuffle)))


def pass_in_order(folder: str) -> None:
    for _ in arrowdl.Loader(folder, BATCH_ROWS):
        pass


def pass_of_scanner(folder: str) -> None:
    for _ in ds.dataset(folder).to_batches():
        pass


CASES: dict[str, tuple[Callable[[str], None], str]] = {
    "scan": (scan, "first batch of pyarrow's scanner"),
    "calls": (call_system, "the system calls of a first batch in order, in C"),
    "footers": (read_footers, "pyarrow.parquet.read_metadata of all, two threads"),
    "in-order": (load_in_order, "first batch in order"),
    "shuffled": (load_shuffled, f"first batch shuffled, a buffer of {BUFFER_ROWS:,} rows"),
    "scanner-pass": (pass_of_scanner, "a pass of pyarrow's scanner"),
    "pass": (pass_in_order, "a pass in order"),
}


def write_files(folder: Path, files: int) -> None:
    draw = np.random.default_rng(0)
    columns = {f"c{i}": draw.random(ROWS, dtype=np.float32) for i in range(COLUMNS - 1)}
    first = folder / "00000.parquet"
    pq.write_table(pa.table({"id": range(ROWS), **columns}), first)
    for i in range(1, files):
        # A file system allows some 65,000 links to a file.
        if i % 50_000 == 0:
            first = first.with_name(f"{i:05d}.parquet")
            first.write_bytes((folder / "00000.parquet").read_bytes())
        else:
            os.link(first, folder / f"{i:05d}.parquet")


def measure_cpu() -> float:
    """Return the seconds of the CPU that this process and those it waited for took."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def probe(name: str, folder: str, one: str) -> dict[str, float]:
    """Measure one case in this process."""
    run, _ = CASES[name]
    next(iter(arrowdl.Loader(one, BATCH_ROWS)))  # what is imported late
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), measure_cpu()
    run(folder)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": measure_cpu() - cpu,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory,
    }


def measure(files: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the medians of each case."""
    with tempfile.TemporaryDirectory() as name:
        folder, one = Path(name, "files"), Path(name, "one")
        for path, number in ((folder, files), (one, 1)):
            path.mkdir()
            write_files(path, number)
        source = Path(__file__).with_name("bare_calls.c")
        subprocess.run(["cc", "-O2", "-o", folder.with_name(CALLS), source], check=True)
        runs: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
        for _ in range(rounds):
            for case, results in runs.items():
                module = [sys.executable, "-m", "benchmarks.loader.cold"]
                command = [*module, "--probe", case, str(folder), str(one)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                results.append(json.loads(done.stdout))
    return {
        case: {key: statistics.median(run[key] for run in results) for key in results[0]}
        for case, results in runs.items()
    }


def main() -> None:
    if sys.argv[1:2] == ["--probe"]:
        print(json.dumps(probe(*sys.argv[2:])), flush=True)
        os._exit(0)  # threads that read ahead
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    medians = measure(files, rounds)
    scanner, footers = medians["scan"], medians["footers"]
    print(
        f"| {files:,} files | wall | CPU | memory | CPU, of the scanner's | CPU, of all footers |\n"
        "|---|--:|--:|--:|--:|--:|"
    )
    for case, found in medians.items():
        print(
            f"| {CASES[case][1]} | {found['wall']:.2f} s | {found['cpu']:.2f} s "
            f"| {found['memory'] / 1024:.0f} MB | {found['cpu'] / scanner['cpu']:.1f} "
            f"| {found['cpu'] / footers['cpu']:.2f} |"
        )
    print(f"\n{', '.join(f'{key} {value}' for key, value in describe_machine().items())}.")


if __name__ == "__main__":
    main()
