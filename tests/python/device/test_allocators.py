"""Whose memory copies to a GPU are in: config.allocator and allocator=, on the fake driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arrowdl
import pyarrow as pa
import pytest

IDS = pa.array(range(1000))

ALLOCATOR = """
import pyarrow as pa
from arrowdl import _core

ids = arrowdl.from_arrow(pa.array(range(1000)))

class Memory:
    \"\"\"As cupy.cuda.MemoryPointer, and rmm.DeviceBuffer.\"\"\"
    live = 0
    made = []

    def __init__(self, nbytes):
        self.ptr = cuda.allocate(nbytes)
        Memory.live += 1
        Memory.made.append((self.ptr, nbytes))

    def __del__(self):
        Memory.live -= 1
        with cuda.context(0):
            cuda.call("cuMemFree_v2", ctypes.c_void_p(self.ptr))

def allocate(nbytes):
    return Memory(nbytes)

def is_of(array, made):
    address = _core.address_of(array)
    return any(start <= address < start + size for start, size in made)

def check(array, made):
    assert is_of(array, made), made
    assert pa.array(array.to("cpu")).to_pylist() == list(range(1000))
"""


def test_a_function_of_bytes(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ALLOCATOR}
copied = ids.to("cuda:0", allocator=allocate)
check(copied, Memory.made)
(streamed,) = arrowdl.from_arrow_stream(ids).to("cuda:0", allocator=allocate)
check(streamed, Memory.made[1:])
assert Memory.live == 2 and len(Memory.made) == 2
assert not is_of(ids.to("cuda:0"), Memory.made)
assert ids.to("cuda_host", allocator=allocate).device.name == "cuda_host"
assert len(Memory.made) == 2, "pinned memory is arrowdl's"
arrowdl.config.allocator = allocate
assert arrowdl.config.allocator is allocate
check(ids.to("cuda:0"), Memory.made[2:])
bits = arrowdl.from_arrow(pa.array([True, None] * 500)).to("cuda:0", allocator="pool")
assert len(Memory.made) == 3
del copied, streamed, bits
settle()
assert Memory.live == 0
current = []

def allocate_there(nbytes):
    device = ctypes.c_int(-1)
    cuda.call("cuCtxGetDevice", ctypes.byref(device))
    current.append(device.value)
    return allocate(nbytes)

arrowdl.from_arrow_stream(ids).to("cuda:0", allocator=allocate_there).prefetch(1)
(copied,) = arrowdl.from_arrow_stream(ids).to("cuda:0", allocator=allocate_there).prefetch(1)
refused(BufferError, "is on cuda:0", lambda: ids.to("cuda:1", allocator=allocate_there))
assert set(current[:-1]) == {{0}} and current[-1] == 1
arrowdl.config.allocator = "pool"
assert not is_of(ids.to("cuda:0"), Memory.made)
""")


def test_the_copy_comes_after_the_allocators_stream(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ALLOCATOR}
stream = cuda.make_stream()

class Late(Memory):
    @property
    def __cuda_array_interface__(self):
        return {{"data": (self.ptr, False), "shape": (1,), "typestr": "|u1", "version": 3,
                "stream": stream}}

with cuda.gate(stream):
    copied = ids.to("cuda:0", allocator=lambda nbytes: Late(nbytes))
    assert not copied.is_ready(), "what the memory was used for is still running"
check(copied, Memory.made)
""")


def test_a_resource_of_rmm(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ALLOCATOR}
import sys
from types import SimpleNamespace

class Resource:
    def allocate(self, nbytes, stream=None): ...
    def deallocate(self, ptr, nbytes, stream=None): ...

resource, used = Resource(), []

def device_buffer(*, size, mr):
    used.append(mr)
    return Memory(size)

sys.modules["rmm"] = SimpleNamespace(DeviceBuffer=device_buffer)
check(ids.to("cuda:0", allocator=resource), Memory.made)
assert used == [resource]
""")


def test_the_exchange_api_of_a_framework(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ALLOCATOR}
from helpers.fake_cuda import StandInFramework

framework = StandInFramework(cuda)
with cuda.gate(framework.stream):
    copied = ids.to("cuda:0", allocator=framework.tensor_type)
    assert not copied.is_ready(), "its memory may be in use on its stream"
check(copied, [(address, 8192) for address in framework.addresses])
""")


TORCH = """
import sys
from contextlib import contextmanager
from types import SimpleNamespace

streams = []

@contextmanager
def stream(one):
    streams.append(one)
    yield

class Tensor(Memory):
    def data_ptr(self):
        return self.ptr

class OutOfMemoryError(RuntimeError):
    pass

left = [3]

