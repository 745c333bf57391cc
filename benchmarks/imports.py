"""How long `import arrowdl` takes, each time in a fresh interpreter."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET_SECONDS = 0.030

_LINE = re.compile(r"^import time:\s*\d+ \|\s*(\d+) \| arrowdl$", re.MULTILINE)


def measure_import(repeats: int) -> list[float]:
    """Seconds of each import with all that it brings in, as `-X importtime` counts them."""
    command = [sys.executable, "-X", "importtime", "-c", "import arrowdl"]
    # An editable install would first look for what to rebuild, which is no part of an import.
    environment = os.environ | {"SKBUILD_EDITABLE_SKIP": str(ROOT / "build" / "dev")}
    seconds = []
    for _ in range(repeats + 1):
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        match = _LINE.search(run.stderr)
        assert match is not None, run.stderr
        seconds.append(int(match[1]) * 1e-6)
    return seconds[1:]  # the first one reads the files from disk


def summarize(seconds: list[float]) -> dict[str, float | bool]:
    median = statistics.median(seconds)
    return {
        "median": median,
        "min": min(seconds),
        "target": TARGET_SECONDS,
        "reached": median < TARGET_SECONDS,
    }
