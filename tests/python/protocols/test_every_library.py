"""Objects of the installed libraries, given to each public function: none ends the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.call_everything import call_everything
from helpers.library_objects import OBJECTS

QUICK = {"builtins", "memory", "numpy", "ml_dtypes"}


@pytest.mark.parametrize(
    "library",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in OBJECTS],
)
def test_no_object_ends_the_process(library: str, tmp_path: Path) -> None:
    if library not in {"builtins", "memory", "others"}:
        pytest.importorskip({"pillow": "PIL"}.get(library, library))
    assert call_everything(library, tmp_path) == []
