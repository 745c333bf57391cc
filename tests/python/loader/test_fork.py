"""Loader(num_workers=) in processes that fork: what a process did not make, it leaves alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SCRIPT = Path(forks.__file__)


def run(name: str) -> subprocess.CompletedProcess[str]:
    """Where it hangs, all of its processes are ended: they hold its streams."""
    arguments = [sys.executable, "-W", "ignore::DeprecationWarning", str(SCRIPT), name]
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@pytest.mark.parametrize(
    "scenario",
    [
        forks.child_ends,
        forks.child_drops_the_iterator,
        forks.child_reads,
        forks.child_reads_the_iterator,
        forks.child_keeps_a_batch,
        forks.process_of_multiprocessing,
        pytest.param(forks.nothing_is_left, marks=pytest.mark.slow),
    ],
)
def test_fork(scenario: object) -> None:
    done = run(scenario.__name__)  # type: ignore[attr-defined]
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_transform_that_forks() -> None:
    done = run("transform_forks")
    assert done.returncode == 0, done.stderr
    assert "end that process with os._exit()" in done.stderr


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux's")
def test_workers_do_not_outlive_who_they_read_for() -> None:
    done = run("child_outlives_the_parent")
    assert done.stdout == "ended\n", done.stderr
