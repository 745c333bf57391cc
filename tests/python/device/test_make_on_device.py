"""Tensors of a device that become Arrow arrays there, beside the same tensors on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

UPLOAD = """
RUNTIME = globals().get("RUNTIME", "cuda")
import ctypes
import random
import numpy as np
import pyarrow as pa
from helpers.dlpack import MadeTensor
from helpers.random_cases import check_cases

if RUNTIME == "rocm":
    hip = ctypes.CDLL("libamdhip64.so.6")
    assert hip.hipInit(0) == 0
made_tensors = []

def allocate(size, device):
    if RUNTIME == "cuda":
        return cuda.allocate(size, device)
    memory = ctypes.c_void_p()
    assert hip.hipSetDevice(device) == 0
    assert hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(size)) == 0
    return memory.value

def upload(view, device=0):
    base = view
    while base.base is not None:
        base = base.base
    memory = allocate(max(base.nbytes, 1), device)
    ctypes.memmove(memory, base.ctypes.data, base.nbytes)
    start = memory + view.ctypes.data - base.ctypes.data
    if RUNTIME == "cuda":
        return cuda.tensor(start, view.shape, typestr=view.dtype.str, strides=view.strides)
    itemsize = view.dtype.itemsize
    made_tensors.append(MadeTensor(
        start, view.shape, dtype=str(view.dtype), device=(10, device),
        strides=tuple(stride // itemsize for stride in view.strides)))
    return made_tensors[-1].capsule()

def compare(tensor, there, mask=None, there_mask=None, **options):
    expected = arrowdl.to_arrow_device(tensor, mask=mask, **options)
    made = arrowdl.to_arrow_device(there, mask=there_mask, **options)
    assert made.device.type == arrowdl.DeviceType[RUNTIME], made.device
    back = made.to("cpu")
    assert str(back.type) == str(expected.type), options
    pa.array(back).validate(full=True)
    assert pa.array(back).equals(pa.array(expected)), (tensor, mask, options)
    return made
"""

RANDOM = """
DTYPES = ["bool", "int8", "uint16", "float16", "int32", "float32", "int64", "float64", "complex64",
          "complex128"]

def cut(rng, array):
    for axis in range(array.ndim):
        step = rng.choice([1, 1, 2, -1, -3])
        start = rng.randrange(array.shape[axis] + 1)
        index = [slice(None)] * array.ndim
        index[axis] = slice(start, None, step) if rng.random() < 0.6 else slice(None, None, step)
        array = array[tuple(index)]
    if rng.random() < 0.3:
        array = array.transpose(rng.sample(range(array.ndim), array.ndim))
    if rng.random() < 0.2 and array.shape[-1] == 1:
        array = np.broadcast_to(array, (*array.shape[:-1], 3))
    return array

def check(rng):
    shape = [rng.choice([0, 1, 1, 2, 5, 9, 70]) for _ in range(rng.randrange(1, 4))]
    whole = np.array([rng.randrange(2) if rng.random() < 0.5 else rng.randrange(120)
                      for _ in range(int(np.prod(shape)))]).reshape(shape)
    tensor = cut(rng, whole.astype(rng.choice(DTYPES)))
    options = {"copy": rng.choice([None, True]), "layout": rng.choice(["auto", "list"]),
               "bool_as": rng.choice(["bool8", "bits"])}
    if rng.random() < 0.2 and tensor.dtype.kind != "c":
        options = {"copy": options["copy"], "extensions": False}
    device = rng.randrange(2) if tensor.size else 0  # no memory, no device
    mask = None
    if rng.random() < 0.6:
        bits = np.array([rng.random() < 0.7 for _ in range(2 * len(tensor))], bool)
        mask = bits[:len(tensor)] if rng.random() < 0.5 else bits[::2]
    there_mask = None if mask is None else upload(mask, device)
    compare(tensor, upload(tensor, device), mask, there_mask, **options)

check_cases(check, 150)
gc.collect()
settle()
assert debug.live_objects() == 0
"""


@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
def test_random_tensors_become_the_arrays_of_the_cpu(
    on_fake_gpus: Callable[[str], None], runtime: str
) -> None:
    on_fake_gpus(f'RUNTIME = "{runtime}"' + UPLOAD + RANDOM)


def test_random_tensors_go_through_the_host_without_kernels(
    on_fake_cuda: Callable[[str], None],
) -> None:
    """HIP without hiprtc."""
    on_fake_cuda('RUNTIME = "rocm"' + UPLOAD + RANDOM)


def test_nothing_waits(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{UPLOAD}
stream = cuda.make_stream()
values, valid = np.arange(40, dtype="i4")[::2], np.arange(20) % 3 != 0
with cuda.gate(stream):
    tensor = upload(values)
    tensor.__cuda_array_interface__["stream"] = stream
    mask = upload(valid)
    made = arrowdl.to_arrow_device(tensor, mask=mask)
    assert not made.is_ready()
expected = [int(value) if ok else None for value, ok in zip(values, valid)]
assert pa.array(made.to("cpu")).to_pylist() == expected
""")


def test_a_mask_keeps_nulls_and_offsets(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{UPLOAD}
rows = pa.array([None if i % 4 == 1 else i for i in range(30)], pa.int16())
valid = np.arange(20) % 3 != 0
here = arrowdl.from_arrow(rows)[5:25]
there = arrowdl.from_arrow(rows).to("cuda:0")[5:25]
compare(here, there, valid, upload(valid))
arrow_mask = pa.array(valid)
compare(here, there, arrow_mask, arrowdl.from_arrow(arrow_mask).to("cuda:0"))
refused(ValueError, "on cuda:1, the tensor on cuda:0",
        lambda: arrowdl.to_arrow_device(there, mask=upload(valid, 1)))
refused(ValueError, "one bool per row",
        lambda: arrowdl.to_arrow_device(there, mask=upload(valid[1:])))
""")


@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
def test_values_become_nulls(on_fake_cuda: Callable[[str], None], runtime: str) -> None:
    """By kernels, and on ROCm through the host."""
    on_fake_cuda(f"""RUNTIME = "{runtime}"
{UPLOAD}
from arrowdl import _core
for dtype in ("f2", "f4", "f8"):
    values = np.array([1.5, np.nan, -np.nan, np.inf, -np.inf, 0.0, *range(20)], dtype)
    there = _core.null_where(arrowdl.to_arrow_device(upload(values))[1:], None)
    expected = _core.null_where(arrowdl.to_arrow_device(values)[1:], None)
    assert pa.array(there.to("cpu")).equals(pa.array(expected))
    assert there.device.type == arrowdl.DeviceType[RUNTIME]
for dtype in ("u1", "i2", "i4", "i8"):
    values = np.array([7, 0, 7, 3] * 5, dtype)
    item = values[:1].tobytes()
    there = _core.null_where(arrowdl.to_arrow_device(upload(values)), item)
    expected = _core.null_where(arrowdl.to_arrow_device(values), item)
    assert pa.array(there.to("cpu")).equals(pa.array(expected))
""")


def test_captured_streams_are_refused(on_fake_cuda: Callable[[str], None]) -> None:
    """The work would run at each launch of the graph."""
    on_fake_cuda(f"""{UPLOAD}
values, valid = np.arange(40, dtype="i4")[::2], np.arange(20) % 3 != 0
stream = cuda.make_stream()
ready = arrowdl.to_arrow_device(upload(values), mask=upload(valid))
ready.synchronize()
mask = arrowdl.to_arrow_device(upload(valid))
mask.synchronize()
settle()
there, pending = upload(values), upload(values)
pending.__cuda_array_interface__["stream"] = stream
with cuda.capture(stream):
    for options in ({{}}, {{"mask": mask}}, {{"copy": True}}):
        refused(BufferError, "captured into a graph",
                lambda: arrowdl.to_arrow_device(there, stream=stream, **options))
    refused(BufferError, "captured into a graph", lambda: arrowdl.to_arrow_device(pending))
made = arrowdl.to_arrow_device(there, stream=stream)
assert arrowdl.to_numpy(made.to("cpu")).tolist() == values.tolist()
settle()
""")


def test_masks_go_through_the_host_without_kernels(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""RUNTIME = "rocm"
{UPLOAD}
rows = pa.array([None if i % 4 == 1 else i for i in range(30)], pa.int16())
valid = np.arange(20) % 3 != 0
here = arrowdl.from_arrow(rows)[5:25]
there = arrowdl.from_arrow(rows).to("rocm:0")[5:25]
compare(here, there, valid, upload(valid))
made = compare(here, there, pa.array(valid), arrowdl.from_arrow(pa.array(valid)).to("rocm:0"))
assert made.null_count == pa.array(made.to("cpu")).null_count
assert arrowdl.to_arrow_device(there, mask=upload(np.ones(20, bool))).null_count == 5
union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
refused(BufferError, "no validity bitmap", lambda: arrowdl.to_arrow_device(
    arrowdl.from_arrow(union).to("rocm:0"), mask=upload(np.zeros(1, bool))))
""")


def test_the_host_waits_for_the_work_on_a_tensor_alone(on_fake_cuda: Callable[[str], None]) -> None:
    """Not for the device: another stream does not get any further meanwhile."""
    on_fake_cuda(f"""RUNTIME = "rocm"
{UPLOAD}
import threading
for name in ("close_gate_on", "open_gate", "enqueue_copy"):
    assert getattr(hip, "arrowdl_fake_" + name)
hip.arrowdl_fake_close_gate_on.argtypes = [ctypes.c_int, ctypes.c_void_p]
hip.arrowdl_fake_enqueue_copy.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_size_t]

def make_stream():
    stream = ctypes.c_void_p()
    assert hip.hipStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    return stream.value

producer, other = make_stream(), make_stream()
values = np.arange(24, dtype="i4").reshape(6, 4)
memory = allocate(values.nbytes, 0)
ctypes.memset(memory, 0x7F, values.nbytes)
tensor = MadeTensor(memory, (6, 2), dtype="int32", device=(10, 0), strides=(4, 2))
idle = hip.arrowdl_fake_close_gate_on(0, other)
gate = hip.arrowdl_fake_close_gate_on(0, producer)
hip.arrowdl_fake_enqueue_copy(0, producer, memory, values.ctypes.data, values.nbytes)
made = []
thread = threading.Thread(
    target=lambda: made.append(arrowdl.to_arrow_device(tensor.capsule(), stream=producer)))
thread.start()
hip.arrowdl_fake_open_gate(gate)
thread.join()  # with `other` still held
assert hip.hipStreamQuery(ctypes.c_void_p(other)) == 600
hip.arrowdl_fake_open_gate(idle)
assert arrowdl.to_numpy(made[0].to("cpu")).tolist() == values[:, ::2].tolist()
""")