def empty(nbytes, *, dtype, device):
    if not left[0]:
        raise OutOfMemoryError("CUDA out of memory")
    left[0] -= 1
    return Tensor(nbytes)

emptied = []
torch = SimpleNamespace(
    uint8=None, empty=empty, device=lambda name, index: (name, index),
    version=SimpleNamespace(hip=None),
    cuda=SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0, stream=stream,
                         ExternalStream=lambda handle, device: (handle, device),
                         empty_cache=lambda: emptied.append(1)))
sys.modules["torch"] = torch
"""


def test_torch_is_the_default_once_it_uses_the_gpu(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ALLOCATOR}{TORCH}
assert arrowdl.config.allocator == "auto"
torch.cuda.is_initialized = lambda: False
ids.to("cuda:0")
assert not Memory.made
torch.cuda.is_initialized = lambda: True
check(ids.to("cuda:0"), Memory.made)
busy = cuda.make_stream()
with cuda.gate(busy):
    ids.to("cuda:0").synchronize()
assert len({{handle for handle, device in streams}}) == 1, "one stream's cache"
assert {{device for handle, device in streams}} == {{("cuda", 0)}}
left[0] = 0
refused(MemoryError, "CUDA out of memory", lambda: ids.to("cuda:0"))
assert ids.to("cuda:0", allocator="pool").device == (2, 0)
""")


def test_out_of_memory_empties_caches_and_tries_again(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ALLOCATOR}{TORCH}
arrowdl.config.allocator = "pool"
fake = cuda.library
ids.to("cuda:0").synchronize()
settle()
large = arrowdl.from_arrow(pa.array(range(1 << 19)))  # than the steps of the pool
fake.arrowdl_fake_set_capacity.argtypes = [ctypes.c_ulonglong]
fake.arrowdl_fake_set_capacity(1 << 19)

def empty_cache():
    emptied.append(1)
    fake.arrowdl_fake_set_capacity(1 << 24)

torch.cuda.empty_cache = empty_cache
assert pa.array(large.to("cuda:0").to("cpu")).to_pylist() == list(range(1 << 19))
assert emptied == [1]
settle()
torch.cuda.empty_cache = lambda: emptied.append(2)
fake.arrowdl_fake_set_capacity(1000)
larger = arrowdl.from_arrow(pa.array(range(1 << 21)))  # than what the pool keeps
refused(MemoryError, "XLA_PYTHON_CLIENT_PREALLOCATE", lambda: larger.to("cuda:0"))
assert emptied == [1, 2]
""")


def test_a_failing_allocator_says_why(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ALLOCATOR}
def fails(nbytes):
    raise KeyError("no such pool")

refused(BufferError, "no such pool", lambda: ids.to("cuda:0", allocator=fails))
refused(BufferError, "as ptr is needed", lambda: ids.to("cuda:0", allocator=lambda n: b"x"))
calls = []

def runs_out(nbytes):
    calls.append(nbytes)
    raise MemoryError("none left")

settle()  # a release that is pending would be a reason to call again
refused(MemoryError, "none left", lambda: ids.to("cuda:0", allocator=runs_out))
assert len(calls) == 2, "arrowdl emptied its pool, and called once more"
settle()
assert debug.live_objects() == 1
""")


