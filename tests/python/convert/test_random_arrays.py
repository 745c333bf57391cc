"""Random arrays through arrowdl, beside plain Python lists of their values."""

from __future__ import annotations

import copy
import random
from itertools import pairwise
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.random_arrays import FLOATS, INTEGERS, draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

Pair = tuple[arrowdl.DeviceArray, list[Any]]


def read(array: arrowdl.DeviceArray) -> list[Any]:
    """Its values, as pyarrow reads what goes out of it."""
    back = pa.array(array)
    try:
        back.validate(full=True)
    except pa.ArrowInvalid as error:  # pyarrow 26 finds views of no rows too short, its own too
        if "View buffer size (bytes): 0 isn't large enough for length: 0" not in str(error):
            raise
    return back.to_pylist()


def cut(rng: random.Random, pair: Pair) -> Pair:
    array, values = pair
    start = rng.randrange(len(values) + 1)
    stop = rng.randrange(start, len(values) + 1)
    return array[start:stop], values[start:stop]


def pick_field(rng: random.Random, pair: Pair) -> Pair:
    array, values = pair
    if not array.field_names:
        return pair
    i = rng.randrange(len(array.field_names))
    name = array.field_names[i]
    if pa.types.is_run_end_encoded(pa.array(array).type.field(i).type) and None in values:
        return pair  # a run has no place for the nulls of a struct: refused
    return array.field(i), [None if value is None else value[name] for value in values]


def append(rng: random.Random, pair: Pair) -> Pair:
    array, values = pair
    other, more = cut(rng, pair)
    return arrowdl._core.concatenate([array, other]), values + more


def go_round(rng: random.Random, pair: Pair) -> Pair:
    array, values = pair
    ways = [
        lambda: copy.deepcopy(array),
        lambda: arrowdl.from_arrow(pa.array(array)),
        lambda: arrowdl.from_arrow(pa.chunked_array([pa.array(array)])),
        lambda: next(arrowdl.from_arrow_stream(pa.chunked_array([pa.array(array)])), array),
        lambda: arrowdl.from_arrow(array.__arrow_c_device_array__()),
    ]
    return rng.choice(ways)(), values


def take(rng: random.Random, pair: Pair) -> Pair:
    """Rows in another order: what a shuffle of numbered rows says that it is."""
    array, values = pair
    if not values:
        return pair
    rows = arrowdl._core.make_struct(
        ["i", "x"], [arrowdl.to_arrow_device(np.arange(len(values))), array]
    )
    shuffled = next(arrowdl.from_arrow_stream(rows).shuffle(len(values), rng.randrange(2**40)))
    order = arrowdl.to_numpy(shuffled.field("i")).tolist()
    assert sorted(order) == list(range(len(values)))
    return shuffled.field("x"), [values[i] for i in order]


def check_chain(rng: random.Random) -> None:
    kind = draw_type(rng)
    values = draw_values(rng, kind, rng.randrange(12), rng.choice([0, 0.3, 1]))
    source = lay_out(rng, kind, values)
    assert source.to_pylist() == values, "the case itself is wrong"
    pair: Pair = arrowdl.from_arrow(source), values
    steps = []
    for _ in range(rng.randrange(1, 7)):
        step = rng.choice([cut, pick_field, append, go_round, take])
        steps.append(step.__name__)
        pair = step(rng, pair)
        array, expected = pair
        assert len(array) == len(expected), (kind, steps)
        assert read(array) == expected, (kind, steps)
        if not pa.types.is_run_end_encoded(pa.array(array).type):
            assert array.null_count == expected.count(None), (kind, steps)


def test_chains_of_slices_fields_and_copies() -> None:
    check_cases(check_chain, 150)


# ---------------------------------------------------------------- to_numpy

Policy = str


def expected_tensor(values: list[Any], policy: Policy, is_float: bool, shape: list[int]) -> Any:
    """What to_numpy makes of rows of `shape`: nested lists, with the mask for "mask"; None where
    it refuses."""
    missing = has_null(values)
    if policy == "raise" and missing:
        return None
    if policy == "nan" and missing and not is_float:
        return None
    item = float("nan") if policy == "nan" else 0
    filled = [fill(value, shape, item) for value in values]
    if policy != "mask":
        return filled
    return [fill(value, shape, 0) for value in values], [valid(value, shape) for value in values]


def has_null(value: Any) -> bool:
    return value is None or (isinstance(value, list) and any(map(has_null, value)))


def fill(value: Any, shape: list[int], item: Any) -> Any:
    if not shape:
        return item if value is None else value
    inner = [None] * shape[0] if value is None else value
    return [fill(one, shape[1:], item) for one in inner]


def valid(value: Any, shape: list[int]) -> Any:
    if not shape:
        return value is not None
    inner = [None] * shape[0] if value is None else value
    return [valid(one, shape[1:]) for one in inner]


def check_numpy(rng: random.Random) -> None:
    leaf = rng.choice([*INTEGERS, *FLOATS, pa.bool_()])
    shape = [rng.randrange(1, 4) for _ in range(rng.randrange(3))]
    kind = leaf
    for extent in reversed(shape):
        kind = pa.list_(kind, extent)
    values = draw_values(rng, kind, rng.randrange(10), rng.choice([0, 0, 0.3]))
    source = lay_out(rng, kind, values)
    policy = rng.choice(["raise", "fill", "nan", "mask"])
    expected = expected_tensor(values, policy, leaf in FLOATS, shape)
    if expected is None:
        with pytest.raises(BufferError):
            arrowdl.to_numpy(source, nulls=policy)
        return
    try:
        made = arrowdl.to_numpy(source, nulls=policy)
    except BufferError:
        assert policy == "nan", kind
        assert leaf not in FLOATS, kind  # which have no NaN, null or not
        return
    if policy == "mask":
        made, mask = made
        expected, expected_mask = expected
        assert mask.tolist() == expected_mask
        made = np.where(mask, made, 0)
    assert made.shape == (len(values), *shape)
    np.testing.assert_array_equal(made, np.array(expected, made.dtype).reshape(made.shape))


def test_tensors_under_each_policy() -> None:
    check_cases(check_numpy, 150)


def check_lists(rng: random.Random) -> None:
    leaf = rng.choice([*INTEGERS, *FLOATS, pa.bool_(), pa.string(), pa.binary(), pa.string_view()])
    is_list = leaf not in (pa.string(), pa.binary(), pa.string_view())
    make = rng.choice([pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
    kind = make(leaf) if is_list else leaf
    values = draw_values(rng, kind, rng.randrange(8), 0)
    for i in range(len(values)):
        if rng.random() < 0.2:
            values[i] = None
    source = lay_out(rng, kind, values)
    if None in values:
        with pytest.raises(BufferError):
            arrowdl.to_numpy(source)
    rows = [to_items(value) for value in values]
    (flat, offsets), mask = arrowdl.to_numpy(source, nulls="mask")
    assert mask.tolist() == [value is not None for value in values]
    flat, offsets = arrowdl.to_numpy(source, nulls="fill")
    assert [flat[a:b].tolist() for a, b in pairwise(offsets)] == rows
    padded, lengths = arrowdl.to_numpy(source, nulls="fill", ragged="padded")
    assert lengths.tolist() == [len(row) for row in rows]
    width = max(map(len, rows), default=0)
    assert padded.tolist() == [row + [0] * (width - len(row)) for row in rows]


def to_items(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = value.encode()
    return [] if value is None else list(value)


def test_lists_and_texts() -> None:
    check_cases(check_lists, 100)
