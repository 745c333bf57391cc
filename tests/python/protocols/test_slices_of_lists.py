"""Slices of fixed-size lists, which libraries read in ways of their own."""

from __future__ import annotations

import arrowdl
import polars as pl
import pyarrow as pa
import pytest


def nest(depth: int, row: int) -> list | int | None:
    """A row of `depth` lists of two, in which some lists and values are null."""
    if row % 5 == 2:
        return None
    return [nest(depth - 1, 3 * row + i) for i in range(2)] if depth > 0 else row


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("first", "rows"), [(0, 7), (3, 9), (8, 20), (17, 0), (29, 11)])
def test_polars_takes_slices_of_fixed_size_lists_with_nulls(depth, first, rows):
    """polars 2.1 compares the rows of the slice with the items of the whole, and raises."""
    type = pa.int32()
    for _ in range(depth):
        type = pa.list_(type, 2)
    whole = pa.array([nest(depth, row) for row in range(40)], type)
    part = whole.slice(first, rows)
    expected = part.to_pylist()
    for array in (arrowdl.from_arrow(whole)[first : first + rows], arrowdl.from_arrow(part)):
        assert pl.Series(array).to_list() == expected
        back = pa.array(array)
        back.validate(full=True)
        assert back.to_pylist() == expected
        assert pl.from_arrow(back).to_list() == expected
    table = pa.table({"v": part})
    assert pl.DataFrame(arrowdl.from_arrow_stream(table))["v"].to_list() == expected
