"""Each row of the table "What is refused on devices, and why" of docs/concepts/devices.rst."""

from __future__ import annotations

from collections.abc import Callable

REFUSALS = """
import numpy as np
import pyarrow as pa
from arrowdl import _core

def there(array, device="cuda:0"):
    return arrowdl.from_arrow(array).to(device)

ints = there(pa.array([1, None, 3], pa.int32()))
lists = pa.array([[1], [2, 3]])
struct = there(pa.record_batch({"x": pa.array([1, 2]), "s": pa.array(["a", "b"])}))

def read(**options):
    with arrowdl.Loader(struct, 1, framework="numpy", **options) as loader:
        next(iter(loader))

for says, use in (
    ("its buffers are on a device", lambda: there(pa.array(["a"], pa.string_view()))),
    ("jax would truncate int64", lambda: arrowdl.to_jax(there(lists), ragged="offsets")),
    ("the array is on cuda:0", lambda: arrowdl.to_numpy(ints, nulls="fill")),
    ("numpy's arrays are on the CPU", lambda: arrowdl.to_numpy(there(lists, "rocm:0"))),
    ("on cuda:0", lambda: ints.__arrow_c_array__()),
    ("cannot pack sequences on cuda",
     lambda: _core.chain([_core.make_struct(["x"], [there(lists)])]).pack("x", 2)),
    ("cannot join cu_seqlens on cuda:0", lambda: arrowdl.flatten_cu_seqlens(
        there(pa.array([[0, 2]], pa.list_(pa.int32()))))),
):
    refused(BufferError, says, use)
for convert in (np.asarray, np.array, lambda x: np.asarray(x, "float32"), np.sum,
                lambda x: np.asarray(x, copy=False), lambda x: [1, 2, 3] + np.asarray(x)):
    for array in (there(pa.array([1, 2, 3])), struct, ints, there(lists)):
        refused(TypeError, 'pass array.to("cpu")', lambda: convert(array))
    assert convert(there(pa.array([1, 2, 3])).to("cpu")) is not None
for device in ("cuda_host", "cuda_managed"):
    for kind in ("int64", "float16", "bool"):
        for options in ({}, {"copy": True}, {"dtype": "float32"}):
            numbers = there(pa.array([1, 0, 1]).cast(kind), device)
            assert np.asarray(numbers, **options).tolist() == [1, 0, 1]
refused(ValueError, "is on Device", lambda: read(vocabulary={"s": ["a", "b"]}))
refused(TypeError, "num_workers", lambda: read(num_workers=1))

# Best effort, as the protocol says: what needs a cast keeps its own schema.
wanted = arrowdl.from_arrow(pa.array([1], pa.int64())).__arrow_c_schema__()
assert arrowdl.from_arrow(ints.__arrow_c_device_array__(wanted)).type == "int32"
settle()
"""


def test_what_is_refused(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(REFUSALS)
