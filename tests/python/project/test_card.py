"""`make card` without a card: each step runs to its end, and says how it ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.fake_cuda import FOLDERS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_steps_of_a_card_run_to_their_end(tmp_path: Path) -> None:
    if not all(any(folder.glob("*.so*")) for folder in FOLDERS):
        pytest.skip("the fake drivers are not built: make test-python builds them")
    places = {"RESULTS": str(tmp_path / "results"), "LOGS": str(tmp_path / "logs")}
    environment = {**os.environ, **places, "PYTHON": sys.executable}
    command = [ROOT / "tools/card.sh", "--rehearse"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout + run.stderr
    table = (tmp_path / "results/card.md").read_text()
    for step in ("tests", "benchmarks", "profile"):
        assert f"| {step} | passed |" in table
    profile = (tmp_path / "results/gpu-profile.md").read_text()
    names: list[str] = []
    for line in profile.splitlines():
        cells = line.split()
        if line.startswith("rows of"):
            names = cells[2:]
        elif cells[:1] in (["host"], ["device"]):
            counts = dict(zip(names, cells[-len(names) :], strict=True))
            assert counts["host_waits"] == "0", line
    report = (tmp_path / "results/gpu.md").read_text()
    assert "| 1.02 |" in report
    assert "beside-dali" in report


def test_a_step_that_fails_ends_no_other(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    places = {"RESULTS": str(tmp_path / "results"), "LOGS": str(tmp_path / "logs")}
    environment = {**os.environ, **places, "PYTHON": str(broken)}
    run = subprocess.run(
        [ROOT / "tools/card.sh"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 1, run.stdout + run.stderr
    table = (tmp_path / "results/card.md").read_text()
    assert table.count("status 3") == 3
