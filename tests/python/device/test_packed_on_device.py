"""Packed and padded values of less than a byte in device memory, beside the same on the CPU."""

from __future__ import annotations

from collections.abc import Callable

PREAMBLE = """
import ctypes
import dataclasses
import numpy as np
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.dlpack import MadeTensor, read_capsule
from helpers.fake_cuda import read_as_host, replace_framework

class Read:
    def __init__(self, tensor):
        self.dtype, self.values = tensor.dtype, read_as_host(tensor._as_integers(is_copied=True))

numpy = _frameworks.load("numpy")
jax = dataclasses.replace(numpy, from_dlpack=Read, from_offsets=Read, device_alignment=16)
replace_framework("jax", jax)
BYTES = np.arange(96, dtype=np.uint8)

def make(shape, dtype=(1, 4), flags=0, **fields):
    memory = cuda.allocate(BYTES.nbytes)
    ctypes.memmove(memory, BYTES.ctypes.data, BYTES.nbytes)
    return MadeTensor(memory, shape, dtype=dtype, device=(2, 0), flags=flags, **fields)

def bytes_of(array):
    back = pa.array(array.to("cpu"))
    while isinstance(back, pa.ExtensionArray):
        back = back.storage
    items = back if isinstance(back, pa.FixedSizeBinaryArray) else back.flatten()
    return list(b"".join(items.to_pylist()))

def dims(array):
    tensor = read_capsule(array.__dlpack__(max_version=(1, 3), stream=-1)).dl_tensor
    return tensor.shape[:tensor.ndim], tensor.strides[:tensor.ndim]
"""


def test_rows_are_shared_sliced_and_copied(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{PREAMBLE}
made = make((6, 4))
array = arrowdl.to_arrow_device(made.capsule())
assert (array.dtype, array.shape) == ("uint4", (6, 4))
assert _core.address_of(array.values) == made.tensor.data
assert dims(array[2:5]) == ([3, 4], [4, 1])
assert bytes_of(array[2:5]) == list(range(4, 10))
assert bytes_of(array.to("cpu").to("cuda:0")) == list(range(12))
tensor = arrowdl.to_jax(array)
assert tensor.dtype == "uint4"
assert tensor.values.tolist() == BYTES[:12].reshape(6, 2).tolist()
assert arrowdl.to_jax(array[1:]).values.tolist() == BYTES[2:12].reshape(5, 2).tolist(), "moved"
joined = _core.concatenate([array[4:], array[:1]])
assert bytes_of(joined) == [8, 9, 10, 11, 0, 1]
assert dims(joined) == ([3, 4], [4, 1])
del array, made, tensor, joined
gc.collect()
settle()
assert debug.live_objects() == 0
""")


def test_strided_tensors_and_nulls(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{PREAMBLE}
strided = arrowdl.to_arrow_device(make((3, 4), strides=(16, 1)).capsule())
assert strided.shape == (3, 4)
assert bytes_of(strided) == [0, 1, 8, 9, 16, 17]
copied = arrowdl.to_arrow_device(make((2, 8), dtype=(0, 2)).capsule(), copy=True)
assert (copied.dtype, bytes_of(copied)) == ("int2", [0, 1, 2, 3])
bits = MadeTensor(cuda.allocate(3), (3,), dtype="bool", device=(2, 0))
ctypes.memmove(bits.tensor.data, b"\\1\\0\\1", 3)
array = arrowdl.to_arrow_device(make((3, 4)).capsule(), mask=bits.capsule())
filled = arrowdl.to_jax(array, nulls="fill")
assert filled.values.tolist() == [[0, 1], [0, 0], [4, 5]]
refused(BufferError, "no mask for values of uint4", lambda: arrowdl.to_jax(array, nulls="mask"))
padded = arrowdl.to_arrow_device(make((3, 3), strides=(1, 3), flags=4).capsule())
assert (padded.dtype, padded.shape) == ("uint4_padded", (3, 3))
assert bytes_of(padded) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
refused(BufferError, "a stride of 5 in dimension 0",
        lambda: arrowdl.to_arrow_device(make((3, 4), strides=(5, 1)).capsule()))
for flags, size in (0, 6), (4, 12):
    data = BYTES[:size].copy()
    array = arrowdl.to_arrow_device(MadeTensor(data, (3, 4), dtype=(1, 4), flags=flags).capsule())
    assert bytes_of(array.to("cuda:0")) == list(range(size))
settle()
""")


def test_padded_values_need_dlpack_1_1(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{PREAMBLE}
padded = arrowdl.to_arrow_device(make((3, 4), flags=4).capsule())
stream = cuda.make_stream()
for options in {{"dl_device": (1, 0)}}, {{"stream": stream}}, {{"stream": -1}}:
    for version in None, (1, 0), (0, 9):
        refused(BufferError, "max_version=(1, 1)",
                lambda: padded.__dlpack__(max_version=version, **options))
    refused(BufferError, "max_version=(1, 1)", lambda: padded.__dlpack__(**options))
    for version in (1, 1), (1, 3), (2, 0):
        assert read_capsule(padded.__dlpack__(max_version=version, **options)).flags & 4
del padded
gc.collect()
settle()
assert debug.live_objects() == 0
""")
