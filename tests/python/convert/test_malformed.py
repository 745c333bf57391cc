"""Malformed input from outside: an error, no crash, everything released once."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from arrowdl.testing._raw_arrow import RawStream
from helpers.arrow import (
    ArrowArray,
    ArrowDeviceArray,
    ArrowSchema,
    MadeArray,
    MadeDeviceArray,
    MadeSchema,
    list_releases,
)
from helpers.capsules import make_capsule
from helpers.dlpack import MadeTensor
from helpers.processes import run_python

DATA = np.arange(16, dtype=np.int64)
BITS = np.full(16, 0xFF, np.uint8)
OFFSETS = np.array([0, 1, 2, 3, 4], np.int32)
INT64_MAX = 2**63 - 1
TENSOR = "arrow.fixed_shape_tensor"
VARIABLE = "arrow.variable_shape_tensor"


def extension(name: str, metadata: str | None = None) -> dict[str, str]:
    pairs = {"ARROW:extension:name": name}
    if metadata is not None:
        pairs["ARROW:extension:metadata"] = metadata
    return pairs


def ints(length: int = 4, **options: Any) -> MadeArray:
    return MadeArray(length, [None, DATA], **options)


def refuse(schema: MadeSchema, array: MadeArray, said: str, error: type = ValueError) -> None:
    """By both doors, with everything released once."""
    with pytest.raises(error, match=said):
        arrowdl.c_data.import_array(array.address, schema.address)
    assert not schema.struct.release
    assert not array.struct.release
    assert set(list_releases(schema)) <= {1}
    assert set(list_releases(array)) <= {1}


def take(schema: MadeSchema, array: MadeArray) -> arrowdl.DeviceArray:
    return arrowdl.c_data.import_array(array.address, schema.address)


# ---------------------------------------------------------------- the schema


FORMATS = [
    "",
    "?",
    "ii",
    "int32",
    "x",
    "w",
    "w:",
    "w:-1",
    "w:x",
    "w:4 ",
    "w:99999999999",
    "w:9223372036854775808",
    "d",
    "d:",
    "d:1",
    "d:1,2,3",
    "d:38,2,x",
    "t",
    "td",
    "tdx",
    "tt",
    "tsx:",
    "ts",
    "ti",
    "+",
    "+x",
    "+w:",
    "+ud:x",
    "+us:0,0",
    "+us:-1",
    "+us:300",
    "+us:0,",
    "v",
    "vx",
    "+v",
]


@pytest.mark.parametrize("format", FORMATS)
def test_bad_format_strings_are_refused(format):
    refuse(MadeSchema(format), ints(), "malformed Arrow schema")


@pytest.mark.parametrize("format", ["+w:-3", "+w:2147483648", "+w:1e3", "+w:0x2", "+w: 2"])
def test_bad_list_sizes_are_refused(format):
    schema = MadeSchema(format, children=[MadeSchema("l")])
    refuse(schema, MadeArray(1, [None], children=[ints()]), "malformed Arrow schema")


def test_a_null_format_is_refused():
    refuse(MadeSchema(None), ints(), "format is NULL")


def test_a_format_that_is_no_text_is_refused():
    schema = MadeSchema("l")
    schema.struct.format = b"\xff\xfe\x80"
    refuse(schema, ints(), r"malformed Arrow schema.*\\xff\\xfe\\x80")


@pytest.mark.parametrize(
    ("format", "children"),
    [
        ("l", 1),
        ("+l", 0),
        ("+l", 2),
        ("+L", 0),
        ("+vl", 0),
        ("+vL", 2),
        ("+w:2", 0),
        ("+w:2", 2),
        ("+r", 0),
        ("+r", 1),
        ("+r", 3),
        ("+m", 0),
        ("+us:0,1", 1),
        ("+ud:0", 2),
        ("u", 1),
    ],
)
def test_a_wrong_number_of_children_in_the_schema_is_refused(format, children):
    schema = MadeSchema(format, children=[MadeSchema("l") for _ in range(children)])
    array = MadeArray(0, [None, None], children=[ints() for _ in range(children)])
    refuse(schema, array, "malformed Arrow schema")


def broken_schema(change: Callable[[Any], None]) -> MadeSchema:
    schema = MadeSchema("+s", children=[MadeSchema("l", "a"), MadeSchema("l", "b")])
    change(schema)
    return schema


def null_second_child(schema: MadeSchema) -> None:
    schema.struct.children[1] = ctypes.POINTER(ArrowSchema)()


def release_second_child(schema: MadeSchema) -> None:
    schema.children[1].drop()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: setattr(s.struct, "n_children", -1), "-1 children"),
        (lambda s: setattr(s.struct, "children", None), "children are NULL"),
        (null_second_child, "child 1 is NULL"),
        (release_second_child, "child 1 has been released"),
    ],
)
def test_children_of_a_schema_that_are_not_there_are_refused(change, said):
    array = MadeArray(2, [None], children=[ints(), ints()])
    refuse(broken_schema(change), array, said)


def test_entries_of_a_map_are_looked_at_before_they_are_followed():
    def change_format(entries: MadeSchema) -> None:
        entries.struct.format = None

    def change_children(entries: MadeSchema) -> None:
        entries.struct.children = None

    def change_key(entries: MadeSchema) -> None:
        entries.struct.children[0] = ctypes.POINTER(ArrowSchema)()

    for change in change_format, change_children, change_key:
        fields = [MadeSchema("u", "key"), MadeSchema("l", "value")]
        entries = MadeSchema("+s", "entries", flags=0, children=fields)
        change(entries)
        refuse(MadeSchema("+m", children=[entries]), MadeArray(0, [None, None]), "entries .* NULL")


def nested(depth: int) -> tuple[MadeSchema, MadeArray]:
    schema, array = MadeSchema("l"), ints(1)
    for _ in range(depth):
        schema = MadeSchema("+w:1", children=[schema])
        array = MadeArray(1, [None], children=[array])
    return schema, array


def test_deep_nesting_is_refused_before_it_takes_the_stack():
    refuse(*nested(200), "nested more than 64 levels")
    assert len(take(*nested(60))) == 1


def test_deep_nesting_through_dictionaries_is_refused():
    schema, array = MadeSchema("l"), ints(1)
    for _ in range(200):
        schema = MadeSchema("l", dictionary=schema)
        array = ints(1, dictionary=array)
    refuse(schema, array, "nested more than 64 levels")


@pytest.mark.parametrize("format", ["g", "u", "+s", "b", "n"])
def test_dictionary_indices_that_are_no_integers_are_refused(format):
    schema = MadeSchema(format, dictionary=MadeSchema("l"))
    refuse(schema, ints(4, dictionary=ints()), "malformed Arrow schema")


@pytest.mark.parametrize(
    "metadata",
    [
        struct.pack("=i", -1),
        struct.pack("=ii", 1, -5),
        struct.pack("=ii", 1, 0) + struct.pack("=i", -5),
    ],
)
def test_negative_sizes_in_metadata_are_refused(metadata):
    refuse(MadeSchema("l", metadata=metadata), ints(), "negative size in its metadata")


BAD_JSON = [
    "",
    "null",
    "[]",
    "3",
    '"shape"',
    "{",
    "{}",
    '{"shape"}',
    '{"shape":}',
    '{"shape":[4]',
    '{"shape":[4]}}',
    '{"shape":[4]} x',
    '{"shape":4}',
    '{"shape":["4"]}',
    '{"shape":[4.5]}',
    '{"shape":[-4]}',
    '{"shape":[null]}',
    '{"shape":[4,]}',
    '{"shape":[04]}',
    '{"shape":[4e99]}',
    '{"shape":[99999999999999999999]}',
    '{"shape":[4294967296,4294967296]}',
    '{"shape":[5]}',
    '{"shape":[2,3]}',
    '{"shape":[]}',
    '{"shape":[2,2],"permutation":[0]}',
    '{"shape":[2,2],"permutation":[0,2]}',
    '{"shape":[2,2],"permutation":[0,0]}',
    '{"shape":[2,2],"permutation":[-1,0]}',
    '{"shape":[2,2],"permutation":[0,1,2]}',
    '{"shape":[2,2],"permutation":"01"}',
    '{"shape":[2,2],"dim_names":["a"]}',
    '{"shape":[2,2],"dim_names":[1,2]}',
    '{"shape":[4],"x":"\x01"}',
    '{"shape":[4],"x":"\\u12"}',
    "[" * 100_000,
    '{"x":' * 100_000,
]


@pytest.mark.parametrize("json", BAD_JSON, ids=lambda json: json[:40] or "nothing")
def test_bad_metadata_of_a_fixed_shape_tensor_is_refused(json):
    schema = MadeSchema("+w:4", metadata=extension(TENSOR, json), children=[MadeSchema("l")])
    refuse(schema, MadeArray(1, [None], children=[ints()]), "malformed")


def test_a_fixed_shape_tensor_without_metadata_is_refused():
    schema = MadeSchema("+w:4", metadata=extension(TENSOR), children=[MadeSchema("l")])
    refuse(schema, MadeArray(1, [None], children=[ints()]), "malformed")


@pytest.mark.parametrize(
    "json",
    [
        '{"permutation":[0,0]}',
        '{"permutation":[0,1,2]}',
        '{"dim_names":["a"]}',
        '{"uniform_shape":[null]}',
        '{"uniform_shape":[-1,null]}',
        '{"uniform_shape":["x",null]}',
        "[]",
        "{",
    ],
)
def test_bad_metadata_of_a_variable_shape_tensor_is_refused(json):
    schema = MadeSchema(
        "+s",
        metadata=extension(VARIABLE, json),
        children=[
            MadeSchema("+l", "data", children=[MadeSchema("l")]),
            MadeSchema("+w:2", "shape", children=[MadeSchema("i")]),
        ],
    )
    shapes = MadeArray(1, [None], children=[MadeArray(2, [None, OFFSETS])])
    lists = MadeArray(1, [None, OFFSETS], children=[ints()])
    refuse(schema, MadeArray(1, [None], children=[lists, shapes]), "malformed")


JSON = '{"shape":[2]}'
WRONG_STORAGE = {
    "a tensor of lists": (TENSOR, JSON, "+l", ["l"]),
    "a tensor of numbers": (TENSOR, JSON, "l", []),
    "a tensor of structs": (TENSOR, JSON, "+s", ["l"]),
    "variable shapes in a list": (VARIABLE, "", "+l", ["l"]),
    "variable shapes in an empty struct": (VARIABLE, "", "+s", []),
    "variable shapes of numbers": (VARIABLE, "", "+s", ["l", "l"]),
    "bool8 of int16": ("arrow.bool8", "", "s", []),
    "bool8 of uint8": ("arrow.bool8", "", "C", []),
    "bool8 of bits": ("arrow.bool8", "", "b", []),
    "bool8 of a list": ("arrow.bool8", "", "+w:1", ["c"]),
    "bfloat16 of four bytes": ("arrowdl.bfloat16", "", "w:4", []),
    "bfloat16 of uint16": ("arrowdl.bfloat16", "", "S", []),
    "float8 of two bytes": ("arrowdl.float8_e4m3fn", "", "w:2", []),
    "complex64 of three": ("arrowdl.complex64", "", "+w:3", ["f"]),
    "complex64 of doubles": ("arrowdl.complex64", "", "+w:2", ["g"]),
    "complex64 of integers": ("arrowdl.complex64", "", "+w:2", ["i"]),
    "complex64 of bytes": ("arrowdl.complex64", "", "w:8", []),
    "complex128 of floats": ("arrowdl.complex128", "", "+w:2", ["f"]),
}


@pytest.mark.parametrize(
    ("name", "json", "format", "children"), WRONG_STORAGE.values(), ids=WRONG_STORAGE.keys()
)
def test_an_extension_over_the_wrong_storage_is_refused(name, json, format, children):
    schema = MadeSchema(
        format,
        metadata=extension(name, json),
        children=[MadeSchema(child) for child in children],
    )
    array = MadeArray(1, [None, DATA][: 1 if children else 2], children=[ints(2) for _ in children])
    refuse(schema, array, f"malformed Arrow schema.*{name}")


def test_a_dictionary_of_an_element_extension_is_refused():
    schema = MadeSchema("c", metadata=extension("arrow.bool8"), dictionary=MadeSchema("l"))
    refuse(schema, ints(4, dictionary=ints()), "malformed Arrow schema")


def test_an_unknown_extension_is_read_as_its_storage():
    schema = MadeSchema("l", metadata=extension("someone.else", "\x00 not json"))
    assert pa.array(take(schema, ints())).to_pylist() == [0, 1, 2, 3]


# ---------------------------------------------------------------- the array


BAD_ARRAYS: dict[str, tuple[str, Callable[[], MadeArray], str]] = {
    "negative length": ("l", lambda: ints(-1), "length -1"),
    "negative offset": ("l", lambda: ints(1, offset=-1), "offset -1"),
    "overflowing end": ("l", lambda: ints(INT64_MAX, offset=1), "overflows"),
    "overflowing end of both": (
        "l",
        lambda: ints(INT64_MAX, offset=INT64_MAX),
        "overflows",
    ),
    "overflowing bytes": ("l", lambda: ints(2**61), "overflows"),
    "overflowing bytes by offset": ("l", lambda: ints(1, offset=2**60), "overflows"),
    "overflowing lists": (
        "+w:1000",
        lambda: MadeArray(2**60, [None], children=[ints()]),
        "overflows",
    ),
    "overflowing fixed bytes": ("w:2147483647", lambda: ints(2**40), "overflows"),
    "null_count below -1": ("l", lambda: ints(4, null_count=-2), "null_count -2"),
    "null_count beyond the length": ("l", lambda: ints(4, null_count=5), "null_count 5"),
    "nulls without a bitmap": ("l", lambda: ints(4, null_count=1), "no validity bitmap"),
    "no buffers": ("l", lambda: MadeArray(4, []), "0 buffers, expected 2"),
    "one buffer": ("l", lambda: MadeArray(4, [None]), "1 buffers, expected 2"),
    "three buffers": ("l", lambda: MadeArray(4, [None, DATA, DATA]), "3 buffers, expected 2"),
    "data NULL": ("l", lambda: MadeArray(4, [None, None]), "buffer 1 is NULL"),
    "bits NULL": ("b", lambda: MadeArray(4, [None, None]), "buffer 1 is NULL"),
    "string offsets NULL": ("u", lambda: MadeArray(4, [None, None, DATA]), "buffer 1 is NULL"),
    "string with two buffers": ("u", lambda: MadeArray(4, [None, OFFSETS]), "expected 3"),
    "views NULL": ("vu", lambda: MadeArray(4, [None, None, None]), "buffer 1 is NULL"),
    "views with two buffers": ("vu", lambda: MadeArray(4, [None, DATA]), "3 or more"),
    "null type with buffers": ("n", lambda: MadeArray(4, [None, None]), "expected 0"),
    "a child where none belongs": (
        "l",
        lambda: MadeArray(4, [None, DATA], children=[ints()]),
        "1 children, the schema has 0",
    ),
    "a dictionary where none belongs": (
        "l",
        lambda: ints(4, dictionary=ints()),
        "only one of array and schema has a dictionary",
    ),
}


@pytest.mark.parametrize(("format", "make", "said"), BAD_ARRAYS.values(), ids=BAD_ARRAYS.keys())
def test_arrays_that_contradict_themselves_are_refused(format, make, said):
    children = [MadeSchema("l")] if format.startswith("+w") else []
    refuse(MadeSchema(format, children=children), make(), said)


@pytest.mark.parametrize("n_buffers", [-1, -(2**63), 2**62])
def test_absurd_numbers_of_buffers_are_refused(n_buffers):
    array = ints()
    array.struct.n_buffers = n_buffers
    refuse(MadeSchema("l"), array, "buffers, expected 2")


@pytest.mark.parametrize("format", ["l", "b", "u", "+s"])
def test_a_null_table_of_buffers_is_refused(format):
    n_buffers = {"u": 3, "+s": 1}.get(format, 2)
    array = MadeArray(4, [None] * n_buffers)
    array.struct.buffers = None
    refuse(MadeSchema(format), array, "buffers are NULL")


def struct_schema(children: int = 2) -> MadeSchema:
    return MadeSchema("+s", children=[MadeSchema("l", name) for name in "ab"[:children]])


@pytest.mark.parametrize("children", [0, 1, 3])
def test_too_few_or_too_many_children_are_refused(children):
    array = MadeArray(4, [None], children=[ints() for _ in range(children)])
    refuse(struct_schema(), array, f"{children} children, the schema has 2")


@pytest.mark.parametrize("children", [-1, -(2**63), 2**62])
def test_absurd_numbers_of_children_are_refused(children):
    array = MadeArray(4, [None], children=[ints(), ints()])
    array.struct.n_children = children
    refuse(struct_schema(), array, "the schema has 2")


def test_null_children_are_refused():
    array = MadeArray(4, [None], children=[ints(), ints()])
    array.struct.children = None
    refuse(struct_schema(), array, "children are NULL")
    array = MadeArray(4, [None], children=[ints(), ints()])
    array.struct.children[1] = ctypes.POINTER(ArrowArray)()
    refuse(struct_schema(), array, "child 1 is NULL")


def test_a_released_child_is_refused():
    array = MadeArray(4, [None], children=[ints(), ints()])
    array.children[1].drop()
    refuse(struct_schema(), array, "been released")


@pytest.mark.parametrize(
    ("format", "length", "offset", "child", "fits"),
    [
        ("+s", 4, 0, 4, True),
        ("+s", 4, 0, 3, False),
        ("+s", 3, 1, 3, False),
        ("+w:2", 2, 0, 4, True),
        ("+w:2", 2, 0, 3, False),
        ("+w:2", 2, 1, 5, False),
        ("+w:0", 5, 0, 0, True),
        ("+us:0", 4, 0, 3, False),
    ],
)
def test_a_child_that_is_too_short_is_refused(format, length, offset, child, fits):
    buffers = [BITS] if format.startswith("+us") else [None]
    schema = MadeSchema(format, children=[MadeSchema("l", "a")])
    array = MadeArray(length, buffers, offset=offset, children=[ints(child)])
    if fits:
        assert len(take(schema, array)) == length
        return
    refuse(schema, array, f"child 0 has {child} rows, needs {child + 1}")


def test_a_malformed_child_is_named_by_its_path():
    schema = MadeSchema(
        "+s", "table", children=[MadeSchema("+w:2", "vec", children=[MadeSchema("l", "item")])]
    )
    array = MadeArray(
        1,
        [None],
        children=[MadeArray(1, [None], children=[MadeArray(2, [None, None])])],
    )
    refuse(schema, array, "at table > vec > item of type int64: buffer 1 is NULL")


def test_a_malformed_dictionary_is_refused():
    schema = MadeSchema("l", dictionary=MadeSchema("l"))
    refuse(schema, ints(4, dictionary=MadeArray(4, [None, None])), "buffer 1 is NULL")
    refuse(MadeSchema("l", dictionary=MadeSchema("l")), ints(4), "has a dictionary")


@pytest.mark.parametrize("format", ["+us:0", "+ud:0"])
def test_a_union_without_type_ids_is_refused(format):
    schema = MadeSchema(format, children=[MadeSchema("l", "a")])
    buffers = [None] if format == "+us:0" else [None, OFFSETS]
    refuse(schema, MadeArray(2, buffers, children=[ints()]), "buffer 0 is NULL")


@pytest.mark.parametrize(
    ("ends", "runs", "values", "said"),
    [("g", 2, 2, "run ends of type"), ("i", 0, 0, "no runs"), ("i", 3, 2, "child 1 has 2")],
)
def test_run_ends_that_cannot_be_are_refused(ends, runs, values, said):
    schema = MadeSchema("+r", children=[MadeSchema(ends, "run_ends"), MadeSchema("l", "values")])
    array = MadeArray(4, [], children=[MadeArray(runs, [None, OFFSETS]), ints(values)])
    refuse(schema, array, said)


OFFSETS_OF_LISTS = {
    "descending": [0, 3, 1, 4],
    "negative": [-1, 0, 1, 2],
    "below zero at the end": [0, 1, 2, -2],
    "beyond the values": [0, 1, 2, 400],
    "all beyond the values": [2**31 - 4, 2**31 - 3, 2**31 - 2, 2**31 - 1],
}
# The structs do not say how many bytes there are: only the order can be checked.
OFFSETS_OF_BYTES = dict(list(OFFSETS_OF_LISTS.items())[:3])


def refuse_to_read(array: arrowdl.DeviceArray) -> None:
    for read in (arrowdl.to_numpy, arrowdl.to_torch):
        with pytest.raises(ValueError, match="offset"):
            read(array)


@pytest.mark.parametrize("format", ["+l", "+L"])
@pytest.mark.parametrize("offsets", OFFSETS_OF_LISTS.values(), ids=OFFSETS_OF_LISTS.keys())
def test_list_offsets_are_checked_when_they_are_read(format, offsets):
    raw = np.array(offsets, np.int64 if format == "+L" else np.int32)
    made = MadeArray(3, [None, raw], children=[ints(5)])
    refuse_to_read(take(MadeSchema(format, children=[MadeSchema("l")]), made))
    assert made.released == 1


@pytest.mark.parametrize("format", ["u", "Z"])
@pytest.mark.parametrize("offsets", OFFSETS_OF_BYTES.values(), ids=OFFSETS_OF_BYTES.keys())
def test_offsets_of_bytes_are_checked_when_they_are_read(format, offsets):
    raw = np.array(offsets, np.int64 if format == "Z" else np.int32)
    made = MadeArray(3, [None, raw, DATA])
    refuse_to_read(take(MadeSchema(format), made))
    assert made.released == 1


@pytest.mark.parametrize("index", [-1, 4, 100, 2**31 - 1])
def test_dictionary_codes_are_handed_out_as_they_are(index):
    schema = MadeSchema("i", dictionary=MadeSchema("l"))
    codes = np.array([0, index], np.int32)
    array = take(schema, MadeArray(2, [None, codes], dictionary=ints()))
    assert np.from_dlpack(array.indices).tolist() == [0, index]


@pytest.mark.parametrize("lie", [0, 1, 3, 4, -1])
def test_lies_about_null_count_crash_nothing(lie):
    """Two of four are null. A count that is not -1 is the producer's word."""
    bits = np.array([0b0101], np.uint8)
    made = MadeArray(4, [bits, DATA], null_count=lie)
    array = take(MadeSchema("l"), made)
    assert array.null_count == (2 if lie == -1 else lie)
    assert array[1:3].null_count == (0 if lie == 0 else 1)
    if lie == 0:
        assert arrowdl.to_numpy(array).tolist() == [0, 1, 2, 3]
    else:
        with pytest.raises(BufferError, match="nulls"):
            arrowdl.to_numpy(array)
        filled = arrowdl.to_numpy(array, nulls="fill")
        assert filled.tolist() == [0, 0, 2, 0]
    del array
    assert made.released == 1


