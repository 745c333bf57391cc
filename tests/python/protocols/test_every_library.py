"""Objects of the installed libraries, given to each public function: none ends the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.library_objects import OBJECTS

QUICK = {"builtins", "memory", "numpy", "ml_dtypes"}


def call_everything(library: str, folder: Path) -> list[str]:
    """The calls that ended the process or never returned; the others go on after each."""
    log = folder / "calls.txt"
    ended: list[str] = []
    first = 0
    while True:
        command = [sys.executable, "-m", "helpers.call_everything", library, str(log), str(first)]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "TQDM_DISABLE": "1"}
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
                env=env,
                cwd=folder,
            )
            how = f"status {done.returncode}: {done.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            how = "it never returned"
        else:
            if done.returncode == 0:
                return ended
        number, name, expression = log.read_text().splitlines()[-1].split("\t")
        ended.append(f"{name} of {expression}: {how}")
        first = int(number) + 1
        assert len(ended) < 20, ended


@pytest.mark.parametrize(
    "library",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in OBJECTS],
)
def test_no_object_ends_the_process(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library) if library not in {"builtins", "memory", "others"} else None
    assert call_everything(library, tmp_path) == []
