"""`ColumnOptions`: the options of columns, which filling and conversion read from one object."""

from __future__ import annotations

import pickle
from types import MappingProxyType
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import Padded, _core

TABLE = pa.table({"a": [1, None], "b": [None, 2.5], "t": [[1, 2], [3]]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nulls": {"t": "drop"}}, "nulls={'t': 'drop'}: expected one of 'raise', 'fill'"),
        ({"ragged": {"t": -1}}, "ragged={'t': -1}: expected one of 'jagged', 'padded', 'offsets'"),
        ({"dtype": {"t": "int128"}}, "dtype={'t': 'int128'} is not a dtype"),
        ({"dtype": {1: "int8"}}, "dtype={1: 'int8'}: a column is named by a str"),
        ({"pad_value": {"t": "x"}}, "pad_value={'t': 'x'}: expected an int, a float or a bool"),
        ({"max_length": {"t": 0}}, "max_length={'t': 0}: expected an int of at least 1"),
    ],
)
def test_an_error_names_the_column(options: dict[str, Any], message: str) -> None:
    if "pad_value" in options or "max_length" in options:
        options = {"ragged": "padded", **options}
    else:
        with pytest.raises((TypeError, ValueError)) as caught:
            arrowdl.Loader(TABLE, 2, **options)
        assert str(caught.value).startswith(message)
    with pytest.raises((TypeError, ValueError)) as caught:
        arrowdl.to_numpy(TABLE, **options)
    assert str(caught.value).startswith(message)


def test_padded_lists_of_a_conversion() -> None:
    made = arrowdl.to_numpy(TABLE.select(["t"]), ragged={"t": Padded(-1, max_length=1)})
    assert [part.tolist() for part in made["t"]] == [[[1], [3]], [1, 1]]
    values, _ = arrowdl.to_numpy(TABLE["t"], ragged=Padded(9, multiple=4))
    assert values.tolist() == [[1, 2, 9, 9], [3, 9, 9, 9]]
    with pytest.raises(ValueError, match="says how rows are padded: leave out pad_value="):
        arrowdl.to_numpy(TABLE["t"], ragged=Padded(), pad_value=1)
    with pytest.raises(ValueError, match="padded to one multiple"):
        arrowdl.to_numpy(TABLE, ragged={"t": Padded(multiple=4), "a": "padded"})


def test_matrices_of_a_conversion() -> None:
    stack = MappingProxyType({"m": ("a", "b"), "n": ["b"]})
    nulls: Any = {"m": "nan", "a": "fill", "n": "fill"}
    dtype = {"m": "float32", "n": "float64"}
    made = arrowdl.to_numpy(TABLE, stack=stack, nulls=nulls, dtype=dtype, ragged="offsets")
    assert list(made) == ["m", "n", "t"]
    assert made["m"].dtype == "f4"
    assert str(made["m"].tolist()) == "[[1.0, nan], [0.0, 2.5]]"
    assert made["n"].tolist() == [[0.0], [2.5]]
    for wrong, message in [
        ({"m": ["z"]}, 'stack= names "z", and the columns are "a", "b", "t"'),
        ({"t": ["a"]}, 'the batch has a column "t" that is not stacked'),
        ({"m": []}, "stack={'m': \\[\\]}: give a list of at least one column"),
        ({"m": "a"}, "stack={'m': 'a'}: give a list of at least one column"),
        (3, "stack=3: give True, or names and their columns"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            arrowdl.to_numpy(TABLE, stack=wrong)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="struct"):
        arrowdl.to_numpy(TABLE["a"], stack=stack)


def test_pickles_have_the_options() -> None:
    ragged = {"t": Padded(7, max_length=3, multiple=2), "u": "offsets"}
    nulls = {"a": "fill"}
    options = _core.ColumnOptions(nulls, ragged, {"b": "int8"}, {"m": ["a"]})
    nulls["a"] = "drop"
    for own in (options, pickle.loads(pickle.dumps(options))):
        assert (own.pads("t"), own.pads("u"), own.pad_to_multiple) == (True, False, 2)
        assert (own.find_max_length("t"), own.find_max_length("u")) == (3, None)
        assert (own.may_pad("x"), own.find_max_length("x")) == (True, 3)
        assert (own.fills(["a"]), own.fills(["b"])) == (True, False)
        assert (own.stacks, own.is_matrix, own.has_names, own.casts) == (True, False, True, True)
        assert not own.is_jagged


def test_a_mapping_that_changes_later_changes_no_batch() -> None:
    nulls: Any = {"a": "fill", "b": "fill"}
    batches = arrowdl.Loader(TABLE, 1, nulls=nulls, ragged="offsets", framework="numpy")
    nulls.clear()
    assert [batch["a"].tolist() for batch in batches] == [[1], [0]]


@pytest.mark.parametrize(
    "options",
    [
        {"nulls": {"a\udc80": "fill"}},
        {"ragged": {"\udc80": arrowdl.Padded(1)}},
        {"stack": {"\udc80": ["a"]}},
        {"stack": {"m": ["\udc80"]}},
    ],
    ids=str,
)
def test_a_name_with_surrogates_names_no_column(options: dict[str, Any]) -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(ValueError, match=r"no column is named '.*udc80', which has surrogates"):
        arrowdl.to_numpy(table, **options)
    with pytest.raises(ValueError, match="which has surrogates"):
        arrowdl.Loader(table, 1, **options)


def test_a_length_of_none_keeps_all_values() -> None:
    table = pa.table({"a": [[1, 2, 3]], "b": [[1, 2]]})
    lengths: Any = {"a": None, "b": 1}
    made = arrowdl.to_numpy(table, ragged="padded", max_length=lengths)
    assert (made["a"][0].tolist(), made["b"][0].tolist()) == ([[1, 2, 3]], [[1]])


def test_padding_keeps_the_sign_of_zero() -> None:
    rows = pa.table({"x": [[1.5], [2.5, 3.5]]})
    for options in ({"ragged": Padded(-0.0)}, {"ragged": {"x": Padded(-0.0)}}):
        batch = next(iter(arrowdl.Loader(rows, 2, framework="numpy", **options)))
        assert str(batch["x"][0].tolist()) == "[[1.5, -0.0], [2.5, 3.5]]"
