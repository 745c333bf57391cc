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
        for batch in arrowdl.stream(table).rebatch(10_000).to(device):
            batch.synchronize()
            settle()
            sizes.add(debug.staging_bytes())
    assert len(sizes) == 1 and sizes.pop() >= 1 << 16
    arrowdl.set_staging_limit(0)
    assert debug.staging_bytes() == 0
    arrowdl.set_staging_limit(1 << 28)
    whole = pa.chunked_array([pa.array(batch.to("cpu"))
                              for batch in arrowdl.stream(table).rebatch(10_000).to(device)])
    assert pa.Table.from_struct_array(whole).equals(table)
""")


def test_nothing_is_pinned_on_request(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import pyarrow as pa

ids = pa.array(range(1000))
assert pa.array(arrowdl.from_arrow(ids).to("cuda:0", pin=False).to("cpu")).equals(ids)
(copied,) = arrowdl.stream(ids).to("cuda:0", pin=False)
assert pa.array(copied.to("cpu")).equals(ids)
pinned = arrowdl.from_arrow(ids).to("cuda_host")
assert pa.array(pinned.to("cuda:0").to("cpu")).equals(ids)
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
    assert not copied.ready()
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
arrowdl.set_staging_limit(0)
made = []
with cuda.gate(stream):
    ids.to("cuda:0", stream=stream)
    copier = threading.Thread(target=lambda: made.append(ids.to("cuda:0")))
    copier.start()
    time.sleep(0.05)
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
from helpers.fake_cuda import read_as_host

numpy = _frameworks.load("numpy")
stand_in = dataclasses.replace(numpy, from_dlpack=read_as_host)
_frameworks._LOADERS["numpy"] = lambda: stand_in
arrowdl.set_staging_limit(4 << 16)
table = pa.table({{"i": range(5000), "x": np.arange(5000) / 7}})
loader = arrowdl.Loader(
    table, 64, framework="numpy", device="{device}", shuffle=True, buffer_rows=512)
here = arrowdl.Loader(table, 64, framework="numpy", shuffle=True, buffer_rows=512)
for _ in range(2):
    for batch, expected in zip(loader, here, strict=True):
        for name in ("i", "x"):
            np.testing.assert_array_equal(batch[name], expected[name])
assert 1 <= debug.staging_bytes() >> 16 <= 5
""")


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match="a staging limit of -1 bytes"):
        arrowdl.set_staging_limit(-1)


def test_the_cpu_needs_none() -> None:
    assert pa.array(arrowdl.from_arrow(pa.array([1])).to("cpu", pin=True)).to_pylist() == [1]
    assert debug.staging_bytes() == 0
