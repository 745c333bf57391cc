"""Sources by their names in a command line: paths, URLs, and folders of tables."""

from __future__ import annotations

import argparse
import glob
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from arrowdl._commands.text import escape

if TYPE_CHECKING:
    from arrowdl.loader._types import Framework

_LIBRARIES = {"delta": "deltalake", "iceberg": "pyiceberg", "lance": "lance"}
_DISTRIBUTIONS = {"lance": "pylance"}


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a source."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="+",
        help="paths, folders, patterns or URLs of Parquet or Arrow IPC files; or one table of "
        "Delta Lake (its folder), Iceberg (its folder or a .metadata.json) or Lance (.lance)",
    )
    parser.add_argument(
        "--as",
        dest="as_",
        choices=sorted(_LIBRARIES),
        help="the kind of a table, for URLs whose names do not show it",
    )
    parser.add_argument("--json", action="store_true", help="print an object of JSON")


def open_named(names: list[str], kind: str | None) -> Any:
    """Return what a Loader takes for names."""
    kinds = [kind or find_kind(name) for name in names]
    tables = [(name, library) for name, library in zip(names, kinds, strict=True) if library]
    if not tables:
        return names
    name, library = tables[0]
    if len(names) > 1:
        raise ValueError(f"{name!r} is a table: give it alone")
    return _OPENERS[library](name)


def find_kind(name: str) -> str | None:
    """Return the kind of the table that a name is; None for files."""
    if name.endswith(".metadata.json"):
        return "iceberg"
    if name.rstrip("/").endswith(".lance"):
        return "lance"
    if os.path.isdir(os.path.join(name, "_delta_log")):
        return "delta"
    if _list_metadata(name):
        return "iceberg"
    return "lance" if os.path.isdir(os.path.join(name, "_versions")) else None


def _list_metadata(folder: str) -> list[str]:
    """List the versions of an Iceberg table, the last one at the end."""
    pattern = os.path.join(glob.escape(folder), "metadata", "*.metadata.json")
    return sorted(glob.glob(pattern), key=lambda path: (os.path.getmtime(path), path))


def _open_iceberg(name: str) -> Any:
    _import("iceberg")
    table = importlib.import_module("pyiceberg.table")
    path = name if name.endswith(".json") else _list_metadata(name)[-1]
    return table.StaticTable.from_metadata(path)


_OPENERS: dict[str, Callable[[str], Any]] = {
    "delta": lambda name: _import("delta").DeltaTable(name),
    "iceberg": _open_iceberg,
    "lance": lambda name: _import("lance").dataset(name),
}


def _import(kind: str) -> Any:
    name = _LIBRARIES[kind]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"a table of {kind} needs {name}: pip install {_DISTRIBUTIONS.get(name, name)}"
        ) from None


def choose_framework(name: Framework | None) -> Framework:
    """Return the framework that a user names; by default torch, or numpy where it is missing."""
    if name is not None:
        return name
    return "numpy" if importlib.util.find_spec("torch") is None else "torch"


def fail(error: Exception) -> int:
    """Print an error; return the exit code of a command that could not read its source."""
    print("error:", "\n".join(map(escape, str(error).splitlines())), file=sys.stderr)
    return 1
