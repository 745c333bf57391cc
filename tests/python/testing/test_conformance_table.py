"""docs/concepts/conformance.csv says what the checks find in the libraries installed here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from arrowdl.testing import RULES
from helpers.pins import find_outdated, skip_another_version

ROOT = Path(__file__).resolve().parents[3]
PATH = ROOT / "tools/list_conformance.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("list_conformance", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["list_conformance"] = module  # a process of a check imports it by this name
    spec.loader.exec_module(module)
    return module


TABLE = load()
HERE = {"numpy", "torch", "jax", "apache-tvm-ffi", "pyarrow", "polars", "pandas", "duckdb"}
HERE |= {"nanoarrow", "arro3-core", "arrowdl"}


def without_texts(rows: dict[Any, list[list[str]]]) -> dict[Any, list[list[str]]]:
    """What was seen may have numbers that differ; library, version, severity and rule may not."""
    return {key: [row[:5] for row in parts] for key, parts in rows.items()}


def find_versions(rows: dict[Any, list[list[str]]]) -> str:
    """The library and its version, as the rows name it."""
    return " ".join(sorted({row[0] for parts in rows.values() for row in parts}))


def test_the_table_is_of_the_versions_that_are_tested() -> None:
    named = {row[0] for parts in TABLE.read_rows().values() for row in parts}
    assert find_outdated(name for name in named if not name.startswith("arrowdl")) == []


def test_the_table_is_of_subjects_and_rules_that_exist() -> None:
    subjects = {subject.key for subject in TABLE.SUBJECTS}
    rows = TABLE.read_rows()
    assert set(rows) <= subjects
    assert {key for key in subjects if key[0] in HERE} <= set(rows)
    rules = {row[4] for parts in rows.values() for row in parts if row[3] != "none"}
    assert rules <= set(RULES)


@pytest.mark.parametrize("library", ["numpy", "arrowdl", "duckdb"])
def test_the_table_is_true(library: str) -> None:
    found = TABLE.find_rows([library])
    kept = {key: rows for key, rows in TABLE.read_rows().items() if key[0] == library}
    assert found
    skip_another_version(find_versions(kept), find_versions(found))
    assert without_texts(kept) == without_texts(found), f"run tools/list_conformance.py {library}"


@pytest.mark.slow
@pytest.mark.parametrize("library", sorted(HERE - {"numpy", "arrowdl", "duckdb"}))
def test_the_table_is_true_of_all(library: str) -> None:
    test_the_table_is_true(library)


def test_arrowdl_breaks_no_rule() -> None:
    rows = [row for key, parts in TABLE.read_rows().items() for row in parts if key[0] == "arrowdl"]
    assert rows
    assert [row for row in rows if row[3] == "error"] == []
