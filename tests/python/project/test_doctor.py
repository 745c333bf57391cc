"""What a person pastes into a bug report."""

from __future__ import annotations

import re
import subprocess
import sys

import arrowdl
import numpy as np
import pytest


def test_it_names_what_is_there_and_what_is_not() -> None:
    text = arrowdl.doctor()
    assert f"version   {arrowdl.__version__}" in text
    assert f"numpy {np.__version__}: __dlpack__, versioned capsules" in text
    assert re.search(r"torch \S+: DLPack's C exchange API", text)
    assert re.search(r"jax \S+: __dlpack__, legacy capsules", text)
    assert re.search(r"polars \S+.*: Arrow's PyCapsule protocols", text)
    assert re.search(r"cuda, cuda_host, cuda_managed: .+", text)
    assert re.search(r"oneapi: .*import dpctl first", text)
    assert re.search(r"opencl: .+", text)


@pytest.mark.slow
def test_it_is_a_command() -> None:
    command = [sys.executable, "-m", "arrowdl"]
    done = subprocess.run([*command, "doctor"], capture_output=True, text=True, check=True)
    assert "device runtimes" in done.stdout
    wrong = subprocess.run([*command, "surgeon"], capture_output=True, text=True, check=False)
    assert wrong.returncode != 0
    assert "usage" in wrong.stderr
