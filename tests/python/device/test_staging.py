"""Copies to a device by way of pinned memory, which is used again. More of it in the C++ tests."""

from __future__ import annotations

from collections.abc import Callable

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import debug


def test_pinned_memory_is_used_again(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import pyarrow as pa

table = pa.table({"x": range(40_000), "s": ["ab", None, "c", ""] * 10_000})
for device in ["cuda:0", "rocm:0"]:
    sizes = set()
    for _ in range(3):
        for batch in arrowdl.from_arrow_stream(table).rebatch(10_000).to(device):
            batch.synchronize()
            settle()
            sizes.add(debug.staging_bytes())
    assert len(sizes) == 1 and sizes.pop() >= 1 << 16
    arrowdl.config.staging_limit = 0
    assert debug.staging_bytes() == 0
    arrowdl.config.staging_limit = 1 << 28
    batches = arrowdl.from_arrow_stream(table).rebatch(10_000).to(device)
    whole = pa.chunked_array([pa.array(batch.to("cpu")) for batch in batches])
    assert pa.Table.from_struct_array(whole).equals(table)
""")


def test_nothing_is_pinned_on_request(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import pyarrow as pa

ids = pa.array(range(1000))
there = arrowdl.from_arrow(ids).to("cuda:0", pin_memory=False)
assert pa.array(there.to("cpu", pin_memory=False)).equals(ids)
(copied,) = arrowdl.from_arrow_stream(ids).to("cuda:0", pin_memory=False)
assert pa.array(copied.to("cpu", pin_memory=False)).equals(ids)
pinned = arrowdl.from_arrow(ids).to("cuda_host")
assert pa.array(pinned.to("cuda:0").to("cpu", pin_memory=False)).equals(ids)
assert debug.staging_bytes() == 0
""")


