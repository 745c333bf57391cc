"""The documentation's table of protocols says what the libraries that are installed do."""

from __future__ import annotations

import pytest
from helpers.protocols import TABLE

FOUND = TABLE.find_rows()


@pytest.mark.parametrize("key", FOUND, ids=" ".join)
def test_the_table_is_what_the_libraries_offer(key: tuple[str, str]) -> None:
    assert TABLE.read_rows()[key] == FOUND[key], "run tools/list_protocols.py"


def test_the_table_has_a_row_for_every_object() -> None:
    assert list(TABLE.read_rows()) == list(TABLE.PRODUCERS)
    assert len(FOUND) > 10
