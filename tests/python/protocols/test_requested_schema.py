"""`requested_schema`: given where the data has that form, one's own or an error otherwise.

Source: Arrow "PyCapsule Interface", Schema Requests. pyarrow's cast is the judge of values.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import arrowdl
import nanoarrow as na
import numpy as np
import pyarrow as pa
import pytest
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema
from nanoarrow.device import c_device_array

Way = Callable[[Any, Any], pa.Array]


def capsule(of: Any) -> Any:
    return of.__arrow_c_schema__()


def take_array(array: Any, wanted: Any) -> pa.Array:
    return pa.Array._import_from_c_capsule(*array.__arrow_c_array__(capsule(wanted)))


def take_device_array(array: Any, wanted: Any) -> pa.Array:
    return pa.Array._import_from_c_device_capsule(*array.__arrow_c_device_array__(capsule(wanted)))


def take_stream(array: Any, wanted: Any) -> pa.Array:
    stream = arrowdl.from_arrow_stream(array).__arrow_c_stream__(capsule(wanted))
    return join(pa.ChunkedArray._import_from_c_capsule(stream))


def take_device_stream(array: Any, wanted: Any) -> pa.Array:
    stream = arrowdl.from_arrow_stream(array).__arrow_c_device_stream__(capsule(wanted))
    return join(pa.chunked_array(arrowdl.from_arrow_stream(stream)))


def join(chunked: pa.ChunkedArray) -> pa.Array:
    assert chunked.num_chunks == 1
    return chunked.chunk(0)


WAYS: dict[str, Way] = {
    "array": take_array,
    "device_array": take_device_array,
    "stream": take_stream,
    "device_stream": take_device_stream,
}
by_every_way = pytest.mark.parametrize("take", WAYS.values(), ids=WAYS.keys())


# ---------------------------------------------------------------- what is given

ints = [1, None, -3, 0, 127, None, 7, 8, -9, 10, 11, None, 13, 14, 15, 16, 17, None, 19]
counts = [None if x is None else abs(x) for x in ints]
reals = [None if x is None else x / 4 for x in ints]
flags = [None if x is None else x % 2 == 0 for x in ints]
words = [None if x is None else "x" * (abs(x) % 15) + str(x) for x in ints]
lists = [None if x is None else list(range(abs(x) % 4)) for x in ints]
pairs = [None if x is None else [x, None] for x in ints]
seconds = [None if x is None else x * 1000000000 for x in ints]
days = [None if x is None else x * 86400000 for x in ints]
structs = [None if x is None else {"a": x, "b": str(x)} for x in ints]
maps = [None if x is None else [("k", x), ("l", None)][: abs(x) % 3] for x in ints]

WIDER = {
    "int8": "int16 int32 int64 float32 float64",
    "uint8": "int16 uint16 int32 uint32 int64 uint64 float32 float64",
    "int16": "int32 int64 float32 float64",
    "uint16": "int32 uint32 int64 uint64 float32 float64",
    "int32": "int64 float64",
    "uint32": "int64 uint64 float64",
    "float16": "float32 float64",
    "float32": "float64",
}

# To types that do not hold every value, and hold these.
NARROWER = {
    "int64": "int8 int16 int32 float16 float32 float64",
    "int32": "int8 int16 float16 float32",
    "uint64": "int8 uint8 int64 float16 float32 float64",
    "uint32": "int8 uint16 int32 float32",
    "int8": "float16",
    "float64": "float16 float32",
    "float32": "float16",
}

BINARY = ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"]
STRINGS = BINARY[:3]
UNITS = ["s", "ms", "us", "ns"]
LISTS: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
}


def type_of(name: str) -> pa.DataType:
    return getattr(pa, name)()


def name_of(pair: tuple[Any, Any, Any]) -> str:
    return f"{pair[0]} to {pair[1]}".replace("\n", " ")[:90]


def scaled(unit: str) -> list[int | None]:
    factor = 1000 ** UNITS.index(unit)
    return [None if x is None else x * factor for x in ints]


def wider_pairs() -> Iterator[tuple[pa.DataType, pa.DataType, list[Any]]]:
    for name, wider in WIDER.items():
        for wanted in wider.split():
            values = counts if name.startswith("u") else reals if "float" in name else ints
            if name == "float16":
                values = [None if x is None else np.float16(x) for x in reals]
            yield type_of(name), type_of(wanted), values
    for name, narrower in NARROWER.items():
        for wanted in narrower.split():
            values = counts if name.startswith("u") else reals if "float" in name else ints
            yield type_of(name), type_of(wanted), values
    yield pa.int32(), pa.uint64(), counts
    yield pa.float64(), pa.int8(), ints
    yield pa.float16(), pa.uint16(), [None if x is None else np.float16(x) for x in counts]
    yield pa.list_(pa.int64()), pa.large_list(pa.float32()), lists
    yield pa.list_(pa.int64(), 2), pa.list_(pa.int8(), 2), pairs
    yield pa.dictionary(pa.int8(), pa.int64()), pa.int16(), ints


def time_pairs() -> Iterator[tuple[pa.DataType, pa.DataType, list[Any]]]:
    for own in UNITS:
        for wanted in UNITS:
            if own == wanted:
                continue
            zones = {"tz": "UTC"}
            yield pa.timestamp(own), pa.timestamp(wanted), scaled(own)
            yield pa.timestamp(own, **zones), pa.timestamp(wanted, "Asia/Tokyo"), scaled(own)
            yield pa.duration(own), pa.duration(wanted), scaled(own)
            times = [None if x is None else abs(x) for x in scaled(own)]
            of = [pa.time32(u) if u in UNITS[:2] else pa.time64(u) for u in (own, wanted)]
            yield of[0], of[1], times
    yield pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Paris"), ints
    for own in UNITS:
        yield pa.date32(), pa.timestamp(own), ints
        yield pa.date64(), pa.timestamp(own), days
        midnights = [None if x is None else x * 86400 for x in scaled(own)]
        yield pa.timestamp(own), pa.date32(), midnights
        for kind in (pa.timestamp, pa.duration):
            yield pa.int64(), kind(own), ints
            yield kind(own), pa.int64(), ints
        yield pa.int64(), pa.timestamp(own, "UTC"), ints
    for name in ("date64", "time64"):
        values = days if name == "date64" else counts
        yield pa.time64("us") if name == "time64" else pa.date64(), pa.int64(), values
    yield pa.time32("s"), pa.int32(), counts
    yield pa.date32(), pa.int32(), ints
    yield pa.int32(), pa.date32(), ints
    yield pa.list_(pa.int64()), pa.list_(pa.timestamp("s")), lists
    yield pa.date32(), pa.date64(), ints
    yield pa.date64(), pa.date32(), days


def bool_pairs() -> Iterator[tuple[pa.DataType, pa.DataType, list[Any]]]:
    for name in ("int8", "uint8", "int64", "uint64", "float16", "float32", "float64"):
        yield pa.bool_(), type_of(name), flags
    yield pa.list_(pa.bool_()), pa.list_(pa.int8()), [flags, None] * 5
    yield pa.struct({"a": pa.bool_()}), pa.struct({"a": pa.float32()}), [{"a": x} for x in flags]


def binary_pairs() -> Iterator[tuple[pa.DataType, pa.DataType, list[Any]]]:
    for own in BINARY:
        for wanted in BINARY:
            if own != wanted and (own in STRINGS or wanted not in STRINGS):
                yield type_of(own), type_of(wanted), words
    fixed = [None if x is None else str(x)[:1].encode() * 3 for x in ints]
    for wanted in BINARY[3:]:
        yield pa.binary(3), type_of(wanted), fixed


def list_pairs() -> Iterator[tuple[pa.DataType, pa.DataType, list[Any]]]:
    for own, make_own in LISTS.items():
        for wanted, make_wanted in LISTS.items():
            if own != wanted:
                yield make_own(pa.int32()), make_wanted(pa.int32()), lists
            yield make_own(pa.int32()), make_wanted(pa.int64()), lists
        yield make_own(pa.int32()), pa.list_(pa.int32(), 2), pairs
        yield make_own(pa.int32()), pa.list_(pa.float64(), 2), pairs
        yield pa.list_(pa.int32(), 2), make_own(pa.int32()), pairs
        yield pa.list_(pa.int32(), 2), make_own(pa.int64()), pairs
    yield pa.list_(pa.int8(), 2), pa.list_(pa.int64(), 2), pairs
    yield pa.list_(pa.string()), pa.large_list(pa.string_view()), [words[:3], None, words] * 6
    yield pa.list_(pa.list_(pa.int8())), pa.large_list(pa.list_(pa.int32())), [lists, None] * 9
    yield pa.map_(pa.string(), pa.int8()), pa.map_(pa.large_string(), pa.int64()), maps


def nested_pairs() -> Iterator[tuple[pa.DataType, pa.DataType, list[Any]]]:
    own = pa.struct({"a": pa.int16(), "b": pa.string()})
    yield own, pa.struct({"a": pa.int64(), "b": pa.string()}), structs
    yield own, pa.struct({"a": pa.int16(), "b": pa.large_string()}), structs
    yield own, pa.struct({"b": pa.string(), "a": pa.int16()}), structs
    yield own, pa.struct({"b": pa.string_view(), "a": pa.float32()}), structs
    deep = pa.struct({"s": own, "n": pa.int8()})
    deep_wanted = pa.struct({"s": pa.struct({"b": pa.binary(), "a": pa.int32()}), "n": pa.int8()})
    yield deep, deep_wanted, [{"s": x, "n": 1} for x in structs]
    yield pa.list_(own), pa.list_(pa.struct({"b": pa.string(), "a": pa.int16()})), [structs] * 19


def dictionary_pairs() -> Iterator[tuple[pa.DataType, pa.DataType, list[Any]]]:
    own = pa.dictionary(pa.int8(), pa.string())
    for wanted in STRINGS:
        yield own, type_of(wanted), words
    yield own, pa.dictionary(pa.int32(), pa.string()), words
    yield pa.dictionary(pa.int32(), pa.string()), own, words
    yield pa.dictionary(pa.uint64(), pa.int8()), pa.dictionary(pa.int16(), pa.int64()), ints
    yield pa.dictionary(pa.uint8(), pa.int8()), pa.int64(), ints
    yield pa.string(), own, words
    yield pa.int16(), pa.dictionary(pa.int16(), pa.int16()), ints
    yield pa.large_string(), pa.dictionary(pa.uint32(), pa.large_string()), words
    yield pa.bool_(), pa.dictionary(pa.int8(), pa.bool_()), flags


GIVEN = [
    *wider_pairs(),
    *time_pairs(),
    *bool_pairs(),
    *binary_pairs(),
    *list_pairs(),
    *nested_pairs(),
    *dictionary_pairs(),
    (pa.decimal128(10, 2), pa.decimal128(20, 2), [None if x is None else decimal.Decimal(x)
                                                  for x in ints]),
    (pa.null(), pa.int64(), [None] * 19),
    (pa.null(), pa.list_(pa.string()), [None] * 19),
]  # fmt: skip


def build(values: list[Any], type: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(type):
        return pa.array(values, type.value_type).dictionary_encode().cast(type)
    return pa.array(values, type)


def judge(own: pa.Array, wanted: pa.DataType) -> pa.Array:
    """What pyarrow makes of it, by way of plain values where it has no cast, or a wrong one: of
    list views pyarrow 26.0 loses the last values."""
    try:
        if pa.types.is_list_view(own.type) or pa.types.is_large_list_view(own.type):
            return build(own.to_pylist(), wanted)
        return own.cast(wanted)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return build(own.to_pylist(), wanted)


def check_equal(given: pa.Array, wanted: pa.Array) -> None:
    given.validate(full=True)
    assert given.type == wanted.type
    if pa.types.is_dictionary(given.type):
        given, wanted = given.dictionary_decode(), wanted.dictionary_decode()
    assert given.to_pylist() == wanted.to_pylist()
    assert given.null_count == wanted.null_count


@pytest.mark.parametrize("pair", GIVEN, ids=name_of)
def test_what_is_asked_for_is_given(pair: tuple[pa.DataType, pa.DataType, list[Any]]) -> None:
    own_type, wanted_type, values = pair
    own = build(values, own_type)
    # The judge casts whole arrays: pyarrow's own casts of slices are not all right.
    whole = judge(own, wanted_type)
    for start in range(10):
        for stop in (len(own), start + 5, start + 1, start):
            rows = own[start:stop]
            for array in (arrowdl.from_arrow(rows), arrowdl.from_arrow(own)[start:stop]):
                for take in WAYS.values():
                    check_equal(take(array, wanted_type), whole[start:stop])


@pytest.mark.parametrize("pair", GIVEN, ids=name_of)
def test_what_is_not_null_is_given(pair: tuple[pa.DataType, pa.DataType, list[Any]]) -> None:
    own_type, wanted_type, values = pair
    own = build([x for x in values if x is not None], own_type)
    whole = judge(own, wanted_type)
    for start in (0, 1, 9):
        check_equal(take_array(arrowdl.from_arrow(own)[start:], wanted_type), whole[start:])


EXTENSION = "ARROW:extension:name"
BOOLS = pa.array(flags)
BOOL8 = pa.ExtensionArray.from_storage(
    pa.bool8(), pa.array([None if x is None else (3 if x else 0) for x in flags], pa.int8())
)


@by_every_way
def test_bits_and_bytes_of_booleans(take: Way) -> None:
    for start in range(10):
        given = take(arrowdl.from_arrow(BOOL8)[start:], pa.bool_())
        assert given.type == pa.bool_()
        assert given.to_pylist() == flags[start:]
        given = take(arrowdl.from_arrow(BOOLS)[start:], pa.bool8())
        assert given.type == pa.bool8()
        assert given.to_pylist() == flags[start:]
        given = take(arrowdl.from_arrow(BOOL8)[start:], pa.int8())
        assert given.to_pylist() == [None if x is None else 3 * x for x in flags[start:]]


@by_every_way
def test_run_ends_are_decoded_and_widened(take: Way) -> None:
    values = ["a"] * 3 + [None] * 2 + ["b"] * 6
    own = pa.array(values).dictionary_encode()  # pyarrow encodes these alone
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([3, 5, 11], pa.int16()), pa.array(["a", None, "b"])
    )
    assert own.to_pylist() == runs.to_pylist()
    for start in range(9):
        array = arrowdl.from_arrow(runs)[start:]
        for wanted in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
            given = take(array, wanted)
            given.validate(full=True)
            assert (given.type, given.to_pylist()) == (wanted, values[start:])
        wanted = pa.run_end_encoded(pa.int32(), pa.large_string())
        given = take(array, wanted)
        assert (given.type, given.to_pylist()) == (wanted, values[start:])


@by_every_way
def test_bfloat16_is_read_as_float32(take: Way) -> None:
    own = arrowdl.from_arrow(pa.array([b"\x80\x3f", None, b"\x20\xc1"], pa.binary(2)))
    bfloat16 = pa.field("", pa.binary(2), metadata={EXTENSION: "arrowdl.bfloat16"})
    labelled = arrowdl.from_arrow(own.__arrow_c_array__(capsule(bfloat16)))
    assert labelled.type == "arrowdl.bfloat16"
    assert take(labelled, pa.float32()).to_pylist() == [1.0, None, -10.0]
    assert take(labelled, pa.float64()).to_pylist() == [1.0, None, -10.0]


# ---------------------------------------------------------------- the same buffers


def addresses_of(array: pa.Array) -> list[int | None]:
    return [buffer and buffer.address for buffer in array.buffers()]


RELABELLED = [
    (pa.list_(pa.field("item", pa.int32())), pa.list_(pa.field("element", pa.int32())), lists),
    (pa.timestamp("ns", "UTC"), pa.timestamp("ns", "Asia/Tokyo"), ints),
    (pa.string(), pa.binary(), words),
    (pa.large_string(), pa.large_binary(), words),
    (pa.binary(16), pa.uuid(), [b"0123456789abcdef"] * 19),
    (pa.list_(pa.float32(), 6), pa.fixed_shape_tensor(pa.float32(), (2, 3)), [[1.0] * 6] * 19),
]


@by_every_way
@pytest.mark.parametrize("pair", RELABELLED, ids=name_of)
def test_the_same_buffers_are_not_copied(take: Way, pair: Any) -> None:
    own_type, wanted_type, values = pair
    own = pa.array(values, own_type)
    for rows in (slice(0, None), slice(3, None), slice(4, 9)):
        given = take(arrowdl.from_arrow(own[rows]), wanted_type)
        assert given.type == wanted_type
        storage = given.storage if isinstance(given, pa.ExtensionArray) else given
        assert storage.cast(own_type).to_pylist() == own[rows].to_pylist()
        assert [b and b.address for b in storage.buffers()] == [
            b and b.address for b in own.buffers()
        ]
        if pa.types.is_fixed_size_list(storage.type):  # the offset is its items'
            width = storage.type.list_size
            assert storage.offset * width + storage.values.offset == own[rows].offset * width
        else:
            assert storage.offset == own[rows].offset


@by_every_way
def test_tensors_are_lists_in_lists_and_back(take: Way) -> None:
    """The two layouts that arrowdl writes tensors in."""
    values = np.arange(60, dtype=np.float32).reshape(5, 2, 3, 2)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    nested = pa.list_(pa.list_(pa.list_(pa.float32(), 2), 3), 2)
    lists = arrowdl.to_arrow_device(values, layout="list")
    plain = pa.fixed_shape_tensor(pa.float32(), (2, 3, 2))
    for start in (0, 1, 5):
        given = take(arrowdl.from_arrow(tensors)[start:], nested)
        given.validate(full=True)
        assert given.type == nested
        assert given.to_pylist() == values[start:].tolist()
        back = take(lists[start:], plain)
        back.storage.validate(full=True)
        assert back.type == plain
        assert back.storage.to_pylist() == values[start:].reshape(5 - start, 12).tolist()
    wider = take(arrowdl.from_arrow(tensors), pa.list_(pa.list_(pa.list_(pa.float64(), 2), 3), 2))
    assert wider.to_pylist() == values.tolist()
    with pytest.raises(ValueError, match="incompatible"):
        take(arrowdl.from_arrow(tensors), pa.list_(pa.list_(pa.list_(pa.float32(), 2), 2), 3))
    permuted = pa.fixed_shape_tensor(pa.float32(), (2, 3, 2), permutation=[2, 1, 0])
    with pytest.raises(ValueError, match="incompatible"):
        take(lists, permuted)


def test_null_lists_in_lists_are_no_tensor() -> None:
    nested = pa.list_(pa.list_(pa.int8(), 2), 2)
    tensor = pa.fixed_shape_tensor(pa.int8(), (2, 2))
    own = pa.array([[[1, 2], [3, 4]], None, [[5, None], [7, 8]]], nested)
    given = take_array(arrowdl.from_arrow(own), tensor)  # pyarrow writes nulls below a null
    rows = [[1, 2, 3, 4], None, [5, None, 7, 8]]
    assert (given.type, given.storage.to_pylist()) == (tensor, rows)
    partly = pa.array([[[1, 2], None]], nested)
    with pytest.raises(ValueError, match="are null"):
        take_array(arrowdl.from_arrow(partly), tensor)


def test_an_extension_becomes_its_storage() -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 2, 2), np.float32))
    given = take_array(arrowdl.from_arrow(tensors), pa.list_(pa.float32(), 4))
    assert given.type == pa.list_(pa.float32(), 4)
    wider = pa.fixed_shape_tensor(pa.float64(), (2, 2))
    assert take_array(arrowdl.from_arrow(tensors), wider).type == wider


@by_every_way
def test_a_request_that_is_ones_own_costs_nothing(take: Way) -> None:
    own = pa.array(ints)[3:]
    given = take(arrowdl.from_arrow(own), own.type)
    assert given.equals(own)
    assert given.buffers()[1].address == own.buffers()[1].address


FIELD = pa.field("x", pa.int32(), metadata={"unit": "m"})


def schema_of(pair: Any) -> pa.Field:
    return pa.Field._import_from_c_capsule(pair[0])


def test_names_metadata_and_nullability_are_given() -> None:
    array = arrowdl.from_arrow(pa.array([1, 2, 3], pa.int32()))
    wanted = pa.field("x", pa.int64(), nullable=False, metadata={"unit": "m"})
    for method in (array.__arrow_c_array__, array.__arrow_c_device_array__):
        assert schema_of(method(capsule(wanted))).equals(wanted, check_metadata=True)
        assert schema_of(method(capsule(FIELD))).equals(FIELD, check_metadata=True)
    named = arrowdl.from_arrow(array.__arrow_c_array__(capsule(FIELD)))
    plain = schema_of(named.__arrow_c_array__(capsule(pa.field("", pa.int32()))))
    assert (plain.name, plain.metadata) == ("", None)


def test_fields_are_found_by_name_and_renamed_by_position() -> None:
    own = pa.record_batch({"a": [1, 2], "b": ["x", "y"], "c": [True, None]})
    array = arrowdl.from_arrow(own)

    def ask(**fields: pa.DataType) -> Any:
        batch = take_array(array, pa.schema(fields))
        return {name: batch.field(i).to_pylist() for i, name in enumerate(fields)}

    a, b, c = own.to_pydict().values()
    assert ask(c=pa.bool_(), a=pa.int64(), b=pa.string()) == {"c": c, "a": a, "b": b}
    assert ask(x=pa.int64(), y=pa.string(), z=pa.bool_()) == {"x": a, "y": b, "z": c}
    assert ask(a=pa.int64(), y=pa.string(), c=pa.bool_()) == {"a": a, "y": b, "c": c}
    # "b" may be the first field under another name, or the second one.
    with pytest.raises(ValueError, match="some names of the fields are the same"):
        ask(b=pa.int64(), y=pa.string(), z=pa.bool_())


@pytest.mark.parametrize("start", range(4))
def test_fields_in_another_order_keep_the_nulls_of_their_struct(start: int) -> None:
    own = pa.array(structs, pa.struct({"a": pa.int64(), "b": pa.string()}))
    wanted = pa.struct({"b": pa.string(), "a": pa.int64()})
    array = arrowdl.from_arrow(own)[start:]
    for take in WAYS.values():
        given = take(array, wanted)
        given.validate(full=True)
        assert given.type == wanted
        assert given.to_pylist() == own[start:].to_pylist()


# ---------------------------------------------------------------- values that do not fit

# No consumer looks whether it got another type (nanoarrow 0.9), or it fails (pyarrow 26), so arrays
# are refused as streams are.
UNFIT = [
    (pa.timestamp("ns"), pa.timestamp("us"), [1000, None, 1001], "row 2 .* is 1001"),
    (pa.timestamp("s"), pa.timestamp("ns"), [2**62], "is 4611686018427387904"),
    (pa.date64(), pa.date32(), [86400001], "is 86400001"),
    (pa.list_(pa.int8()), pa.list_(pa.int8(), 2), [[1, 2], [3]], "row 1 .* has 1 values"),
    (pa.list_(pa.int8()), pa.list_(pa.int8(), 2), [[], None], "row 0 .* has 0 values"),
    (pa.int16(), pa.dictionary(pa.int8(), pa.int16()), list(range(129)), "129 distinct values"),
    (pa.list_(pa.timestamp("ns")), pa.list_(pa.timestamp("s")), [[1]], "is 1, which"),
    (pa.timestamp("s"), pa.date32(), [86401], "is 86401, which"),
    (pa.date32(), pa.timestamp("ns"), [2**30], "is 1073741824, which"),
]


@by_every_way
@pytest.mark.parametrize("pair", UNFIT, ids=name_of)
def test_values_that_do_not_fit_are_refused(take: Way, pair: Any) -> None:
    own_type, wanted_type, values, message = pair
    array = arrowdl.from_arrow(pa.array([values[0], *values], own_type)[1:])
    with pytest.raises((ValueError, OSError), match=message):
        take(array, wanted_type)


def test_codes_that_shorter_indices_do_not_hold_are_refused() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 200]), pa.array(range(201)))
    with pytest.raises(ValueError, match=r"row 1 .* is 200, which dictionary<int8"):
        take_array(arrowdl.from_arrow(codes), pa.dictionary(pa.int8(), pa.int64()))


UNFIT_NUMBERS = [
    (pa.int64(), pa.int8(), [1, None, 128], "row 2 of int64 is 128, which int8 cannot hold"),
    (pa.int64(), pa.uint64(), [-1], "row 0 of int64 is -1, which uint64 cannot hold"),
    (pa.int64(), pa.float32(), [2**24, 2**24 + 1], "row 1 of int64 is 16777217, which float32"),
    (pa.int64(), pa.float64(), [2**53 + 1], "is 9007199254740993, which float64 cannot hold"),
    (pa.int64(), pa.float64(), [2**63 - 1], "is 9223372036854775807, which float64"),
    (pa.uint64(), pa.float32(), [2**64 - 1], "is 18446744073709551615, which float32"),
    (pa.uint64(), pa.int64(), [2**63], "is 9223372036854775808, which int64"),
    (pa.int32(), pa.float16(), [2049], "is 2049, which float16"),
    (pa.int32(), pa.float16(), [65536], "is 65536, which float16"),
    (pa.float64(), pa.int64(), [1.0, 1.5], "row 1 of float64 is 1.5, which int64"),
    (pa.float64(), pa.int64(), [float("nan")], "is nan, which int64"),
    (pa.float64(), pa.float32(), [1e300], r"is 1\.0+1?e\+300, which float32"),
    (pa.list_(pa.int64()), pa.list_(pa.int8()), [[1], [200]], "row 1 of int64 is 200, which int8"),
    (pa.struct({"a": pa.int64()}), pa.struct({"a": pa.int8()}), [{"a": 200}], "is 200, which int8"),
]


@by_every_way
@pytest.mark.parametrize("pair", UNFIT_NUMBERS, ids=name_of)
def test_numbers_that_do_not_fit_are_refused(take: Way, pair: Any) -> None:
    own_type, wanted_type, values, message = pair
    array = arrowdl.from_arrow(pa.array([values[-1], *values], own_type))
    with pytest.raises((ValueError, OSError), match=message):
        take(array[1:], wanted_type)
    if len(values) > 1:  # a window without the last one
        given = take(array[1:-1], wanted_type)
        assert given.type == wanted_type
        assert given.to_pylist() == values[:-1]


@by_every_way
def test_large_integers_that_a_float_holds_are_given(take: Way) -> None:
    values = [2**24 + 2, -(2**40), 2**63 - 2**40, -(2**63), 0]
    own = arrowdl.from_arrow(pa.array(values))
    given = take(own, pa.float32())
    assert given.to_pylist() == [float(value) for value in values]
    assert all(int(x) == value for x, value in zip(given.to_pylist(), values, strict=True))


@by_every_way
def test_floats_are_rounded_to_the_requested_float(take: Way) -> None:
    """As pyarrow casts them: few floats are exact in a shorter type."""
    values = [0.1, 1 / 3, 1e-300, float("inf"), float("-inf"), None]
    own = pa.array(values)
    assert take(arrowdl.from_arrow(own), pa.float32()).equals(own.cast(pa.float32()))
    given = take(arrowdl.from_arrow(pa.array([0.1, float("nan")], pa.float32())), pa.float16())
    assert given.to_pylist()[0] == np.float16(np.float32(0.1))
    assert np.isnan(given.to_pylist()[1])


@by_every_way
def test_numbers_under_a_null_fit_everywhere(take: Way) -> None:
    own = pa.array(np.array([1, 300, 2**53 + 1]), mask=np.array([False, True, True]))
    for wanted in (pa.int8(), pa.float32(), pa.float64()):
        given = take(arrowdl.from_arrow(own), wanted)
        assert (given.type, given.to_pylist()) == (wanted, [1, None, None])


def test_what_lies_under_a_null_fits_everywhere() -> None:
    mask = np.array([False, True])
    own = pa.array(np.array([1000, 1001]), pa.timestamp("ns"), mask=mask)
    assert take_array(arrowdl.from_arrow(own), pa.timestamp("us")).type == pa.timestamp("us")
    values = pa.array([1, 2, 3, 4, 5], pa.int32())
    cut = pa.ListArray.from_arrays(pa.array([0, 2, 3, 5], pa.int32()), values,
                                   mask=pa.array([False, True, False]))  # fmt: skip
    given = take_array(arrowdl.from_arrow(cut), pa.list_(pa.int32(), 2))
    given.validate(full=True)
    assert given.to_pylist() == [[1, 2], None, [4, 5]]
    nulls = pa.array([None, None], pa.list_(pa.int32()))
    given = take_array(arrowdl.from_arrow(nulls), pa.list_(pa.int32(), 2))
    assert (given.type, given.to_pylist()) == (pa.list_(pa.int32(), 2), [None, None])


NUMBERS = pa.array([1, 300, 2, 2**24 + 1])
WANTED = (pa.int8(), pa.float32())
MASK = pa.array([False, True, False, True])


def make_runs(values: pa.Array) -> pa.RunEndEncodedArray:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), values)


# Arrays with the rows 1, 2, or their nulls, of which no row has the numbers 300 and 2^24 + 1.
UNUSED: dict[str, tuple[pa.Array, Callable[[pa.DataType], pa.DataType]]] = {
    "decoded": (pa.DictionaryArray.from_arrays(pa.array([0, None, 2]), NUMBERS), lambda to: to),
    "dictionary": (
        pa.DictionaryArray.from_arrays(pa.array([0, None, 2]), NUMBERS),
        lambda to: pa.dictionary(pa.int64(), to),
    ),
    "codes under a null": (
        pa.StructArray.from_arrays(
            [pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), NUMBERS)], ["a"], mask=MASK
        ),
        lambda to: pa.struct({"a": to}),
    ),
    "runs": (make_runs(NUMBERS)[2:3], lambda to: pa.run_end_encoded(pa.int32(), to)),
    "decoded runs": (make_runs(NUMBERS)[2:3], lambda to: to),
    "struct": (
        pa.StructArray.from_arrays([NUMBERS], ["a"], mask=MASK),
        lambda to: pa.struct({"a": to}),
    ),
    "struct in struct": (
        pa.StructArray.from_arrays(
            [pa.StructArray.from_arrays([NUMBERS], ["a"])], ["b"], mask=MASK
        ),
        lambda to: pa.struct({"b": pa.struct({"a": to})}),
    ),
    "list": (
        pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), NUMBERS, mask=MASK),
        lambda to: pa.list_(to),
    ),
    "large list": (
        pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), NUMBERS, mask=MASK),
        lambda to: pa.large_list(to),
    ),
    "list of a size": (
        pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), NUMBERS, mask=MASK),
        lambda to: pa.list_(to, 1),
    ),
    "fixed list": (
        pa.FixedSizeListArray.from_arrays(NUMBERS, 1, mask=MASK),
        lambda to: pa.list_(to, 1),
    ),
    "view": (
        pa.ListViewArray.from_arrays([0, 2], [1, 1], NUMBERS),
        lambda to: pa.list_(to),
    ),
    "tensor": (
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int64(), (1, 1)),
            pa.FixedSizeListArray.from_arrays(NUMBERS, 1, mask=MASK),
        ),
        lambda to: pa.list_(pa.list_(to, 1), 1),
    ),
}


@pytest.mark.parametrize("to", WANTED, ids=str)
@pytest.mark.parametrize("case", UNUSED.values(), ids=UNUSED)
def test_numbers_that_no_row_has_fit_everywhere(case: Any, to: pa.DataType) -> None:
    own, make_type = case
    wanted = make_type(to)
    rows = own.to_pylist()
    if isinstance(own, pa.ExtensionArray):
        rows = [None if row is None else [row] for row in rows]
    for take in (take_array, take_device_array, take_stream):
        given = take(arrowdl.from_arrow(own), wanted)
        given.validate(full=True)
        assert given.type == wanted
        assert given.to_pylist() == rows


@pytest.mark.parametrize("case", UNUSED.values(), ids=UNUSED)
def test_numbers_that_a_row_has_have_to_fit(case: Any) -> None:
    own, make_type = case
    if isinstance(own, pa.DictionaryArray):
        own = pa.DictionaryArray.from_arrays(pa.array([0, 1]), own.dictionary)
    elif isinstance(own, pa.RunEndEncodedArray):
        own = make_runs(NUMBERS)[1:3]
    else:
        return
    with pytest.raises(ValueError, match="is 300, which int8 cannot hold"):
        take_array(arrowdl.from_arrow(own), make_type(pa.int8()))


def test_times_and_lists_that_no_row_has_fit_everywhere() -> None:
    times = pa.DictionaryArray.from_arrays(
        pa.array([0, 0]), pa.array([1000, 1001], pa.timestamp("ns"))
    )
    given = take_array(arrowdl.from_arrow(times), pa.timestamp("us"))
    assert given.equals(pa.array([1, 1], pa.timestamp("us")))
    lists = pa.array([[1], [], [2]])
    struct = pa.StructArray.from_arrays([lists], ["a"], mask=pa.array([False, True, False]))
    wanted = pa.struct({"a": pa.list_(pa.int64(), 1)})
    given = take_array(arrowdl.from_arrow(struct), wanted)
    assert (given.type, given.to_pylist()) == (wanted, [{"a": [1]}, None, {"a": [2]}])
    empty = pa.StructArray.from_arrays([lists[1:2]], ["a"], mask=pa.array([True]))
    given = take_array(arrowdl.from_arrow(empty), wanted)
    assert (given.type, given.to_pylist()) == (wanted, [None])


# ---------------------------------------------------------------- errors

TWO = pa.struct({"a": pa.int64(), "b": pa.int64()})
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
INCOMPATIBLE = [
    (TWO, pa.struct({"a": pa.int64()})),
    (TWO, pa.struct({"a": pa.int64(), "b": pa.int64(), "c": pa.int64()})),
    (TWO, pa.int64()),
    (pa.int64(), TWO),
    (pa.int64(), pa.string()),
    (pa.string(), pa.int64()),
    (pa.int64(), pa.list_(pa.int64())),
    (pa.list_(pa.int64()), pa.int64()),
    (pa.list_(TWO), TWO),
    (pa.list_(pa.int64(), 2), pa.list_(pa.int64(), 3)),
    (pa.list_(pa.int64()), pa.list_(pa.string())),
    (pa.binary(3), pa.binary(4)),
    (pa.int64(), pa.null()),
    (pa.dictionary(pa.int8(), pa.string()), pa.int64()),
    (pa.timestamp("us"), pa.string()),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    (pa.timestamp("us", "UTC"), pa.date32()),
    (pa.date32(), pa.timestamp("us", "UTC")),
    (pa.timestamp("us"), pa.date64()),
    (pa.timestamp("us"), pa.duration("us")),
    (pa.timestamp("us"), pa.int32()),
    (pa.int32(), pa.timestamp("us")),
    (pa.int64(), pa.time64("us")),
    (pa.int64(), pa.date64()),
    (pa.uint64(), pa.timestamp("us")),
    (pa.float64(), pa.timestamp("us")),
    (pa.month_day_nano_interval(), pa.int64()),
    (pa.bool_(), pa.timestamp("s")),
    (pa.bool_(), pa.string()),
    (pa.int8(), pa.bool_()),
    (pa.binary(), pa.string()),
    (pa.decimal128(10, 2), pa.decimal128(5, 2)),
    (pa.decimal128(10, 2), pa.decimal128(12, 3)),
    (pa.decimal128(10, 2), pa.decimal256(10, 2)),
    (pa.decimal128(10, 2), pa.float64()),
    (pa.int64(), pa.decimal128(20, 0)),
    (pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int32(), pa.string(), True)),
    (pa.string(), pa.run_end_encoded(pa.int32(), pa.string())),
    (
        pa.list_(pa.struct({"key": pa.string(), "value": pa.int8()})),
        pa.map_(pa.string(), pa.int8()),
    ),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
    (
        pa.struct({"a": pa.int8(), "b": pa.int32()}),
        pa.struct({"a": pa.int64(), "b": pa.timestamp("s")}),
    ),
    (pa.null(), pa.list_(DICTIONARY, 2)),
    (pa.fixed_shape_tensor(pa.int8(), (2, 3)), pa.fixed_shape_tensor(pa.int8(), (3, 2))),
    (pa.uuid(), pa.opaque(pa.binary(16), "a", "b")),
    (pa.struct({"a": TWO, "b": pa.int8()}), pa.struct({"a": pa.struct([]), "b": pa.int8()})),
]


@by_every_way
@pytest.mark.parametrize("pair", INCOMPATIBLE, ids=name_of)
def test_what_is_incompatible_is_an_error(take: Way, pair: Any) -> None:
    own = pa.array([], pair[0]) if not isinstance(pair[0], pa.ExtensionType) else (
        pa.ExtensionArray.from_storage(pair[0], pa.array([], pair[0].storage_type))
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"requested schema is incompatible .* is requested as"):
        take(arrowdl.from_arrow(own), pair[1])


def test_members_of_unions_are_not_converted() -> None:
    codes = pa.array([0, 0], pa.int8())
    union = pa.UnionArray.from_sparse(codes, [pa.array([1, 2], pa.int8())], ["a"])
    wanted = pa.sparse_union([pa.field("a", pa.int64())])
    with pytest.raises(ValueError, match=r"incompatible .*sparse_union<a: int64>"):
        take_array(arrowdl.from_arrow(union), wanted)


def test_an_error_names_the_field() -> None:
    own = arrowdl.from_arrow(pa.table({"a": [{"x": 1}]}))
    with pytest.raises(ValueError, match=r"\(unnamed\) > a > x: int64 is requested as string"):
        own.__arrow_c_array__(capsule(pa.schema({"a": pa.struct({"x": pa.string()})})))


@by_every_way
def test_the_root_of_a_table_is_as_nullable_as_it_was(take: Way) -> None:
    """pyarrow's schemas have no flags at their root: they do not say that no row is null."""
    own = pa.array(structs, pa.struct({"a": pa.int64(), "b": pa.string()}))
    wanted = pa.schema({"a": pa.int64(), "b": pa.large_string()})
    given = take(arrowdl.from_arrow(own), wanted)
    assert given.type == pa.struct(list(wanted))
    assert given.to_pylist() == own.to_pylist()
    pair = arrowdl.from_arrow(own).__arrow_c_array__(capsule(wanted))
    assert schema_of(pair).nullable


