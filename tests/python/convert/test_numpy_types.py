"""NumPy's arrays of types that its own ``__dlpack__`` refuses: ml_dtypes, times, text, structs."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import arrowdl
import jax
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from helpers.optional import torch
from helpers.processes import run_python

FLOATS = [
    name for name in dir(ml_dtypes) if name == "bfloat16" or name.startswith(("float8", "float6"))
]
SMALL = ["float4_e2m1fn", "int2", "int4", "uint2", "uint4"]


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


# ---------------------------------------------------------------- ml_dtypes


@pytest.mark.parametrize("name", FLOATS + SMALL)
@pytest.mark.parametrize("shape", [(4,), (2, 3), (0,), (2, 0)], ids=str)
def test_types_of_ml_dtypes_come_and_go_without_a_copy(name: str, shape: tuple[int, ...]) -> None:
    values = np.ones(shape, getattr(ml_dtypes, name))
    taken = arrowdl.to_arrow_device(values, copy=False)
    assert taken.dtype.removesuffix("_padded") == name
    for back in arrowdl.to_numpy(taken), arrowdl.to_numpy(taken, copy=False), np.asarray(taken):
        assert (back.dtype, back.shape) == (values.dtype, shape)
        assert back.tobytes() == values.tobytes()
        assert back.size == 0 or address(back) == address(values)
    copied = np.array(taken, copy=True)
    assert copied.dtype == values.dtype
    assert copied.size == 0 or address(copied) != address(values)


def test_every_bit_pattern_stays() -> None:
    for name in FLOATS:
        dtype = np.dtype(getattr(ml_dtypes, name))
        if dtype.itemsize == 2:
            patterns = np.arange(2**16, dtype=np.uint16)
        else:
            patterns = np.arange(2**6 if "6_" in name else 2**8, dtype=np.uint8)
        back = arrowdl.to_numpy(arrowdl.to_arrow_device(patterns.view(dtype)))
        assert back.tobytes() == patterns.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
def test_strided_and_permuted_arrays_of_ml_dtypes(order: Any) -> None:
    values = np.asarray(np.arange(24).reshape(4, 3, 2), ml_dtypes.bfloat16, order=order)
    for given in values, values[::2], values[:, ::-1], values.transpose(0, 2, 1), values[1:, 1]:
        assert np.array_equal(arrowdl.to_numpy(arrowdl.to_arrow_device(given)), given)


def test_what_other_libraries_give_numpy() -> None:
    source = jax.numpy.arange(3).astype("bfloat16")
    for _ in range(2):  # the same dtype object is of JAX's arrays and of NumPy's
        for given in source, np.asarray(source):
            assert arrowdl.to_torch(arrowdl.to_arrow_device(given)).tolist() == [0, 1, 2]
    frame = arrowdl.to_arrow_device({"x": np.asarray(source), "y": np.arange(3)})
    assert {name: got.dtype for name, got in arrowdl.to_torch(frame).items()} == {
        "x": torch.bfloat16,
        "y": torch.int64,
    }
    mask = np.array([True, False, True])
    filled = arrowdl.to_numpy(arrowdl.to_arrow_device(np.asarray(source), mask=mask), nulls="fill")
    assert (filled.dtype, filled.tolist()) == (ml_dtypes.bfloat16, [0, 0, 2])
    nan = arrowdl.to_numpy(arrowdl.to_arrow_device(np.asarray(source), mask=mask), nulls="nan")
    assert np.isnan(nan.astype("float32")).tolist() == [False, True, False]


def test_a_scalar_of_ml_dtypes() -> None:
    assert arrowdl.to_numpy(arrowdl.to_arrow_device(ml_dtypes.bfloat16(1.5))).tolist() == [1.5]


def test_integers_of_ml_dtypes_have_their_values() -> None:
    values = np.array([-8, -1, 0, 7], ml_dtypes.int4)
    assert arrowdl.to_numpy(arrowdl.to_arrow_device(values)).astype(int).tolist() == [-8, -1, 0, 7]


def test_ml_dtypes_is_not_imported_for_it() -> None:
    code = """
    import sys
    import arrowdl, numpy as np, pyarrow as pa
    raw = arrowdl.to_arrow_device(np.arange(2, dtype="uint16"))
    storage = pa.array(np.zeros(2, "V2").tolist(), pa.binary(2))
    field = pa.field("", storage.type, metadata={"ARROW:extension:name": "arrowdl.bfloat16",
                                                 "ARROW:extension:metadata": ""})
    array = arrowdl.from_arrow(pa.RecordBatch.from_arrays([storage], schema=pa.schema(
        [field.with_name("x")]))).field("x")
    try:
        arrowdl.to_numpy(array)
    except BufferError as error:
        print(error)
    print("ml_dtypes" in sys.modules)
    """
    said = run_python(code)
    assert "numpy has no bfloat16: import ml_dtypes" in said
    assert said.endswith("False\n")


# ---------------------------------------------------------------- times

UNITS = ["s", "ms", "us", "ns"]
KINDS = {"datetime64": "timestamp", "timedelta64": "duration"}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_times_become_times(kind: str, unit: str) -> None:
    values = np.array([3, 1, -2], f"{kind}[{unit}]")
    taken = arrowdl.to_arrow_device(values, copy=False)
    assert (taken.type, taken.null_count) == (f"{KINDS[kind]}[{unit}]", 0)
    assert pa.array(taken).equals(pa.array(values))
    assert pa.array(taken).buffers()[1].address == address(values)
    assert np.array_equal(pa.array(taken).to_numpy(), values)
    assert arrowdl.to_numpy(taken).tolist() == [3, 1, -2]  # the numbers, as of any time of Arrow
    scalar = arrowdl.to_arrow_device(values[1])
    assert pa.array(scalar).equals(pa.array(values[1:2]))
    frame = pa.record_batch(arrowdl.to_arrow_device({"t": values, "x": np.arange(3)}))
    assert frame["t"].equals(pa.array(values))


@pytest.mark.parametrize("kind", KINDS)
def test_nat_is_null(kind: str) -> None:
    values = np.array([1, "NaT", 3], f"{kind}[us]")
    taken = arrowdl.to_arrow_device(values, copy=False)
    assert taken.null_count == 1
    assert pa.array(taken).equals(pa.array(values))
    with pytest.raises(BufferError, match="nulls"):
        arrowdl.to_numpy(taken)
    assert arrowdl.to_numpy(taken, nulls="mask")[1].tolist() == [True, False, True]
    masked = arrowdl.to_arrow_device(values, mask=np.array([False, True, True]))
    assert pa.array(masked).is_null().to_pylist() == [True, True, False]
    strided = arrowdl.to_arrow_device(values[::-2], copy=None)
    assert pa.array(strided).equals(pa.array(values[::-2]))
    nothing = arrowdl.to_arrow_device(np.datetime64("NaT", "s"))
    assert pa.array(nothing).to_pylist() == [None]


@pytest.mark.parametrize("layout", ["list", "fixed_shape_tensor"])
def test_nat_among_several_values_of_a_row(layout: Any) -> None:
    values = np.array([[1, "NaT"], [3, 4]], "datetime64[s]")
    taken = arrowdl.to_arrow_device(values, layout=layout)
    array = pa.array(taken)
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    assert storage.flatten().equals(pa.array(values.reshape(-1)))
    with pytest.raises(BufferError, match="nulls"):
        arrowdl.to_numpy(taken)
    assert arrowdl.to_numpy(taken[1:]).tolist() == [[3, 4]]


@pytest.mark.parametrize(
    "dtype", ["M8[D]", "M8[M]", "M8[h]", "M8[25s]", "M8[ps]", "M8", "m8", "m8[D]", "m8[2ns]"]
)
def test_other_units_are_told_the_way_out(dtype: str) -> None:
    values = np.array(["NaT", "NaT"], dtype)
    with pytest.raises(BufferError, match=r"s, ms, us and ns; cast it, as array.astype") as caught:
        arrowdl.to_arrow_device(values)
    way = str(caught.value).rpartition('"')[0].rpartition('"')[2]
    assert arrowdl.to_arrow_device(values.astype(way)).null_count == 2


def test_times_are_no_masks_and_no_rows() -> None:
    """Nothing but an array of times takes them: their numbers mean something else elsewhere."""
    times = np.array([1, 0], "datetime64[s]")
    with pytest.raises(BufferError, match="cannot become a DLPack tensor"):
        arrowdl.to_arrow_device(np.arange(2), mask=times)
    with pytest.raises(BufferError, match="cannot become a DLPack tensor"):
        arrowdl._core.read_row_numbers(times, 3)


# ---------------------------------------------------------------- what cannot become a tensor

RECORDS = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
REFUSED: dict[str, tuple[Any, str, Any]] = {
    "text": (np.array(["a", "bc"]), "text.*pyarrow.array", pa.array),
    "StringDType": (np.array(["a"], np.dtypes.StringDType()), "text.*pyarrow.array", pa.array),
    "bytes": (np.array([b"a"]), "bytes strings.*pyarrow.array", pa.array),
    "objects": (np.array([1, None], object), "Python objects.*pyarrow.array", pa.array),
    "structs": (
        RECORDS,
        r"structs.*\{name: array\[name\].copy\(\) for name in array.dtype.names\}",
        lambda array: {name: array[name].copy() for name in array.dtype.names},
    ),
    "big-endian": (
        np.array([1, 2], ">i4"),
        "other byte order.*newbyteorder",
        lambda array: array.astype(array.dtype.newbyteorder("=")),
    ),
    "big-endian times": (
        np.array([1, 2], ">M8[s]"),
        "other byte order.*newbyteorder",
        lambda array: array.astype(array.dtype.newbyteorder("=")),
    ),
    "long doubles": (
        np.ones(2, np.longdouble),
        'long doubles.*astype."float64"',
        lambda array: array.astype("float64"),
    ),
    "complex long doubles": (
        np.ones(2, np.clongdouble),
        'long doubles.*astype."complex128"',
        lambda array: array.astype("complex128"),
    ),
    "bytes of no type": (
        np.zeros(2, "V3"),
        'array.view."uint8"',
        lambda array: array.view("uint8"),
    ),
    "bits of ml_dtypes": (
        np.ones(2, ml_dtypes.int1),
        'array.view."uint8"',
        lambda array: array.view("uint8"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_types_are_told_a_way_out_that_works(name: str) -> None:
    array, said, way = REFUSED[name]
    for given in array, {"x": array}, array[:1], array.reshape(1, -1):
        with pytest.raises(BufferError, match=f"a NumPy array of .*{said}"):
            arrowdl.to_arrow_device(given)
    if not isinstance(array[0], bytes):
        with pytest.raises(BufferError, match=f"a NumPy array of .*{said}"):
            arrowdl.to_arrow_device(array[:1].reshape(()))
    made = way(array)
    taken = (
        arrowdl.from_arrow(made) if isinstance(made, pa.Array) else arrowdl.to_arrow_device(made)
    )
    assert len(taken) >= len(array)


def test_a_mask_is_not_lost_by_a_view() -> None:
    masked = np.ma.masked_array(np.zeros(2, "M8[s]"), [True, False])
    with pytest.raises(BufferError, match="has a mask"):
        arrowdl.to_arrow_device(masked)


# ---------------------------------------------------------------- other libraries' tensors


class Counting:
    """The double of a tensor that may end its process when it is asked for memory."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.asked = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        self.asked += 1
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        self.asked += 1
        return np.arange(3).__dlpack__()


