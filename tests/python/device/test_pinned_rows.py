"""Rows that are gathered for a device: where, how often they are copied, and who may still read."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("shuffle", [True, False])
def test_gathered_rows_have_no_second_copy_on_the_host(
    on_fake_cuda: Callable[[str], None], shuffle: bool
) -> None:
    """They are gathered in pinned memory, from which the device copies a batch at once."""
    on_fake_cuda(f"""
import numpy as np
import pyarrow as pa
from arrowdl import _core
from helpers.batch_counts import BATCH, ROWS, Counter, make_table
from helpers.options import group

counter = Counter(cuda, "torch")
columns = ["wide", "image", "i"] if {shuffle} else ["wide", "i", "f", "x"]
table = make_table().select(columns)
chunks = pa.Table.from_batches(table.to_batches(max_chunksize=300))
options = dict(columns=columns, batch_size=BATCH, shuffle={shuffle}, prefetch=0, nulls="fill")

def open_loader(source, **others):
    return arrowdl.Loader(source, **group(**options, **others))

for _ in range(3):
    made = counter.run(open_loader(chunks, framework="torch", device="cuda:0"))
    settle()
assert len(made) == ROWS // BATCH
for counts in made:
    assert counts.staged_bytes == 0, counts
    assert counts.copies <= 2, counts  # dropped validity of a batch without nulls parts the others
    assert (counts.host_waits, counts.page_locks) == (0, 0), counts

loader = open_loader(chunks, framework="torch", device="cuda:0")
here = list(open_loader(chunks, framework="numpy"))
for batch, expected in zip(loader, here, strict=True):
    cuda.synchronize(counter.torch.stream)
    for name in columns:
        assert np.array_equal(np.asarray(batch[name]), expected[name]), name
""")


def test_what_the_limit_does_not_allow_is_staged(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
from arrowdl import _core
from helpers.batch_counts import BATCH, ROWS, Counter, open_loader

counter = Counter(cuda, "torch")
arrowdl.config.staging_limit = 256 << 10
for counts in counter.run(open_loader("long", "host", "torch", shuffle=True, prefetch=0)):
    assert counts.staged_bytes >= BATCH * 256, counts
    assert counts.copies == 1, counts
""")


@pytest.mark.parametrize("label", ["pinned", "cpu"])
def test_a_copy_of_others_reads_pinned_memory_to_its_end(
    on_fake_cuda: Callable[[str], None], label: str
) -> None:
    """As torch's `to(non_blocking=True)` does on its default stream, when the tensor is dropped."""
    on_fake_cuda(f"""
import numpy as np
import pyarrow as pa

size, legacy = 6 << 20, 1
page_locks, host_waits = cuda.library.arrowdl_fake_page_locks, cuda.library.arrowdl_fake_host_waits

def make(value):
    pinned = arrowdl.from_arrow(pa.array(np.full(size, value, np.uint8))).to("cuda_host:0")
    pinned.synchronize()
    return pinned if "{label}" == "pinned" else pinned.to("cpu")

target = cuda.allocate(size)
for current in (0, 1):
    settle()
    with cuda.context(current):
        array = make(1)
        tensor = np.from_dlpack(array)
        address = tensor.ctypes.data
        waits = host_waits()
        with cuda.gate(legacy, current):
            cuda.library.arrowdl_fake_enqueue_copy(current, legacy, target, address, size)
            del array, tensor
            assert host_waits() == waits
            others = [make(2), make(3)]
            assert address not in [np.from_dlpack(other).ctypes.data for other in others]
        seen = cuda.read(legacy, target, size, current)
        cuda.call("cuStreamSynchronize", ctypes.c_void_p(legacy))
        assert set(np.unique(seen)) == {{1}}
    del others
    settle()
before = page_locks()
for _ in range(5):
    array = make(4)
    np.from_dlpack(array)
    del array
    settle()
assert page_locks() == before, "the blocks are used again"
""")
