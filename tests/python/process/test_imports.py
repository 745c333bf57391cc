"""What `import arrowdl` loads, and what waits until it is used."""

from __future__ import annotations

import json
import subprocess
import sys

LATER = {"arrowdl.loader", "arrowdl.c_data", "arrowdl.testing"}
LATER |= {"dataclasses", "logging", "inspect", "urllib"}

PROGRAM = """
import json, sys
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_importing_loads_neither_the_loader_nor_what_it_needs() -> None:
    # The editable install's own finder has imported subprocess and others before: compare.
    for module in ("arrowdl", "arrowdl._core"):
        loaded = set(json.loads(run(PROGRAM.format(module=module)).splitlines()[-1]))
        assert "arrowdl._core" in loaded
        assert {name for name in loaded if name.split(".")[0] in LATER or name in LATER} == set()


def test_what_is_loaded_on_use_looks_as_if_it_had_been_there() -> None:
    run(
        """
import arrowdl, sys
assert {"Loader", "loader", "c_data", "debug"} <= set(dir(arrowdl))
assert "arrowdl.loader" not in sys.modules
assert arrowdl.loader.Loader is arrowdl.Loader
assert "Loader" in vars(arrowdl)  # the second look is an ordinary one
from arrowdl import Loader, c_data, debug, loader
assert c_data.import_array and debug.live_objects() == 0
try:
    arrowdl.lauder
except AttributeError as error:
    assert str(error) == "module 'arrowdl' has no attribute 'lauder'"
else:
    raise AssertionError
"""
    )
    run(
        """
from arrowdl import *
assert Loader.__name__ == "Loader" and config.num_threads >= 1
"""
    )