@pytest.mark.parametrize("format", ["n", "l", "b", "u", "Z", "+s", "vu", "w:3"])
@pytest.mark.parametrize("offset", [0, 5])
def test_arrays_of_no_rows_may_leave_their_buffers_null(format, offset):
    """Which pyarrow does not take of offsets: they are there when it gets the array."""
    n_buffers = {"n": 0, "u": 3, "Z": 3, "+s": 1, "vu": 3}.get(format, 2)
    array = take(MadeSchema(format), MadeArray(0, [None] * n_buffers, offset=offset))
    assert len(array) == 0
    pa.array(array).validate(full=True)


@pytest.mark.parametrize("format", ["+l", "+L", "+vl", "+vL"])
def test_lists_of_no_rows_may_leave_their_buffers_null(format):
    """Deep inside, too."""
    n_buffers = 3 if "v" in format else 2
    inner = MadeSchema(format, "inner", children=[MadeSchema("u", "item")])
    schema = MadeSchema("+s", children=[inner])
    items = MadeArray(0, [None, None, None])
    made = MadeArray(0, [None], children=[MadeArray(0, [None] * n_buffers, children=[items])])
    array = take(schema, made)
    pa.array(array).validate(full=True)
    pa.array(array.field(0)).validate(full=True)
    assert pa.array(array).to_pylist() == []


