"""The rows of docs/concepts/conformance.csv for the library of this environment."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> Any:
    path = ROOT / "tools/list_conformance.py"
    spec = importlib.util.spec_from_file_location("list_conformance", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["list_conformance"] = module  # a process of a check imports it by this name
    spec.loader.exec_module(module)
    return module


TABLE = load()
LIBRARIES = {"oneapi": "dpnp"}


def test_the_table_is_true() -> None:
    peer = os.environ["ARROWDL_PEER"]
    library = LIBRARIES.get(peer, peer)
    found = TABLE.find_rows([library])
    if not found:
        pytest.skip(f"{library} has no DLPack or Arrow of its own")
    kept = {key: rows for key, rows in TABLE.read_rows().items() if key[0] == library}
    assert {key: [row[:5] for row in rows] for key, rows in kept.items()} == {
        key: [row[:5] for row in rows] for key, rows in found.items()
    }, f"run tools/list_conformance.py {library}"