@pytest.mark.parametrize("nullable", [True, False])
def test_nulls_where_there_may_be_none(nullable: bool) -> None:
    for values in (ints, [1, 2, 3]):
        for of in (pa.int64(), pa.int8()):
            own = pa.array(values, pa.int8())
            wanted = pa.schema([pa.field("x", of, nullable)])
            array = arrowdl.from_arrow(pa.table({"x": own}))
            refused = not nullable and values is ints
            for take in (take_array, take_device_array):
                if refused:
                    with pytest.raises(ValueError, match='field "x" of int8 has nulls'):
                        take(array, wanted)
                else:
                    assert take(array, wanted).type.field(0) == wanted.field(0)
            if refused:
                with pytest.raises(pa.ArrowInvalid, match='field "x" of int8 has nulls'):
                    take_stream(array, wanted)


RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([7, None]))
CODES = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array([7, None]))


@pytest.mark.parametrize("own", [RUNS, CODES], ids=["runs", "codes"])
@pytest.mark.parametrize("decoded", [False, True])
def test_rows_of_null_values_are_null(own: Any, decoded: bool) -> None:
    """Rows of runs and codes have no validity bit for a null among the values."""
    array = arrowdl.from_arrow(pa.table({"x": own}))
    wanted = pa.schema([pa.field("x", pa.int64() if decoded else own.type, nullable=False)])
    for take in (take_array, take_device_array):
        with pytest.raises(ValueError, match=r'field "x" of .* has nulls'):
            take(array, wanted)
    with pytest.raises(pa.ArrowInvalid, match=r'field "x" of .* has nulls'):
        take_stream(array, wanted)
    if not decoded:
        given = take_array(array[:1], wanted)  # a window without the null
        assert given.type.field(0) == wanted.field(0)
        assert given.to_pylist() == [{"x": 7}]


