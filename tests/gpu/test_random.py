"""Random arrays on the GPU, beside plain Python lists and what the CPU makes of them."""

from __future__ import annotations

import random
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from helpers.gpu import torch
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

pytestmark = pytest.mark.cuda

DEVICES = ["cuda", "cuda_host", "cuda_managed", "cpu"]


def draw_array(rng: random.Random) -> tuple[pa.DataType, Any, list[Any]]:
    kind = draw_type(rng)
    while has_views(kind):  # copies of views are refused
        kind = draw_type(rng)
    values = draw_values(rng, kind, rng.randrange(40), rng.choice([0, 0.3, 1]))
    return kind, lay_out(rng, kind, values), values


def has_views(kind: pa.DataType) -> bool:
    if kind in (pa.string_view(), pa.binary_view()):
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return has_views(kind.value_type)
    return any(has_views(kind.field(i).type) for i in range(kind.num_fields))


def cut(rng: random.Random, rows: int) -> slice:
    start = rng.randrange(rows + 1)
    return slice(start, rng.randrange(start, rows + 1))


def test_there_and_back() -> None:
    def check(rng: random.Random) -> None:
        kind, given, values = draw_array(rng)
        array = arrowdl.from_arrow(given)
        steps = [kind]
        for _ in range(rng.randrange(1, 5)):
            step = rng.choice([*DEVICES, "cut"])
            steps.append(step)
            if step == "cut":
                window = cut(rng, len(values))
                array, values = array[window], values[window]
            else:
                array = array.to(step)
        back = pa.array(array.to("cpu"))
        back.validate(full=True)
        assert back.to_pylist() == values, steps

    check_cases(check, 400)


def test_tensors_are_those_of_the_cpu() -> None:
    compared = 0

    def convert(array: Any, options: Any) -> Any:
        try:
            return arrowdl.to_torch(array, **options)
        except (BufferError, ValueError, TypeError) as error:
            return error

    def check(rng: random.Random) -> None:
        nonlocal compared
        kind, given, values = draw_array(rng)
        window = cut(rng, len(values)) if values else slice(0, 0)
        here = arrowdl.from_arrow(given)[window]
        there = arrowdl.from_arrow(given).to("cuda")[window]
        options = {
            "nulls": rng.choice(["raise", "fill", "mask"]),
            "ragged": rng.choice(["offsets", "padded"]),
        }
        expected, made = convert(here, options), convert(there, options)
        if isinstance(expected, Exception):
            assert type(made) is type(expected), (kind, options, expected, made)
        else:
            compare(made, expected, (kind, options))
            compared += 1

    check_cases(check, 400)
    assert compared > 0


def compare(made: Any, expected: Any, what: Any) -> None:
    assert not isinstance(made, Exception), (what, made)
    if isinstance(expected, dict):
        assert made.keys() == expected.keys(), what
        for name, value in expected.items():
            compare(made[name], value, what)
    elif isinstance(expected, tuple):
        assert len(made) == len(expected), what
        if len(expected) == 2 and getattr(expected[1], "dtype", None) == torch.bool:
            compare(made[1], expected[1], what)  # a mask: under it may be anything
            valid = expected[1]
            if isinstance(expected[0], torch.Tensor) and expected[0].shape == valid.shape:
                made, expected = made[0].cpu()[valid], expected[0][valid]
                torch.testing.assert_close(made, expected, rtol=0, atol=0, equal_nan=True)
                return
            compare(made[0], expected[0], what)
            return
        for one, other in zip(made, expected, strict=True):
            compare(one, other, what)
    elif isinstance(expected, torch.Tensor):
        assert made.is_cuda, what
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape), what
        torch.testing.assert_close(made.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    else:
        assert made == expected, what
