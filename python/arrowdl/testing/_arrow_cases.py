"""Arrow columns made by hand, with their values, that a consumer is given."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from arrowdl.testing._raw_arrow import RawArray, RawSchema
from arrowdl.testing._raw_tensor import Memory


@dataclass(frozen=True)
class Column:
    """A column with the values that a consumer should read."""

    name: str
    rule: str  # what a wrong value breaks
    types: tuple[str, ...]  # what a consumer has to have, of `TYPES`
    values: list[Any]
    make: Callable[[], tuple[RawSchema, RawArray]]  # makes the schema and the array

    @property
    def is_common(self) -> bool:
        """Whether every consumer has the type, so that refusing it is an error."""
        return COMMON.issuperset(self.types)


def bits(values: Sequence[object]) -> Memory:
    """A bitmap: bit i is whether `values[i]` is true."""
    packed = bytearray((len(values) + 7) // 8)
    for index, value in enumerate(values):
        packed[index // 8] |= bool(value) << (index % 8)
    return Memory(bytes(packed))


def ints(values: Sequence[int]) -> Memory:
    return Memory.of("i", values)


def primitive(
    format: str, code: str, values: Sequence[Any], **fields: Any
) -> tuple[RawSchema, RawArray]:
    """Without nulls: all of `values` are in the buffer, the rows begin at `offset`."""
    offset = fields.get("offset", 0)
    data = Memory.of(code, values) if values else None
    return RawSchema(format), RawArray(len(values) - offset, [None, data], **fields)


def _late_numbers() -> tuple[RawSchema, RawArray]:
    return primitive("i", "i", [9, 9, 1, 2, 3], offset=2)


def _uncounted() -> tuple[RawSchema, RawArray]:
    return RawSchema("i"), RawArray(3, [bits([1, 1, 1]), ints([1, 2, 3])], null_count=-1)


def _without_data(format: str, rows: int, *buffers: list[int] | None) -> tuple[RawSchema, RawArray]:
    parts = [None if values is None else ints(values) for values in buffers]
    return RawSchema(format), RawArray(rows, [None, *parts])


def _nullable(null_count: int = 2, offset: int = 0) -> tuple[RawSchema, RawArray]:
    """Rows 1, None, 3, None, 5; with an offset of 3, three rows more in front of them."""
    front = [True, False, True][:offset]
    valid = bits([*front, True, False, True, False, True])
    data = ints([*range(-offset, 0), 1, 77, 3, 77, 5])
    return RawSchema("i"), RawArray(5, [valid, data], null_count=null_count, offset=offset)


def _booleans(offset: int = 0) -> tuple[RawSchema, RawArray]:
    front = [False, True, False][:offset]
    data = bits([*front, True, False, True, True])
    return RawSchema("b"), RawArray(4, [None, data], offset=offset)


def _strings(format: str, offset: int = 0) -> tuple[RawSchema, RawArray]:
    code = "i" if format in "uz" else "q"
    offsets = Memory.of(code, [0, 2, 3, 3, 6])
    return RawSchema(format), RawArray(
        4 - offset, [None, offsets, Memory(b"abcxyz")], offset=offset
    )


def _nulls_of_strings() -> tuple[RawSchema, RawArray]:
    offsets, data = ints([0, 2, 2, 3]), Memory(b"abc")
    return RawSchema("u"), RawArray(3, [bits([1, 0, 1]), offsets, data], null_count=1)


def _string_views() -> tuple[RawSchema, RawArray]:
    long = _LONG.encode()
    short = struct.pack("=i12s", 2, b"ab")
    view = struct.pack("=i4sii", len(long), long[:4], 0, 0)
    sizes = Memory.of("q", [len(long)])
    return RawSchema("vu"), RawArray(2, [None, Memory(short + view), Memory(long), sizes])


def _list(offset: int = 0, child_offset: int = 0) -> tuple[RawSchema, RawArray]:
    child = RawArray(6 - child_offset, [None, ints([0, 1, 2, 3, 4, 5])], offset=child_offset)
    offsets = ints([0, 2, 2, 5])
    array = RawArray(3 - offset, [None, offsets], offset=offset, children=[child])
    return RawSchema("+l", children=[RawSchema("i", "item")]), array


def _fixed_list(offset: int = 0, child_offset: int = 0) -> tuple[RawSchema, RawArray]:
    values = [0] * child_offset + [1, 2, 3, 4, 5, 6]
    child = RawArray(6, [None, ints(values)], offset=child_offset)
    array = RawArray(3 - offset, [None], offset=offset, children=[child])
    return RawSchema("+w:2", children=[RawSchema("i", "item")]), array


def _fixed_list_with_nulls_below() -> tuple[RawSchema, RawArray]:
    child = RawArray(4, [bits([1, 0, 1, 1]), ints([1, 77, 3, 4])], null_count=1)
    array = RawArray(2, [None], children=[child])
    return RawSchema("+w:2", children=[RawSchema("i", "item")]), array


def _struct(offset: int = 0, child_offset: int = 0) -> tuple[RawSchema, RawArray]:
    x = RawArray(3, [None, ints([0] * child_offset + [1, 2, 3])], offset=child_offset)
    y = RawArray(3, [None, bits([1, 0, 1])])
    array = RawArray(3 - offset, [None], offset=offset, children=[x, y])
    fields = [RawSchema("i", "x"), RawSchema("b", "y")]
    return RawSchema("+s", children=fields), array


def _null_structs() -> tuple[RawSchema, RawArray]:
    x = RawArray(3, [None, ints([1, 2, 3])])
    array = RawArray(3, [bits([1, 0, 1])], null_count=1, children=[x])
    return RawSchema("+s", children=[RawSchema("i", "x")]), array


def _dictionary(offset: int = 0) -> tuple[RawSchema, RawArray]:
    words = RawArray(2, [None, ints([0, 1, 3]), Memory(b"abb")])
    indices = Memory.of("b", [1, 0, 1, 0])
    array = RawArray(4 - offset, [None, indices], offset=offset, dictionary=words)
    return RawSchema("c", dictionary=RawSchema("u")), array


def _run_ends() -> tuple[RawSchema, RawArray]:
    ends, values = RawArray(2, [None, ints([2, 5])]), RawArray(2, [None, ints([7, 8])])
    fields = [RawSchema("i", "run_ends", flags=0), RawSchema("i", "values")]
    return RawSchema("+r", children=fields), RawArray(5, [], children=[ends, values])


def _empty_list() -> tuple[RawSchema, RawArray]:
    array = RawArray(0, [None, ints([0])], children=[RawArray(0, [None, None])])
    return RawSchema("+l", children=[RawSchema("i", "item")]), array


_NUMBERS: tuple[str, ...] = (
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64"),
)
TYPES: tuple[str, ...] = (
    *_NUMBERS,
    *("bool", "string", "large_string", "string_view", "list", "fixed_size_list", "struct"),
    *("dictionary", "run_end_encoded", "nulls"),
)
"""What a consumer may have: Arrow's types, and nulls in any of them."""
COMMON = frozenset({"int32", "int64", "float64", "bool", "string", "list", "struct", "nulls"})

