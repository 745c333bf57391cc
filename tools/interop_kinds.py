"""The kinds of columns that tools/interop_files.py has written: a table of each."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 1200  # what asks may set another number, before it makes arrays
_SEED = 47

WORDS = ["", "a", "ab", "é", "red", "longer than twelve bytes", "x" * 300]


def _integers(type: Any, low: int | None = None, high: int | None = None) -> Any:
    """All of a type's range, with its ends; or from `low` to `high`."""
    dtype = str(type)
    limits = np.iinfo(dtype)
    low, high = limits.min if low is None else low, limits.max if high is None else high
    values = _draw().integers(low, high, ROWS, dtype, endpoint=True)
    values[:2], values[-2:] = (low, high), (high, low)
    return pa.array(values, type)


def _draw() -> np.random.Generator:
    return np.random.default_rng(_SEED)


def _floats(dtype: str, special: bool = True) -> Any:
    values = _draw().standard_normal(ROWS).astype(dtype)
    if special:
        limits = np.finfo(dtype)
        ends = [
            np.nan,
            np.inf,
            -np.inf,
            -0.0,
            0.0,
            limits.max,
            limits.min,
            limits.smallest_subnormal,
        ]
        values[: len(ends)] = ends
        values[1000 : 1000 + len(ends)] = ends
        values[1100:] = -0.0
    return pa.array(values)


def _times(type: Any, low: int, high: int) -> Any:
    bits = pa.int32() if type.bit_width == 32 else pa.int64()
    values = _draw().integers(low, high, ROWS, str(bits), endpoint=True)
    values[:2], values[-2:] = (low, high), (high, low)
    return pa.array(values, bits).view(type)


def _days(number: int) -> int:
    return number * 86_400_000


def _decimals(type: Any) -> Any:
    random = np.random.default_rng(_SEED)
    digits = random.integers(0, 10, (ROWS, type.precision))
    signs = random.integers(0, 2, ROWS)
    values = [
        decimal.Decimal((int(sign), tuple(map(int, row)), -type.scale))
        for sign, row in zip(signs, digits, strict=True)
    ]
    nines = (9,) * type.precision
    values[:3] = [decimal.Decimal((sign, nines, -type.scale)) for sign in (0, 1, 0)]
    return pa.array(values, type)


def _words(type: Any) -> Any:
    return pa.array([WORDS[i] for i in _draw().integers(0, len(WORDS), ROWS)]).cast(type)


def _texts(type: Any) -> Any:
    """Distinct texts, of no bytes to 400."""
    random = _draw()
    lengths = random.integers(0, 40, ROWS)
    lengths[::97] = 400
    letters = "".join(map(chr, random.integers(32, 0x250, 4000)))
    return pa.array([letters[i : i + int(n)] for i, n in enumerate(lengths)]).cast(type)


def _bytes(type: Any, width: int | None = None) -> Any:
    random = _draw()
    lengths = random.integers(0, 20, ROWS) if width is None else np.full(ROWS, width)
    return pa.array([random.bytes(int(n)) for n in lengths], type)


def _lists(item: Any, most: int = 3) -> list[Any]:
    """Lists of no items to `most` of the values of an array."""
    lengths = _draw().integers(0, most, ROWS, endpoint=True)
    values = item.to_pylist()
    return [[values[(i + j) % len(values)] for j in range(int(n))] for i, n in enumerate(lengths)]


def _list_of(type: Any, item: Any) -> Any:
    return pa.array(_lists(item), type)


def _structs() -> Any:
    return pa.StructArray.from_arrays(
        [_integers(pa.int64()), _words(pa.string()), _floats("float32")], ["a", "b", "c"]
    )


