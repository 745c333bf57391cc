"""Errors, interrupts and missing memory in the middle of device work, on the fake drivers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from device.test_library_streams import LIBRARIES

FREED = """
foreign = cuda.allocate(SIZE)

class Freed:  # a library whose deleter calls cudaFree
    __cuda_array_interface__ = {
        "shape": (SIZE,), "typestr": "|u1", "data": (foreign, False), "version": 3, "stream": None}
    def __del__(self):
        with cuda.context(0):
            cuda.call("cuMemFree_v2", ctypes.c_void_p(foreign))
"""


@pytest.fixture
def run(on_fake_cuda: Callable[[str], None]) -> Callable[[str], None]:
    return lambda code: on_fake_cuda(LIBRARIES + code)


def test_ctrl_c_and_exit_pass_through_an_allocator(run: Callable[[str], None]) -> None:
    run("""
host = arrowdl.from_arrow(pa.array(EXPECTED, pa.uint8()))

def raises(error):
    def allocate(nbytes):
        raise error
    return allocate

refused(KeyboardInterrupt, "", lambda: host.to("cuda:0", allocator=raises(KeyboardInterrupt())))
refused(SystemExit, "3", lambda: host.to("cuda:0", allocator=raises(SystemExit(3))))
ahead = arrowdl.from_arrow_stream(host).to("cuda:0", allocator=raises(SystemExit(4))).prefetch(1)
refused(SystemExit, "4", lambda: list(ahead))
refused(BufferError, "no", lambda: host.to("cuda:0", allocator=raises(ValueError("no"))))
""")


def test_ctrl_c_passes_through_the_caches_of_libraries(run: Callable[[str], None]) -> None:
    run("""
import sys
from types import SimpleNamespace

class Pool:
    def free_all_blocks(self):
        raise KeyboardInterrupt

sys.modules["cupy"] = SimpleNamespace(get_default_memory_pool=Pool)
large = arrowdl.from_arrow(pa.array(range(100000), pa.int64()))
cuda.library.arrowdl_fake_set_capacity.argtypes = [ctypes.c_ulonglong]
cuda.library.arrowdl_fake_set_capacity(1000)
refused(KeyboardInterrupt, "", lambda: large.to("cuda:0"))
""")


def test_an_owner_is_dropped_on_its_device(run: Callable[[str], None]) -> None:
    """A library frees its memory in the current context, as it was allocated."""
    run("""
statuses = []

class Memory:
    def __init__(self, nbytes):
        made = ctypes.c_void_p()
        cuda.call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(nbytes))
        self.ptr = made.value
    def __del__(self):
        statuses.append(cuda.library.cuMemFree_v2(ctypes.c_void_p(self.ptr)))

array = arrowdl.from_arrow(pa.array(EXPECTED, pa.uint8()))
array = array.to("cuda:0", allocator=lambda nbytes: Memory(nbytes))
array.synchronize()
settle()
del array
settle()
assert statuses == [0], statuses
""")


def test_emptying_caches_breaks_no_capture(run: Callable[[str], None]) -> None:
    run("""
import sys
from types import SimpleNamespace

cached = cuda.allocate(1 << 20)
devices = []

class Pool:
    def free_all_blocks(self):
        device = ctypes.c_int(-1)
        cuda.library.cuCtxGetDevice(ctypes.byref(device))
        devices.append(device.value)
        with cuda.context(0):
            cuda.call("cuMemFree_v2", ctypes.c_void_p(cached))

sys.modules["cupy"] = SimpleNamespace(get_default_memory_pool=Pool)
large = arrowdl.from_arrow(pa.array(range(100000), pa.int64()))
cuda.library.arrowdl_fake_set_capacity.argtypes = [ctypes.c_ulonglong]
cuda.library.arrowdl_fake_set_capacity(1000)
with cuda.capture(cuda.make_stream()):
    copied = large.to("cuda:0")
assert devices == [0], devices
""")


def test_a_release_for_jax_breaks_no_capture(run: Callable[[str], None]) -> None:
    run(
        FREED
        + """
xla = Xla(cuda)
freed = arrowdl.to_arrow_device(Freed())
consumed = xla.from_dlpack(freed)
with cuda.capture(cuda.make_stream()):
    del freed, consumed
    settle()
"""
    )


def test_kernels_of_rocm_are_loaded_again_after_an_error(
    on_fake_gpus: Callable[[str], None],
) -> None:
    on_fake_gpus("""
import pyarrow as pa

hip = ctypes.CDLL("libamdhip64.so.6")
bits = arrowdl.from_arrow(pa.array([True] * 50)).to("rocm:0")
unpack = lambda: bits.__dlpack__(stream=None, max_version=(1, 0))
hip.arrowdl_fake_set_module_status(2)
refused(MemoryError, "", unpack)
hip.arrowdl_fake_set_module_status(0)
unpack()
""")