_READS, _EMPTY = "from-arrow-reads", "from-arrow-empty"
_OFFSET, _NULLS, _NESTED = "from-arrow-offset", "from-arrow-nulls", "from-arrow-nested"
_COUNT = "from-arrow-null-count"
_X1, _X2, _X3 = {"x": 1, "y": True}, {"x": 2, "y": False}, {"x": 3, "y": True}
_LONG = "a text that is longer than twelve bytes"

# Name, rule, types, values, what makes the schema and the array, its arguments.
_ROWS: list[tuple[Any, ...]] = [
    *(
        (f"format {format}", _READS, name, [1, 2, 3], primitive, format, code, [1, 2, 3])
        for name, format, code in zip(_NUMBERS, "cCsSiIlLefg", "bBhHiIqQefd", strict=True)
    ),
    ("booleans", _READS, "bool", [True, False, True, True], _booleans),
    ("strings", _READS, "string", ["ab", "c", "", "xyz"], _strings, "u"),
    ("large strings", _READS, "large_string", ["ab", "c", "", "xyz"], _strings, "U"),
    ("string views", _READS, "string_view", ["ab", _LONG], _string_views),
    ("numbers at an offset", _OFFSET, "int32", [1, 2, 3], _late_numbers),
    ("booleans at an offset", _OFFSET, "bool", [True, False, True, True], _booleans, 3),
    ("strings at an offset", _OFFSET, "string", ["c", "", "xyz"], _strings, "u", 1),
    ("nulls", _NULLS, "int32 nulls", [1, None, 3, None, 5], _nullable),
    ("nulls at an offset", _NULLS, "int32 nulls", [1, None, 3, None, 5], _nullable, 2, 3),
    ("null strings", _NULLS, "string nulls", ["ab", None, "c"], _nulls_of_strings),
    ("nulls not counted", _COUNT, "int32 nulls", [1, None, 3, None, 5], _nullable, -1),
    ("nulls not counted, none there", _COUNT, "int32 nulls", [1, 2, 3], _uncounted),
    ("no rows, NULL buffers", _EMPTY, "int32", [], _without_data, "i", 0, None),
    ("no strings, NULL data", _EMPTY, "string", [], _without_data, "u", 0, [0], None),
    ("empty strings, NULL data", _EMPTY, "string", ["", ""], _without_data,
     "u", 2, [0, 0, 0], None),
    ("no lists", _EMPTY, "list", [], _empty_list),
    ("lists", _READS, "list", [[0, 1], [], [2, 3, 4]], _list),
    ("lists at an offset", _OFFSET, "list", [[], [2, 3, 4]], _list, 1),
    ("lists with a child at an offset", _NESTED, "list", [[1, 2], [], [3, 4, 5]], _list, 0, 1),
    ("fixed-size lists", _READS, "fixed_size_list", [[1, 2], [3, 4], [5, 6]], _fixed_list),
    ("fixed-size lists at an offset", _OFFSET, "fixed_size_list", [[3, 4], [5, 6]], _fixed_list, 1),
    ("fixed-size lists with a child at an offset", _NESTED, "fixed_size_list", [[3, 4], [5, 6]],
     _fixed_list, 1, 3),
    ("nulls in fixed-size lists", _NESTED, "fixed_size_list nulls", [[1, None], [3, 4]],
     _fixed_list_with_nulls_below),
    ("structs", _READS, "struct bool", [_X1, _X2, _X3], _struct),
    ("structs at an offset", _OFFSET, "struct bool", [_X2, _X3], _struct, 1),
    ("structs with a child at an offset", _NESTED, "struct bool", [_X2, _X3], _struct, 1, 2),
    ("null structs", _NESTED, "struct nulls", [{"x": 1}, None, {"x": 3}], _null_structs),
    ("a dictionary", _READS, "dictionary string", ["bb", "a", "bb", "a"], _dictionary),
    ("a dictionary at an offset", _OFFSET, "dictionary string", ["bb", "a"], _dictionary, 2),
    ("run ends", _READS, "run_end_encoded", [7, 7, 8, 8, 8], _run_ends),
]  # fmt: skip

COLUMNS: tuple[Column, ...] = tuple(
    Column(name, rule, tuple(types.split()), values, partial(make, *arguments))
    for name, rule, types, values, make, *arguments in _ROWS
)
"""What a consumer is given, one after the other."""
