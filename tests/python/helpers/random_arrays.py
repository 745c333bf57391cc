"""Random Arrow arrays as pyarrow builds them, each beside the Python list of its values.

The list comes first; the array is laid out for it in one of the ways that the type allows: behind
offsets, with rubbish under nulls and around rows, in runs, by codes that repeat.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float32(), pa.float64()]
BYTES = [pa.string(), pa.large_string(), pa.binary(), pa.string_view(), pa.binary_view()]
LEAVES = [*INTEGERS, *FLOATS, pa.bool_(), *BYTES, pa.binary(3), pa.binary(0), pa.null()]


def draw_type(rng: random.Random, depth: int = 3) -> pa.DataType:
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(LEAVES)
    item = draw_type(rng, depth - 1)
    kind = rng.randrange(9)
    if kind < 4:
        return [pa.list_, pa.large_list, pa.list_view, pa.large_list_view][kind](item)
    if kind == 4:
        return pa.list_(item, rng.randrange(4))
    if kind == 5:
        names = ["a", "b", ""][: rng.randrange(1, 4)]
        return pa.struct([(name, draw_type(rng, depth - 1)) for name in names])
    if kind == 6:
        return pa.dictionary(rng.choice([pa.int8(), pa.uint16(), pa.int64()]), draw_plain(rng))
    if kind == 7:
        return pa.run_end_encoded(rng.choice([pa.int16(), pa.int32(), pa.int64()]), draw_plain(rng))
    return pa.map_(rng.choice([pa.int8(), pa.string()]), item)


def draw_plain(rng: random.Random) -> pa.DataType:
    return rng.choice([pa.int32(), pa.float64(), pa.string(), pa.bool_(), pa.binary(2)])


def draw_value(rng: random.Random, type: pa.DataType, nulls: float) -> Any:
    """A value that is not null itself; `nulls` is how likely those inside of it are."""
    types = pa.types
    if types.is_integer(type):
        low = 0 if types.is_unsigned_integer(type) else -(2 ** (type.bit_width - 1))
        edges = [low, low + 2**type.bit_width - 1, 0, 1]
        return rng.choice([*edges, rng.randrange(low, low + 2**type.bit_width)])
    if types.is_floating(type):
        return rng.choice([0.0, -1.5, 2.0**20, float("inf"), rng.randrange(-100, 100) / 4])
    if types.is_boolean(type):
        return rng.random() < 0.5
    if types.is_fixed_size_binary(type):
        return rng.randbytes(type.byte_width)
    if type in BYTES:
        text = "".join(rng.choice("ab\u00e9") for _ in range(rng.choice([0, 1, 3, 12, 13, 30])))
        is_text = types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)
        return text if is_text else text.encode()
    if types.is_struct(type):
        return {field.name: draw_item(rng, field.type, nulls) for field in type}
    if types.is_map(type):
        keys = draw_values(rng, type.key_type, rng.randrange(3), 0)
        return [(key, draw_item(rng, type.item_type, nulls)) for key in keys]
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return draw_value(rng, type.value_type, nulls)
    size = type.list_size if types.is_fixed_size_list(type) else rng.randrange(4)
    return draw_values(rng, type.value_type, size, nulls)


def draw_item(rng: random.Random, type: pa.DataType, nulls: float) -> Any:
    if pa.types.is_null(type) or rng.random() < nulls:
        return None
    return draw_value(rng, type, nulls)


def draw_values(rng: random.Random, type: pa.DataType, count: int, nulls: float) -> list[Any]:
    return [draw_item(rng, type, nulls) for _ in range(count)]


def lay_out(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    """`values` as an array of `type`, which begins somewhere in its buffers."""
    before = draw_values(rng, type, rng.randrange(3), 0.3)
    after = draw_values(rng, type, rng.randrange(3), 0.3)
    array = _build(rng, type, [*before, *values, *after])
    return array.slice(len(before), len(values))


def _build(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    types = pa.types
    if types.is_struct(type):
        return _build_struct(rng, type, values)
    if types.is_fixed_size_list(type):
        return _build_fixed(rng, type, values)
    if types.is_list_view(type) or types.is_large_list_view(type):
        return _build_views(rng, type, values)
    if types.is_map(type) or types.is_list(type) or types.is_large_list(type):
        return _build_lists(rng, type, values)
    if types.is_dictionary(type):
        return _build_codes(rng, type, values)
    if types.is_run_end_encoded(type):
        return _build_runs(rng, type, values)
    return pa.array(values, type)


def _mask(values: list[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _build_struct(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    children = []
    for field in type:
        column = [
            draw_item(rng, field.type, 0.3) if value is None else value[field.name]
            for value in values
        ]
        children.append(lay_out(rng, field.type, column))
    return pa.StructArray.from_arrays(children, fields=list(type), mask=_mask(values))


def _build_fixed(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    flat: list[Any] = []
    for value in values:
        rubbish = draw_values(rng, type.value_type, type.list_size, 0.3)
        flat += rubbish if value is None else value
    child = lay_out(rng, type.value_type, flat)
    bitmap = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(type, len(values), [bitmap], children=[child])


def _build_lists(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    """Null rows may hold items, and items may lie before the first row and after the last."""
    item = type.value_type if not pa.types.is_map(type) else None
    draw = (
        (lambda n: draw_values(rng, item, n, 0.3))
        if item is not None
        else lambda n: [x for _ in range(n) for x in draw_value(rng, type, 0.3)]
    )
    flat = draw(rng.randrange(3))
    offsets = [len(flat)]
    for value in values:
        flat += draw(rng.choice([0, 0, 2])) if value is None else value
        offsets.append(len(flat))
    flat += draw(rng.randrange(3))
    width = pa.int64() if pa.types.is_large_list(type) else pa.int32()
    ends = pa.array(offsets, width).buffers()[1]
    bitmap = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
    if item is not None:
        child = lay_out(rng, item, flat)
    else:
        keys = lay_out(rng, type.key_type, [key for key, _ in flat])
        assert keys.null_count == 0  # pyarrow 25 aborts if that has not been counted
        items = lay_out(rng, type.item_type, [value for _, value in flat])
        fields = [type.key_field, type.item_field]
        child = pa.StructArray.from_arrays([keys, items], fields=fields)
    return pa.Array.from_buffers(type, len(values), [bitmap, ends], children=[child])


def _build_views(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    """Rows lie in any order, with gaps."""
    flat: list[Any] = []
    places = [(0, 0)] * len(values)
    for i in rng.sample(range(len(values)), len(values)):
        flat += draw_values(rng, type.value_type, rng.randrange(2), 0.3)
        if values[i] is not None:
            places[i] = (len(flat), len(values[i]))
            flat += values[i]
    width = pa.int32() if pa.types.is_list_view(type) else pa.int64()
    buffers = [pa.array([place[j] for place in places], width).buffers()[1] for j in (0, 1)]
    bitmap = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
    child = lay_out(rng, type.value_type, flat)
    return pa.Array.from_buffers(type, len(values), [bitmap, *buffers], children=[child])


def _build_codes(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    """Values may be there twice, or for no row."""
    known: list[Any] = draw_values(rng, type.value_type, rng.randrange(3), 0)
    codes: list[int | None] = []
    for value in values:
        if value is None:
            codes.append(None)
            continue
        found = [i for i, one in enumerate(known) if one == value]
        if not found or rng.random() < 0.2:
            found = [len(known)]
            known.append(value)
        codes.append(rng.choice(found))
    return pa.DictionaryArray.from_arrays(
        lay_out(rng, type.index_type, codes), lay_out(rng, type.value_type, known)
    )


def _build_runs(rng: random.Random, type: pa.DataType, values: list[Any]) -> pa.Array:
    """Equal neighbours may be one run or two."""
    ends: list[int] = []
    runs: list[Any] = []
    for i, value in enumerate(values):
        if runs and runs[-1] == value and rng.random() < 0.8:
            ends[-1] = i + 1
        else:
            runs.append(value)
            ends.append(i + 1)
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(ends, type.run_end_type), lay_out(rng, type.value_type, runs)
    )