def test_nulls_outside_of_the_window_do_not_count() -> None:
    array = arrowdl.from_arrow(pa.table({"x": ints}))[2:5]
    wanted = pa.schema([pa.field("x", pa.int64(), False)])
    assert take_array(array, wanted).to_pylist() == [{"x": x} for x in ints[2:5]]
    items = arrowdl.from_arrow(pa.array([[None], [1, 2]]))
    wanted_list = pa.list_(pa.field("item", pa.int64(), False))
    assert take_array(items[1:], wanted_list).type.value_field.nullable is False
    with pytest.raises(ValueError, match='"item" of int64 has nulls'):
        take_array(items, wanted_list)


def test_nulls_under_a_null_are_no_error() -> None:
    """They do not count and still are in the bitmap: one's own schema then."""
    mask = pa.array([False, True])
    own = pa.StructArray.from_arrays([pa.array([1, None])], names=["x"], mask=mask)
    wanted = pa.struct([pa.field("x", pa.int64(), False)])
    assert take_array(arrowdl.from_arrow(own), wanted).equals(own)


def never_null(kind: Any, name: str = "item") -> pa.Field:
    return pa.field(name, kind, nullable=False)


def under_nulls() -> dict[str, tuple[Any, Any, Any]]:
    """Types whose children are not nullable, with rows of which nulls count, and do not count."""
    number = pa.int64()
    inner = pa.struct({"b": number})
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([5, None]))
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 2, 3], pa.int32()), pa.array([5, 6, None])
    )
    mask = pa.array([False, False, True])

    def struct(child: Any) -> Any:
        return pa.StructArray.from_arrays([child], ["a"], mask=mask)

    def union(values: Any) -> Any:
        ids = pa.array([0, 1, 1], pa.int8())
        return pa.UnionArray.from_sparse(ids, [values, pa.array([7, 8, 9])])

    def dense(values: Any) -> Any:
        ids, rows = pa.array([0, 1, 0], pa.int8()), pa.array([1, 0, 2], pa.int32())
        return pa.UnionArray.from_dense(ids, rows, [values, pa.array([7])])

    def lists(kind: Any, offsets: list[int]) -> Any:
        values = pa.array([None, 1, 2, None] if offsets[0] else [1, None, 2, 3])
        return kind.from_arrays(pa.array(offsets, pa.int32()), values)

    views = pa.array([0, 0], pa.int32()), pa.array([1, 2], pa.int32())
    fixed = pa.array([[1, None], None], pa.list_(number, 2))
    pairs = pa.array([[("k", 1), ("l", None)], None], pa.map_(pa.string(), number))
    return {
        "struct": (
            pa.struct([never_null(number, "a")]),
            struct(pa.array([1, None, None])),
            struct(pa.array([1, 2, None])),
        ),
        "struct of a struct": (
            pa.struct([never_null(inner, "a")]),
            struct(pa.array([{"b": 1}, None, None], inner)),
            struct(pa.array([{"b": 1}, {"b": None}, None], inner)),
        ),
        "struct of codes": (pa.struct([never_null(codes.type, "a")]), struct(codes), None),
        "struct of runs": (
            pa.struct([never_null(runs.type, "a")]),
            pa.StructArray.from_arrays([runs], ["a"], mask=pa.array([False, True, False])),
            struct(runs),
        ),
        "list": (
            pa.list_(never_null(number)),
            lists(pa.ListArray, [0, 1, 3]),
            lists(pa.ListArray, [1, 2, 3]),
        ),
        "list view": (
            pa.list_view(never_null(number)),
            pa.ListViewArray.from_arrays(*views, pa.array([1, None])),
            pa.ListViewArray.from_arrays(*views, pa.array([1, 2, None])),
        ),
        "fixed-size list": (pa.list_(never_null(number), 2), fixed, fixed[1:]),
        "map": (pa.map_(pa.string(), never_null(number, "value")), pairs, pairs[1:]),
        "sparse union": (
            pa.sparse_union([never_null(number, "0"), pa.field("1", number)]),
            union(pa.array([None, 1, 2])),
            union(pa.array([1, None, 2])),
        ),
        "dense union": (
            pa.dense_union([never_null(number, "0"), pa.field("1", number)]),
            dense(pa.array([1, None, 3])),
            dense(pa.array([None, 1, 3])),
        ),
    }


