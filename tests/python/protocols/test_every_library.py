"""Objects of the installed libraries, given to each public function: none ends the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.library_objects import OBJECTS

QUICK = {"builtins", "memory", "numpy", "ml_dtypes"}


def run_calls(library: str, log: Path, first: int) -> str | None:
    """How the process ended that made the calls from number `first` on; None at their end."""
    command = [sys.executable, "-m", "helpers.call_everything", library, str(log), str(first)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "TQDM_DISABLE": "1"}
    said = log.with_suffix(".err")
    with said.open("wb") as err:
        process = subprocess.Popen(command, stdout=err, stderr=err, env=env, cwd=log.parent)
    made = -1
    while True:
        try:
            status = process.wait(timeout=600)
        except subprocess.TimeoutExpired:  # a slow machine makes some calls in that time
            if made == (made := log.stat().st_size if log.exists() else 0):
                process.kill()
                process.wait()
                return "it never returned"
        else:
            return None if status == 0 else f"status {status}: {said.read_text()[-300:]}"


def call_everything(library: str, folder: Path) -> list[str]:
    """The calls that ended the process or never returned; the others go on after each."""
    log = folder / "calls.txt"
    ended: list[str] = []
    first = 0
    while (how := run_calls(library, log, first)) is not None:
        number, name, expression = log.read_text().splitlines()[-1].split("\t")
        ended.append(f"{name} of {expression}: {how}")
        first = int(number) + 1
        assert len(ended) < 20, ended
    return ended


@pytest.mark.parametrize(
    "library",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in OBJECTS],
)
def test_no_object_ends_the_process(library: str, tmp_path: Path) -> None:
    if library not in {"builtins", "memory", "others"}:
        pytest.importorskip({"pillow": "PIL"}.get(library, library))
    assert call_everything(library, tmp_path) == []
