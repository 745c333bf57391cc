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
union = there(pa.UnionArray.from_dense(
    pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()),
    [pa.array([1, 2]), pa.array([0.5])]))
codes = [there(pa.array(words).dictionary_encode()) for words in (["a"], ["b", "c"])]
shapes = pa.StructArray.from_arrays([
    pa.array([[1, 2], [3]], pa.list_(pa.int32())),
    pa.FixedSizeListArray.from_arrays(pa.array([2, 1], pa.int32()), 1)], ["data", "shape"])
schema = pa.schema([pa.field("x", shapes.type, metadata={
    "ARROW:extension:name": "arrow.variable_shape_tensor", "ARROW:extension:metadata": "{}"})])
variable = there(pa.RecordBatch.from_arrays([shapes], schema=schema)).field("x")
struct = there(pa.record_batch({"x": pa.array([1, 2]), "s": pa.array(["a", "b"])}))

def read(**options):
    with arrowdl.Loader(struct, 1, framework="numpy", **options) as loader:
        next(iter(loader))

def take_column(name):
    struct.__dataframe__(allow_copy=False).get_column_by_name(name).get_buffers()["data"][0].ptr

for says, use in (
    ("its buffers are on a device", lambda: there(pa.array(["a"], pa.string_view()))),
    ("only be gathered by the CPU", lambda: _core.concatenate([union, union])),
    ("different dictionaries", lambda: _core.concatenate(codes)),
    ("cannot check shapes on cuda:0", lambda: arrowdl.to_jax(variable)),
    ("cannot cast numbers on cuda:0",
     lambda: arrowdl.to_jax(ints, dtype="float32", nulls="fill")),
    ("jax would truncate int64", lambda: arrowdl.to_jax(there(lists), ragged="offsets")),
    ("cannot read list offsets on cuda:0",
     lambda: _core.make_list(ints, there(pa.array([0, 1, 3], pa.int64())))),
    ("cannot split lists on rocm:0", lambda: arrowdl.to_jax(there(lists, "rocm:0"))),
    ("the array is on cuda:0", lambda: arrowdl.to_numpy(ints, nulls="fill")),
    ("which the host cannot read", lambda: take_column("x")),
    ("on cuda:0", lambda: ints.__arrow_c_array__()),
):
    refused(BufferError, says, use)
refused(ValueError, "is on Device", lambda: read(vocabulary={"s": ["a", "b"]}))
refused(TypeError, "num_workers", lambda: read(num_workers=1))

# Best effort, as the protocol says: what needs a cast keeps its own schema.
wanted = arrowdl.from_arrow(pa.array([1], pa.int64())).__arrow_c_schema__()
assert arrowdl.from_arrow(ints.__arrow_c_device_array__(wanted)).type == "int32"
settle()
"""


def test_what_is_refused(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(REFUSALS)