@pytest.mark.parametrize("name", under_nulls())
@pytest.mark.parametrize("inside", [False, True])
def test_nulls_that_count_are_refused_under_outer_nulls(name: str, inside: bool) -> None:
    """Only rows that are not null themselves count, whatever other rows are."""
    kind, counted, other = under_nulls()[name]
    if inside:  # rows of a struct that has nulls of its own
        mask = pa.array([False] * (len(counted) - 1) + [len(counted) > 3])
        kind = pa.struct([pa.field("x", kind)])
        counted = pa.StructArray.from_arrays([counted], ["x"], mask=mask)
        other = other and pa.StructArray.from_arrays([other], ["x"])
    for array in (arrowdl.from_arrow(counted), arrowdl.from_arrow(pa.concat_arrays([counted]))):
        with pytest.raises(ValueError, match="has nulls and is requested as not nullable"):
            take_array(array, kind)
    if other is not None:
        assert take_array(arrowdl.from_arrow(other), kind).to_pylist() == other.to_pylist()


RUBBISH = ["rubbish", 1, pa.int64(), b"", (), object()]


def methods_of_everything() -> dict[str, Callable[[Any], Any]]:
    array = arrowdl.from_arrow(pa.table({"a": [1]}))
    return {
        "array": array.__arrow_c_array__,
        "device_array": array.__arrow_c_device_array__,
        "struct stream": array.__arrow_c_stream__,
        "struct device stream": array.__arrow_c_device_stream__,
        "stream": lambda x: arrowdl.from_arrow_stream(array).__arrow_c_stream__(x),
        "device stream": lambda x: arrowdl.from_arrow_stream(array).__arrow_c_device_stream__(x),
    }


