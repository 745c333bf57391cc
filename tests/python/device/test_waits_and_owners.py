"""Owners of memory that a framework still reads, waits and the interpreter lock, and the GPU that
copies, on the fake drivers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

KEPT = """
import dataclasses
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

kept = []
def take(tensor):
    kept.append(read_as_host(tensor))  # the framework's work reads it later
    return kept[-1]

numpy = _frameworks.load("numpy")
replace_framework("numpy", dataclasses.replace(numpy, from_dlpack=take, from_offsets=take))
"""


def test_a_framework_holds_the_nulls_of_every_struct(on_fake_cuda: Callable[[str], None]) -> None:
    """Without kernels: HIP without hiprtc. Decoded runs are not in the memory of their struct."""
    on_fake_cuda(f"""{KEPT}
runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([1, None]))
for field in (pa.array([1, None, 3, 4, 5]), pa.array([True, None] * 2 + [False]), runs):
    rows = pa.StructArray.from_arrays([field], ["x"], mask=pa.array([False, True] * 2 + [False]))
    outer = pa.StructArray.from_arrays([rows], ["s"], mask=pa.array([True] + [False] * 4))
    for nulls in ("mask", "fill"):
        there = arrowdl.from_arrow(outer).to("rocm:1")
        arrowdl.to_numpy(there, nulls=nulls)
        before = [one.tolist() for one in kept]
        assert before
        del there
        gc.collect()
        settle()
        assert [one.tolist() for one in kept] == before, (field.type, nulls)
        kept.clear()
""")


READS = {
    "null_count": "there.null_count",
    "offsets": "there.offsets",
    "padded": 'arrowdl.to_numpy(there, nulls="fill", ragged="padded")',
    "rows": "list(_core.chain([there]).shuffle(2, 1))",
    "cpu": 'there.to("cpu", pin_memory=False)',
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_another_thread_makes_what_is_read(on_fake_cuda: Callable[[str], None], read: str) -> None:
    """A copy to pageable memory waits for the stream, and holds no interpreter lock meanwhile."""
    on_fake_cuda(f"""{KEPT}
import faulthandler
import threading
from arrowdl import _core

faulthandler.dump_traceback_later(30, exit=True)
rows = arrowdl.from_arrow(pa.array([[1, 2], None, [3]]))
stream = cuda.make_stream()
gate = cuda.gate(stream)
gate.__enter__()
there = rows.to("cuda:0", stream=stream)[0:2]
assert not there.is_ready()
count_waits = cuda.library.arrowdl_fake_host_waits
before = count_waits()

def open_gate():
    while count_waits() == before:  # the driver, for the thread that reads
        time.sleep(0.001)
    gate.__exit__(None, None, None)

opener = threading.Thread(target=open_gate)
opener.start()
{read}
opener.join()
assert there.is_ready()
kept.clear()
""")


def test_copies_between_gpus_without_peers(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import pyarrow as pa

ARRAYS = [pa.array([1, 2, 3]), pa.array([[1, 2], None, [3]]), pa.array(["a", None, "bcd"]),
          pa.array([{"a": ["x", "yz"]}, None, {"a": []}])]
for has_peers in (1, 0):
    cuda.library.arrowdl_fake_set_peers(has_peers)
    for allocator in ("auto", "pool"):
        arrowdl.config.allocator = allocator
        for array in ARRAYS:
            for start in ("cuda:0", "cuda:1", "cuda_host:1", "cuda_managed:1"):
                there = arrowdl.from_arrow(array).to(start)
                for end in ("cuda:0", "cuda:1", "cuda_host:0", "cuda_host:1", "cuda_managed:0",
                            "cuda_managed:1", "cpu"):
                    made = there.to(end)
                    assert pa.array(made.to("cpu")).equals(array), (has_peers, start, end)
                    if end != "cpu":
                        assert made.device == arrowdl.Device(end), (start, end)
        del there, made
""")
