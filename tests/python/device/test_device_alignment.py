"""XLA executes nothing on device memory that is not aligned to 16 bytes: tensors for JAX are."""

from __future__ import annotations

from collections.abc import Callable

JAX = """
import dataclasses
import numpy as np
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

seen = []

def execute(tensor):
    made = read_as_host(tensor)  # XLA: "Address of buffer %d must be a multiple of %x"
    assert made.size == 0 or made.ctypes.data % 16 == 0, hex(made.ctypes.data)
    seen.append(made.ctypes.data)
    return made

numpy = _frameworks.load("numpy")
jax = dataclasses.replace(numpy, from_dlpack=execute, from_offsets=execute, device_alignment=16)
replace_framework("jax", jax)
"""


def test_windows_of_a_copy_are_aligned_for_jax(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{JAX}
ids = arrowdl.from_arrow(pa.array(range(100), pa.int32()))
there = ids.to("cuda:0")
for start in range(9):
    assert arrowdl.to_jax(there[start:]).tolist() == list(range(start, 100))
    there.synchronize()
assert arrowdl.to_jax(there[4:]).ctypes.data == _core.address_of(there[4:]), "shared"
assert arrowdl.to_jax(there[3:]).ctypes.data != _core.address_of(there[3:]), "copied"
refused(BufferError, "address that the framework can use", lambda: arrowdl.to_jax(
    there[3:], copy=False))
assert arrowdl.to_jax(there[3:], copy=True).tolist() == list(range(3, 100))
assert arrowdl.to_numpy(there[3:].to("cpu")).tolist() == list(range(3, 100))
settle()
""")


def test_windows_with_nulls_begin_at_row_0_of_their_copy(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda(f"""{JAX}
for values in ([None, 1, 2, 3] * 30, [True, None, False] * 40):
    column = pa.array(values)
    table = pa.record_batch({{"x": column, "l": pa.array([[1, 2]] * len(values))}})
    for start in range(10):
        window = arrowdl.from_arrow(column)[start:]
        there = window.to("cuda:0")
        assert pa.array(there.to("cpu")).offset == 0
        assert pa.array(there.to("cpu")).equals(column[start:])
        batch = arrowdl.from_arrow(table)[start:].to("cuda:0").to("cpu")
        assert pa.record_batch(batch).equals(table[start:])
        filled = arrowdl.to_jax(there, nulls="fill")
        there.synchronize()
settle()
""")


def test_jax_is_named_with_its_alignment() -> None:
    from arrowdl import _frameworks

    assert _frameworks.load("jax").device_alignment == 16
    assert _frameworks.load("torch").device_alignment == 1


def test_offsets_are_aligned_for_jax(on_fake_cuda: Callable[[str], None]) -> None:
    """The offsets of a slice begin with its first row."""
    on_fake_cuda(f"""{JAX}
for column in (pa.array([[], [1, 2], [3], [4, 5], []], pa.list_(pa.int32())),
               pa.array([[1], [2, 3], None], pa.large_list(pa.int8())),
               pa.array(["", "ab", "c", "def"])):
    there = arrowdl.from_arrow(column).to("cuda:0")
    for start in range(1 + len(column)):
        options = {{"ragged": "offsets", "nulls": "fill"}}
        expected = arrowdl.to_numpy(arrowdl.from_arrow(column)[start:], **options)
        values, offsets = arrowdl.to_jax(there[start:], **options)
        assert values.tolist() == expected[0].tolist()
        lengths = np.diff(expected[1]).tolist()
        assert np.diff(offsets).tolist() == lengths, (offsets, expected)
lists = arrowdl.from_arrow(pa.array([[]] * 5 + [[1]], pa.list_(pa.int64()))).to("cuda:0")
values, offsets = arrowdl.to_jax(lists, ragged="offsets", copy=False)
assert offsets.tolist() == [0] * 6 + [1]
assert arrowdl.to_jax(lists[4:], ragged="offsets", copy=False)[1].tolist() == [0, 0, 1]
refused(BufferError, "address that the framework can use", lambda: arrowdl.to_jax(
    lists[1:], ragged="offsets", copy=False))
settle()
""")


XLA = """
import pyarrow as pa
from arrowdl import _core
from helpers.gpu_libraries import TorchStream, Xla, data_of, torch_from_dlpack

xla = Xla(cuda)
whole = arrowdl.from_arrow(pa.array(range(16), pa.uint8())).to("cuda:0")
whole.synchronize()
settle()
rows = whole[3:]
memory = _core.address_of(rows)
"""


def test_jax_asks_for_aligned_rows_itself(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{XLA}
with cuda.gate(xla.compute_stream):
    consumed = xla.from_dlpack(rows)
    read = xla.compute(data_of(consumed), len(rows))
    del consumed
cuda.synchronize(xla.compute_stream)
assert list(read) == list(range(3, 16))
assert data_of(xla.from_dlpack(whole)) == memory - 3, "shared"
stream = xla.device.get_stream_for_external_ready_events()
refused(BufferError, "multiples of 16", lambda: rows.__dlpack__(stream=stream, copy=False))
assert data_of(rows.__dlpack__(stream=stream, copy=True)) % 16 == 0
settle()
""")


def test_rows_of_others_are_shared_at_any_address(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{XLA}
for stream in cuda.make_stream(), 0:
    assert data_of(torch_from_dlpack(rows, TorchStream(stream))) == memory
xla.from_dlpack(whole)  # starts JAX
assert data_of(torch_from_dlpack(rows, TorchStream(cuda.make_stream()))) == memory
assert data_of(rows.__dlpack__(stream=-1)) == memory
settle()
""")