class Named:
    """A dtype as TensorFlow's: its text is "<dtype: 'string'>"."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<dtype: {self.name!r}>"


NO_NUMBERS = [
    *("string", "variant", "resource", "object", "str", "bytes", "String"),
    *("DT_STRING", "DT_RESOURCE", "DT_VARIANT", "string_ref", "pstring", "utf8", "PyObject"),
]


@pytest.mark.parametrize("name", NO_NUMBERS)
@pytest.mark.parametrize(
    "make", [str, Named, "lib.{}".format, "<{}>".format], ids=["str", "named", "dotted", "angled"]
)
def test_a_tensor_without_numbers_is_not_asked(name: str, make: Any) -> None:
    tensor = Counting(make(name))
    calls = [
        lambda: arrowdl.to_arrow_device(tensor),
        lambda: arrowdl.to_arrow_device({"x": tensor}),
        lambda: arrowdl.to_arrow_device(tensor, copy=True),
        lambda: arrowdl.to_arrow_device(np.arange(3), mask=tensor),
        lambda: arrowdl._core.read_row_numbers(tensor, 3),
    ]
    for call in calls:
        with pytest.raises(BufferError, match=f"{name}.* has no numbers"):
            call()
    assert tensor.asked == 0


@pytest.mark.parametrize("name", ["float32", "int64", "substring32", "restrict", "stringent_f4"])
def test_other_tensors_are_asked(name: str) -> None:
    dtype = Named(name)
    for _ in range(2):
        tensor = Counting(dtype)
        assert arrowdl.to_numpy(arrowdl.to_arrow_device(tensor)).tolist() == [0, 1, 2]
        assert tensor.asked > 0
    assert sys.getrefcount(dtype) < 10


class Silent:
    """A dtype without a text of its own: Python's has the word "object"."""


def test_texts_of_python_say_nothing_of_elements() -> None:
    tensor = Counting(Silent())
    assert arrowdl.to_numpy(arrowdl.to_arrow_device(tensor)).tolist() == [0, 1, 2]
    tensor = Counting([].append)  # a method
    assert arrowdl.to_numpy(arrowdl.to_arrow_device(tensor)).tolist() == [0, 1, 2]


def test_dtypes_that_are_made_for_each_call_are_not_kept() -> None:
    made: list[weakref.ref[Silent]] = []

    class Making(Counting):
        @property
        def dtype(self) -> Any:
            made.append(weakref.ref(dtype := Silent()))
            return dtype

        @dtype.setter
        def dtype(self, value: Any) -> None:
            pass

    for _ in range(30):
        arrowdl.to_arrow_device(Making(None))
    assert [found() for found in made] == [None] * len(made)
