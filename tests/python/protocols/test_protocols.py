"""The documentation's table of protocols says what the libraries that are installed do."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from helpers.pins import find_outdated, skip_another_version
from helpers.protocols import TABLE

FOUND = TABLE.find_rows()


@pytest.mark.parametrize("key", FOUND, ids=" ".join)
def test_the_table_is_what_the_libraries_offer(key: tuple[str, str]) -> None:
    row = TABLE.read_rows()[key]
    skip_another_version(row[0], FOUND[key][0])
    assert row == FOUND[key], "run tools/list_protocols.py"


def test_the_table_is_of_the_versions_that_are_tested() -> None:
    assert find_outdated({row[0] for row in TABLE.read_rows().values()}) == []


def test_the_table_has_a_row_for_every_object() -> None:
    assert list(TABLE.read_rows()) == list(TABLE.PRODUCERS)
    installed = [name for name, _ in TABLE.PRODUCERS if find_spec(TABLE.MODULES.get(name, name))]
    assert [name for name, _ in FOUND] == installed
