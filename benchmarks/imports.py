"""The time of `import arrowdl`, each in a fresh interpreter."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEELS = Path(__file__).resolve().parents[1] / "dist"
TARGET_SECONDS = 0.030

_LINE = re.compile(r"^import time:\s*\d+ \|\s*(\d+) \| arrowdl$", re.MULTILINE)


def measure_import(repeats: int) -> list[float]:
    """Seconds of each import with all that it brings in, as `-X importtime` counts them.

    It imports the wheel: an editable install would first check what to rebuild.
    """
    (wheel,) = WHEELS.glob("*.whl")  # `make bench` builds it
    with tempfile.TemporaryDirectory() as site:
        zipfile.ZipFile(wheel).extractall(site)
        program = f"import sys; sys.path.insert(0, {site!r}); import arrowdl"
        command = [sys.executable, "-I", "-S", "-X", "importtime", "-c", program]
        return [_import_once(command) for _ in range(repeats + 1)][1:]  # first: from disk


def _import_once(command: list[str]) -> float:
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    match = _LINE.search(run.stderr)
    assert match is not None, run.stderr
    return int(match[1]) * 1e-6


def summarize(seconds: list[float]) -> dict[str, float | bool]:
    median = statistics.median(seconds)
    return {
        "median": median,
        "min": min(seconds),
        "target": TARGET_SECONDS,
        "reached": median < TARGET_SECONDS,
    }