def _tables() -> dict[str, Callable[[], Any]]:
    """Arrays without nulls, by kind."""
    day = 86_400
    made: dict[str, Callable[[], Any]] = {}
    for type in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        made[str(type)] = lambda type=type: _integers(type)
    for type in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        made[str(type)] = lambda type=type: _integers(type)
    made["int32, few values"] = lambda: _integers(pa.int32(), -2, 3)
    made["int64, sorted"] = lambda: pa.array(np.sort(_integers(pa.int64()).to_numpy()))
    made["int64, far apart"] = lambda: pa.array([-(2**63), 2**63 - 1] * (ROWS // 2))
    made["int64, all equal"] = lambda: pa.array([7] * ROWS)
    for dtype in ("float16", "float32", "float64"):
        made[dtype] = lambda dtype=dtype: _floats(dtype)
    made["float64, finite"] = lambda: _floats("float64", special=False)
    made["bool"] = lambda: pa.array(_draw().random(ROWS) < 0.5)
    made["bool, in runs"] = lambda: pa.array(np.arange(ROWS) // 300 % 2 == 0)
    for type in (pa.string(), pa.large_string(), pa.string_view()):
        made[str(type)] = lambda type=type: _words(type)
    made["string, distinct"] = lambda: _texts(pa.string())
    made["string, empty"] = lambda: pa.array([""] * ROWS)
    for type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        made[str(type)] = lambda type=type: _bytes(type)
    made["fixed_size_binary[5]"] = lambda: _bytes(pa.binary(5), 5)
    made["fixed_size_binary[100]"] = lambda: _bytes(pa.binary(100), 100)
    made["date32"] = lambda: _times(pa.date32(), -719_162, 2_932_896)  # years 1 to 9999
    made["date64"] = lambda: pa.array(
        _integers(pa.int64(), -25_000, 60_000).to_numpy() * _days(1), pa.date64()
    )
    for unit, power in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9)):
        low, high = (-9_223_372_036, 9_223_372_036)
        if unit != "ns":
            low, high = -719_162 * day, 2_932_896 * day
        limits = low * 10**power, high * 10**power
        for zone in (None, "UTC") if unit != "ms" else (None, "Europe/Paris"):
            type = pa.timestamp(unit, zone)
            made[str(type)] = lambda type=type, limits=limits: _times(type, *limits)
    made["time32[s]"] = lambda: _times(pa.time32("s"), 0, day - 1)
    made["time32[ms]"] = lambda: _times(pa.time32("ms"), 0, day * 10**3 - 1)
    made["time64[us]"] = lambda: _times(pa.time64("us"), 0, day * 10**6 - 1)
    made["time64[ns]"] = lambda: _times(pa.time64("ns"), 0, day * 10**9 - 1)
    made["duration[us]"] = lambda: _times(pa.duration("us"), -(10**15), 10**15)
    made["duration[ns]"] = lambda: _times(pa.duration("ns"), 0, 10**18)
    for type in (
        *(pa.decimal32(5, 2), pa.decimal64(15, 3), pa.decimal128(9, 2), pa.decimal128(18, 0)),
        *(pa.decimal128(38, 10), pa.decimal256(60, 5)),
    ):
        made[str(type)] = lambda type=type: _decimals(type)
    made["list<int64>"] = lambda: _list_of(pa.list_(pa.int64()), _integers(pa.int64()))
    made["list<int64>, null items"] = lambda: _list_of(
        pa.list_(pa.int64()), _keep(_integers(pa.int64()), np.arange(ROWS) % 3 > 0)
    )
    made["large_list<float>"] = lambda: _list_of(pa.large_list(pa.float32()), _floats("float32"))
    made["list<string>"] = lambda: _list_of(pa.list_(pa.string()), _words(pa.string()))
    made["list<list<int32>>"] = lambda: _list_of(
        pa.list_(pa.list_(pa.int32())), _list_of(pa.list_(pa.int32()), _integers(pa.int32()))
    )
    made["list<struct>"] = lambda: _list_of(pa.list_(_structs().type), _structs())
    made["list_view<int64>"] = lambda: _list_of(pa.list_view(pa.int64()), _integers(pa.int64()))
    made["fixed_size_list<float>[3]"] = lambda: pa.FixedSizeListArray.from_arrays(
        pa.array(_draw().random(ROWS * 3, "float32")), 3
    )
    made["fixed_size_list<float>[3], null items"] = lambda: pa.FixedSizeListArray.from_arrays(
        _keep(pa.array(_draw().random(ROWS * 3, "float32")), np.arange(ROWS * 3) % 6 != 4), 3
    )
    made["struct"] = _structs
    made["struct<struct>"] = lambda: pa.StructArray.from_arrays([_structs()], ["s"])
    made["map<string, int64>"] = lambda: pa.array(
        [
            [(f"k{i}", i * len(row)) for i in range(len(row))]
            for row in _lists(_integers(pa.int64()))
        ],
        pa.map_(pa.string(), pa.int64()),
    )
    made["dictionary<int32, string>"] = lambda: _words(pa.string()).dictionary_encode()
    made["dictionary<int8, string>"] = lambda: (
        _words(pa.string()).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    )
    made["null"] = lambda: pa.nulls(ROWS)
    return made


KINDS = _tables()


def make_table(kind: str) -> Any:
    """Return id, full (no nulls), some (a quarter is null), few (rarely valid), none (all null)."""
    full = KINDS[kind]()
    numbers = np.arange(ROWS)
    valid = {
        "some": np.random.default_rng(7).random(ROWS) < 0.75,
        "few": numbers % 1013 == 5,
        "none": numbers < 0,
    }
    columns = {"id": pa.array(numbers), "full": full}
    columns |= {name: _keep(full, mask) for name, mask in valid.items()}
    is_null = pa.types.is_null(full.type)
    fields = [
        pa.field(name, array.type, is_null or name not in ("id", "full"))
        for name, array in columns.items()
    ]
    return pa.table(list(columns.values()), pa.schema(fields))


def _keep(array: Any, mask: Any) -> Any:
    """Return the values of an array where `mask` is True, and nulls elsewhere."""
    try:
        return array.take(pa.array(np.arange(len(array)), mask=~mask))
    except pa.ArrowNotImplementedError:  # of views
        values = [
            value if keep else None for value, keep in zip(array.to_pylist(), mask, strict=True)
        ]
        return pa.array(values, array.type)
