"""Passes with a transform in pure Python: in the training's thread, in threads, and in processes.

Run it with ``python -m benchmarks.loader.threads`` with the Python that is to be measured: threads
help such a transform on free-threaded Python only. It needs arrowdl, NumPy and pyarrow. The passes
alternate; a number is the least of their wall times.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa

from benchmarks.timing import format_seconds

ROWS, BATCH_ROWS = 65_536, 1_024
PASSES: dict[str, dict[str, Any]] = {
    "in the training's thread": {},
    "num_threads=1": {"num_threads": 1},
    "num_threads=2": {"num_threads": 2},
    "num_workers=2": {"num_workers": 2},
}
BY_HAND = "two threads by hand"


def hash_rows(batch: dict[str, Any]) -> dict[str, Any]:
    """A transform that never releases the interpreter lock: about 5 ms for a batch."""
    hashes = []
    for number in batch["number"].tolist():
        value = number
        for _ in range(60):
            value = (value * 31 + 7) % 1_000_003
        hashes.append(value)
    return {"hash": np.array(hashes), **batch}


def measure_threads(rounds: int) -> dict[str, float]:
    """Return the least seconds of each kind of pass, and of two plain threads over made batches."""
    table = pa.table({"number": np.arange(ROWS), "x": np.zeros(ROWS, np.float32)})
    loaders = {
        name: arrowdl.Loader(table, BATCH_ROWS, framework="numpy", transform=hash_rows, **options)
        for name, options in PASSES.items()
    }
    batches = list(arrowdl.Loader(table, BATCH_ROWS, framework="numpy"))
    seconds: dict[str, list[float]] = {name: [] for name in [*loaders, BY_HAND]}
    for number in range(rounds + 1):
        for name, loader in loaders.items():
            begin = time.perf_counter()
            for batch in loader:
                del batch
            if number > 0:  # in the first one, processes start
                seconds[name].append(time.perf_counter() - begin)
        with ThreadPoolExecutor(2) as executor:
            begin = time.perf_counter()
            for batch in executor.map(hash_rows, batches):
                del batch
            if number > 0:
                seconds[BY_HAND].append(time.perf_counter() - begin)
    for loader in loaders.values():
        loader.close()
    return {name: min(times) for name, times in seconds.items()}


def describe_python() -> str:
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    build = "free-threaded build, " if free else ""
    lock = "with" if has_lock else "without"
    return f"Python {sys.version.split()[0]}, {build}{lock} the lock, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.loader.threads", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    found = measure_threads(parser.parse_args().rounds)
    alone = found["in the training's thread"]
    print(describe_python())
    for name, seconds in found.items():
        print(f"{name:26} {format_seconds(seconds):>8} {seconds / alone:6.2f} of the first")


if __name__ == "__main__":
    main()
