"""What a person pastes into a bug report."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import arrowdl
import numpy as np
import pytest
from arrowdl import _core
from arrowdl.__main__ import main


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


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "usage: python -m arrowdl"),
        (["-h"], 0, "--version  print the version"),
        (["--version"], 0, f"arrowdl {arrowdl.__version__}\n"),
        (["-V"], 0, f"arrowdl {arrowdl.__version__}\n"),
        (["--help"], 0, "cmake-dir"),
        ([], 2, ""),
        (["cmake-dir", "here"], 2, ""),
        (["surgeon"], 2, ""),
        (["doctor", "who"], 2, ""),
    ],
)
def test_the_command_says_what_it_can(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert said in out
    assert (out == "" and "usage" in err) if code else err == ""


def test_the_command_prints_the_folder_of_the_cmake_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Beside the extension, which an editable install has elsewhere than in site-packages."""
    assert main(["cmake-dir"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert (folder / "arrowdlConfig.cmake").is_file()
    assert (folder.parents[2] / "include/arrowdl/version.hpp").is_file()
    monkeypatch.setattr(_core, "__file__", str(tmp_path / "_core.so"))
    assert main(["cmake-dir"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"no CMake package in {tmp_path}" in err


@pytest.mark.slow
def test_it_is_a_command() -> None:
    command = [sys.executable, "-m", "arrowdl"]
    done = subprocess.run([*command, "doctor"], capture_output=True, text=True, check=True)
    assert "device runtimes" in done.stdout
    wrong = subprocess.run([*command, "surgeon"], capture_output=True, text=True, check=False)
    assert wrong.returncode != 0
    assert "usage" in wrong.stderr
