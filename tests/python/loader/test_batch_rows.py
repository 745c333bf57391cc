"""How many rows of a file are decoded at a time."""

from __future__ import annotations

import pytest
from arrowdl.loader._parquet.scan_limits import (
    BATCH_BYTES,
    DECODE_ROWS,
    count_batch_rows,
    plan_batches,
)

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


@pytest.mark.parametrize("row_bytes", [0.0, 8.0, 5000.0, 20_000.0, 1e9])
@pytest.mark.parametrize("ahead", [1, 4, 16])
def test_joined_batches_read_no_more_rows_ahead(row_bytes: float, ahead: int) -> None:
    rows, readahead = plan_batches(row_bytes, 1000, ahead)
    joined, joined_ahead = plan_batches(row_bytes, 1000, ahead, joins=True)
    assert rows <= joined <= DECODE_ROWS
    assert joined * joined_ahead <= rows * readahead
    assert readahead <= ahead
    assert rows * readahead * row_bytes <= max(ahead * BATCH_BYTES, row_bytes)


def test_a_parquet_batch_has_the_rows_that_are_read_ahead() -> None:
    assert plan_batches(20_000, 2, 16) == (419, 16)
    assert plan_batches(20_000, 2, 16, joins=True) == (419 * 16, 1)
    assert plan_batches(8, 2, 16, joins=True) == (DECODE_ROWS, 16)  # as without
