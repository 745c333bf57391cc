"""Calls of the driver for each batch of an epoch: `python -m benchmarks.gpu.profile`.

On a GPU torch's profiler counts them, whose CUPTI sees all threads. Its counts of synchronisations
include each query of an event, so what waits is counted as calls named so. `--device double` counts
on the drivers' doubles of the tests instead.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks/results"
WAITS = (
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaDeviceSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuCtxSynchronize",
)
ALLOCATIONS = ("cudaMalloc", "cuMemAlloc", "cuMemAlloc_v2", "cuMemCreate")
PINS = ("cudaHostAlloc", "cudaHostRegister", "cuMemHostAlloc", "cuMemFreeHost", "cudaFreeHost")
GROUPS = {"waits": WAITS, "allocations": ALLOCATIONS, "pins": PINS}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu.profile", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "double"), default="cuda")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the files go")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    if arguments.device == "double":
        text = "\n".join(_count_on_double(name) for name in ("torch", "jax"))
    else:
        text = _profile(arguments.results / "gpu-trace.json")
    (arguments.results / "gpu-profile.md").write_text(text)
    print(text)
    print(f"written: {arguments.results}/gpu-profile.md")


def _count_on_double(framework: str) -> str:
    sys.path.insert(0, str(ROOT / "tests/python"))
    from helpers.fake_cuda import FOLDERS  # type: ignore[import-not-found]

    paths = os.pathsep.join(map(str, FOLDERS))
    environment = {**os.environ, "LD_LIBRARY_PATH": paths, "PYTHONPATH": str(ROOT / "tests/python")}
    command = [sys.executable, "-m", "helpers.batch_counts", framework]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return f"# Calls a batch, {framework}, on the drivers' doubles\n\n```\n{run.stdout}```\n"


def _profile(trace: Path) -> str:
    """Profile an epoch of each case, after one that warms up."""
    import torch

    sys.path.insert(0, str(ROOT / "tests/python"))
    from helpers.batch_counts import BATCH, CASES, ROWS, open_loader  # type: ignore[import-not-found]

    batches = ROWS // BATCH
    lines = ["# Calls of the driver for each batch", ""]
    lines += [
        "| rows of | case | waits | allocations | pins | of which |",
        "|---|---|--:|--:|--:|---|",
    ]
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for where in ("host", "device"):
        for name in CASES:
            loader = open_loader(name, where, "torch")
            for batch in loader:
                del batch
            torch.cuda.synchronize()
            with torch.profiler.profile(activities=activities) as profile:
                for batch in loader:
                    del batch
            calls = collections.Counter(_list_calls(profile))
            found = [
                {call: calls[call] for call in group if calls[call]} for group in GROUPS.values()
            ]
            cells = [f"{sum(group.values()) / batches:.2f}" for group in found]
            named = ", ".join(f"{call} {n}" for group in found for call, n in group.items())
            lines.append(f"| {where} | {name} | {' | '.join(cells)} | {named} |")
            profile.export_chrome_trace(str(trace))
    return "\n".join(lines) + "\n"


def _list_calls(profile: Any) -> list[str]:
    """The names of the driver's calls. torch synchronises once itself when a profile ends."""
    path = RESULTS / "gpu-trace.tmp.json"
    profile.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    path.unlink()
    kinds = {"cuda_runtime", "cuda_driver"}
    names = [event["name"] for event in events if event.get("cat") in kinds]
    if "cudaDeviceSynchronize" in names:
        names.remove("cudaDeviceSynchronize")
    return names


if __name__ == "__main__":
    main()
