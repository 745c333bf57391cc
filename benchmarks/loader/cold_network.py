"""The first batch of a new Loader of many small files of a store that answers after 50 ms.

``python -m benchmarks.loader.cold_network [FILES [ROUNDS]]`` prints a table: medians of the wall
time, also in round trips, of the CPU time and of the requests, each round in a new process, turn
about. `benchmarks.loader.cold` has local files.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs

from benchmarks.loader.cold import BATCH_ROWS, write_files
from benchmarks.loader.range_server import Server, start_server
from benchmarks.machine import describe_machine

LATENCY = 0.05
WRITTEN = 1_700_000_000  # a file that was just written is opened first


def _load(server: Server, folder: str, **options: Any) -> None:
    endpoint = f"http://{server.address}"
    store = {"anonymous": True, "region": "us-east-1", "endpoint_override": endpoint}
    storage = arrowdl.Storage(options=store)
    next(iter(arrowdl.Loader(f"s3://b/{folder}", BATCH_ROWS, storage=storage, **options)))


def _scan(server: Server, folder: str) -> None:
    s3 = fs.S3FileSystem(
        anonymous=True, scheme="http", region="us-east-1", endpoint_override=server.address
    )
    next(iter(ds.dataset(f"b/{folder}", filesystem=s3).to_batches()))


def _load_many(server: Server, folder: str) -> None:
    threads = pa.io_thread_count()
    pa.set_io_thread_count(256)  # a client that is made now sends as many requests at a time
    _load(server, folder)
    pa.set_io_thread_count(threads)


CASES: dict[str, tuple[Callable[[Server], None], str]] = {
    "scan": (lambda server: _scan(server, "many"), "first batch of pyarrow's scanner"),
    "in-order": (lambda server: _load(server, "many"), "first batch in order"),
    "in-order-256": (
        lambda server: _load_many(server, "many"),
        "first batch in order, a client of 256 connections",
    ),
    "shuffled": (lambda server: _load(server, "many", shuffle=True), "first batch shuffled"),
}


def probe(name: str, port: str) -> dict[str, float]:
    """Measure one case in this process."""
    server = Server(int(port))
    _load(server, "one")  # what is imported late
    before = server.count()[0]
    wall, cpu = time.perf_counter(), time.process_time()
    CASES[name][0](server)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "requests": server.count()[0] - before}


def main() -> None:
    if sys.argv[1:2] == ["--probe"]:
        print(json.dumps(probe(*sys.argv[2:])), flush=True)
        os._exit(0)  # threads that read ahead
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    runs: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as name, start_server(Path(name), LATENCY, 0) as server:
        for folder, number in (("many", files), ("one", 1)):
            (Path(name) / "b" / folder).mkdir(parents=True)
            write_files(Path(name) / "b" / folder, number)
            os.utime(Path(name) / "b" / folder / "00000.parquet", (WRITTEN, WRITTEN))
        for _ in range(rounds):
            for case, results in runs.items():
                module = [sys.executable, "-m", "benchmarks.loader.cold_network"]
                command = [*module, "--probe", case, str(server.port)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                results.append(json.loads(done.stdout))
    print(f"| {files:,} files, {LATENCY * 1e3:.0f} ms | wall | round trips | CPU | requests |")
    print("|---|--:|--:|--:|--:|")
    for case, results in runs.items():
        found = {key: statistics.median(run[key] for run in results) for key in results[0]}
        print(
            f"| {CASES[case][1]} | {found['wall']:.2f} s | {found['wall'] / LATENCY:.0f} "
            f"| {found['cpu']:.2f} s | {found['requests']:,.0f} |"
        )
    print(f"\n{', '.join(f'{key} {value}' for key, value in describe_machine().items())}.")


if __name__ == "__main__":
    main()
