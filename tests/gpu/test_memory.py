"""Whose memory, and on which GPU: current devices, allocators, several GPUs, JAX's alignment."""

from __future__ import annotations

import ctypes
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.gpu import torch

pytestmark = pytest.mark.cuda

IDS = pa.array(range(100_000), pa.int32())


@pytest.fixture
def second(_gpu: None) -> int:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return 1


def test_torchs_current_device_is_meant(second: int) -> None:
    ids = arrowdl.from_arrow(IDS)
    assert arrowdl.Device("cuda").id == torch.cuda.current_device() == 0
    with torch.cuda.device(second):
        assert ids.to("cuda").device == arrowdl.Device("cuda", second)
        assert arrowdl.to_torch(IDS, device="cuda").device.index == second
        for batch in arrowdl.Loader(pa.table({"i": IDS}), 50_000, device="cuda"):
            assert batch["i"].device.index == second


@pytest.mark.parametrize("allocator", ["auto", "pool"])
def test_copies_between_gpus(second: int, allocator: Any) -> None:
    here = arrowdl.from_arrow(IDS).to("cuda:0", allocator=allocator)
    there = here.to(f"cuda:{second}", allocator=allocator)
    assert pa.array(there.to("cpu")).equals(IDS)
    assert pa.array(there.to("cuda:0", allocator=allocator).to("cpu")).equals(IDS)


def test_torch_copies_memory_of_the_pool_to_another_gpu(second: int) -> None:
    tensor = torch.from_dlpack(arrowdl.from_arrow(IDS).to("cuda:0", allocator="pool"))
    assert tensor.to(f"cuda:{second}").cpu().tolist() == IDS.to_pylist()


def test_the_memory_is_torchs() -> None:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    copied = arrowdl.from_arrow(IDS).to("cuda:0")
    assert torch.cuda.memory_allocated() - before >= IDS.nbytes
    pooled = arrowdl.from_arrow(IDS).to("cuda:0", allocator="pool")
    assert torch.cuda.memory_allocated() - before < 2 * IDS.nbytes
    assert pa.array(copied.to("cpu")).equals(pa.array(pooled.to("cpu")))


def test_torch_allocates_without_the_interpreter() -> None:
    """A thread that copies ahead would wait for the training, and the training for it."""
    rows, size = 8 << 20, 64 << 20
    arrowdl.from_arrow(IDS).to("cuda:0")  # the first time, in Python
    whole = arrowdl.from_arrow(pa.array(np.arange(8 * rows)))
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    stream = arrowdl.from_arrow_stream(whole).rebatch(rows).to("cuda:0").prefetch(4)
    first = next(stream)
    ctypes.PyDLL(None).usleep(500_000)  # with the GIL, which ctypes.CDLL would release
    assert torch.cuda.memory_allocated() - before >= 5 * size
    read = torch.cat([torch.from_dlpack(array) for array in (first, *stream)])
    assert read.equal(torch.arange(8 * rows, device="cuda"))


def test_out_of_memory_of_torch_says_so() -> None:
    arrowdl.from_arrow(IDS).to("cuda:0")
    torch.cuda.set_per_process_memory_fraction(1e-6)
    try:
        with pytest.raises(MemoryError, match="CUDA out of memory"):
            arrowdl.from_arrow(pa.array(np.arange(64 << 20))).to("cuda:0")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert pa.array(arrowdl.from_arrow(IDS).to("cuda:0").to("cpu")).equals(IDS)


def test_cupys_allocator() -> None:
    cupy = pytest.importorskip("cupy")
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    copied = arrowdl.from_arrow(IDS).to("cuda:0", allocator=cupy.cuda.alloc)
    assert pool.used_bytes() - before >= IDS.nbytes
    assert pa.array(copied.to("cpu")).equals(IDS)


def test_out_of_memory_empties_torchs_cache() -> None:
    size = 2 << 30
    free, _ = torch.cuda.mem_get_info()
    cached = torch.empty(free - size // 2, dtype=torch.uint8, device="cuda")
    del cached  # torch keeps it
    large = arrowdl.to_arrow_device(torch.zeros(size, dtype=torch.uint8))
    copied = large.to("cuda:0", allocator="pool")
    assert copied.nbytes == size
    copied.synchronize()


@pytest.mark.parametrize("start", [1, 3, 4, 7])
def test_jax_computes_on_windows(jax: Any, start: int) -> None:
    there = arrowdl.from_arrow(IDS).to("cuda:0")
    made = arrowdl.to_jax(there[start:])
    assert (made + 1)[:3].tolist() == [start + 1, start + 2, start + 3]