def test_a_name_that_is_null_is_empty():
    schema = MadeSchema("l")
    schema.struct.name = None
    array = take(schema, ints())
    assert array.schema.name == ""
    assert repr(array)


def test_a_name_that_is_no_utf8_does_not_crash():
    schema = MadeSchema("+s", children=[MadeSchema("l")])
    schema.children[0].struct.name = b"\xff\xfe"
    array = take(schema, MadeArray(2, [None], children=[ints()]))
    for look in (repr, lambda a: a.type, lambda a: a.field_names, lambda a: a._repr_html_()):
        with contextlib.suppress(UnicodeDecodeError):
            look(array)
    assert np.from_dlpack(array.field(0)).tolist() == [0, 1]


# ---------------------------------------------------------------- released, and not structs at all


def test_released_structs_are_refused_and_their_partners_released():
    schema, array = MadeSchema("l"), ints()
    schema.drop()
    with pytest.raises(ValueError, match="released"):
        arrowdl.c_data.import_array(array.address, schema.address)
    assert (schema.released, array.released) == (1, 1)
    schema, array = MadeSchema("l"), ints()
    array.drop()
    with pytest.raises(ValueError, match="released"):
        arrowdl.c_data.import_array(array.address, schema.address)
    assert (schema.released, array.released) == (1, 1)


