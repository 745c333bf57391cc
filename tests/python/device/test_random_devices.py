"""Random arrays to a device and back, on the fake driver, beside plain Python lists."""

from __future__ import annotations

from collections.abc import Callable

CHECK = """
import copy
import random
import pyarrow as pa
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

DEVICES = ["cuda", "cuda:1", "cuda_host", "cuda_managed"]

def has_views(kind):
    if kind in (pa.string_view(), pa.binary_view()):
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return has_views(kind.value_type)
    return any(has_views(kind.field(i).type) for i in range(kind.num_fields))

def read(array):
    back = pa.array(array)
    back.validate(full=True)
    return back.to_pylist()

def cut(rng, array, values):
    start = rng.randrange(len(values) + 1)
    stop = rng.randrange(start, len(values) + 1)
    return array[start:stop], values[start:stop]

def check(rng):
    kind = draw_type(rng)
    while has_views(kind):
        kind = draw_type(rng)
    values = draw_values(rng, kind, rng.randrange(14), rng.choice([0, 0.3, 1]))
    array = arrowdl.from_arrow(lay_out(rng, kind, values))
    steps = [kind]
    for _ in range(rng.randrange(1, 5)):
        step = rng.choice([*DEVICES, "cpu", "cut", "copy"])
        steps.append(step)
        if step == "cut":
            array, values = cut(rng, array, values)
        elif step == "copy":
            array = copy.deepcopy(array)
        else:
            array = array.to(step)
        assert len(array) == len(values)
    assert read(array.to("cpu")) == values, steps

check_cases(check, 60)
del check
settle()
assert debug.live_objects() == 0
"""


def test_there_and_back(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(CHECK)
