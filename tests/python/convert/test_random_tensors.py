"""Random tensors of numpy and torch to Arrow and back, beside what numpy says of them."""

from __future__ import annotations

import random
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.optional import torch
from helpers.random_cases import check_cases

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16"]
DTYPES += ["float32", "float64", "bool", "complex64", "complex128"]
TORCH = [name for name in DTYPES if not name.startswith("uint") or name == "uint8"]


def draw_base(rng: random.Random, dtypes: list[str]) -> np.ndarray:
    shape = [rng.choice([0, 1, 2, 3, 5, 8]) for _ in range(rng.randrange(5))]
    dtype = np.dtype(rng.choice(dtypes))
    count = int(np.prod(shape, dtype=int))
    values = [rng.randrange(120) for _ in range(count)]
    if dtype.kind == "b":
        return np.array([value % 2 == 0 for value in values]).reshape(shape)
    return np.array(values, dtype).reshape(shape)


def draw_views(rng: random.Random, has_negative: bool) -> list[Any]:
    """Steps that numpy and torch both have, each a function of the array."""
    steps: list[Any] = []
    for _ in range(rng.randrange(4)):
        kind = rng.randrange(6)
        pick = rng.random()
        if kind == 0:
            steps.append(lambda a, pick=pick: swap(a, pick))
        elif kind == 1:
            start, step = rng.randrange(3), rng.choice([1, 2, 3, *([-1, -2] * has_negative)])
            steps.append(lambda a, s=start, t=step, pick=pick: cut(a, s, t, pick))
        elif kind == 2:
            steps.append(lambda a, pick=pick: pick_row(a, pick))
        elif kind == 3:
            steps.append(lambda a: a[None])
        elif kind == 4:
            n = rng.randrange(4)
            steps.append(lambda a, n=n: broadcast(a, n))
        else:
            steps.append(lambda a: a.reshape(-1))
    return steps


def swap(a: Any, pick: float) -> Any:
    axes = list(range(a.ndim))
    random.Random(pick).shuffle(axes)
    return a.transpose(axes) if isinstance(a, np.ndarray) else a.permute(axes)


def pick_row(a: Any, pick: float) -> Any:
    return a[int(pick * len(a)), ...] if a.ndim and len(a) else a


def cut(a: Any, start: int, step: int, pick: float) -> Any:
    if not a.ndim:
        return a
    axis = int(pick * a.ndim)
    part = slice(start, None, step) if step > 0 else slice(None, None, step)
    return a[(slice(None),) * axis + (part,)]


def broadcast(a: Any, n: int) -> Any:
    shape = (n, *a.shape)
    return np.broadcast_to(a, shape) if isinstance(a, np.ndarray) else a.expand(shape)


def is_dense(a: np.ndarray) -> bool:
    """Whether the rows lie one after another, each without a gap, in whatever order of its own."""
    if a.size == 0:
        return True
    extents = [(stride, n) for stride, n in zip(a.strides, a.shape, strict=True) if n > 1]
    size = a.itemsize
    for stride, n in sorted(extents):
        if stride != size:
            return False
        size *= n
    rows = [(stride, n) for stride, n in zip(a.strides, a.shape, strict=True)][:1]
    return not rows or rows[0][1] <= 1 or rows[0][0] * rows[0][1] == size


def address_of(tensor: Any) -> int:
    return tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.data_ptr()