def test_structs_are_taken_once():
    schema, array = MadeSchema("l"), ints()
    taken = take(schema, array)
    with pytest.raises(ValueError, match="released"):
        take(schema, array)
    assert pa.array(taken).to_pylist() == [0, 1, 2, 3]


def test_structs_of_zeros_are_refused():
    schema, array = ArrowSchema(), ArrowArray()
    with pytest.raises(ValueError, match="released"):
        arrowdl.c_data.import_array(ctypes.addressof(array), ctypes.addressof(schema))


@pytest.mark.parametrize("device", [False, True])
def test_addresses_that_cannot_be_structs_leave_the_other_alone(device):
    schema, array = MadeSchema("l"), ints()
    import_array = arrowdl.c_data.import_device_array if device else arrowdl.c_data.import_array
    for bad in (0, 1, array.address + 1):
        with pytest.raises(ValueError, match="address"):
            import_array(bad, schema.address)
        with pytest.raises(ValueError, match="address"):
            import_array(array.address, bad)
    assert (schema.released, array.released) == (0, 0)
    with pytest.raises((TypeError, OverflowError)):
        arrowdl.c_data.import_array(-8, schema.address)
    schema.drop()
    array.drop()


def test_an_export_writes_nothing_on_errors():
    schema, array = ArrowSchema(), ArrowArray()
    source = MadeTensor(np.arange(3), device=(3, 0))
    there = arrowdl.to_arrow_device(source.capsule())
    arrowdl.c_data.export_array(there, ctypes.addressof(array), ctypes.addressof(schema))
    back = arrowdl.c_data.import_array(ctypes.addressof(array), ctypes.addressof(schema))
    assert np.from_dlpack(back).tolist() == [0, 1, 2]
    with pytest.raises(TypeError):
        arrowdl.c_data.export_array("text", ctypes.addressof(array), ctypes.addressof(schema))
    with pytest.raises(ValueError, match="address"):
        arrowdl.c_data.export_array(there, 0, ctypes.addressof(schema))
    assert not array.release
    assert not schema.release
    del there, back
    assert source.released == 1


