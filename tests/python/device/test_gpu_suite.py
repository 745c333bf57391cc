"""The suite that needs a GPU is at least read here: what it imports is there, its names exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_gpu_suite_is_collected_and_marked() -> None:
    pytest_command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "tests/gpu"]
    unmarked = subprocess.run(
        [*pytest_command, "-m", "not cuda"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert unmarked.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, unmarked.stdout
    assert "error" not in unmarked.stdout
