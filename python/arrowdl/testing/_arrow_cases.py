"""Arrow columns made by hand, with their values, that a consumer is given."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from arrowdl.testing._made_arrow import MadeArray, MadeSchema
from arrowdl.testing._made_tensor import Memory


@dataclass(frozen=True)
class Column:
    """A column with the values that a consumer should read."""

    name: str
    rule: str  # what a wrong value breaks
    common: bool  # whether every consumer has the type, so that refusing it is an error
    make: Callable[[], tuple[MadeSchema, MadeArray]]  # makes the schema and the array
    values: list[Any]
    types: tuple[str, ...] = ("int32",)  # what a consumer has to have, of `TYPES`


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


def _nullable(null_count: int = 2, offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    """Rows 1, None, 3, None, 5; with an offset of 3, three rows more in front of them."""
    front = [True, False, True][:offset]
    valid = bits([*front, True, False, True, False, True])
    data = ints([*range(-offset, 0), 1, 77, 3, 77, 5])
    return MadeSchema("i"), MadeArray(5, [valid, data], null_count=null_count, offset=offset)


def _booleans(offset: int) -> tuple[MadeSchema, MadeArray]:
    front = [False, True, False][:offset]
    data = bits([*front, True, False, True, True])
    return MadeSchema("b"), MadeArray(4, [None, data], offset=offset)


def _strings(format: str, offset: int = 0) -> tuple[MadeSchema, MadeArray]:
    code = "i" if format in "uz" else "q"
    offsets = Memory.of(code, [0, 2, 3, 3, 6])
    array = MadeArray(4 - offset, [None, offsets, Memory(b"ab\xc3\xa9xyz"[:2] + b"cxyz")])
    array.struct.offset = offset
    return MadeSchema(format), array


def _nulls_of_strings() -> tuple[MadeSchema, MadeArray]:
    offsets, data = ints([0, 2, 2, 3]), Memory(b"abc")
    return MadeSchema("u"), MadeArray(3, [bits([1, 0, 1]), offsets, data], null_count=1)


def _string_views() -> tuple[MadeSchema, MadeArray]:
    long = b"a text that is longer than twelve bytes"
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


def _numbers() -> list[Column]:
    kinds = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q"}
    kinds |= {"e": "e", "f": "f", "g": "d"}
    return [
        Column(
            f"format {format}",
            "from-arrow-reads",
            format in "ilg",
            lambda format=format, code=code: primitive(format, code, [1, 2, 3]),  # type: ignore[misc]
            [1, 2, 3],
            (name,),
        )
        for (format, code), name in zip(kinds.items(), _NUMBERS, strict=True)
    ]


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

_OFFSET, _NULLS, _NESTED = "from-arrow-offset", "from-arrow-nulls", "from-arrow-nested"

COLUMNS: tuple[Column, ...] = (
    *_numbers(),
    Column(
        "booleans",
        "from-arrow-reads",
        True,
        lambda: _booleans(0),
        [True, False, True, True],
        types=("bool",),
    ),
    Column(
        "strings",
        "from-arrow-reads",
        True,
        lambda: _strings("u"),
        ["ab", "c", "", "xyz"],
        types=("string",),
    ),
    Column(
        "large strings",
        "from-arrow-reads",
        False,
        lambda: _strings("U"),
        ["ab", "c", "", "xyz"],
        types=("large_string",),
    ),
    Column(
        "string views",
        "from-arrow-reads",
        False,
        _string_views,
        ["ab", "a text that is longer than twelve bytes"],
        types=("string_view",),
    ),
    Column(
        "numbers at an offset",
        _OFFSET,
        True,
        lambda: primitive("i", "i", [9, 9, 1, 2, 3], offset=2),
        [1, 2, 3],
    ),
    Column(
        "booleans at an offset",
        _OFFSET,
        True,
        lambda: _booleans(3),
        [True, False, True, True],
        types=("bool",),
    ),
    Column(
        "strings at an offset",
        _OFFSET,
        True,
        lambda: _strings("u", 1),
        ["c", "", "xyz"],
        types=("string",),
    ),
    Column("nulls", _NULLS, True, _nullable, [1, None, 3, None, 5], types=("int32", "nulls")),
    Column(
        "nulls at an offset",
        _NULLS,
        True,
        lambda: _nullable(offset=3),
        [1, None, 3, None, 5],
        types=("int32", "nulls"),
    ),
    Column(
        "null strings",
        _NULLS,
        True,
        _nulls_of_strings,
        ["ab", None, "c"],
        types=("string", "nulls"),
    ),
    Column(
        "nulls not counted",
        "from-arrow-null-count",
        True,
        lambda: _nullable(-1),
        [1, None, 3, None, 5],
        types=("int32", "nulls"),
    ),
    Column(
        "nulls not counted, none there",
        "from-arrow-null-count",
        True,
        lambda: (
            MadeSchema("i"),
            MadeArray(3, [bits([1, 1, 1]), ints([1, 2, 3])], null_count=-1),
        ),
        [1, 2, 3],
        types=("int32", "nulls"),
    ),
    Column(
        "no rows, NULL buffers",
        "from-arrow-empty",
        True,
        lambda: (MadeSchema("i"), MadeArray(0, [None, None])),
        [],
    ),
    Column(
        "no strings, NULL data",
        "from-arrow-empty",
        True,
        lambda: (MadeSchema("u"), MadeArray(0, [None, ints([0]), None])),
        [],
        types=("string",),
    ),
    Column(
        "empty strings, NULL data",
        "from-arrow-empty",
        True,
        lambda: (MadeSchema("u"), MadeArray(2, [None, ints([0, 0, 0]), None])),
        ["", ""],
        types=("string",),
    ),
    Column("no lists", "from-arrow-empty", True, _empty_list, [], types=("list",)),
    Column("lists", "from-arrow-reads", True, _list, [[0, 1], [], [2, 3, 4]], types=("list",)),
    Column("lists at an offset", _OFFSET, True, lambda: _list(1), [[], [2, 3, 4]], types=("list",)),
    Column(
        "lists with a child at an offset",
        _NESTED,
        True,
        lambda: _list(0, 1),
        [[1, 2], [], [3, 4, 5]],
        types=("list",),
    ),
    Column(
        "fixed-size lists",
        "from-arrow-reads",
        False,
        _fixed_list,
        [[1, 2], [3, 4], [5, 6]],
        types=("fixed_size_list",),
    ),
    Column(
        "fixed-size lists at an offset",
        _OFFSET,
        False,
        lambda: _fixed_list(1),
        [[3, 4], [5, 6]],
        types=("fixed_size_list",),
    ),
    Column(
        "fixed-size lists with a child at an offset",
        _NESTED,
        False,
        lambda: _fixed_list(1, 3),
        [[3, 4], [5, 6]],
        types=("fixed_size_list",),
    ),
    Column(
        "nulls in fixed-size lists",
        _NESTED,
        False,
        _fixed_list_with_nulls_below,
        [[1, None], [3, 4]],
        types=("fixed_size_list", "nulls"),
    ),
    Column(
        "structs",
        "from-arrow-reads",
        True,
        _struct,
        [{"x": 1, "y": True}, {"x": 2, "y": False}, {"x": 3, "y": True}],
        types=("struct", "bool"),
    ),
    Column(
        "structs at an offset",
        _OFFSET,
        True,
        lambda: _struct(1),
        [{"x": 2, "y": False}, {"x": 3, "y": True}],
        types=("struct", "bool"),
    ),
    Column(
        "structs with a child at an offset",
        _NESTED,
        True,
        lambda: _struct(1, 2),
        [{"x": 2, "y": False}, {"x": 3, "y": True}],
        types=("struct", "bool"),
    ),
    Column(
        "null structs",
        _NESTED,
        True,
        _null_structs,
        [{"x": 1}, None, {"x": 3}],
        types=("struct", "nulls"),
    ),
    Column(
        "a dictionary",
        "from-arrow-reads",
        False,
        _dictionary,
        ["bb", "a", "bb", "a"],
        types=("dictionary", "string"),
    ),
    Column(
        "a dictionary at an offset",
        _OFFSET,
        False,
        lambda: _dictionary(2),
        ["bb", "a"],
        types=("dictionary", "string"),
    ),
    Column(
        "run ends",
        "from-arrow-reads",
        False,
        _run_ends,
        [7, 7, 8, 8, 8],
        types=("run_end_encoded",),
    ),
)
"""What a consumer is given, one after the other."""