# ---------------------------------------------------------------- device arrays


@pytest.mark.parametrize("device", [1, 9, 15, 16])
def test_an_event_where_arrow_defines_none_is_refused(device):
    schema, array = MadeSchema("l"), ints()
    source = MadeDeviceArray(array, (device, 0), sync_event=0x1000)
    with pytest.raises(ValueError, match="sync_event"):
        arrowdl.c_data.import_device_array(source.address, schema.address)
    assert (schema.released, array.released) == (1, 1)


@pytest.mark.parametrize("device", [0, -1, -5, -(2**31)])
def test_a_number_of_no_device_is_refused(device):
    schema, array = MadeSchema("l"), ints()
    source = MadeDeviceArray(array, (device, 0))
    with pytest.raises(ValueError, match=f"{device}"):
        arrowdl.c_data.import_device_array(source.address, schema.address)
    assert (schema.released, array.released) == (1, 1)


@pytest.mark.parametrize("device_id", [-1, 0, 3])
def test_any_cpu_id_is_the_one_cpu(device_id):
    schema = MadeSchema("l")
    source = MadeDeviceArray(ints(), (1, device_id))
    array = arrowdl.c_data.import_device_array(source.address, schema.address)
    assert tuple(array.device) == (1, 0)


def test_device_memory_is_carried_and_never_read():
    """The pointers are not memory of this process: touching one would end it."""
    made = MadeArray(4, [0x10, 0x20], null_count=1)
    schema = MadeSchema("l")
    source = MadeDeviceArray(made, (2, 1), sync_event=0x30)
    array = arrowdl.c_data.import_device_array(source.address, schema.address)
    assert tuple(array.device) == (2, 1)
    assert (len(array), array.null_count, array.nbytes > 0) == (4, 1, True)
    assert "cuda:1" in repr(array)
    for read in (
        lambda a: a.__arrow_c_array__(),
        lambda a: a.__dlpack__(),
        lambda a: a[1:].null_count,
        arrowdl.to_numpy,
        lambda a: arrowdl.to_arrow_device(a, layout="list"),
        lambda a: a.__dlpack__(dl_device=(1, 0)),
    ):
        with pytest.raises(BufferError, match=r"cuda:1|has nulls"):
            read(array)
    out_schema, out = ArrowSchema(), ArrowDeviceArray()
    arrowdl.c_data.export_device_array(array, ctypes.addressof(out), ctypes.addressof(out_schema))
    assert (out.device_type, out.device_id, out.sync_event) == (2, 1, 0x30)
    assert (out.array.buffers[0], out.array.buffers[1]) == (0x10, 0x20)
    out.array.release(ctypes.pointer(out.array))
    out_schema.release(ctypes.pointer(out_schema))
    del array
    assert made.released == 1