@pytest.mark.parametrize(
    ("allocator", "error", "says"),
    [
        ("torch", ValueError, '"torch" is not one of "auto", "pool"'),
        (7, TypeError, "got 7"),
        (int, TypeError, "the DLPack exchange API"),
    ],
)
def test_what_is_no_allocator_is_refused(allocator: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        arrowdl.config.allocator = allocator
    with pytest.raises(error, match=says):
        arrowdl.from_arrow(IDS).to("cpu", allocator=allocator)
    assert arrowdl.config.allocator == "auto"


def test_memory_of_torch_waits_for_no_other_work(on_fake_cuda: Callable[[str], None]) -> None:
    """A producer orders its work before the array interface's stream, which a capture may join."""
    on_fake_cuda(f"""{ALLOCATOR}{TORCH}
left[0] = 10
training = cuda.make_stream()
with cuda.gate(training):
    pending = arrowdl.to_arrow_device(cuda.tensor(cuda.allocate(16), (4,), stream=training))
    work = pending.__cuda_array_interface__["stream"]
    copied = ids.to("cuda:0")
    assert work not in [handle for handle, device in streams], "it waits for the training"
    check(copied, Memory.made)
del copied
settle()
with cuda.capture(work):
    copied = ids.to("cuda:0")
    copied.synchronize()
assert len({{handle for handle, device in streams}}) == 1, "one stream's cache"
settle()
""")


# A block of torch's cache: once it is deleted, the next tensor of its stream and size has it,
# whatever other streams still do. Sources: free and get_free_block in
# c10/cuda/CUDACachingAllocator.cpp.
CACHE = """
from helpers.gpu_libraries import TorchStream, data_of, torch_from_dlpack

class Block:
    free = {}

    def __init__(self, nbytes):
        self.key = streams[-1], nbytes
        blocks = Block.free.setdefault(self.key, [])
        self.ptr = blocks.pop() if blocks else cuda.allocate(nbytes)

    def data_ptr(self):
        return self.ptr

    def __del__(self):
        Block.free[self.key].append(self.ptr)

torch.empty = lambda nbytes, **options: Block(nbytes)
"""


def test_the_cache_of_torch_reuses_a_block_when_nobody_reads_it(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda(f"""{ALLOCATOR}{TORCH}{CACHE}
left[0] = 100
others = arrowdl.from_arrow(pa.array([7] * 1000))
reader = TorchStream(cuda.make_stream())
first = ids.to("cuda:0")
memory = _core.address_of(first)
with cuda.gate(reader.cuda_stream):
    consumed = torch_from_dlpack(first, reader)
    read = cuda.read(reader.cuda_stream, data_of(consumed), 8000)
    del first, consumed
    second = others.to("cuda:0")
    second.synchronize()
    assert _core.address_of(second) != memory, "torch would write what the reader still reads"
settle()
assert list(memoryview(read).cast("B").cast("q")) == list(range(1000))
third = others.to("cuda:0")
assert _core.address_of(third) == memory, "and has it again"
assert pa.array(third.to("cpu")).to_pylist() == [7] * 1000
del second, third
settle()
""")


# The functions of torch's library for CUDA that need no GIL: tests/cpp/fake_driver/fake_torch.cpp.
LIBRARY = """
from helpers.fake_cuda import FAKE_TORCH
from helpers.capsules import make_capsule

library = ctypes.CDLL(FAKE_TORCH)
library.fake_torch_exchange_api.restype = library.fake_torch_stream.restype = ctypes.c_void_p
library.fake_torch_set_left.argtypes = library.fake_torch_stream.argtypes = [ctypes.c_int64]
api = make_capsule(library.fake_torch_exchange_api(), "dlpack_exchange_api")
torch.Tensor = type("Tensor", (), {"__dlpack_c_exchange_api__": api, "__module__": "torch"})
with_gil = ctypes.PyDLL(FAKE_TORCH)  # ctypes.CDLL releases it
"""


@pytest.mark.parametrize("allocator", ["'auto'", "torch.Tensor"])
def test_memory_of_torch_needs_no_gil(on_fake_cuda: Callable[[str], None], allocator: str) -> None:
    """A thread that copies ahead would wait for the training, and the training for it."""
    on_fake_cuda(f"""{ALLOCATOR}{TORCH}{LIBRARY}
arrowdl.config.allocator = {allocator}
check(ids.to("cuda:0"), Memory.made)
assert library.fake_torch_count() == 0, "the first call is in Python"
rows = arrowdl.from_arrow(pa.array(range(8000)))
library.fake_torch_close(2)
stream = arrowdl.from_arrow_stream(rows).rebatch(1000).to("cuda:0").prefetch(4)
read = pa.array(next(stream).to("cpu")).to_pylist()
assert with_gil.fake_torch_open(5) >= 5, "three batches more, while this thread held it"
read += [row for array in stream for row in pa.array(array.to("cpu")).to_pylist()]
assert read == list(range(8000))
assert len(streams) == 1 and library.fake_torch_count() == 8, "Python was called once"
assert {{library.fake_torch_stream(i) for i in range(8)}} == {{streams[0][0]}}
del stream
settle()
assert library.fake_torch_live() == 0
library.fake_torch_set_left(0)
refused(MemoryError, "CUDA out of memory", lambda: ids.to("cuda:0"))
assert emptied == [], "arrowdl emptied its own pool, and torch its cache"
library.fake_torch_set_left(1)
copied = ids.to("cuda:0")
assert pa.array(copied.to("cpu")).to_pylist() == list(range(1000))
""")


@pytest.mark.parametrize(
    "without", ["del torch.Tensor", "torch.Tensor = type('Tensor', (), {})", "torch.Tensor = 7"]
)
def test_a_torch_without_the_functions_is_called_in_python(
    on_fake_cuda: Callable[[str], None], without: str
) -> None:
    on_fake_cuda(f"""{ALLOCATOR}{TORCH}{LIBRARY}
{without}
for _ in range(3):
    check(ids.to("cuda:0"), Memory.made)
assert library.fake_torch_count() == 0 and len(streams) == 3
""")
