"""A Loader of rows in device memory, which are cut and shuffled there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

SETUP = """
DEVICE = globals().get("DEVICE", "cuda")
import dataclasses
import pickle
import numpy as np
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.fake_cuda import read_as_host, replace_framework
from helpers.options import group

numpy = _frameworks.load("numpy")
there = dataclasses.replace(
    numpy, from_dlpack=read_as_host, from_offsets=read_as_host,
    put=lambda array, name, i: read_as_host(arrowdl.to_arrow_device(array).to(f"{name}:{i}")))
replace_framework("numpy", there)
replace_framework("jax", dataclasses.replace(numpy))

table = pa.table({
    "i": pa.array(range(9_000), pa.int32()),
    "x": pa.array([None if i % 5 == 0 else i / 2 for i in range(9_000)], pa.float32()),
    "ok": pa.array([i % 3 == 0 for i in range(9_000)]),
    "pair": pa.array([[i, -i] for i in range(9_000)], pa.list_(pa.int16(), 2)),
    "ids": pa.array([[i] * (i % 4) for i in range(9_000)]),
    "holes": pa.array([None if i % 8 == 0 else [i] * (i % 5) for i in range(9_000)]),
    "text": pa.array(["ab"[: i % 3] for i in range(9_000)]),
})
batches = [arrowdl.from_arrow(batch) for batch in table.to_batches(max_chunksize=4_000)]
on_device = [batch.to(DEVICE) for batch in batches]

def loaders(**options):
    options = group(**{"batch_size": 700, "nulls": "fill", "ragged": "padded", **options})
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


@pytest.mark.parametrize("device", ["cuda", "rocm"])
def test_the_order_is_that_of_the_cpu(on_fake_gpus: Callable[[str], None], device: str) -> None:
    on_fake_gpus(f"""DEVICE = "{device}"
{SETUP}
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


def test_rows_go_through_the_host_without_kernels(on_fake_cuda: Callable[[str], None]) -> None:
    """HIP without hiprtc: in the order of the CPU, and the batches are on the device."""
    on_fake_cuda(f"""DEVICE = "rocm"
{SETUP}
for options in ({{}}, {{"shuffle": True, "seed": 3}}, {{"shuffle": True, "buffer_size": 1000}},
                {{"splits": 4, "shuffle": True, "buffer_size": 4000}}):
    compare(*loaders(**options))
made, expected = (loader.map_dataset() for loader in loaders())
for rows in ([8_999, 5, 4_000], slice(3_990, 4_010)):
    compare([made[rows]], [expected[rows]])
def mix(source, framework):
    return arrowdl.Loader.mix(
        {{"a": source, "b": source}},
        weights={{"a": 1, "b": 2}},
        nulls="fill",
        ragged="padded",
        framework=framework,
        shuffle=True,
        ranks=arrowdl.Ranks(global_batch_size=800),
    )
compare(mix(on_device, "numpy"), mix(table, "jax"))
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


def test_rows_by_their_numbers(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
made, expected = (loader.map_dataset() for loader in loaders())
assert len(made) == 9_000
order = np.random.default_rng(1).permutation(9_000)
for rows in (order[:700], [3_999, 4_000], [5, 5, 8_999, -9_000], [], slice(100, 90, -1),
             range(4_990, 5_010)):
    compare([made[rows]], [expected[rows]])
refused(IndexError, "row 9000 of 9000", lambda: made[9_000])
refused(TypeError, "device memory", lambda: pickle.dumps(made))
""")


def test_rows_of_the_host_are_copied(on_fake_cuda: Callable[[str], None]) -> None:
    """By kernels or, as lists are, as one block."""
    on_fake_cuda(f"""{SETUP}
for columns in (["i", "x"], None):
    here = arrowdl.Loader(table, 700, framework="jax", nulls="fill", columns=columns)
    there = arrowdl.Loader(
        table, 700, framework="numpy", nulls="fill", columns=columns, device="cuda")
    for rows in ([7, 3, 8_000], slice(10, 20)):
        compare([there.map_dataset()[rows]], [here.map_dataset()[rows]])
""")


def test_mixtures(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{SETUP}
def mix(source, framework, **options):
    sources = {{"a": source, "b": source}}
    return arrowdl.Loader.mix(sources, {{"a": 1, "b": 2}}, nulls="fill", ragged="padded",
                              ranks=arrowdl.Ranks(global_batch_size=800), framework=framework,
                              **options)

shuffled = {{"shuffle": arrowdl.Shuffle(4000), "seed": 3}}
for options in ({{}}, shuffled, {{"origin": "from"}}):
    compare(mix(on_device, "numpy", **options), mix(table, "jax", **options))
""")


@pytest.mark.parametrize("device", ["cuda", "rocm"])
def test_steps_by_length(on_fake_gpus: Callable[[str], None], device: str) -> None:
    """Lengths are read from the offsets, and rows are sorted on the device."""
    on_fake_gpus(f"""DEVICE = "{device}"
{SETUP}
for options in ({{"bucket_by": "ids"}}, {{"bucket_by": "text", "shuffle": True}},
                {{"bucket_by": "ids", "buffer_size": 2000, "splits": 2, "shuffle": True}},
                {{"batch_size": None, "batch_tokens": 3000, "token_column": "ids"}},
                {{"batch_size": None, "global_batch_tokens": 3000, "bucket_by": "ids"}}):
    made, expected = loaders(**options)
    compare(made, expected)
""")


def test_packed_blocks(on_fake_cuda: Callable[[str], None]) -> None:
    """They are packed on the host, and copied as other batches are."""
    on_fake_cuda(f"""{SETUP}
for add in ((), ("position_ids", "cu_seqlens")):  # with lists, batches are made on the host
    pack = arrowdl.Pack("ids", 64, "best_fit", add=add)
    options = {{"columns": ["ids"], "shuffle": True, "ragged": "padded", "batching": pack}}
    here = arrowdl.Loader(table, 8, framework="jax", **options)
    compare(arrowdl.Loader(table, 8, framework="numpy", device="cuda:0", **options), here)
try:
    arrowdl.Loader(on_device, 8, framework="numpy", columns=["ids"], batching=pack)
    raise AssertionError
except BufferError as error:
    assert "pack sequences" in str(error), error
""")
