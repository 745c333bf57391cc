"""The bindings reach into Python through one file, whose table is of functions that exist."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import arrowdl
import numpy
import pytest
from arrowdl import _core

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


class MadeOnAccess(Sequence[object]):
    """Its items are made when they are asked for: nothing else owns them."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        if index >= 2:
            raise IndexError(index)
        return Item(self.events, arrowdl.to_arrow_device(bytearray([index])))


class Item:
    def __init__(self, events: list[str], array: arrowdl.DeviceArray) -> None:
        self.events, self.array = events, array

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        self.events.append("read")
        return self.array.__arrow_c_array__(requested_schema)

    def __del__(self) -> None:
        self.events.append("deleted")


@pytest.mark.parametrize(
    "call",
    [
        _core.concatenate,
        lambda arrays: _core.make_struct(["a", "b"], arrays),
        lambda arrays: _core.assemble("C", 1, 0, arrays, None, False),
        lambda arrays: _core.number_rows(arrays, arrowdl.to_arrow_device(numpy.zeros(2, "i8"))),
    ],
    ids=["concatenate", "make_struct", "assemble", "number_rows"],
)
def test_an_item_of_a_sequence_lives_while_it_is_read(call: Any) -> None:
    arrays = MadeOnAccess()
    with suppress(ValueError, TypeError):  # not all of them make sense
        call(arrays)
    assert arrays.events == ["read", "deleted"] * 2
