"""Random frames of the dataframe interchange protocol, beside lists of their values."""

from __future__ import annotations

import math
import random
from typing import Any

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.frames import (
    BOOL,
    CATEGORICAL,
    STRING,
    USE_BITMASK,
    USE_BYTEMASK,
    USE_NAN,
    USE_SENTINEL,
    MadeColumn,
    MadeFrame,
    OnlyDataFrame,
)
from helpers.random_arrays import draw_values, lay_out
from helpers.random_cases import check_cases

pytestmark = [
    pytest.mark.filterwarnings("ignore:The Dataframe Interchange Protocol is deprecated"),
    pytest.mark.filterwarnings("ignore:Constructing a Categorical"),  # of nulls alone, pandas' own
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),  # pandas 3.1's own use
]

Columns = dict[str, list[Any]]
KINDS = [
    *(pa.int8(), pa.int64(), pa.uint16(), pa.uint64(), pa.float32(), pa.float64()),
    *(pa.bool_(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())),
]


def draw_table(rng: random.Random, kinds: list[pa.DataType]) -> tuple[pa.Table, Columns]:
    """In chunks that begin somewhere in their buffers. Columns have nulls, or have none at all."""
    types = {f"c{i}": rng.choice(kinds) for i in range(rng.randrange(1, 4))}
    columns: Columns = {name: [] for name in types}
    nulls = {name: rng.choice([0, 0, 0.3, 1]) for name in types}
    batches = []
    for _ in range(rng.randrange(1, 4)):
        count = rng.choice([0, 1, 3, 9])
        arrays = []
        for name, kind in types.items():
            values = draw_values(rng, kind, count, nulls[name])
            arrays.append(lay_out(rng, kind, values))
            columns[name] += values
        batches.append(pa.record_batch(arrays, names=list(types)))
    return pa.Table.from_batches(batches), columns


def columns_of(array: arrowdl.DeviceArray) -> Columns:
    back = pa.array(array)
    return {field.name: to_list(back.field(i)) for i, field in enumerate(back.type)}


def to_list(array: pa.Array) -> list[Any]:
    array = array.storage.cast(pa.bool_()) if isinstance(array.type, pa.Bool8Type) else array
    return array.to_pylist()


def is_null(value: Any) -> bool:
    return bool(pd.isna(value))


def check_in(rng: random.Random) -> None:
    table, columns = draw_table(rng, KINDS)
    given = table if rng.random() < 0.5 else table.combine_chunks()
    taken = arrowdl.from_arrow(OnlyDataFrame(given))
    assert columns_of(taken) == columns
    frame = pd.DataFrame({name: draw_pandas(rng, len(table)) for name in columns})
    expected = {
        name: [None if is_null(v) else v for v in frame[name].tolist()] for name in frame.columns
    }
    start = rng.randrange(len(frame) + 1)
    part = frame[start:].reset_index(drop=True)
    for whole, rows in (frame, slice(None)), (part, slice(start, None)):
        read = columns_of(arrowdl.from_arrow(OnlyDataFrame(whole)))
        assert read == {name: values[rows] for name, values in expected.items()}


def draw_pandas(rng: random.Random, count: int) -> Any:
    """A column of pandas' own kinds, which mark nulls in four ways."""
    kind = rng.randrange(6)
    numbers = [rng.randrange(-100, 100) for _ in range(count)]
    holes = [None if rng.random() < 0.3 else number for number in numbers]
    if kind == 0:
        return np.array(numbers, rng.choice(["int8", "int32", "int64", "float64"]))
    if kind == 1:
        return np.array([math.nan if hole is None else hole for hole in holes], "float64")
    if kind == 2:
        return pd.array(holes, rng.choice(["Int8", "Int64", "Float32"]))
    if kind == 3:
        return pd.Series(
            [None if hole is None else "x" * (hole % 4) for hole in holes], dtype="str"
        )
    if kind == 4:
        return pd.Categorical([None if hole is None else f"v{hole % 3}" for hole in holes])
    return np.array([number % 2 == 0 for number in numbers], bool)


