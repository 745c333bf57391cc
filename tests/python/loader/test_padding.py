"""`Padding`: how much of the padded columns of a batch is padding."""

from __future__ import annotations

import random
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import _core
from arrowdl.loader._batches.padding import Padding
from helpers.options import group


def count(rows: pa.RecordBatch, cut: slice = slice(None), **options: Any) -> tuple[int, int]:
    ragged = group(**{"ragged": "padded", **options})["ragged"]
    array = arrowdl.from_arrow(rows)[cut]
    padding = Padding(array.schema, _core.ColumnOptions(ragged=ragged))
    return padding.count(array) if padding else (0, 0)


def make(lengths: list[Any], kind: pa.DataType) -> pa.RecordBatch:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = [None if n is None else "x" * n for n in lengths]
    else:
        values = [None if n is None else [0] * n for n in lengths]
    return pa.record_batch({"x": pa.array(values, kind), "id": pa.array(range(len(lengths)))})


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.string(), pa.large_string()], ids=str
)
@pytest.mark.parametrize("rows", [1, 5, 256, 257, 1000])
def test_values_and_padding(kind: pa.DataType, rows: int) -> None:
    draw = random.Random(rows)
    lengths = [draw.randrange(9) for _ in range(rows)]
    batch = make(lengths, kind)
    for start, stop in ((0, rows), (rows // 3, rows)):
        own = lengths[start:stop]
        expected = sum(own), len(own) * max(own) - sum(own)
        assert count(batch, slice(start, stop)) == expected


def test_options_of_padding() -> None:
    batch = make([3, 0, 9], pa.list_(pa.int8()))
    assert count(batch, pad_to_multiple=4) == (12, 36 - 12)
    assert count(batch, max_length=5) == (8, 15 - 8)
    assert count(batch, ragged={"x": "padded"}, max_length={"x": 5}) == (8, 15 - 8)
    assert count(batch, ragged={"x": "jagged", "id": "padded"}) == (0, 0)
    assert count(batch, ragged="offsets") == (0, 0)
    assert count(make([3, None, 2], pa.list_(pa.int8()))) == (5, 9 - 5)
    assert count(make([], pa.list_(pa.int8()))) == (0, 0)


@pytest.mark.parametrize("options", [{}, {"num_threads": 2}, {"device": "cpu"}, {"prefetch": 0}])
def test_stats_have_the_padding_of_all_batches(options: dict[str, Any]) -> None:
    lengths = [i % 7 for i in range(50)]
    table = pa.Table.from_batches([make(lengths, pa.list_(pa.int8()))])
    loader = arrowdl.Loader(table, 8, framework="numpy", **group(ragged="padded", **options))
    total = sum(batch["x"][0].size for batch in loader)
    stats = loader.stats()
    assert (stats.values, stats.values + stats.padding_values) == (sum(lengths), total)
    assert stats.value_padding == pytest.approx(1 - sum(lengths) / total)
    assert f", {stats.value_padding:.1%} of padded columns is padding" in str(stats)
