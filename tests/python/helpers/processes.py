"""Code that runs in a Python process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run_python(code: str) -> str:
    """Standard output of `code`, which has to end with status 0 and say nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout
