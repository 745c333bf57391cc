"""What a sub-interpreter is told."""

from __future__ import annotations

import sys

import pytest
from helpers.processes import run_python

OWN_GIL = pytest.param(
    True, marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 has one GIL")
)


@pytest.mark.parametrize("own_gil", [False, OWN_GIL], ids=["shared GIL", "own GIL"])
@pytest.mark.parametrize("first", ["", "import arrowdl"])
def test_a_sub_interpreter_is_told_that_it_cannot(first: str, own_gil: bool) -> None:
    run_python(f"""
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import sys
from pathlib import Path
{first}
try:
    import _interpreters as interpreters
    made = interpreters.create("isolated" if {own_gil} else "legacy")
except ImportError:  # up to Python 3.12
    import _xxsubinterpreters as interpreters
    made = interpreters.create(isolated={own_gil})

failure = ""
try:
    told = interpreters.run_string(made, "import arrowdl")
    failure = getattr(told, "formatted", "")
except interpreters.RunFailedError as error:
    failure = str(error)
# Python 3.13 and later know the module's declaration, and may refuse with their own words.
own, pythons = "in a sub-interpreter", "does not support loading in subinterpreters"
assert "ImportError" in failure and (own in failure or pythons in failure), failure
interpreters.destroy(made)
""")
