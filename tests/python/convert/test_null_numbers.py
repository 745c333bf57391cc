"""`nulls=` with a number: what stands in for the nulls of a column, exactly."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl import _core
from hypothesis import given
from hypothesis import strategies as st

CITIES = pa.array(["Oslo", None, "Rome", "Oslo"]).dictionary_encode()
TABLE = pa.table(
    {
        "city": CITIES,
        "age": pa.array([30, None, 50, None], pa.uint8()),
        "height": pa.array([1.5, None, None, 2.5], pa.float32()),
        "member": [True, None, False, None],
    }
)


@pytest.mark.parametrize("convert", [arrowdl.to_numpy, arrowdl.to_torch, arrowdl.to_jax])
def test_each_column_has_its_number(convert: Any) -> None:
    made = convert(TABLE, nulls={"city": -1, "age": 255, "height": 0.1, "member": True})
    assert np.asarray(made["city"]).tolist() == [0, -1, 1, 0]
    assert np.asarray(made["age"]).tolist() == [30, 255, 50, 255]
    assert np.asarray(made["height"]).tolist() == [1.5, np.float32(0.1), np.float32(0.1), 2.5]
    assert np.asarray(made["member"]).tolist() == [True, True, False, True]


SCALARS = [
    *(kind(3) for kind in (np.int8, np.uint8, np.int64, np.uint64)),
    *(kind(1.5) for kind in (np.float16, np.float32, np.float64)),
    np.bool_(True),
]


@pytest.mark.parametrize("number", SCALARS, ids=repr)
def test_numbers_of_numpy_are_those_of_python(number: Any) -> None:
    value = number.item()
    kinds = {int: pa.int32(), float: pa.float32(), bool: pa.bool_()}
    column = pa.array([value, None], kinds[type(value)])
    for convert in (arrowdl.to_numpy, arrowdl.to_torch, arrowdl.to_jax):
        made = convert(pa.table({"x": column}), nulls={"x": number})["x"]
        assert np.asarray(made).tolist() == [value, value]
    if not isinstance(value, bool):  # which says nothing for all columns
        assert arrowdl.to_numpy(column, nulls=number).tolist() == [value, value]
    loader = arrowdl.Loader(pa.table({"x": column}), 2, framework="numpy", nulls={"x": number})
    assert next(iter(loader))["x"].tolist() == [value, value]
    lists = pa.array([[value], [value, value], []])
    padded, _ = arrowdl.to_numpy(lists, ragged="padded", pad_value=number)
    assert padded.tolist() == [[value, value]] * 3
    padded, _ = arrowdl.to_numpy(lists, ragged=arrowdl.Padded(number))
    assert padded.tolist() == [[value, value]] * 3


@pytest.mark.parametrize(
    "number", [np.longdouble(3), np.complex64(3), np.str_("3"), np.array(3), np.datetime64(3, "s")]
)
def test_other_scalars_of_numpy_are_refused(number: Any) -> None:
    with pytest.raises(ValueError, match=r"^nulls=.*: expected one of"):
        arrowdl.to_numpy(pa.array([1, None]), nulls=number)
    with pytest.raises(TypeError, match=r"^pad_value=.*: expected an int, a float or a bool"):
        arrowdl.to_numpy(pa.array([[1], []]), ragged="padded", pad_value=number)


@given(
    values=st.lists(st.none() | st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=40),
    number=st.integers(-(2**17), 2**17),
    start=st.integers(0, 9),
    dtype=st.sampled_from(["int8", "int16", "uint16", "int64", "float16", "float32"]),
)
def test_random_numbers_are_exact_or_refused(
    values: list[int | None], number: int, start: int, dtype: str
) -> None:
    values = [None if v is None else v // 2**9 if dtype == "int8" else v for v in values]
    column = np.array([v or 0 for v in values]).astype(dtype)
    valid = np.array([v is not None for v in values])
    array = arrowdl.to_arrow_device(column, mask=valid)[start:]
    expected = np.array(number).astype("int64")
    with np.errstate(over="ignore"):
        item = expected.astype(dtype)
    if item == expected or valid[start:].all():
        wanted = np.where(valid, column, item)[start:]
        np.testing.assert_array_equal(arrowdl.to_numpy(array, nulls=number), wanted)
        return
    with pytest.raises(ValueError, match=rf"^nulls={number} is not a value of {dtype}: "):
        arrowdl.to_numpy(array, nulls=number)


def test_nested_values_too() -> None:
    """A null row of a fixed size has the number in each item, one of another length is empty."""
    pairs = pa.array([[1, None], None], pa.list_(pa.int16(), 2))
    assert arrowdl.to_numpy(pairs, nulls=-7).tolist() == [[1, -7], [-7, -7]]
    lists = pa.array([[1, None], None, [2]])
    values, offsets = arrowdl.to_numpy(lists, nulls=-7)
    assert (values.tolist(), offsets.tolist()) == ([1, -7, 2], [0, 2, 2, 3])
    padded, lengths = arrowdl.to_numpy(lists, nulls=-7, ragged="padded", pad_value=9)
    assert padded.tolist() == [[1, -7], [9, 9], [2, 9]]
    assert lengths.tolist() == [2, 0, 1]


def test_a_cast_comes_before_the_number() -> None:
    made = arrowdl.to_numpy(TABLE.select(["age"]), nulls={"age": -0.5}, dtype={"age": "float64"})
    assert made["age"].tolist() == [30, -0.5, 50, -0.5]
    matrix = arrowdl.to_numpy(
        TABLE.select(["age", "height"]),
        nulls={"age": -1, "height": "nan"},
        dtype="float32",
        stack=True,
    )
    np.testing.assert_array_equal(matrix, [[30, 1.5], [-1, np.nan], [50, np.nan], [-1, 2.5]])


@pytest.mark.parametrize(
    ("column", "number", "message"),
    [
        ("age", 256, 'field "age": nulls=256 is not a value of uint8: give a value that is'),
        ("age", 0.5, 'field "age": nulls=0.5 is not a value of uint8'),
        ("height", 2**24 + 1, 'field "height": nulls=16777217 is not a value of float32'),
        ("height", 1e300, 'field "height": nulls=1e[+]300 is not a value of float32'),
        ("member", 2, 'field "member": nulls=2 is not a value of bool'),
        ("age", float("nan"), 'field "age": nulls=nan is not a value of uint8'),
        ("age", 2**70, "nulls={'age': 1180591620717411303424} is not a value of any type"),
    ],
)
def test_a_number_that_a_column_does_not_hold_is_refused(
    column: str, number: float, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        arrowdl.to_numpy(TABLE.select([column]), nulls={column: number})


def test_null_strings_have_no_number() -> None:
    words = pa.table({"word": ["a", None]})
    with pytest.raises(BufferError, match=r'^field "word": nulls= has a number, and rows'):
        arrowdl.to_numpy(words, nulls={"word": 0})


def test_numbers_of_matrices_that_differ_are_kept_apart() -> None:
    """A column in two matrices is filled for each."""
    made = arrowdl.to_numpy(
        TABLE.select(["age", "height"]),
        stack={"a": ["age"], "b": ["age", "height"]},
        nulls={"a": 1, "b": 2},
        dtype={"b": "float32"},
    )
    assert made["a"].tolist() == [[30], [1], [50], [1]]
    assert made["b"].tolist() == [[30, 1.5], [2, 2], [50, 2], [2, 2.5]]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_has_them(tmp_path: Path, shuffle: bool) -> None:
    """Also where nulls are filled before the shuffle, in the memory that a file is decoded to."""
    rows = pa.table({"id": range(4), **{name: TABLE[name] for name in ("city", "age", "height")}})
    pq.write_table(rows, tmp_path / "rows.parquet")
    numbers: dict[str, Any] = {"city": -1, "age": 255, "height": -0.1}
    for source in (rows, tmp_path / "rows.parquet"):
        loader = arrowdl.Loader(source, 4, nulls=numbers, shuffle=shuffle, framework="numpy")
        (batch,) = loader
        order = batch["id"].argsort()
        assert batch["city"][order].tolist() == [0, -1, 1, 0]
        assert batch["age"][order].tolist() == [30, 255, 50, 255]
        small = float(np.float32(-0.1))
        assert batch["height"][order].tolist() == [1.5, small, small, 2.5]
        assert loader.schema["age"].nulls == 255
        assert "nulls=-0.1, -1, 255" in str(loader.explain())


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_names_the_column_that_lacks_the_number(tmp_path: Path, shuffle: bool) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    loader = arrowdl.Loader(
        tmp_path / "rows.parquet", 4, columns=["age"], nulls={"age": -1}, shuffle=shuffle
    )
    with pytest.raises(ValueError, match=r'^field "age": nulls=-1 is not a value of uint8'):
        list(loader)


def test_a_model_gets_them() -> None:
    stream = arrowdl.from_arrow_stream(TABLE.select(["age", "city"]))
    made = stream.map(
        lambda batch: batch["age"] + batch["city"],
        framework="numpy",
        nulls={"age": 7, "city": -1},
        dtype={"age": "int32"},
    )
    assert pa.table(made)["output"].to_pylist() == [30, 6, 51, 7]


def test_options_with_numbers_are_pickled() -> None:
    options = pickle.loads(pickle.dumps(_core.ColumnOptions({"age": 7, "height": "nan"})))
    assert options.__reduce__()[1][0] == {"age": 7, "height": "nan"}
    assert options.fills(["age"])
