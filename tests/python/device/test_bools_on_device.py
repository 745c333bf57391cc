"""arrow.bool8 bytes other than 0 and 1, which torch and XLA treat as undefined, on a device."""

from __future__ import annotations

from collections.abc import Callable

from device.test_device_alignment import JAX

ODD = f"""{JAX}
BYTES = [2, 0, 1, 255, 128, 0, 64, 3, 1, 0, 4]
storage = pa.array(BYTES, pa.uint8()).view(pa.int8())
odd = pa.ExtensionArray.from_storage(pa.bool8(), storage)
nulls = pa.ExtensionArray.from_storage(
    pa.bool8(), pa.array([None, *storage.to_pylist()[1:]], pa.int8()))
there = arrowdl.from_arrow(odd).to("cuda:0")
expected = [int(byte != 0) for byte in BYTES]

def read(tensor):
    return tensor.view(np.uint8).tolist()
"""


def test_new_tensors_have_bytes_0_and_1(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ODD}
from helpers.fake_cuda import read_as_host
table = arrowdl.from_arrow(pa.record_batch({{"a": odd, "b": nulls}}))
lists = arrowdl.from_arrow(pa.ListArray.from_arrays(pa.array([0, 1, 1, 11], pa.int32()), odd))
pairs = arrowdl.from_arrow(pa.FixedSizeListArray.from_arrays(odd[:10], 2))
views = arrowdl.from_arrow(pa.ListViewArray.from_arrays(
    pa.array([5, 0, 3], pa.int32()), pa.array([6, 2, 3], pa.int32()), odd))
runs = arrowdl.from_arrow(pa.RunEndEncodedArray.from_arrays(
    pa.array(range(1, 12), pa.int32()), odd))
for name, array, options in (
    ("stack", table, {{"stack": True, "nulls": "fill"}}),
    ("stack of fixed-size lists", arrowdl.from_arrow(pa.record_batch({{"p": pairs}})),
     {{"stack": True}}),
    ("nulls", table["b"], {{"nulls": "fill"}}),
    ("copy", table["a"], {{"copy": True}}),
    ("padded", lists, {{"ragged": "padded"}}),
    ("gathered lists", views, {{"ragged": "offsets"}}),
    ("decoded runs", runs, {{}}),
):
    makes = [arrowdl.to_jax(one, **options) for one in (array, array.to("cuda:0"))]
    host, made = (read(one[0] if isinstance(one, tuple) else one) for one in makes)
    assert made == host, (name, made, host)

assert read(arrowdl.to_jax(there[3:])) == expected[3:], "XLA needs other addresses"

class Consumer:
    def __init__(self, **options):
        self.options = options
    def __dlpack__(self, **given):
        return there.__dlpack__(**given, **self.options)
    def __dlpack_device__(self):
        return there.__dlpack_device__()

assert read(read_as_host(Consumer(copy=True))) == expected
settle()
""")


def test_shared_bytes_stay_as_they_are(on_fake_cuda: Callable[[str], None]) -> None:
    """Documented in docs/concepts/dtypes.rst: to look at them, the host would have to wait."""
    on_fake_cuda(f"""{ODD}
shared = arrowdl.to_jax(there)
assert shared.ctypes.data == _core.address_of(there)
assert read(shared) == BYTES
assert read(np.from_dlpack(there.to("cpu"))) == expected
settle()
""")
