"""`interleave`: how many rows it joins at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from arrowdl import _core

BLOCK_BYTES = 2 * 4 * 2**20


def read_growing(pulled: list[int]) -> Iterator[_core.DeviceArray]:
    """Rows without a byte, and then rows of 300 kB."""
    small = pa.record_batch({"x": pa.array([b""] * 64)})
    large = pa.record_batch({"x": pa.array([b"x" * 300_000] * 8)})
    for number in range(2000):
        pulled.append(number)
        yield _core.from_arrow(small if number < 40 else large)


@pytest.mark.parametrize("skip", [0, 3])
def test_rows_that_grow_are_measured_before_they_are_joined(skip: int) -> None:
    """With blocks of as many rows as before, they need gigabytes or more than int32 can count."""
    pulled: list[int] = []
    streams = [_core.from_arrow_stream(read_growing(pulled)) for _ in range(8)]
    for array in _core.interleave(streams, 1, skip):
        assert array.nbytes < BLOCK_BYTES
        if array.nbytes > 100_000:
            break
    assert max(pulled) <= 41, "it reads one array ahead"


def test_the_rows_of_one_array_grow() -> None:
    table = pa.record_batch({"x": pa.array([b""] * 600 + [b"x" * 300_000] * 100)})
    stream = _core.interleave([_core.from_arrow_stream(table) for _ in range(4)], 2)
    arrays = list(stream)
    assert sum(map(len, arrays)) == 4 * 700
    assert max(array.nbytes for array in arrays) < BLOCK_BYTES


def test_a_shared_dictionary_makes_no_small_blocks() -> None:
    values = pa.array([f"{i:0100}" for i in range(60_000)])
    codes = pa.DictionaryArray.from_arrays(pa.array(range(4_000), pa.int32()), values)
    table = pa.record_batch({"x": codes})
    stream = _core.interleave([_core.from_arrow_stream(table) for _ in range(2)], 4)
    assert len(list(stream)) < 10
