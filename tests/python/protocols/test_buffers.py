"""Python's buffer protocol: what exporters leave out, and fields that contradict each other."""

from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Callable
from multiprocessing.sharedctypes import RawArray
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.buffers import MadeBuffer


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_float)]


class Vector(ctypes.c_float * 3):
    """A subclass, as warp's vec3 is one."""


BIG_ENDIAN: Any = ctypes.c_uint32.__ctype_be__

# What is exported, and its values. ctypes gives no strides, although they are asked for.
EXPORTERS: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "ctypes": (lambda: (ctypes.c_float * 3)(1, 2, 3), [1, 2, 3], "float32"),
    "ctypes in two dimensions": (
        lambda: ((ctypes.c_int16 * 2) * 3)((1, 2), (3, 4), (5, 6)),
        [[1, 2], [3, 4], [5, 6]],
        "int16",
    ),
    "a subclass": (lambda: Vector(1, 2, 3), [1, 2, 3], "float32"),
    "RawArray": (lambda: RawArray("i", [1, 2]), [1, 2], "int32"),
    "long of ctypes": (lambda: (ctypes.c_long * 2)(1, -2), [1, -2], "int64"),
    "bools of ctypes": (lambda: (ctypes.c_bool * 2)(True, False), [True, False], "bool"),
    "nothing of ctypes": (lambda: (ctypes.c_double * 0)(), [], "float64"),
    "one value of ctypes": (lambda: ctypes.c_double(3), [3], "float64"),
    "array.array": (lambda: array.array("d", [1, 2]), [1, 2], "float64"),
    "bytes": (lambda: b"ab", [97, 98], "uint8"),
    "bytearray": (lambda: bytearray(b"ab"), [97, 98], "uint8"),
    "an empty bytearray": (bytearray, [], "uint8"),
    "mmap": (lambda: mmap.mmap(-1, 2), [0, 0], "uint8"),
    "a cast": (lambda: memoryview(b"\1\0\2\0").cast("H"), [1, 2], "uint16"),
    "a cast to a shape": (
        lambda: memoryview(bytes(8)).cast("h", (2, 2)),
        [[0, 0], [0, 0]],
        "int16",
    ),
    "a cast to no shape": (lambda: memoryview(bytes(4)).cast("i", ()), [0], "int32"),
    "reversed": (lambda: memoryview(b"abc")[::-1], [99, 98, 97], "uint8"),
    "strided": (lambda: memoryview(b"abcd")[::2], [97, 99], "uint8"),
    "pyarrow.Buffer": (lambda: pa.py_buffer(b"ab"), [97, 98], "int8"),
    "a scalar": (lambda: np.float32(3), [3], "float32"),
    "a complex scalar": (lambda: np.complex64(1 + 2j), [1 + 2j], "complex64"),
}


@pytest.mark.parametrize("name", EXPORTERS)
def test_exporters_keep_their_values(name: str) -> None:
    make, values, dtype = EXPORTERS[name]
    exported = make()
    taken = arrowdl.to_arrow_device(exported)
    assert taken.dtype == dtype
    assert arrowdl.to_numpy(taken).tolist() == values
    del exported
    assert arrowdl.to_numpy(taken).tolist() == values


