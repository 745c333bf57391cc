"""Donation to XLA on a GPU, which takes the memory of its arguments: what `copy=True` protects."""

from __future__ import annotations

from collections.abc import Callable

DONATION = """
import dataclasses
import numpy as np
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework
from helpers.gpu_libraries import Xla, data_of

xla = Xla(cuda)
owned = {}  # the arrays in XLA's own memory, by id

def copy(array):
    made = np.array(array, copy=True)
    owned[id(made)] = made
    return made

jax = dataclasses.replace(
    _frameworks.load("numpy"), from_dlpack=read_as_host, from_offsets=read_as_host, copy=copy,
    device_alignment=16, donates=True)
replace_framework("jax", jax)

def flatten(made):
    if isinstance(made, dict):
        made = made.values()
    return [one for part in made for one in flatten(part)] if not isinstance(made, np.ndarray) \\
        else [made]

rows = range(100)
ints = pa.array(rows, pa.int32())
nulls = pa.array([None if i % 3 == 0 else float(i) for i in rows], pa.float32())
bools = pa.array([i % 3 == 0 for i in rows])
CASES = {
    "plain": (ints, {}),
    "misaligned": (ints[3:], {}),
    "bits": (bools, {}),
    "bool8": (pa.array([1, 0, 7] * 9, pa.int8()).cast(pa.int8()), {}),
    "filled": (nulls, {"nulls": "fill"}),
    "nan": (nulls, {"nulls": "nan"}),
    "masked": (nulls, {"nulls": "mask"}),
    "struct": (pa.StructArray.from_arrays([ints, nulls], ["i", "n"], mask=bools),
               {"nulls": "fill"}),
    "offsets": (pa.array([[1, 2], [], [3]] * 9, pa.list_(pa.int32())), {"ragged": "offsets"}),
    "padded": (pa.array([[1, 2], [], [3]] * 9, pa.list_(pa.int32())),
               {"ragged": "padded", "nulls": "mask"}),
    "runs": (pa.RunEndEncodedArray.from_arrays([3, 9], pa.array([1, 2], pa.int32())), {}),
    "matrix": (pa.record_batch({"a": ints, "b": ints}), {"stack": True}),
}
"""


def test_a_copy_for_jax_is_in_memory_of_jax(on_fake_gpus: Callable[[str], None]) -> None:
    on_fake_gpus(f"""{DONATION}
for device in "cuda:0", "rocm:0":
    for name, (values, options) in CASES.items():
        there = arrowdl.from_arrow(values).to(device)
        for source, more in (there, {{}}), (there, {{"device": device}}):
            owned.clear()
            made = flatten(arrowdl.to_jax(source, copy=True, **options, **more))
            assert made and all(id(one) in owned for one in made), (device, name, more)
            assert len(owned) == len(made), (device, name, "is copied more than once")
        owned.clear()
        arrowdl.to_jax(there, **options)
        assert not owned, (name, "is not asked for")
    elsewhere = f"{{device[:-1]}}1"
    owned.clear()
    (made,) = flatten(arrowdl.to_jax(arrowdl.from_arrow(ints).to(device), copy=True,
                                     device=elsewhere))
    assert id(made) in owned
settle()
""")


def test_a_copy_for_jax_without_kernels_is_in_memory_of_jax(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda(f"""{DONATION}
made_by_operations = lambda one: one.base is None and one.flags.owndata
for name in "plain", "misaligned", "bits", "filled", "nan", "masked", "struct":
    values, options = CASES[name]
    there = arrowdl.from_arrow(values).to("rocm:0")
    owned.clear()
    made = flatten(arrowdl.to_jax(there, copy=True, **options))
    memory = {{one.ctypes.data for one in owned.values()}}
    for one in made:
        base = one
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert id(base) in owned or base.base is None, name
settle()
""")


def test_what_the_clients_of_xla_do_with_donated_memory(
    on_fake_cuda: Callable[[str], None],
) -> None:
    """What docs/concepts/devices.rst says. The double does what XLA's sources do; arrowdl cannot
    see a donation."""
    on_fake_cuda(f"""{DONATION}
array = arrowdl.from_arrow(ints).to("cuda:0")
array.synchronize()
settle()
memory = data_of(array.__dlpack__(stream=-1))
arguments = [xla.from_dlpack(array)]
refused(RuntimeError, "cannot be donated",
        lambda: xla.donate(arguments, "stream executor", aliases=False))
assert xla.donate(arguments, "stream executor", aliases=True) == memory, "Arrow data is changed"
del array
assert xla.donate(arguments, "tfrt", aliases=True) == memory
settle()
assert debug.live_objects() == 0, "the result lives on in memory that was released"
""")


def test_jax_donates() -> None:
    from arrowdl import _frameworks

    assert _frameworks.load("jax").donates
    assert not _frameworks.load("torch").donates