@pytest.mark.parametrize("way", methods_of_everything())
def test_no_schema_capsule_is_an_error(way: str) -> None:
    method = methods_of_everything()[way]
    for rubbish in RUBBISH:
        with pytest.raises(TypeError, match='expected a capsule named "arrow_schema", got'):
            method(rubbish)
    with pytest.raises(TypeError, match='got a capsule named "arrow_array"'):
        method(pa.array([1]).__arrow_c_array__()[1])
    spent = capsule(pa.schema({"a": pa.int64()}))
    pa.Schema._import_from_c_capsule(spent)
    with pytest.raises(ValueError, match="consumed already"):
        method(spent)


def test_a_stream_that_is_refused_can_be_read_still() -> None:
    stream = arrowdl.from_arrow_stream(pa.table({"a": [1]}))
    for wanted in ("rubbish", capsule(pa.schema([]))):
        with pytest.raises((TypeError, ValueError)):
            stream.__arrow_c_stream__(wanted)
    assert pa.table(stream).to_pydict() == {"a": [1]}


def test_a_capsule_can_be_passed_again() -> None:
    wanted = capsule(pa.int64())
    array = arrowdl.from_arrow(pa.array([1], pa.int8()))
    for _ in range(2):
        pair = array.__arrow_c_array__(wanted)
        assert pa.Array._import_from_c_capsule(*pair).type == pa.int64()


