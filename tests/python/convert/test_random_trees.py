"""Random nested columns as tensors, beside plain Python lists of their values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.random_arrays import FLOATS, INTEGERS, draw_value, draw_values, lay_out
from helpers.random_cases import check_cases

NUMBERS = [*INTEGERS, *FLOATS, pa.bool_()]
TORCH = [kind for kind in NUMBERS if kind not in (pa.uint32(), pa.uint64())]
TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.string_view(), pa.binary_view()]


def draw_type(rng: random.Random, numbers: list[pa.DataType], depth: int = 3) -> pa.DataType:
    kind = rng.randrange(8) if depth else rng.randrange(2)
    if kind == 0:
        return rng.choice(TEXTS)
    if kind == 1:
        number = rng.choice(numbers)
        shape = [rng.randrange(1, 4) for _ in range(rng.choice([0, 0, 1, 2]))]
        for extent in shape:
            number = pa.list_(number, extent)
        return number
    if kind == 2:
        return pa.run_end_encoded(pa.int32(), rng.choice(numbers))
    if kind == 3:
        names = "abc"[: rng.randrange(1, 4)]
        return pa.struct([(name, draw_type(rng, numbers, depth - 1)) for name in names])
    item = draw_type(rng, numbers, depth - 1)
    return [pa.list_, pa.large_list, pa.list_view, pa.large_list_view][kind - 4](item)


def without_nulls(kind: pa.DataType, value: Any) -> Any:
    """What nulls="fill" says that it is: zeros, empty rows, and structs of those."""
    if pa.types.is_struct(kind):
        fields = {field.name: None for field in kind} if value is None else value
        return {field.name: without_nulls(field.type, fields[field.name]) for field in kind}
    if pa.types.is_fixed_size_list(kind):
        items = [None] * kind.list_size if value is None else value
        return [without_nulls(kind.value_type, item) for item in items]
    if is_list(kind):
        return [without_nulls(kind.value_type, item) for item in value or []]
    if kind in TEXTS:
        return value or b""
    return 0 if value is None else value


def is_list(kind: pa.DataType) -> bool:
    types = pa.types
    plain = types.is_list(kind) or types.is_large_list(kind)
    return plain or types.is_list_view(kind) or types.is_large_list_view(kind)


def has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_null, value.values()))
    return value is None or (isinstance(value, list) and any(map(has_null, value)))


def compare(made: Any, kind: pa.DataType, rows: list[Any]) -> None:
    if pa.types.is_struct(kind):
        assert list(made) == [field.name for field in kind]
        for field in kind:
            compare(made[field.name], field.type, [row[field.name] for row in rows])
    elif kind in TEXTS:
        flat, offsets = made
        encoded = [row.encode() if isinstance(row, str) else row for row in rows]
        assert bytes(np.asarray(flat)) == b"".join(encoded)
        check_offsets(offsets, encoded)
    elif is_list(kind):
        flat, offsets = made
        check_offsets(offsets, rows)
        compare(flat, kind.value_type, [item for row in rows for item in row])
    else:
        if pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        shape = []
        while pa.types.is_fixed_size_list(kind):
            shape.append(kind.list_size)
            kind = kind.value_type
        made = np.asarray(made)
        assert made.dtype == kind.to_pandas_dtype()
        np.testing.assert_array_equal(made, np.array(rows, made.dtype).reshape(-1, *shape))


def check_offsets(offsets: Any, rows: list[Any]) -> None:
    ends = [0]
    for row in rows:
        ends.append(ends[-1] + len(row))
    assert offsets.tolist() == ends


def check_tree(rng: random.Random, convert: Callable[..., Any], numbers: list[pa.DataType]) -> None:
    kind = draw_type(rng, numbers)
    share = rng.choice([0, 0, 0.2])
    values = draw_values(rng, kind, rng.randrange(9), share)
    source: Any = lay_out(rng, kind, values)
    if pa.types.is_struct(kind) and None not in values and rng.random() < 0.5:
        source = pa.Table.from_struct_array(source)
    policy = rng.choice(["raise", "fill"])
    if policy == "raise" and any(map(has_null, values)):
        with pytest.raises(BufferError, match="null"):
            convert(source, ragged="offsets")
        return
    made = convert(source, nulls=policy, ragged="offsets")
    compare(made, kind, [without_nulls(kind, value) for value in values])


def test_trees_of_numpy() -> None:
    check_cases(lambda rng: check_tree(rng, arrowdl.to_numpy, NUMBERS), 120)


def test_trees_of_torch() -> None:
    check_cases(lambda rng: check_tree(rng, arrowdl.to_torch, TORCH), 80)


def check_stacks(rng: random.Random) -> None:
    """Columns of one type side by side."""
    number = rng.choice(NUMBERS)
    count, width = rng.randrange(9), rng.randrange(1, 6)
    columns = [[draw_value(rng, number, 0) for _ in range(count)] for _ in range(width)]
    holes = [[value if rng.random() < 0.8 else None for value in column] for column in columns]
    given = holes if rng.random() < 0.5 else columns
    batch = pa.record_batch(
        [lay_out(rng, number, column) for column in given],
        names=[str(i) for i in range(width)],
    )
    filled = [[0 if value is None else value for value in column] for column in given]
    made = arrowdl.to_numpy(batch, stack=True, nulls="fill")
    assert made.shape == (count, width)
    np.testing.assert_array_equal(made, np.array(filled, made.dtype).reshape(width, count).T)
    values, mask = arrowdl.to_numpy(batch, stack=True, nulls="mask")
    valid = [[value is not None for value in column] for column in given]
    np.testing.assert_array_equal(mask, np.array(valid, bool).reshape(width, count).T)
    np.testing.assert_array_equal(np.where(mask, values, 0), made)


def test_stacks() -> None:
    check_cases(check_stacks, 80)
