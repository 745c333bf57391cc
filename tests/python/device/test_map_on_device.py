"""`DeviceStream.map` with batches and results in device memory."""

from __future__ import annotations

from collections.abc import Callable

SETUP = """
import dataclasses, threading
import numpy as np
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

numpy = _frameworks.load("numpy")
replace_framework("numpy", dataclasses.replace(
    numpy, from_dlpack=read_as_host, from_offsets=read_as_host,
    put=lambda array, name, i: read_as_host(arrowdl.to_arrow_device(array).to(f"{name}:{i}"))))

ids = list(range(10))
table = pa.table({
    "x": pa.array(ids, pa.int32()),
    "lists": pa.array([[i] * (i % 3) for i in ids]),
    "text": [f"t{i}" for i in ids],
})

def run(model, source=table, **options):
    options = {"batch_size": 4, "framework": "numpy", "keep": ["text"], **options}
    return arrowdl.from_arrow_stream(source).map(model, **options)

def put(values, device="cuda"):
    return arrowdl.from_arrow(pa.array(values)).to(device)
"""


def test_batches_go_there_and_results_come_back(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
for prefetch in (0, 2):
    for writable in (True, False):
        stream = run(lambda x: {{"y": put(2 * x), "z": x.tolist(), "v": put(x, "cuda:1")}},
                     columns="x", device="cuda", prefetch=prefetch, writable=writable)
        made = pa.table(stream)
        assert made["text"].equals(table["text"])
        assert made["y"].to_pylist() == [2 * i for i in ids]
        assert made["z"].to_pylist() == made["v"].to_pylist() == ids

def model(batch):  # lists are converted on the host, and copied as one block
    padded, lengths = batch["lists"]
    assert lengths.tolist() == [i % 3 for i in batch["x"].tolist()]
    return put(padded.sum(1))

made = pa.table(run(model, columns=["lists", "x"], ragged="padded", device="cuda", keep=()))
assert made["output"].to_pylist() == [i * (i % 3) for i in ids]
""")


def test_results_stay_on_a_device(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
for device in ("cuda", None):
    for result in (put, np.copy):  # also one that is on the host
        stream = run(lambda x: result(2 * x), columns="x", device=device, output_device="cuda:1")
        assert stream.device_type == 2
        imported = arrowdl.from_arrow_stream(stream.__arrow_c_device_stream__())
        arrays = list(imported)
        assert [array.device for array in arrays] == [(2, 1)] * 3
        made = pa.concat_tables([pa.table(array.to("cpu")) for array in arrays])
        assert made["output"].to_pylist() == [2 * i for i in ids]
        assert made["text"].equals(table["text"])
refused(BufferError, "cannot export a stream of host memory", lambda: pa.table(
    run(np.copy, columns="x", output_device="cuda")))

# Rows that are there stay there, and so do results.
there = [arrowdl.from_arrow(batch).to("cuda") for batch in table.to_batches(max_chunksize=5)]
arrays = list(run(np.copy, there, columns="x", batch_size=None))
assert [array.device for array in arrays] == [(2, 0)] * 2
assert [len(array) for array in arrays] == [5, 5]
made = pa.concat_tables([pa.table(array.to("cpu")) for array in arrays])
assert made["output"].to_pylist() == ids and made["text"].equals(table["text"])
""")


def test_results_are_copied_back_while_the_model_works(
    on_fake_cuda: Callable[[str], None],
) -> None:
    """The result of the first batch is late until the model has the second one."""
    on_fake_cuda(f"""{SETUP}
stream, memory = cuda.make_stream(), [cuda.allocate(16) for _ in range(3)]
values = [(ctypes.c_int * 4)(*[10 * n + i for i in range(4)]) for n in range(3)]
gate = cuda.gate(stream)
calls = []

def model(x):
    n = len(calls)
    calls.append(n)
    if n == 0:
        gate.__enter__()
    cuda.library.arrowdl_fake_enqueue_copy(
        0, stream, memory[n], ctypes.addressof(values[n]), 16)
    if n == 1:
        gate.__exit__(None, None, None)
    return HasInterface({{"shape": (len(x),), "typestr": "<i4", "data": (memory[n], False),
                         "version": 3, "stream": stream}})

made = run(model, columns="x", device="cuda", writable=False)
assert pa.table(made)["output"].to_pylist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21]
""")


def test_a_model_may_reuse_device_memory(on_fake_cuda: Callable[[str], None]) -> None:
    """As a CUDA graph does: each call writes its results to the same memory."""
    on_fake_cuda(f"""{SETUP}
rows, count = 1_000_000, 6
stream, memory = cuda.make_stream(), cuda.allocate(4 * rows)
values = [np.full(rows, n, "int32") for n in range(count)]
written = iter(values)

def model(x):
    address = next(written).ctypes.data
    cuda.library.arrowdl_fake_enqueue_copy(0, stream, memory, address, 4 * rows)
    return HasInterface({{"shape": (rows,), "typestr": "<i4", "data": (memory, False),
                         "version": 3, "stream": stream}})

source = pa.table({{"x": pa.array(np.zeros(rows * count, "int8"))}})
for options in ({{}}, {{"output_device": "cuda"}}):
    written = iter(values)
    made = run(model, source, columns="x", device="cuda", keep=(), batch_size=rows, **options)
    for n, array in enumerate(made):
        assert np.all(np.from_dlpack(array.to("cpu")["output"]) == n), n
""")
