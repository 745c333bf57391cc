"""The bindings reach into Python through one file, whose table is of functions that exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

BINDINGS = Path(__file__).parents[3] / "cpp/bindings"
HOOKS = BINDINGS / "support/python_hooks.cpp"
IMPORT = re.compile(r"module_::import|\bPyImport_\w+")
ROWS = re.findall(r'\{"([\w.]+)", "(\w+)"\}', HOOKS.read_text())


def test_one_file_imports_python_modules() -> None:
    importing = {path for path in BINDINGS.rglob("*.[ch]pp") if IMPORT.search(path.read_text())}
    assert importing == {HOOKS}


@pytest.mark.parametrize(("module", "function"), ROWS, ids=".".join)
def test_a_hook_exists(module: str, function: str) -> None:
    assert callable(getattr(import_module(module), function))


def test_the_table_is_found() -> None:
    assert len(ROWS) > 5
