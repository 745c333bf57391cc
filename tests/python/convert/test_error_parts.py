"""The parts of errors of conversions: column, row, reason, hint and option."""

from __future__ import annotations

import pickle
from typing import Any

import arrowdl
import pyarrow as pa
import pytest

NULLS = 'nulls="fill", "nan" or "mask", or drop them first'
DEEP = pa.table({"v": [{"a": 1}, {"a": None}]})


@pytest.mark.parametrize(
    ("table", "options", "parts"),
    [
        (
            pa.table({"x": [1, None]}),
            {},
            ("x", None, 'field "x": the array of int64 has nulls, ', NULLS, "nulls"),
        ),
        (
            pa.table({"": [1, None]}),
            {},
            ("", None, 'field "": the array of int64 has nulls, ', NULLS, "nulls"),
        ),
        (DEEP, {}, ("v", None, 'field "v": field "a": the array of int64', NULLS, "nulls")),
        (
            pa.table({"x": [1, None]}),
            {"stack": True},
            ("x", None, 'field "x": it has nulls, and a matrix has no place', NULLS, "nulls"),
        ),
        (
            pa.table({"l": [[1], None]}),
            {},
            (
                "l",
                None,
                'field "l": the array of list',
                'nulls="fill"',
                "nulls",
            ),
        ),
        (
            pa.table({"l": [[1], [2, 300]]}),
            {"dtype": "uint8", "ragged": "offsets"},
            ("l", 1, 'field "l": row 1: 300 is beyond the range of uint8', "choose a", "dtype"),
        ),
        (
            pa.table({"d": pa.array([1], pa.decimal128(22, 2))}),
            {},
            (
                "d",
                None,
                'field "d": decimal128(22,2) has no DLPack type',
                'dtype="float64"',
                "dtype",
            ),
        ),
        (
            pa.table({"x": pa.nulls(2)}),
            {},
            ("x", None, 'field "x": null has no values: cast it to a type that has', None, None),
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("convert", [arrowdl.to_numpy, arrowdl.to_torch])
def test_an_error_has_its_parts(
    table: pa.Table, options: dict[str, Any], parts: Any, convert: Any
) -> None:
    with pytest.raises((BufferError, ValueError)) as caught:
        convert(table, **options)
    column, row, reason, hint, option = parts
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.column, error.row, error.option) == (column, row, option)
        assert error.reason.startswith(reason)
        assert str(error).startswith(error.reason)
        if hint is None:
            assert (error.hint, str(error)) == (None, error.reason)
        else:
            assert error.hint.startswith(hint)
            assert str(error).endswith(error.hint)


def test_other_errors_have_no_parts() -> None:
    with pytest.raises(ValueError, match="options by column") as caught:
        arrowdl.to_numpy(pa.array([1]), nulls={"x": "fill"})
    assert not hasattr(caught.value, "reason")
