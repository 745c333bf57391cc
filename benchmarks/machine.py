"""The machine, the versions and the commit of the numbers."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

PACKAGES = ["arrowdl", "torch", "numpy", "pyarrow", "polars"]


def describe_machine(packages: list[str] = PACKAGES) -> dict[str, str]:
    facts = {
        "processor": _find_processor(),
        "cores": str(os.cpu_count()),
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "system": platform.platform(),
        "commit": _find_commit(),
        "python": platform.python_version(),
    }
    return facts | {package: version(package) for package in packages}


def _find_processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _find_commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return run.stdout.strip() or "unknown"
