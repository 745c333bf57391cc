"""Types of the installed DuckDB, pandas and polars; `test_known_extensions.py` has doubles."""

from __future__ import annotations

from typing import Any

import arrowdl
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


@pytest.fixture(name="lossless")
def _lossless() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET arrow_lossless_conversion = true")
        yield lambda sql: connection.sql(f"SELECT {sql} AS x")


@pytest.mark.parametrize(
    "sql",
    ["1::HUGEINT", "1::UHUGEINT", "1::BIGNUM", "'101'::BIT", "'01:02:03+01'::TIMETZ"],
)
def test_opaque_types_of_duckdb_say_what_to_cast(lossless: Any, sql: str) -> None:
    with pytest.raises(BufferError, match=r"arrow\.opaque.*HUGEINT as BIGINT and TIMETZ as TIME"):
        arrowdl.to_numpy(lossless(sql))


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("'00000000-0000-0000-0000-0000000000ff'::UUID", [[0] * 15 + [255]]),
        ("true", [True]),
        ("[1, 2, 3]::FLOAT[3]", [[1, 2, 3]]),
        ("1::HUGEINT::BIGINT", [1]),
    ],
)
def test_types_of_duckdb_that_are_tensors(lossless: Any, sql: str, values: Any) -> None:
    assert arrowdl.to_numpy(lossless(sql))["x"].tolist() == values


def test_ends_of_days_and_of_time_of_duckdb_are_numbers() -> None:
    """pyarrow reads '24:00:00' as midnight, polars as null (findings/duckdb-end-of-day-...)."""
    with duckdb.connect() as connection:
        day = connection.sql("SELECT '24:00:00'::TIME AS x")
        assert arrowdl.to_numpy(day)["x"].tolist() == [86_400_000_000]
        (batch,) = arrowdl.Loader(day, 1, framework="numpy")
        assert batch["x"].tolist() == [86_400_000_000]
        end = connection.sql("SELECT 'infinity'::TIMESTAMP AS x")
        assert arrowdl.to_numpy(end)["x"].tolist() == [2**63 - 1]
        with pytest.raises(ValueError, match=r"beyond the range of timestamp\[ns\]"):
            arrowdl.to_numpy(end, dtype={"x": "timestamp[ns]"})


def test_codes_of_equal_values_and_nulls_in_dictionaries_of_loaders() -> None:
    """perspective reads others (findings/perspective-shifts-values-...)."""
    parts = [["a", "a", None, "c"], ["c", "b", "a"]]
    chunks = [pa.DictionaryArray.from_arrays(range(len(part)), pa.array(part)) for part in parts]
    loader = arrowdl.Loader(
        pa.table({"x": pa.chunked_array(chunks)}), 7, framework="numpy", nulls="mask"
    )
    words = loader.vocabulary("x").to_pylist()
    read = []
    for batch in loader:
        codes, valid = batch["x"]
        read += [words[code] if kept else None for code, kept in zip(codes, valid, strict=True)]
    assert read == parts[0] + parts[1]


def test_periods_and_intervals_of_pandas_are_numbers() -> None:
    frame = pd.DataFrame(
        {
            "month": pd.period_range("2026-01", periods=2, freq="M"),
            "span": pd.interval_range(0, 2),
            "number": pd.array([1.5, None], "Float64"),
        }
    )
    found = arrowdl.to_numpy(frame, nulls={"number": "mask"})
    assert found["month"].tolist() == [672, 673], "months since 1970"
    assert {name: part.tolist() for name, part in found["span"].items()} == {
        "left": [0, 1],
        "right": [1, 2],
    }
    assert found["number"][1].tolist() == [True, False]


@pytest.mark.parametrize("make", [pl.Series, pl.DataFrame])
def test_polars_takes_slices_of_vectors_with_nulls_of_arrowdl(make: Any) -> None:
    """It refuses pyarrow's (findings/polars-refuses-slices-of-fixed-size-lists-with-nulls.sh)."""
    vectors = pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int64(), 2))
    rows = [None, [3, 4], [5, 6]]
    array = arrowdl.from_arrow(vectors)[1:]
    table = arrowdl.from_arrow(pa.table({"x": vectors}))[1:]
    taken = make(array if make is pl.Series else table)
    assert (taken if make is pl.Series else taken["x"]).to_list() == rows
    read = arrowdl.to_numpy(taken, nulls="fill")
    assert np.asarray(read if make is pl.Series else read["x"])[1:].tolist() == rows[1:]
