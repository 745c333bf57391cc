"""`device=` of to_torch, to_jax and to_numpy: copies into the framework's own memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from arrowdl import _frameworks

NUMBERS = pa.array([1, 2, 3], pa.int32())


@pytest.mark.parametrize("function", [arrowdl.to_torch, arrowdl.to_jax, arrowdl.to_numpy])
@pytest.mark.parametrize("device", ["cpu", ("cpu", 0), arrowdl.Device("cpu"), None])
def test_what_lies_there_stays(function: Callable[..., Any], device: Any) -> None:
    made = function(NUMBERS, device=device)
    address = NUMBERS.buffers()[1].address
    assert np.asarray(made).ctypes.data == address
    assert np.asarray(made).tolist() == [1, 2, 3]


def test_a_torch_device_is_one() -> None:
    import torch

    assert arrowdl.to_torch(NUMBERS, device=torch.device("cpu")).tolist() == [1, 2, 3]


def test_a_device_that_a_framework_has_not_is_refused() -> None:
    for function, reason in [
        (arrowdl.to_torch, "the framework cannot allocate 3 elements of int32 on metal:0"),
        (arrowdl.to_jax, "jax has no device metal:0"),
        (arrowdl.to_numpy, "numpy's arrays are on the CPU, not on metal:0"),
    ]:
        with pytest.raises(BufferError, match=reason):
            function(NUMBERS, device="metal")
    with pytest.raises(ValueError, match="device type 'nowhere' is unknown"):
        arrowdl.to_torch(NUMBERS, device="nowhere")


def test_frameworks_without_the_api_put_it_there() -> None:
    import jax
    import torch

    put = _frameworks.load("jax").put(jax.numpy.arange(3), "cpu", 0)
    assert put.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="jax has no device cpu:99"):
        _frameworks.load("jax").put(put, "cpu", 99)
    assert _frameworks.load("torch").put(torch.arange(3), "cpu", 0).tolist() == [0, 1, 2]


ON_A_DEVICE = """
import dataclasses
import numpy as np
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import StandInFramework, replace_framework

framework = StandInFramework(cuda)
entries = dataclasses.replace(_frameworks.load("numpy"), tensor_type=framework.tensor_type)
replace_framework("torch", entries)

def finish():
    with cuda.context(0):
        cuda.call("cuStreamSynchronize", ctypes.c_void_p(framework.stream))
"""


def test_the_memory_is_the_frameworks_own(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
lists = pa.array([[1, None], None, [3, 4]] * 5, pa.list_(pa.int16(), 2))
images = pa.ExtensionArray.from_storage(
    pa.fixed_shape_tensor(pa.int8(), [3, 2], permutation=[1, 0]),
    pa.array([range(6)] * 4, pa.list_(pa.int8(), 6)))
table = pa.table({{"ids": pa.array(range(20)), "flags": pa.array([None, True] * 10)}})

def flatten(tree):
    if isinstance(tree, dict):
        return [tensor for field in tree.values() for tensor in flatten(field)]
    return list(tree) if isinstance(tree, tuple) else [tree]

def check(obj, nulls):
    framework.addresses.clear()
    made = flatten(arrowdl.to_torch(obj, nulls=nulls, device="cuda:0"))
    finish()
    expected = flatten(arrowdl.to_numpy(obj, nulls=nulls))
    assert len(framework.addresses) == len(made) == len(expected)
    for address, one, wanted in zip(framework.addresses, made, expected):
        assert one.size == 0 or one.ctypes.data == address
        assert one.shape == wanted.shape and one.strides == wanted.strides
        np.testing.assert_array_equal(one, wanted)

for obj, nulls in [(pa.array([1.5, 2.5]), "raise"), (lists, "fill"), (lists, "mask"),
                   (images, "raise"), (pa.array([], pa.int8()), "raise"), (table, "mask")]:
    check(obj, nulls)
settle()
assert debug.live_objects() == 0
""")


def test_nobody_waits_and_the_source_stays(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
source = arrowdl.from_arrow(pa.array(range(1000))).to("cuda_host")
source.synchronize()
settle()  # what the copy read is given back
with cuda.gate(framework.stream):
    made = arrowdl.to_torch(source, device="cuda:0")
    assert not cuda.is_idle(framework.stream)
    del source
    assert debug.pending_releases() == 1
finish()
assert made.tolist() == list(range(1000))
settle()
""")


def test_other_devices_go_by_the_array(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{ON_A_DEVICE}
there = arrowdl.from_arrow(pa.array([1, None, 3])).to("cuda:1")
assert arrowdl.to_torch(there, nulls="fill", device="cpu").tolist() == [1, 0, 3]
made = arrowdl.to_torch(there, nulls="fill", device="cuda:0")
finish()
assert made.tolist() == [1, 0, 3]
assert arrowdl.to_numpy(there, nulls="fill", device="cpu").tolist() == [1, 0, 3]
lists = arrowdl.from_arrow(pa.array([[1], [2, 3]])).to("cuda:1")
values, offsets = arrowdl.to_numpy(lists, device="cpu")
assert (values.tolist(), offsets.tolist()) == ([1, 2, 3], [0, 1, 3])
assert framework.addresses == []
""")
