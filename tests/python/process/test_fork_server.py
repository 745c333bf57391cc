"""Forked processes end as others do: a test in one cannot pass by a lost status."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.fork_server import run_forked

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is what they share")

ENV: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


@pytest.mark.parametrize(
    ("code", "status", "out", "error"),
    [
        ("print(5)", 0, "5\n", ""),
        ("import atexit; atexit.register(print, 'end'); raise SystemExit(3)", 3, "end\n", ""),
        ("1 / 0", 1, "", "ZeroDivisionError"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, "", ""),
        ("import os; os.write(1, b'x' * 1_000_000)", 0, "x" * 1_000_000, ""),
        (
            "import sys; print(sys.stdin.read() == '', 'arrowdl' in sys.modules)",
            0,
            "True False\n",
            "",
        ),
        (f"a = {'b' * 300_000!r}; print(len(a))", 0, "300000\n", ""),
        ("import os; print(len(os.listdir('/proc/self/task')))", 0, "1\n", ""),
    ],
    ids=["prints", "exits", "raises", "dies", "writes", "reads", "long", "threads"],
)
def test_ends(code: str, status: int, out: str, error: str) -> None:
    found, written, said = run_forked(code, ENV)
    assert (found, written) == (status, out)
    assert error in said


def test_a_process_that_does_not_end_is_killed() -> None:
    with pytest.raises(TimeoutError, match=r"did not end within 0\.2 s"):
        run_forked("import threading; threading.Event().wait()", ENV, 0.2)
    assert run_forked("print(5)", ENV) == (0, "5\n", "")


def test_processes_have_the_environment_that_is_given() -> None:
    for value in ("a", "b", "a"):
        code = "import os; print(os.environ['ARROWDL_TEST'])"
        assert run_forked(code, {**ENV, "ARROWDL_TEST": value}) == (0, f"{value}\n", "")
