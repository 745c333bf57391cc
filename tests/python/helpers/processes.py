"""Code that runs in a Python process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

from helpers.fork_server import run_forked


def run_python(code: str, *, forks: bool = False) -> str:
    """Standard output of `code`, which has to end with status 0 and say nothing on stderr.

    With `forks`, the process has imported torch already.

    AddressSanitizer, where it is on, keeps but little freed memory back, and of each thread too:
    its default is a megabyte for a thread.
    """
    bounds = "quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
    asan = f"{os.environ.get('ASAN_OPTIONS', '')}:{bounds}"
    env = {**os.environ, "ASAN_OPTIONS": asan}
    if forks:
        status, out, err = run_forked(textwrap.dedent(code), env)
        assert (status, err) == (0, ""), f"{out}\n{err}"
        return out
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=env,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{done.stdout}\n{done.stderr}"
    return done.stdout