def test_the_memory_is_shared_and_stays_where_it_is() -> None:
    values = (ctypes.c_int64 * 3)(1, 2, 3)
    taken = arrowdl.to_arrow_device(values, copy=False)
    assert pa.array(taken).buffers()[1].address == ctypes.addressof(values)
    grows = bytearray(8)
    taken = arrowdl.to_arrow_device(grows)
    with pytest.raises(BufferError):
        grows.append(1)
    del taken
    grows.append(1)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "characters": (lambda: ctypes.create_string_buffer(3), 'frombuffer.buffer, "uint8"'),
    "text of ctypes": (lambda: (ctypes.c_wchar * 3)(), "text .*pyarrow.array"),
    "text of array": (lambda: array.array("u", "ab"), "text .*pyarrow.array"),
    "structs": (lambda: (Point * 2)(), r'structs .*numpy.asarray\(buffer\)\["x"\]'),
    "pointers": (lambda: (ctypes.c_void_p * 2)(), "pointers"),
    "typed pointers": (lambda: (ctypes.POINTER(ctypes.c_int) * 2)(), "pointers"),
    "objects": (lambda: (ctypes.py_object * 2)(None, None), "pointers"),
    "long doubles": (lambda: (ctypes.c_longdouble * 2)(), 'astype."float64"'),
    "big-endian": (lambda: (BIG_ENDIAN * 2)(), "big-endian .*newbyteorder"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_formats_are_told_the_way_out(name: str) -> None:
    make, said = REFUSED[name]
    with pytest.raises(BufferError, match=said):
        arrowdl.to_arrow_device(make())


def test_the_ways_out_can_be_followed() -> None:
    chars = ctypes.create_string_buffer(b"ab", 2)
    assert arrowdl.to_arrow_device(np.frombuffer(chars, "uint8")).dtype == "uint8"
    points = (Point * 2)(Point(1, 2), Point(3, 4))
    taken = arrowdl.to_arrow_device({"x": np.asarray(points)["x"].copy()})
    assert pa.array(taken).to_pylist() == [{"x": 1}, {"x": 3}]
    big = np.asarray((BIG_ENDIAN * 2)(1, 2))
    native = big.astype(big.dtype.newbyteorder("="))
    assert arrowdl.to_numpy(arrowdl.to_arrow_device(native)).tolist() == [1, 2]


# ---------------------------------------------------------------- fields made by hand

LEFT_OUT: dict[str, dict[str, Any]] = {
    "as asked": {},
    "no strides": {"strides": None},
    "no format": {"format": None},
    "no shape": {"shape": None, "strides": None},
    "suboffsets of no pointers": {"suboffsets": (-1,)},
    "an order of one byte": {"format": b">B"},
    "a format of ctypes": {"format": b"<l", "itemsize": 8, "shape": (1,), "strides": (8,)},
    "strides of one row": {"format": b"i", "itemsize": 4, "shape": (1, 2), "strides": (3, 4)}
    | {"ndim": 2},
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_has_a_meaning(name: str) -> None:
    made = MadeBuffer(**LEFT_OUT[name])
    taken = arrowdl.to_numpy(arrowdl.to_arrow_device(made.object))
    assert taken.tobytes() == bytes(range(8))
    del taken
    assert made.released == len(made.requested) == 1


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "a negative extent": ({"shape": (-8,)}, "negative extent -8"),
    "a shape beyond the length": ({"shape": (9,)}, "take 9 bytes, its length is 8"),
    "no strides and a shape beyond the length": (
        {"shape": (9,), "strides": None},
        "take 9 bytes, its length is 8",
    ),
    "a length beyond the shape": ({"length": 9}, "take 8 bytes, its length is 9"),
    "a shape that overflows": (
        {"shape": (2**40, 2**40), "strides": (1, 1), "ndim": 2},
        "more than 2.63",
    ),
    "an itemsize of another format": ({"itemsize": 2}, 'format "B" has 1 bytes.* itemsize is 2'),
    "no format and a larger itemsize": (
        {"format": None, "itemsize": 8, "shape": (1,), "strides": (8,)},
        "itemsize is 8",
    ),
    "no itemsize": ({"itemsize": 0}, "itemsize is 0"),
    "a negative itemsize": ({"itemsize": -1}, "itemsize is -1"),
    "an itemsize that looks like another": (
        {"itemsize": 257, "shape": (0,), "length": 0},
        "itemsize is 257",
    ),
    "negative dimensions": ({"ndim": -1}, "-1 dimensions"),
    "too many dimensions": ({"ndim": 65}, "65 dimensions"),
    "two dimensions without a shape": ({"ndim": 2, "shape": None}, "shape is NULL"),
    "no memory": ({"address": None}, "data is NULL with 8"),
    "strides that overflow": (
        {"shape": (4, 2), "strides": (2**62, 1), "ndim": 2},
        "overflow",
    ),
    "strides beyond the addresses": ({"strides": (-(2**60),)}, "address"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_fields_that_contradict_each_other_are_refused(name: str) -> None:
    fields, said = MALFORMED[name]
    made = MadeBuffer(**fields)
    for given in made.object, {"x": made.object}:
        with pytest.raises(ValueError, match=f"malformed.*{said}"):
            arrowdl.to_arrow_device(given)
    assert made.released == len(made.requested) == 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"suboffsets": (0,)}, "suboffsets.*copy it first"),
        ({"format": b"2B"}, 'format "2B".*cast it'),
        ({"format": b""}, 'format "".*cast it'),
        ({"format": b"<"}, 'format "<".*cast it'),
        ({"format": b"Zg", "itemsize": 8}, "long doubles"),
        ({"format": b"e", "itemsize": 2, "shape": (4,), "strides": (3,)}, "stride of 3 bytes"),
    ],
    ids=str,
)
def test_buffers_that_no_tensor_describes_are_refused(fields: dict[str, Any], said: str) -> None:
    made = MadeBuffer(**fields)
    with pytest.raises(BufferError, match=said):
        arrowdl.to_arrow_device(made.object)
    assert made.released == len(made.requested) == 1