# ---------------------------------------------------------------- capsules


def pair() -> tuple[MadeSchema, MadeArray, Any, Any]:
    schema, array = MadeSchema("l"), ints()
    return schema, array, schema.capsule(), array.capsule()


def test_a_pair_of_capsules_is_taken_once():
    schema, array, schema_capsule, array_capsule = pair()
    taken = arrowdl.from_arrow((schema_capsule, array_capsule))
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.from_arrow((schema_capsule, array_capsule))
    del schema_capsule, array_capsule
    assert (schema.released, array.released) == (0, 0)
    del taken
    assert (schema.released, array.released) == (1, 1)


def test_half_a_consumed_pair_leaves_the_other_half():
    _, _, first_schema, first_array = pair()
    arrowdl.from_arrow((first_schema, first_array))
    schema, array, schema_capsule, array_capsule = pair()
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.from_arrow((first_schema, array_capsule))
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.from_arrow((schema_capsule, first_array))
    assert (schema.released, array.released) == (0, 0)
    del schema_capsule, array_capsule
    assert (schema.released, array.released) == (1, 1)


def test_names_that_lie_are_type_errors_and_touch_nothing():
    schema, array, schema_capsule, array_capsule = pair()
    swapped = make_capsule(array.address, "arrow_array_stream")
    for wrong in (
        (array_capsule, schema_capsule),
        (schema_capsule, schema_capsule),
        (array_capsule, array_capsule),
        (schema_capsule, swapped),
        (schema_capsule, None),
        (None, array_capsule),
        (schema_capsule,),
        (schema_capsule, array_capsule, None),
        (1, 2),
        (),
    ):
        with pytest.raises(TypeError):
            arrowdl.from_arrow(wrong)
    assert (schema.released, array.released) == (0, 0)
    del wrong, schema_capsule, array_capsule
    assert (schema.released, array.released) == (1, 1)


def test_a_lone_array_capsule_is_a_type_error():
    schema, array, schema_capsule, array_capsule = pair()
    for alone in (schema_capsule, array_capsule):
        with pytest.raises(TypeError):
            arrowdl.from_arrow(alone)
    del alone, schema_capsule, array_capsule
    assert (schema.released, array.released) == (1, 1)


def test_a_malformed_pair_of_capsules_is_released_once():
    schema, array = MadeSchema("nonsense"), ints()
    capsules = (schema.capsule(), array.capsule())
    with pytest.raises(ValueError, match="malformed"):
        arrowdl.from_arrow(capsules)
    del capsules
    assert (schema.released, array.released) == (1, 1)


@pytest.mark.parametrize("result", [None, (), (1,), (1, 2), [1, 2], "ab", object()])
def test_producers_that_give_nonsense_are_type_errors(result):
    class Producer:
        def __arrow_c_array__(self, requested_schema=None):
            return result

    with pytest.raises(TypeError):
        arrowdl.from_arrow(Producer())


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_stream__"])
def test_errors_of_an_arrow_producer_pass_unchanged(method):
    raised = KeyError("mine")

    def fail(self, requested_schema=None):
        raise raised

    producer = type("Producer", (), {method: fail})()
    with pytest.raises(KeyError) as caught:
        arrowdl.from_arrow(producer)
    assert caught.value is raised


# ---------------------------------------------------------------- tensors