def test_the_source_has_been_read_and_nobody_waits(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import numpy as np
import pyarrow as pa

stream = cuda.make_stream()
source = np.arange(1000)
with cuda.gate(stream):
    copied = arrowdl.to_arrow_device(source).to("cuda:0", stream=stream)
    assert not copied.is_ready()
    source[:] = -1
assert pa.array(copied.to("cpu")).to_pylist() == list(range(1000))
""")


def test_whoever_finds_it_in_use_waits_without_the_interpreter_lock(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda("""
import threading
import pyarrow as pa

stream = cuda.make_stream()
ids = arrowdl.from_arrow(pa.array(range(1000)))
arrowdl.config.staging_limit = 0
made = []
with cuda.gate(stream):
    ids.to("cuda:0", stream=stream)
    copier = threading.Thread(target=lambda: made.append(ids.to("cuda:0")))
    count = cuda.library.arrowdl_fake_pool_allocations
    before = count()
    copier.start()
    while count() == before:  # then it needs pinned memory
        time.sleep(0.001)
    assert copier.is_alive() and not made
    assert debug.staging_bytes() == 1 << 16
copier.join()
assert pa.array(made[0].to("cpu")).to_pylist() == list(range(1000))
""")


@pytest.mark.parametrize("device", ["cuda:0", "rocm:1"])
def test_a_loader_copies_ahead(on_fake_cuda: Callable[[str], None], device: str) -> None:
    on_fake_cuda(f"""
import dataclasses
import numpy as np
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

numpy = _frameworks.load("numpy")
stand_in = dataclasses.replace(numpy, from_dlpack=read_as_host)
replace_framework("numpy", stand_in)
arrowdl.config.staging_limit = 4 << 16
table = pa.table({{"i": range(5000), "x": np.arange(5000) / 7}})
loader = arrowdl.Loader(
    table,
    64,
    framework="numpy",
    device="{device}",
    shuffle=arrowdl.Shuffle(512),
)
here = arrowdl.Loader(table, 64, framework="numpy", shuffle=arrowdl.Shuffle(512))
for _ in range(2):
    for batch, expected in zip(loader, here, strict=True):
        for name in ("i", "x"):
            np.testing.assert_array_equal(batch[name], expected[name])
assert 1 <= debug.staging_bytes() >> 16 <= 5
""")


COMPARE = """
import dataclasses
import numpy as np
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

numpy = _frameworks.load("numpy")
stand_in = dataclasses.replace(numpy, from_dlpack=read_as_host, from_offsets=read_as_host)
replace_framework("numpy", stand_in)

def compare(there, here):
    if isinstance(here, dict):
        assert there.keys() == here.keys()
        for name in here:
            compare(there[name], here[name])
    elif isinstance(here, tuple):
        for one, other in zip(there, here, strict=True):
            compare(one, other)
    else:
        assert there.dtype == here.dtype and there.shape == here.shape
        np.testing.assert_array_equal(there, here)

def check(table, **options):
    options |= {"framework": "numpy", "shuffle": True}
    loader = arrowdl.Loader(table, 64, device="cuda:0", **options)
    here = arrowdl.Loader(table, 64, **options)
    for _ in range(2):
        count = 0
        for there, expected in zip(loader, here, strict=True):
            assert not there is expected
            compare(there, expected)
            count += 1
        assert count == 8
"""

RAGGED = """
random = np.random.default_rng(7)
lists = [list(range(i, i + n)) for i, n in enumerate(random.integers(0, 9, 500))]
table = pa.table({
    "i": range(500),
    "x": pa.array([None if i % 7 == 0 else i / 3 for i in range(500)], pa.float32()),
    "list": pa.array(lists, pa.list_(pa.int32())),
    "text": [str(i) * (i % 4) for i in range(500)],
    "flag": [i % 3 == 0 for i in range(500)],
})
"""


def test_a_loader_takes_lists_and_texts_to_a_device(on_fake_cuda: Callable[[str], None]) -> None:
    """Where they end is read on the host: batches are made there, and copied by one copy."""
    on_fake_cuda(f"""{COMPARE}{RAGGED}
check(table, nulls="nan")
check(table, nulls="mask", ragged="padded", prefetch=0)
check(table.select(["i", "flag"]))
check(table, nulls="fill", ragged="padded", transform=lambda batch: (batch["i"], batch["list"]))
check(table.slice(0, 500), nulls="fill", columns=["text"])
""")


def test_a_loader_stacks_columns_for_a_device(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{COMPARE}{RAGGED}
check(table.select(["x", "x"]).rename_columns(["a", "b"]), nulls="fill", stack=True)
check(table.select(["x", "i", "list"]), nulls="nan", stack={{"matrix": ["x"]}})
check(table, nulls="mask", columns=["x", "i"], stack={{"matrix": ["x"]}})
""")


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match=r"config\.staging_limit=-1"):
        arrowdl.config.staging_limit = -1


def test_the_cpu_needs_none() -> None:
    assert pa.array(arrowdl.from_arrow(pa.array([1])).to("cpu", pin_memory=True)).to_pylist() == [1]
    assert debug.staging_bytes() == 0


def test_a_copy_of_pageable_memory_waits_without_the_interpreter_lock(
    on_fake_cuda: Callable[[str], None],
) -> None:
    """The driver waits for the stream before it reads more than 64 KiB."""
    on_fake_cuda("""
import threading
import numpy as np
from arrowdl import _core

rows = np.arange(2000, dtype="i4")
memory = cuda.allocate(rows.nbytes)
ctypes.memmove(memory, rows.ctypes.data, rows.nbytes)
stream = cuda.make_stream()
made = []
with cuda.gate(stream):
    array = arrowdl.to_arrow_device(cuda.tensor(memory, (2000,), typestr="<i4", stream=stream))
    parts = [array[i:i + 1] for i in reversed(range(2000))]  # their table has 96 kB
    joiner = threading.Thread(target=lambda: made.append(_core.concatenate(parts)))
    waits = cuda.library.arrowdl_fake_host_waits
    before = waits()
    joiner.start()
    while waits() == before:
        time.sleep(0.001)
    assert joiner.is_alive() and not made
joiner.join()
assert np.array_equal(np.from_dlpack(made[0].to("cpu")), rows[::-1])
del array, parts
""")
