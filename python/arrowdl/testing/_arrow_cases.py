"""Arrow columns made by hand, with their values, that a consumer is given."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from arrowdl.testing._made_arrow import MadeArray, MadeSchema
from arrowdl.testing._made_tensor import Memory


@dataclass(frozen=True)
class Column:
    """A column with the values that a consumer should read."""

    name: str
    rule: str  # what a wrong value breaks
    types: tuple[str, ...]  # what a consumer has to have, of `TYPES`
    values: list[Any]
    make: Callable[[], tuple[MadeSchema, MadeArray]]  # makes the schema and the array

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
) -> tuple[MadeSchema, MadeArray]:
    """Without nulls: all of `values` are in the buffer, the rows begin at `offset`."""
    offset = fields.get("offset", 0)
    data = Memory.of(code, values) if values else None
    return MadeSchema(format), MadeArray(len(values) - offset, [None, data], **fields)


def _late_numbers() -> tuple[MadeSchema, MadeArray]:
    return primitive("i", "i", [9, 9, 1, 2, 3], offset=2)


def _uncounted() -> tuple[MadeSchema, MadeArray]:
    return MadeSchema("i"), MadeArray(3, [bits([1, 1, 1]), ints([1, 2, 3])], null_count=-1)


def _without_data(
    format: str, rows: int, *buffers: list[int] | None
) -> tuple[MadeSchema, MadeArray]:
    parts = [None if values is None else ints(values) for values in buffers]
    return MadeSchema(format), MadeArray(rows, [None, *parts])


def _nullable(null_count: int = 2, offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    """Rows 1, None, 3, None, 5; with an offset of 3, three rows more in front of them."""
    front = [True, False, True][:offset]
    valid = bits([*front, True, False, True, False, True])
    data = ints([*range(-offset, 0), 1, 77, 3, 77, 5])
    return MadeSchema("i"), MadeArray(5, [valid, data], null_count=null_count, offset=offset)


def _booleans(offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    front = [False, True, False][:offset]
    data = bits([*front, True, False, True, True])
    return MadeSchema("b"), MadeArray(4, [None, data], offset=offset)


def _strings(format: str, offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    code = "i" if format in "uz" else "q"
    offsets = Memory.of(code, [0, 2, 3, 3, 6])
    return MadeSchema(format), MadeArray(
        4 - offset, [None, offsets, Memory(b"abcxyz")], offset=offset
    )


def _nulls_of_strings() -> tuple[MadeSchema, MadeArray]:
    offsets, data = ints([0, 2, 2, 3]), Memory(b"abc")
    return MadeSchema("u"), MadeArray(3, [bits([1, 0, 1]), offsets, data], null_count=1)


def _string_views() -> tuple[MadeSchema, MadeArray]:
    long = _LONG.encode()
    short = struct.pack("=i12s", 2, b"ab")
    view = struct.pack("=i4sii", len(long), long[:4], 0, 0)
    sizes = Memory.of("q", [len(long)])
    return MadeSchema("vu"), MadeArray(2, [None, Memory(short + view), Memory(long), sizes])


def _list(offset: int = 0, child_offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    child = MadeArray(6 - child_offset, [None, ints([0, 1, 2, 3, 4, 5])], offset=child_offset)
    offsets = ints([0, 2, 2, 5])
    array = MadeArray(3 - offset, [None, offsets], offset=offset, children=[child])
    return MadeSchema("+l", children=[MadeSchema("i", "item")]), array


def _fixed_list(offset: int = 0, child_offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    values = [0] * child_offset + [1, 2, 3, 4, 5, 6]
    child = MadeArray(6, [None, ints(values)], offset=child_offset)
    array = MadeArray(3 - offset, [None], offset=offset, children=[child])
    return MadeSchema("+w:2", children=[MadeSchema("i", "item")]), array


def _fixed_list_with_nulls_below() -> tuple[MadeSchema, MadeArray]:
    child = MadeArray(4, [bits([1, 0, 1, 1]), ints([1, 77, 3, 4])], null_count=1)
    array = MadeArray(2, [None], children=[child])
    return MadeSchema("+w:2", children=[MadeSchema("i", "item")]), array


def _struct(offset: int = 0, child_offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    x = MadeArray(3, [None, ints([0] * child_offset + [1, 2, 3])], offset=child_offset)
    y = MadeArray(3, [None, bits([1, 0, 1])])
    array = MadeArray(3 - offset, [None], offset=offset, children=[x, y])
    fields = [MadeSchema("i", "x"), MadeSchema("b", "y")]
    return MadeSchema("+s", children=fields), array


def _null_structs() -> tuple[MadeSchema, MadeArray]:
    x = MadeArray(3, [None, ints([1, 2, 3])])
    array = MadeArray(3, [bits([1, 0, 1])], null_count=1, children=[x])
    return MadeSchema("+s", children=[MadeSchema("i", "x")]), array


def _dictionary(offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    words = MadeArray(2, [None, ints([0, 1, 3]), Memory(b"abb")])
    indices = Memory.of("b", [1, 0, 1, 0])
    array = MadeArray(4 - offset, [None, indices], offset=offset, dictionary=words)
    return MadeSchema("c", dictionary=MadeSchema("u")), array


def _run_ends() -> tuple[MadeSchema, MadeArray]:
    ends, values = MadeArray(2, [None, ints([2, 5])]), MadeArray(2, [None, ints([7, 8])])
    fields = [MadeSchema("i", "run_ends", flags=0), MadeSchema("i", "values")]
    return MadeSchema("+r", children=fields), MadeArray(5, [], children=[ends, values])


def _empty_list() -> tuple[MadeSchema, MadeArray]:
    array = MadeArray(0, [None, ints([0])], children=[MadeArray(0, [None, None])])
    return MadeSchema("+l", children=[MadeSchema("i", "item")]), array


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
