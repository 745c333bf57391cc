"""A Loader of rows in device memory, which are cut and shuffled there."""

from __future__ import annotations

from collections.abc import Callable

SETUP = """
import dataclasses
import pickle
import numpy as np
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

numpy = _frameworks.load("numpy")
there = dataclasses.replace(numpy, from_dlpack=read_as_host, from_offsets=read_as_host)
replace_framework("numpy", there)
replace_framework("jax", dataclasses.replace(numpy))

table = pa.table({
    "i": pa.array(range(9_000), pa.int32()),
    "x": pa.array([None if i % 5 == 0 else i / 2 for i in range(9_000)], pa.float32()),
    "ok": pa.array([i % 3 == 0 for i in range(9_000)]),
    "pair": pa.array([[i, -i] for i in range(9_000)], pa.list_(pa.int16(), 2)),
    "ids": pa.array([[i] * (i % 4) for i in range(9_000)]),
    "text": pa.array(["ab"[: i % 3] for i in range(9_000)]),
})
batches = [arrowdl.from_arrow(batch) for batch in table.to_batches(max_chunksize=4_000)]
on_device = [batch.to("cuda") for batch in batches]

def loaders(**options):
    options = {"batch_size": 700, "nulls": "fill", "ragged": "padded", **options}
    return (arrowdl.Loader(on_device, framework="numpy", **options),
            arrowdl.Loader(table, framework="jax", **options))

def compare(made, expected):
    batches = list(made)
    others = list(expected)
    assert len(batches) == len(others) > 0
    for batch, other in zip(batches, others):
        assert batch.keys() == other.keys()
        for name in other:
            pair = [x if isinstance(x, tuple) else (x,) for x in (batch[name], other[name])]
            for one, two in zip(*pair, strict=True):
                np.testing.assert_array_equal(one, two, err_msg=name)
"""


def test_the_order_is_that_of_the_cpu(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
for options in ({{}}, {{"shuffle": True, "seed": 3}}, {{"shuffle": True, "buffer_size": 1000}},
                {{"columns": ["ok", "i"], "shuffle": True}},
                {{"shuffle": True, "drop_last": True, "prefetch": 0}},
                {{"splits": 4}}, {{"splits": 4, "shuffle": True, "buffer_size": 4000}}):
    made, expected = loaders(**options)
    for epoch in range(2):
        compare(made, expected)
columns = ["i", "ok", "x"]
made, expected = loaders(shuffle=True, columns=columns, nulls="mask")
compare(made, expected)
made, expected = loaders(shuffle=True, columns=columns, nulls="fill", pad_last=True)
compare(made, expected)
""")


def test_shares_and_states(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
for rank in range(2):
    made, expected = loaders(shuffle=True, columns=["i"], rank=rank, world_size=2)
    compare(made, expected)
made, expected = loaders(shuffle=True, columns=["i"])
for loader in (made, expected):
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    loader.load_state_dict(state)
compare(made, expected)
""")


def test_what_the_cpu_alone_can_do_is_refused(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
refused(ValueError, "vocabulary=", lambda: arrowdl.Loader(
    on_device, 10, vocabulary={{"text": ["a", "ab", ""]}}))
refused(ValueError, "nope", lambda: list(arrowdl.Loader(on_device, 10, columns=["nope"])))
loader = arrowdl.Loader(on_device, 10, num_workers=1, framework="numpy")
refused(TypeError, "num_workers", lambda: next(iter(loader)))
""")
