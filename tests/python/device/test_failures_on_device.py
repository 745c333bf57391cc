"""`Loader(on_error="skip")` and `Loader.filter` with rows on a device, or copied to one."""

from __future__ import annotations

from collections.abc import Callable

SETUP = """
import dataclasses
import logging
import numpy as np
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework
from helpers.options import group

numpy = _frameworks.load("numpy")
there = dataclasses.replace(numpy, from_dlpack=read_as_host, from_offsets=read_as_host)
replace_framework("numpy", there)
logging.disable()

table = pa.table({
    "id": pa.array(range(900), pa.int32()),
    "name": [f"row {i}" for i in range(900)],
})
numbers = table.select(["id"])
on_device = [arrowdl.from_arrow(batch).to("cuda") for batch in table.to_batches(400)]
SOURCES = {
    "rows on a device": (on_device, {"columns": ["id"]}),
    "copied": (numbers, {"device": "cuda"}),
    "copied as a block": (table, {"device": "cuda"}),
    "copied in place": (numbers, {"device": "cuda", "prefetch": 0}),
}

def fail(batch):
    if (batch["id"] == 250).any():
        batch["id"].fill(-1)
        raise ZeroDivisionError("bad")
    return batch
"""


def test_a_transform_that_raises(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
for name, (source, options) in SOURCES.items():
    for more in ({{}}, {{"pad_last": True}}, {{"splits": 2}}, {{"splits": 4, "pad_last": True}}):
        lost = 100 // more.get("splits", 1)
        loader = arrowdl.Loader(
            source, 100, framework="numpy", on_error=arrowdl.Skip(100), transform=fail,
            ragged="padded", **options, **group(**more))
        read = []
        for batch in loader:
            valid = loader.valid_rows
            if "valid" in batch:
                mask = [True] * valid + [False] * (100 - valid)
                assert batch["valid"].tolist() == mask, (name, more)
            read.append(batch["id"].tolist()[:valid])
        stats = loader.stats()
        assert len(read) == 9, (name, more)
        assert stats.rows == 900 - lost and stats.skipped_rows == lost, (name, more)
        (entry,) = stats.skipped
        rows = [i for start, stop in entry.ranges for i in range(start, stop)]
        assert sorted([i for ids in read for i in ids] + rows) == list(range(900)), (name, more)
        assert 250 in rows
""")


def test_a_filter(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
for name, (source, options) in SOURCES.items():
    for more in ({{}}, {{"pad_last": True}}, {{"shuffle": True}}, {{"on_error": "skip"}}):
        loader = arrowdl.Loader(
            source, 100, framework="numpy", ragged="padded", **options, **more)
        for chain in (loader, loader.map(dict)):
            chain = chain.filter(lambda batch: (batch["id"] % 7 == 1) & (batch["id"] < 500))
            ids = []
            for batch in chain:
                assert len(batch["id"]) == 100 or not loader._options.pad_last
                ids += batch["id"].tolist()[:chain.valid_rows]
            assert sorted(ids) == list(range(1, 500, 7)), (name, more)
            assert chain.stats().filtered_rows == 900 - len(ids)
""")


def test_a_row_that_can_be_repeated_is_found_in_the_first_batch(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda(f"""{SETUP}
def fail_first(batch):
    if (batch["id"] == 0).any():
        raise ZeroDivisionError("bad")
    return batch

for name, (source, options) in SOURCES.items():
    loader = arrowdl.Loader(
        source, 100, framework="numpy", on_error=arrowdl.Skip(100),
        transform=fail_first, ragged="padded", **options)
    batches = iter(loader)
    first = next(batches)
    assert (loader.valid_rows, first["id"].tolist()) == (0, [1]), name
""")
