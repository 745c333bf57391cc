"""Objects of tables and datasets, given to each public function: none ends the process.

It tries those that the environment has: daft, vortex and others need one of their own.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.call_everything import call_everything
from helpers.peer_objects import PEER_OBJECTS


@pytest.mark.parametrize("library", [name for name in PEER_OBJECTS if find_spec(name)])
def test_no_object_ends_the_process(library: str, tmp_path: Path) -> None:
    assert call_everything(library, tmp_path) == []