@pytest.mark.parametrize("way", methods_of_everything())
def test_a_malformed_request_is_an_error(way: str) -> None:
    method = methods_of_everything()[way]
    unknown = MadeSchema("no format").capsule()
    with pytest.raises(ValueError, match="malformed Arrow schema"):
        method(unknown)
    made = MadeSchema("+s")
    made.struct.n_children = 1
    lost = made.capsule()
    with pytest.raises(ValueError, match="its children are NULL"):
        method(lost)


# ---------------------------------------------------------------- on a device

EVENT = 4096  # never read, nor is the memory


def on_device(device: tuple[int, int] = (2, 0), event: int | None = EVENT) -> Any:
    """struct<a: int32, s: string> with nulls that have not been counted."""
    schema = MadeSchema("+s", children=[MadeSchema("i", "a"), MadeSchema("u", "s")])
    children = [MadeArray(9, [None, 8192]), MadeArray(9, [None, 12288, 16384])]
    array = MadeArray(9, [20480], null_count=-1, children=children)
    made = MadeDeviceArray(array, device, event)
    return arrowdl.from_arrow((schema.capsule(), made.capsule()))[3:8]


def test_on_a_device_what_shares_its_memory_is_given() -> None:
    array = on_device()
    wanted = pa.schema({"s": pa.binary(), "a": pa.field("a", pa.int32(), metadata={"k": "v"}).type})
    pair = array.__arrow_c_device_array__(capsule(wanted))
    given = arrowdl.from_arrow(pair)
    assert given.type == "struct<s: binary, a: int32>"
    assert (given.device, given.sync_event, len(given)) == (array.device, EVENT, 5)
    streamed = next(arrowdl.from_arrow_stream(array.__arrow_c_device_stream__(capsule(wanted))))
    assert (streamed.type, streamed.sync_event) == (given.type, EVENT)
    view = c_device_array(given).array
    own = c_device_array(array).array
    assert (view.offset, view.length) == (own.offset, own.length)
    assert view.buffers[0] == own.buffers[0] == 20480
    assert view.child(1).buffers[1] == own.child(0).buffers[1] == 8192