def test_frames_come_in() -> None:
    check_cases(check_in, 60)


def check_made(rng: random.Random) -> None:
    """Columns by hand, with nulls in each way that the protocol has, behind an offset."""
    count, before = rng.randrange(9), rng.randrange(9)
    total = before + count
    valid = [rng.random() < 0.7 for _ in range(total)]
    names = ["nan", "sentinel", "bytes", "bits", "text", "codes"]
    chosen = rng.sample(names, rng.randrange(1, 4))
    made = {name: make_column(rng, name, valid, before) for name in chosen}
    taken = arrowdl.from_arrow(MadeFrame({name: column for name, (column, _) in made.items()}))
    expected = {
        name: [value if ok else None for value, ok in zip(values, valid, strict=True)][before:]
        for name, (_, values) in made.items()
    }
    assert columns_of(taken) == expected
    for name in chosen:
        assert taken.field(name).null_count == expected[name].count(None)


def make_column(
    rng: random.Random, name: str, valid: list[bool], before: int
) -> tuple[MadeColumn, list[Any]]:
    total = len(valid)
    null_is = rng.randrange(2)
    marks = [ok != (null_is == 1) for ok in valid]  # 1 where the mask has a bit
    numbers = [rng.randrange(100) for _ in range(total)]
    by = rng.choice(["dlpack", "address"])
    common: dict[str, Any] = {"size": total - before, "offset": before, "by": by}
    if name == "nan":
        data = np.array([n if ok else math.nan for n, ok in zip(numbers, valid, strict=True)], "f8")
        return MadeColumn(data, null=(USE_NAN, None), **common), [float(n) for n in numbers]
    if name == "sentinel":
        data = np.array([n if ok else -1 for n, ok in zip(numbers, valid, strict=True)], "int16")
        return MadeColumn(data, null=(USE_SENTINEL, -1), **common), numbers
    if name == "bytes":
        mask = np.array([mark * rng.choice([1, 1, 255]) for mark in marks], "uint8")
        made = MadeColumn(np.array(numbers), null=(USE_BYTEMASK, null_is), validity=mask, **common)
        return made, numbers
    bits = np.zeros(total // 8 + 1, "uint8")
    for i, mark in enumerate(marks):
        bits[i // 8] |= mark << (i % 8)
    null = {"null": (USE_BITMASK, null_is), "validity": bits}
    if name == "bits":
        packed = np.zeros(total // 8 + 1, "uint8")
        for i, number in enumerate(numbers):
            packed[i // 8] |= (number % 2) << (i % 8)
        made = MadeColumn(packed, dtype=(BOOL, 1, "b", "="), **null, **common)
        return made, [number % 2 == 1 for number in numbers]
    if name == "text":
        texts = ["\u00e9" * (number % 4) for number in numbers]
        ends = np.cumsum([0, *(len(text.encode()) for text in texts)])
        made = MadeColumn(
            np.frombuffer("".join(texts).encode() or b"?", "uint8").copy(),
            dtype=(STRING, 8, "u", "="),
            offsets=ends.astype(rng.choice(["int32", "int64"])),
            **null,
            **common,
        )
        return made, texts
    categories = [f"v{i}" for i in range(5)]
    description = {
        "is_ordered": False,
        "is_dictionary": True,
        "categories": text_column(categories),
    }
    codes = np.array([number % 5 for number in numbers], rng.choice(["int8", "uint16", "int64"]))
    made = MadeColumn(
        codes,
        dtype=(CATEGORICAL, codes.itemsize * 8, "l", "="),
        categorical=description,
        **null,
        **common,
    )
    return made, [categories[number % 5] for number in numbers]


def text_column(texts: list[str]) -> MadeColumn:
    ends = np.cumsum([0, *map(len, texts)]).astype("int32")
    data = np.frombuffer("".join(texts).encode(), "uint8").copy()
    return MadeColumn(data, dtype=(STRING, 8, "u", "="), size=len(texts), offsets=ends)


def test_frames_made_by_hand() -> None:
    check_cases(check_made, 120)