MALFORMED_TENSORS: dict[str, tuple[dict[str, Any], str]] = {
    "a negative extent": ({"shape": (2, -3)}, "negative extent -3"),
    "a negative extent beside a zero": ({"shape": (0, -3)}, "negative extent -3"),
    "elements that overflow": ({"shape": (2**32, 2**32)}, "overflow"),
    "bytes that overflow": ({"shape": (2**60, 1)}, "overflow"),
    "an overflow behind a zero": ({"shape": (0, 2**40, 2**40)}, "overflow"),
    "strides that overflow": ({"shape": (3, 3), "strides": (2**62, 1)}, "overflow"),
    "negative strides that overflow": ({"shape": (3, 3), "strides": (-(2**62), 1)}, "overflow"),
    "strides that overflow together": (
        {"shape": (2, 2), "strides": (2**59, 2**59), "dtype": "int64"},
        "overflow",
    ),
    "a byte_offset that overflows": ({"shape": (1,), "byte_offset": 2**63}, "byte_offset"),
    "a byte_offset of -8": ({"shape": (1,), "byte_offset": 2**64 - 8}, "byte_offset"),
}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(
    ("change", "said"), MALFORMED_TENSORS.values(), ids=MALFORMED_TENSORS.keys()
)
def test_malformed_tensors_are_refused(change, said, versioned):
    made = MadeTensor(DATA, versioned=versioned, **change)
    with pytest.raises(ValueError, match=f"malformed tensor.*{said}"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


@pytest.mark.parametrize("ndim", [-1, -(2**31)])
def test_a_negative_number_of_dimensions_is_refused(ndim):
    made = MadeTensor(DATA)
    made.tensor.ndim = ndim
    with pytest.raises(ValueError, match=f"ndim is {ndim}"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


def test_an_absurd_number_of_dimensions_is_refused_before_they_are_read():
    made = MadeTensor(DATA)
    made.tensor.ndim = 2**31 - 1
    with pytest.raises(BufferError, match="2147483647 dimensions"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


def test_a_null_shape_is_refused():
    made = MadeTensor(DATA)
    made.tensor.shape = None
    with pytest.raises(ValueError, match="shape is NULL"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


@pytest.mark.parametrize("device", [0, -1, -5, -(2**31)])
def test_a_tensor_on_no_device_is_refused(device):
    made = MadeTensor(DATA, device=(device, 0))
    capsule = made.capsule()
    with pytest.raises(ValueError, match=f"{device}"):
        arrowdl.to_arrow_device(capsule)
    assert made.released == 0, "the capsule is whole: nothing is lost"
    del capsule
    assert made.released == 1


# ---------------------------------------------------------------- devices and streams


def on_device(device: tuple[int, int]):
    """int64 values, labelled as memory of `device`, which is never read."""
    made = MadeArray(2, [None, 0x20], null_count=0)
    source = MadeDeviceArray(made, device)
    schema = MadeSchema("l")
    return arrowdl.c_data.import_device_array(source.address, schema.address)


@pytest.mark.parametrize(
    ("device", "stream"),
    [((2, 0), 0), ((2, 0), -2), ((10, 0), 1), ((10, 0), 2), ((10, 0), -2)],
    ids=str,
)
def test_a_stream_that_the_protocol_does_not_allow_is_refused(device, stream):
    with pytest.raises(BufferError, match=f"stream={stream}"):
        on_device(device).__dlpack__(stream=stream)


@pytest.mark.parametrize(
    ("device", "stream"), [((2, 0), 1), ((2, 0), 2), ((2, 0), 12345), ((10, 0), 0)], ids=str
)
def test_without_an_event_any_stream_of_the_device_will_do(device, stream):
    capsule = on_device(device).__dlpack__(stream=stream)
    assert capsule is not None


@pytest.mark.parametrize("dl_device", [(2**32 + 1, 0), (1, 2**33), (2, 2**32)], ids=str)
def test_device_numbers_are_of_32_bits(dl_device):
    with pytest.raises(ValueError, match="does not fit int32"):
        on_device((2, 0)).__dlpack__(dl_device=dl_device)


def test_a_copy_of_pinned_memory_says_where_it_lies():
    """A copy is on the CPU; `__dlpack_device__` said otherwise, so it has to be asked for."""
    made = MadeArray(2, [None, np.array([1, 2]).ctypes.data], null_count=0)
    source = MadeDeviceArray(made, (3, 0))
    schema = MadeSchema("l")
    array = arrowdl.c_data.import_device_array(source.address, schema.address)
    with pytest.raises(BufferError, match=r"dl_device=\(1, 0\)"):
        array.__dlpack__(copy=True)


STRINGS_WITHOUT_DATA = """
import ctypes
import arrowdl, pyarrow as pa
from pyarrow.cffi import ffi

def address(struct):
    return int(ffi.cast("uintptr_t", struct))

TYPE = pa.dictionary(pa.int32(), pa.string())
chunks = []
for values in (["a", "b"], ["a", "c"]):
    chunk = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(values))
    chunks.append(ffi.new("struct ArrowArray*"))
    chunk._export_to_c(address(chunks[-1]))
chunks[1].dictionary.buffers[2] = ffi.NULL

@ffi.callback("int(struct ArrowArrayStream*, struct ArrowSchema*)")
def get_schema(stream, out):
    TYPE._export_to_c(address(out))
    return 0

@ffi.callback("int(struct ArrowArrayStream*, struct ArrowArray*)")
def get_next(stream, out):
    if not chunks:
        out.release = ffi.NULL
        return 0
    chunk = chunks.pop(0)
    ffi.memmove(out, chunk, ffi.sizeof("struct ArrowArray"))
    return 0

@ffi.callback("void(struct ArrowArrayStream*)")
def release(stream):
    stream.release = ffi.NULL

stream = ffi.new("struct ArrowArrayStream*")
stream.get_schema, stream.get_next, stream.release = get_schema, get_next, release
make = ctypes.pythonapi.PyCapsule_New
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule = make(address(stream), b"arrow_array_stream", None)
try:
    arrowdl.from_arrow(capsule)
except ValueError as error:
    print("refused:", error)
"""


def test_strings_without_data_are_not_read():
    assert "data is NULL" in run_python(STRINGS_WITHOUT_DATA)


# ---------------------------------------------------------------- beyond any memory


TOO_LONG: dict[str, tuple[str, Callable[[], MadeArray]]] = {
    "elements": ("l", lambda: ints(2**58)),
    "elements before the offset": ("c", lambda: ints(1, offset=2**58)),
    "bits": ("b", lambda: MadeArray(2**62, [None, BITS])),
    "a bitmap": ("+s", lambda: MadeArray(2**62, [BITS])),
    "offsets": ("u", lambda: MadeArray(2**58, [None, OFFSETS, DATA])),
    "views": ("vu", lambda: MadeArray(2**58, [None, DATA, np.zeros(1, np.int64)])),
    "bytes that wrap": ("l", lambda: MadeArray(4, [None, 2**64 - 24])),
}


@pytest.mark.parametrize(("format", "make"), TOO_LONG.values(), ids=TOO_LONG.keys())
def test_lengths_that_no_memory_has_are_refused(format, make):
    refuse(MadeSchema(format), make(), "beyond the end of the address space")


def test_sizes_that_no_memory_has_together_are_refused():
    children = [ints(2**49) for _ in range(2048)]
    schema = MadeSchema("+s", children=[MadeSchema("l") for _ in children])
    refuse(schema, MadeArray(2**49, [None], children=children), "beyond the end of the address")


def views(*sizes: int, data: np.ndarray | None = DATA) -> MadeArray:
    """One view of 16 bytes of data buffer 0, and the sizes of as many data buffers."""
    view = np.array([16, 0, 0, 0], np.int32)
    return MadeArray(1, [None, view, *[data] * len(sizes), np.array([*sizes, 0], np.int64)])


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((-1,), "data buffer 0 has the size -1"),
        ((128, -(2**63)), "data buffer 1 has the size -9223372036854775808"),
        ((128, 2**60), "beyond the end of the address space"),
    ],
)
def test_sizes_of_data_buffers_are_looked_at(sizes, said):
    refuse(MadeSchema("vz"), views(*sizes), said)
    schema = MadeSchema("i", dictionary=MadeSchema("vz"))
    refuse(schema, MadeArray(1, [None, OFFSETS], dictionary=views(*sizes)), said)


def test_a_data_buffer_that_is_null_with_a_size_is_refused():
    refuse(MadeSchema("vz"), views(16, data=None), "data buffer 0 is NULL with 16 bytes")
    array = take(MadeSchema("vz"), views(128))
    assert pa.array(array).to_pylist() == [DATA.tobytes()[:16]]


@pytest.mark.parametrize("count", [1, 2])
def test_data_buffers_of_no_bytes_may_be_null(count):
    """Arrow's page says so of variadic buffers too, since June 2026."""
    view = np.array([1, ord("a"), 0, 0], np.int32)
    sizes = np.array([0] * count, np.int64)
    taken = take(MadeSchema("vu"), MadeArray(1, [None, view, *[None] * count, sizes]))
    values, offsets = arrowdl.to_numpy(taken)
    assert (bytes(values), offsets.tolist(), taken.nbytes) == (b"a", [0, 1], 16)
    array = pa.array(taken)
    array.validate(full=True)
    assert array.to_pylist() == ["a"]


def test_missing_sizes_of_data_buffers_are_zeros():
    array = views(128)
    array.struct.buffers[3] = None
    taken = take(MadeSchema("vz"), array)
    with pytest.raises(ValueError, match="which has 0"):
        arrowdl.to_numpy(taken)
    assert taken.nbytes == 16


@pytest.mark.parametrize("n_buffers", [2**31 + 3, 2**40, 2**63 - 1])
def test_more_data_buffers_than_a_view_can_name_are_refused(n_buffers):
    array = views(128)
    array.struct.n_buffers = n_buffers
    refuse(MadeSchema("vz"), array, f"{n_buffers} buffers, expected 3 or more, at most 2147483650")


FAR_TENSORS: dict[str, dict[str, Any]] = {
    "elements": {"shape": (2**55,)},
    "strides": {"shape": (2,), "strides": (2**55,)},
    "strides back": {"shape": (2,), "strides": (-(2**55),)},
    "strides to both sides": {"shape": (2, 2), "strides": (2**49, -(2**49))},
    "strides below the first address": {"shape": (2,), "strides": (-(2**48),)},
    "byte_offset": {"shape": (1,), "byte_offset": 2**60},
}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("change", FAR_TENSORS.values(), ids=FAR_TENSORS.keys())
def test_tensors_beyond_the_addresses_are_refused(change, versioned):
    made = MadeTensor(DATA, versioned=versioned, **change)
    with pytest.raises(ValueError, match=r"malformed tensor.*beyond the address space"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


@pytest.mark.parametrize("fields", [{}, {"byte_offset": 24}, {"strides": (1,)}], ids=str)
def test_tensors_that_wrap_around_the_last_address_are_refused(fields):
    made = MadeTensor(2**64 - 32, (8,), dtype="int64", **fields)
    with pytest.raises(ValueError, match=r"malformed tensor.*beyond the address space"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


def shared(levels: int) -> tuple[MadeSchema, MadeArray]:
    """Structs of two fields each, which are the same struct: 2**levels nodes to visit."""
    schema, array = MadeSchema("l", "x"), ints(1)
    for _ in range(levels):
        schema = MadeSchema("+s", "x", children=[schema, schema])
        array = MadeArray(1, [None], children=[array, array])
    return schema, array


def test_children_that_are_shared_without_end_are_refused():
    schema, array = shared(50)
    with pytest.raises(ValueError, match="the schema has more than 4194304 nodes"):
        arrowdl.c_data.import_array(array.address, schema.address)
    assert (schema.released, array.released) == (1, 1)
    schema, array = shared(50)
    with pytest.raises(ValueError, match="the schema has more than 4194304 nodes"):
        arrowdl.c_data.import_schema(schema.address)
    schema, _ = shared(50)
    with pytest.raises(ValueError, match="the schema has more than 4194304 nodes"):
        arrowdl.to_arrow_device(np.arange(3)).__arrow_c_array__(schema.capsule())
    schema, array = shared(50)
    stream = RawStream(lambda: schema, [array])
    with pytest.raises(ValueError, match="the schema has more than 4194304 nodes"):
        arrowdl.from_arrow_stream(stream.capsule())


def test_a_few_shared_children_are_read():
    taken = take(*shared(4))
    assert taken.type.count("int64") == 16


@pytest.mark.parametrize("n_children", [2**22, 2**40, 2**63 - 1])
def test_more_children_than_a_schema_may_have_are_not_looked_at(n_children):
    schema = struct_schema()
    schema.struct.n_children = n_children
    array = MadeArray(2, [None], children=[ints(), ints()])
    refuse(schema, array, "the schema has more than 4194304 nodes")