def options_of(rng: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.7:
        options["copy"] = rng.choice([None, True, False])
    if rng.random() < 0.5:
        options["layout"] = rng.choice(["auto", "fixed_shape_tensor", "list"])
    if rng.random() < 0.5:
        options["bool_as"] = rng.choice(["bool8", "bits"])
    return options


def check_tensor(
    tensor: Any, model: np.ndarray, options: dict[str, Any], rng: random.Random
) -> None:
    rows = model[None] if model.ndim == 0 else model
    try:
        array = arrowdl.to_arrow_device(tensor, **options)
    except BufferError:
        is_bits = model.dtype == bool and options.get("bool_as") == "bits"
        is_list = options.get("layout") == "list" and model.ndim > 1
        in_order = rows.flags.c_contiguous
        assert options.get("copy") is False, "refused for nothing"
        assert is_bits or not is_dense(rows) or (is_list and not in_order), "refused for nothing"
        return
    assert array.shape == rows.shape
    assert array.dtype == rows.dtype.name
    assert len(array) == len(rows)
    np.testing.assert_array_equal(arrowdl.to_numpy(array), rows)
    if options.get("copy") is False and rows.size and array.schema.format != "b":
        assert np.from_dlpack(array).ctypes.data == address_of(tensor)
    if options.get("copy") is True and rows.size:
        assert arrowdl.to_numpy(array).ctypes.data != address_of(tensor)
    start = rng.randrange(len(rows) + 1)
    part = array[start : rng.randrange(start, len(rows) + 1)]
    np.testing.assert_array_equal(arrowdl.to_numpy(part), rows[start : start + len(part)])
    check_arrow(array, rows, options)


def check_arrow(array: arrowdl.DeviceArray, rows: np.ndarray, options: dict[str, Any]) -> None:
    back = pa.array(array)
    back.validate(full=True)
    if rows.dtype.kind == "c":
        return  # of a type that pyarrow has not
    if options.get("layout") == "list" and rows.dtype != bool:
        assert back.to_pylist() == rows.tolist()
    elif rows.ndim > 1 and isinstance(back.type, pa.FixedShapeTensorType) and rows.dtype != bool:
        shape = list(back.type.shape)
        order = back.type.permutation or list(range(len(shape)))
        storage = np.array(back.storage.to_pylist(), rows.dtype).reshape(len(rows), *shape)
        np.testing.assert_array_equal(storage.transpose(0, *[i + 1 for i in order]), rows)


def check_numpy(rng: random.Random) -> None:
    tensor = draw_base(rng, DTYPES)
    for step in draw_views(rng, has_negative=True):
        tensor = step(tensor)
    check_tensor(tensor, tensor, options_of(rng), rng)


def check_torch(rng: random.Random) -> None:
    model = draw_base(rng, TORCH)
    tensor = torch.from_numpy(model)
    for step in draw_views(rng, has_negative=False):
        model, tensor = step(model), step(tensor)
    assert tensor.shape == model.shape
    check_tensor(tensor, model, options_of(rng), rng)


def test_views_of_numpy() -> None:
    check_cases(check_numpy, 150)


def test_views_of_torch() -> None:
    check_cases(check_torch, 150)


def check_masks(rng: random.Random) -> None:
    model = draw_base(rng, DTYPES[:11])
    for step in draw_views(rng, has_negative=True):
        model = step(model)
    rows = model[None] if model.ndim == 0 else model
    valid = [rng.random() < 0.7 for _ in range(len(rows) + rng.choice([0, 0, 0, 1]))]
    mask: Any = rng.choice([np.array, torch.tensor, pa.array])(valid or np.zeros(0, bool))
    if len(valid) != len(rows):
        with pytest.raises(ValueError, match="mask"):
            arrowdl.to_arrow_device(model, mask=mask)
        return
    array = arrowdl.to_arrow_device(model, mask=mask)
    assert array.null_count == valid.count(False)
    values, back = arrowdl.to_numpy(array, nulls="mask")
    shaped = np.array(valid, bool).reshape(-1, *[1] * (rows.ndim - 1))
    np.testing.assert_array_equal(back, np.broadcast_to(shaped, rows.shape))
    np.testing.assert_array_equal(np.where(back, values, 0), np.where(shaped, rows, 0))
    filled = arrowdl.to_numpy(array, nulls="fill")
    np.testing.assert_array_equal(filled, np.where(shaped, rows, 0).astype(rows.dtype))


def test_masks() -> None:
    check_cases(check_masks, 100)


def check_structs(rng: random.Random) -> None:
    """Dicts in dicts, all of as many rows."""
    count = rng.randrange(6)

    def draw(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.5:
            base = np.array([rng.randrange(100) for _ in range(2 * count)], rng.choice(DTYPES[:11]))
            return base[::2] if rng.random() < 0.5 else base.reshape(count, 2)
        return {name: draw(depth - 1) for name in "ab"[: rng.randrange(1, 3)]}

    tree = {"x": draw(2), "y": draw(1)}
    array = arrowdl.to_arrow_device(tree)
    assert array.field_names == ["x", "y"]
    compare(arrowdl.to_numpy(array), tree)


def compare(made: Any, expected: Any) -> None:
    if not isinstance(expected, dict):
        np.testing.assert_array_equal(made, expected)
        assert made.dtype == expected.dtype
        return
    assert list(made) == list(expected)
    for name, value in expected.items():
        compare(made[name], value)


def test_dicts() -> None:
    check_cases(check_structs, 60)