def test_on_a_device_nothing_is_read_or_made() -> None:
    array = on_device()
    wider = pa.schema({"a": pa.int64(), "s": pa.string()})
    never_null = pa.schema([pa.field("a", pa.int32(), False), pa.field("s", pa.string())])
    given = arrowdl.from_arrow(array.__arrow_c_device_array__(capsule(wider)))
    assert given.type == array.type
    given = next(arrowdl.from_arrow_stream(array.__arrow_c_device_stream__(capsule(wider))))
    assert given.type == array.type
    # The fields have no bitmaps, which is to be seen of an array and not of a stream's type.
    given = arrowdl.from_arrow(array.__arrow_c_device_array__(capsule(never_null)))
    assert [child.nullable for child in given.schema.children] == [False, True]
    stream = arrowdl.from_arrow_stream(
        arrowdl.from_arrow_stream(array).__arrow_c_device_stream__(capsule(never_null))
    )
    assert [child.nullable for child in stream.schema.children] == [True, True]
    with pytest.raises(ValueError, match="incompatible"):
        array.__arrow_c_device_array__(capsule(pa.schema({"a": pa.int32()})))


def test_on_a_device_nulls_that_nobody_counts_may_be_there() -> None:
    schema = MadeSchema("+w:1", children=[MadeSchema("i", "item")])
    array = MadeArray(2, [None], children=[MadeArray(2, [4096, 8192], null_count=-1)])
    pair = (schema.capsule(), MadeDeviceArray(array, (2, 0)).capsule())
    own = arrowdl.from_arrow(pair)
    wanted = pa.list_(pa.field("item", pa.int32(), nullable=False), 1)
    given = arrowdl.from_arrow(own.__arrow_c_device_array__(capsule(wanted)))
    assert given.schema.children[0].nullable


