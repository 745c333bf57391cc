"""How many rows of a file are decoded at a time."""

from __future__ import annotations

import pytest
from arrowdl.loader._sources.scan_limits import DECODE_ROWS, count_batch_rows

MEBIBYTE = 2**20


BUDGET = 128 * MEBIBYTE


@pytest.mark.parametrize(
    ("row_bytes", "columns", "rows"),
    [
        (0, 3, DECODE_ROWS),  # unknown
        (8, 2, DECODE_ROWS),
        (1024, 1, 8192),  # one wide column: 8 MiB
        (4096, 1000, 8192),  # many narrow ones: more rows, of 32 MiB
        (8192, 2000, 4096),
        (65_536, 1000, 128),  # many wide ones
        (100 * MEBIBYTE, 1, 1),
        (100 * MEBIBYTE, 10**7, 1),
    ],
)
def test_batches_are_bounded(row_bytes: float, columns: int, rows: int) -> None:
    assert count_batch_rows(row_bytes, columns, BUDGET) == rows


def test_several_readers_share_the_memory() -> None:
    assert count_batch_rows(4096, 1000, BUDGET // 2) == 4096
    assert count_batch_rows(4096, 1000, BUDGET // 16) == 2048  # as of other tables
