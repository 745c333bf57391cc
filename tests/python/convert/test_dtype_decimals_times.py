"""`dtype=` of decimals and of times: exact, rounded to the nearest float, or refused by row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import arrowdl
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

# ---------------------------------------------------------------- decimals

# Bits, to the type and its digits.
WIDTHS: dict[int, tuple[Any, int]] = {
    32: (pa.decimal32, 9),
    64: (pa.decimal64, 18),
    128: (pa.decimal128, 38),
    256: (pa.decimal256, 76),
}


def make_decimals(numbers: list[int | None], bits: int, scale: int) -> pa.Array:
    """Decimals whose digits are `numbers`: pyarrow's own constructor refuses negative scales."""
    make, precision = WIDTHS[bits]
    data = b"".join((n or 0).to_bytes(bits // 8, "little", signed=True) for n in numbers)
    valid = np.packbits(np.array([n is not None for n in numbers], bool), bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(data)]
    return pa.Array.from_buffers(make(precision, scale), len(numbers), buffers)


@st.composite
def draw_decimals(draw: st.DrawFn) -> tuple[list[int | None], int, int]:
    bits = draw(st.sampled_from(list(WIDTHS)))
    precision = WIDTHS[bits][1]
    scale = draw(st.integers(-10, precision))
    most = 10 ** draw(st.integers(1, precision)) - 1
    numbers = draw(st.lists(st.none() | st.integers(-most, most), max_size=20))
    return numbers, bits, scale


@given(draw_decimals())
@example(([10**17 * 3 + 1, -(2**53) - 1, None, 0], 128, 17))
@example(([10**75 + 7, -(10**76) + 1], 256, 76))
def test_random_decimals_are_the_nearest_floats(drawn: tuple[list[int | None], int, int]) -> None:
    numbers, bits, scale = drawn
    array = make_decimals(numbers, bits, scale)
    made = arrowdl.to_numpy(array, dtype="float64", nulls="nan")
    ten = Fraction(10) ** -scale
    wanted = [np.nan if n is None else float(n * ten) for n in numbers]
    np.testing.assert_array_equal(made, np.array(wanted, "float64"))


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize(("bits", "scale"), [(256, 90), (128, 400), (256, -120), (128, -200)])
def test_scales_beyond_the_digits_of_decimals_are_refused(
    bits: int, scale: int, dtype: str
) -> None:
    """3 with a scale of 90 was 2.01e-87, and with one of -200 it was 1.07e173."""
    array = make_decimals([3], bits, scale)
    reason = rf"^dtype= is for decimals with a scale of -76 to 76, not decimal{bits}\(\d+,{scale}\)"
    with pytest.raises(ValueError, match=reason):
        arrowdl.to_numpy(array, dtype=dtype)


@pytest.mark.parametrize(("number", "scale"), [(1, 76), (10**76 - 1, 76), (10**76 - 1, -76)])
def test_the_largest_scales_are_exact(number: int, scale: int) -> None:
    made = arrowdl.to_numpy(make_decimals([number, -number], 256, scale), dtype="float64")
    wanted = float(number * Fraction(10) ** -scale)
    assert made.tolist() == [wanted, -wanted]


@given(draw_decimals(), st.sampled_from(["int8", "int32", "int64", "uint16", "uint64"]))
@example(([2**63 - 1, -(2**63), None], 128, 0), "int64")
@example(([2**63, 2**64 - 1], 128, 0), "uint64")
@example(([-(2**63) - 1], 128, 0), "int64")
@example(([-1], 128, 0), "uint64")
def test_random_decimals_are_exact_integers_or_refused(
    drawn: tuple[list[int | None], int, int], dtype: str
) -> None:
    numbers, bits, scale = drawn
    array = make_decimals(numbers, bits, scale)
    ten = Fraction(10) ** -scale
    limits = np.iinfo(dtype)
    for row, number in enumerate(numbers):
        value = (number or 0) * ten
        if value.denominator != 1 or not limits.min <= value <= limits.max:
            reason = "is not a whole number" if value.denominator != 1 else "is beyond the range"
            with pytest.raises(ValueError, match=rf"^row {row}: \S+ {reason}"):
                arrowdl.to_numpy(array, dtype=dtype, nulls="fill")
            return
    made = arrowdl.to_numpy(array, dtype=dtype, nulls="fill")
    assert made.dtype == dtype
    assert made.tolist() == [int((n or 0) * ten) for n in numbers]


def test_a_decimal_that_does_not_fit_is_named_as_it_is_written() -> None:
    for number, scale, shown in [
        (-5, 2, "-0.05"),
        (1250, 2, "12.50"),
        (10**20, -2, "1" + 22 * "0"),
    ]:
        table = pa.table({"price": make_decimals([0, number], 128, scale)})
        with pytest.raises(ValueError, match=rf'^field "price": row 1: {shown} is ') as caught:
            arrowdl.to_numpy(table, dtype={"price": "int32"})
        assert caught.value.row == 1  # type: ignore[attr-defined]


def test_a_sum_of_duckdb_becomes_a_number() -> None:
    query = "SELECT sum(x) AS total, 1.25::DECIMAL(4, 2) AS price FROM range(10) AS t(x)"
    with duckdb.connect() as connection:
        made = arrowdl.to_numpy(connection.sql(query), dtype={"total": "int64", "price": "float32"})
    assert (made["total"].tolist(), made["total"].dtype) == ([45], "int64")
    assert (made["price"].tolist(), made["price"].dtype) == ([1.25], "float32")


@pytest.mark.parametrize("dtype", ["float32", {"d": "float32"}], ids=str)
def test_decimals_in_lists_matrices_and_loaders(dtype: Any) -> None:
    decimals = make_decimals([150, None, -225], 128, 2)
    lists = pa.table({"d": pa.ListArray.from_arrays([0, 2, 3], decimals.fill_null(0))})
    values, _ = arrowdl.to_numpy(lists, dtype=dtype)["d"]
    assert values.tolist() == [1.5, 0, -2.25]
    table = pa.table({"d": decimals, "x": pa.array([1, 2, 3], pa.float32())})
    (batch,) = arrowdl.Loader(table, 3, dtype=dtype, nulls=-1, framework="numpy")
    assert batch["d"].tolist() == [1.5, -1, -2.25]
    matrix = arrowdl.to_numpy(table, dtype=dtype, nulls=-1, stack=True)
    assert matrix.tolist() == [[1.5, 1], [-1, 2], [-2.25, 3]]


def test_decimals_without_dtype_have_no_tensor() -> None:
    with pytest.raises(BufferError, match=r"decimal128\(38,0\) has no DLPack type: .*dtype="):
        arrowdl.to_numpy(make_decimals([1], 128, 0))


# ---------------------------------------------------------------- times

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@given(
    st.lists(
        st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9).map(lambda n: n * 10**9)
    ),
    st.sampled_from(list(UNITS)),
    st.sampled_from(list(UNITS)),
    st.sampled_from(["timestamp", "duration"]),
)
def test_random_times_are_exact_or_refused(
    times: list[int | None], own: str, unit: str, kind: str
) -> None:
    array = pa.array(times, pa.int64()).cast(getattr(pa, kind)(own))
    for row, time in enumerate(times):
        value = Fraction(time or 0) * UNITS[unit] / UNITS[own]
        if value.denominator != 1 or not -(2**63) <= value < 2**63:
            reason = (
                "is beyond the range of" if value.denominator == 1 else "is not a whole number of"
            )
            with pytest.raises(ValueError, match=rf"^row {row}: {time} of \S+ {reason} {kind}"):
                arrowdl.to_numpy(array, dtype=f"{kind}[{unit}]", nulls="fill")
            return
    made = arrowdl.to_numpy(array, dtype=f"{kind}[{unit}]", nulls="fill")
    assert made.tolist() == [int(Fraction(t or 0) * UNITS[unit] / UNITS[own]) for t in times]


MICROS = pa.array([1_000_000, None, -2_000_000], pa.timestamp("us", "UTC"))
TIMES = pa.table(
    {
        "t": MICROS,
        "length": pa.array([1, 2, 3], pa.duration("s")),
        "day": pa.array([1, None, -1], pa.date32()),
        "x": [1, 2, 3],
    }
)


def test_one_unit_for_all_times_leaves_other_columns() -> None:
    made = arrowdl.to_numpy(TIMES, dtype="timestamp[ms]", nulls="fill")
    assert made["t"].tolist() == [1000, 0, -2000]
    assert made["day"].tolist() == [86_400_000, 0, -86_400_000]
    assert made["length"].tolist() == made["x"].tolist() == [1, 2, 3]


def test_each_column_has_its_unit_and_its_number_for_nulls() -> None:
    made = arrowdl.to_numpy(
        TIMES,
        dtype={"t": pa.timestamp("ns"), "day": "timestamp[s]", "length": "duration[ms]"},
        nulls=-1,
    )
    assert made["t"].tolist() == [10**9, -1, -2 * 10**9]
    assert made["day"].tolist() == [86_400, -1, -86_400]
    assert made["length"].tolist() == [1000, 2000, 3000]


def test_a_column_of_another_kind_is_refused() -> None:
    for name, unit in [("x", "timestamp[s]"), ("t", "duration[s]"), ("length", "timestamp[s]")]:
        with pytest.raises(ValueError, match=rf'^field "{name}": dtype="{unit[:8]}.*leave the col'):
            arrowdl.to_numpy(TIMES, dtype={name: unit}, nulls="fill")
    with pytest.raises(ValueError, match=r'"t": dtype="float32" .*give it a unit, as "timestamp'):
        arrowdl.to_numpy(TIMES, dtype={"t": "float32"}, nulls="fill")
    with pytest.raises(ValueError, match=r'for times "timestamp\[us\]"'):
        arrowdl.to_numpy(TIMES, dtype={"t": "timestamp[h]"})


def test_times_of_the_unit_are_shared() -> None:
    column = MICROS.slice(0, 1)
    made = arrowdl.to_numpy(column, dtype="timestamp[us]", copy=False)
    assert made.ctypes.data == column.buffers()[1].address
    with pytest.raises(BufferError, match="copy"):
        arrowdl.to_numpy(column, dtype="timestamp[ns]", copy=False)


def test_a_matrix_has_times_of_one_unit() -> None:
    """Without `dtype=`, microseconds beside nanoseconds would be integers of two meanings."""
    two = pa.table({"a": MICROS, "x": [1, 2, 3], "b": MICROS.cast(pa.timestamp("ns"))})
    for options in (
        {"stack": True},
        {"stack": {"m": ["a", "b"]}},
        {"dtype": {"a": "timestamp[s]"}},
    ):
        with pytest.raises(
            BufferError, match=r'one unit: field "b" is timestamp\[ns\], field "a" is'
        ):
            arrowdl.to_numpy(two, nulls="fill", **{"stack": True, **options})
    made = arrowdl.to_numpy(two, stack=True, nulls="fill", dtype="timestamp[ms]")
    assert made.tolist() == [[1000, 1, 1000], [0, 2, 0], [-2000, 3, -2000]]
    named = arrowdl.to_numpy(
        two, stack={"m": ["a", "b"]}, nulls="fill", dtype={"m": "timestamp[s]"}
    )
    assert named["m"].tolist() == [[1, 1], [0, 0], [-2, -2]]


def test_times_in_lists_runs_and_loaders() -> None:
    lists = pa.table({"l": pa.array([[1, 2], [3]], pa.list_(pa.timestamp("s")))})
    values, _ = arrowdl.to_numpy(lists, dtype="timestamp[ms]")["l"]
    assert values.tolist() == [1000, 2000, 3000]
    odd = pa.table({"l": pa.array([[1000], [2000, 2]], pa.list_(pa.timestamp("ms")))})
    with pytest.raises(ValueError, match=r'^field "l": row 1: 2 of timestamp\[ms\] is not a whole'):
        arrowdl.to_numpy(odd, dtype="timestamp[s]")
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([5, 6], pa.timestamp("s")))
    assert arrowdl.to_numpy(runs, dtype="timestamp[ms]").tolist() == [5000, 5000, 6000]
    pairs = pa.array([[1, 2]], pa.list_(pa.timestamp("s"), 2))
    assert arrowdl.to_numpy(pairs, dtype="timestamp[ms]").tolist() == [[1000, 2000]]
    loader = arrowdl.Loader(
        TIMES, 3, dtype={"t": "timestamp[s]"}, nulls={"t": 0, "day": 0}, framework="numpy"
    )
    assert next(iter(loader))["t"].tolist() == [1, 0, -2]


def test_sources_of_two_units_are_read_in_one() -> None:
    """Each source has its unit; the batches of both have that of `dtype=`."""
    for unit in ("us", "ns"):
        table = pa.table({"t": MICROS.cast(pa.timestamp(unit))})
        (batch,) = arrowdl.Loader(
            table, 3, dtype={"t": "timestamp[us]"}, nulls="fill", framework="numpy"
        )
        assert batch["t"].tolist() == [1_000_000, 0, -2_000_000]