@pytest.mark.parametrize("device", [(2, 0), (7, 0)])
def test_on_a_device_there_is_no_host_stream(device: tuple[int, int]) -> None:
    array = on_device(device, None)
    with pytest.raises(BufferError, match="host memory"):
        array.__arrow_c_stream__()
    stream = arrowdl.from_arrow_stream(array.__arrow_c_device_stream__())
    assert stream.device_type == device[0]
    for wanted in (None, capsule(pa.schema({"x": pa.int32(), "y": pa.string()}))):
        with pytest.raises(BufferError, match="host"):
            stream.__arrow_c_stream__(wanted)
    assert next(stream).device == array.device, "what is refused can be read still"


# ---------------------------------------------------------------- streams, chunk by chunk


def test_every_chunk_of_a_stream_is_of_the_schema() -> None:
    own = pa.chunked_array([[1, None], [], [3]], pa.int8())
    stream = arrowdl.from_arrow_stream(own).__arrow_c_stream__(capsule(pa.int64()))
    given = pa.ChunkedArray._import_from_c_capsule(stream)
    assert (given.type, given.num_chunks) == (pa.int64(), 3)
    assert given.to_pylist() == own.to_pylist()
    given.validate(full=True)


def test_the_chunks_before_one_that_does_not_fit_are_read() -> None:
    own = pa.table({"t": pa.chunked_array([[1000], [1]], pa.timestamp("ns"))})
    wanted = pa.schema({"t": pa.timestamp("us")})
    reader = pa.RecordBatchReader.from_stream(arrowdl.from_arrow_stream(own), wanted)
    assert reader.schema == wanted
    assert reader.read_next_batch().num_rows == 1
    with pytest.raises(pa.ArrowInvalid, match=r"is 1, which timestamp\[us\] cannot hold"):
        reader.read_next_batch()


# ---------------------------------------------------------------- consumers

BATCH = pa.record_batch({"a": pa.array([1, None], pa.int8()), "s": ["x", None]})
WANTED = pa.schema({"a": pa.int64(), "s": pa.large_string()})


@dataclass
class Consumer:
    take: Callable[[Any, pa.Schema], Any]
    of: Callable[[Any], Any] = arrowdl.from_arrow


CONSUMERS = {
    "from_stream": Consumer(
        lambda x, s: pa.RecordBatchReader.from_stream(x, s).read_all(), arrowdl.from_arrow_stream
    ),
    "from_stream of a struct": Consumer(
        lambda x, s: pa.RecordBatchReader.from_stream(x, s).read_all()
    ),
    "pa.table": Consumer(lambda x, s: pa.table(x, schema=s)),
    "pa.table of a stream": Consumer(lambda x, s: pa.table(x, schema=s), arrowdl.from_arrow_stream),
    "pa.record_batch": Consumer(lambda x, s: pa.record_batch(x, schema=s)),
    "pa.array": Consumer(
        lambda x, s: pa.RecordBatch.from_struct_array(pa.array(x, type=pa.struct(list(s))))
    ),
    "na.c_array": Consumer(lambda x, s: pa.record_batch(na.c_array(x, s))),
    "na.Array": Consumer(lambda x, s: pa.record_batch(na.Array(x, s))),
    "na.ArrayStream": Consumer(
        lambda x, s: pa.table(na.ArrayStream(x, s)), arrowdl.from_arrow_stream
    ),
    "na.c_device_array": Consumer(
        lambda x, s: pa.record_batch(c_device_array(x, s)),
    ),
}


@pytest.mark.parametrize("consumer", CONSUMERS.values(), ids=CONSUMERS.keys())
def test_consumers_get_what_they_ask_for(consumer: Consumer) -> None:
    given = consumer.take(consumer.of(BATCH), WANTED)
    assert given.schema == WANTED
    assert given.to_pydict() == BATCH.to_pydict()


@pytest.mark.parametrize(
    "requested",
    [
        DICTIONARY,
        pa.list_(DICTIONARY),
        pa.struct([("a", DICTIONARY)]),
        pa.list_(DICTIONARY, 2),
        pa.list_(pa.struct([("a", DICTIONARY)]), 2),
        pa.struct([("a", pa.run_end_encoded(pa.int32(), pa.int8()))]),
    ],
    ids=str,
)
def test_nulls_of_any_type_are_valid(requested: pa.DataType) -> None:
    """An index below a null row needs a value of its dictionary, and run ends need a run."""
    field = pa.field("", requested)
    array = arrowdl.from_arrow(pa.nulls(3))
    if requested.num_fields and not pa.types.is_list(requested):
        with pytest.raises(ValueError, match="incompatible"):
            array.__arrow_c_array__(field.__arrow_c_schema__())
        return
    given = pa.Array._import_from_c_capsule(*array.__arrow_c_array__(field.__arrow_c_schema__()))
    given.validate(full=True)
    assert (given.type, given.null_count) == (requested, 3)


@pytest.mark.parametrize("below_null", [True, False])
def test_indices_that_stand_for_nothing_leave_the_type(below_null: bool) -> None:
    own = pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))])
    array = pa.array([None, None], own) if below_null else pa.array([{"a": None}] * 2, own)
    field = pa.field("", pa.struct([("a", pa.string())]))
    capsules = arrowdl.from_arrow(array).__arrow_c_array__(field.__arrow_c_schema__())
    given = pa.Array._import_from_c_capsule(*capsules)
    assert given.to_pylist() == array.to_pylist()
