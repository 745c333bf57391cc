"""Options of a Loader for each column; fields of structs as columns; padded lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from helpers.options import group

ROWS = 10
TABLE = pa.table(
    {
        "id": range(ROWS),
        "a": pa.array([None if i % 3 == 0 else i for i in range(ROWS)], pa.int32()),
        "b": [None if i % 4 == 0 else i / 2 for i in range(ROWS)],
        "flag": [i % 2 == 0 for i in range(ROWS)],
        "l": [list(range(i % 4)) for i in range(ROWS)],
        "c": ["x" * (i % 3) for i in range(ROWS)],
    }
)


def load(source: Any = TABLE, rows: int = 4, **options: Any) -> list[dict[str, Any]]:
    return list(arrowdl.Loader(source, rows, framework="numpy", **group(**options)))


# ---- nulls, ragged


def test_a_policy_for_each_column() -> None:
    nulls = {"a": "fill", "b": "mask"}
    batch = load(columns=["id", "a", "b", "l"], nulls=nulls, ragged={"l": "padded"})[0]
    assert batch["a"].tolist() == [0, 1, 2, 0]
    values, mask = batch["b"]
    assert (values.tolist()[1:], mask.tolist()) == ([0.5, 1.0, 1.5], [False, True, True, True])
    assert batch["l"][0].shape == (4, 3)
    with pytest.raises(BufferError, match=r'field "b": .*has nulls'):
        load(columns=["a", "b"], nulls={"a": "fill"})


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("nulls", "fill"),
        ("ragged", "padded"),
        ("ragged", arrowdl.Padded(max_length=1)),
        ("dtype", "int8"),
    ],
)
def test_a_column_that_does_not_exist_is_refused_when_given(
    option: str, given: Any, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"ragged": "padded"} | {option: {"q": given}}
    pq.write_table(TABLE, tmp_path / "a.parquet")
    for source in (TABLE, str(tmp_path)):
        with pytest.raises(ValueError, match=f'{option}= names "q", and the columns are'):
            arrowdl.Loader(source, 4, **group(**options))
    loader = arrowdl.Loader(lambda: iter(TABLE.to_batches()), 4, **group(**options))
    with pytest.raises(ValueError, match=f'{option}= names "q", and the columns are'):
        next(iter(loader))


def test_wrong_values_are_refused_when_given() -> None:
    for options, match in [
        ({"nulls": "drop"}, "nulls='drop': expected one of 'raise'"),
        ({"nulls": {"a": "drop"}}, "nulls={'a': 'drop'}: expected one of 'raise'"),
        ({"nulls": {1: "fill"}}, "nulls={1: 'fill'}: a column is named by a str"),
        ({"ragged": {"l": True}}, "ragged={'l': True}: expected one of 'jagged'"),
        ({"dtype": "int128"}, "not a dtype that numbers are cast to"),
        ({"dtype": {"a": None}}, "not a dtype that numbers are cast to"),
        ({"pad_value": "x", "ragged": "padded"}, "expected an int, a float or a bool"),
        ({"max_length": 0, "ragged": "padded"}, "expected an int of at least 1"),
        ({"pad_to_multiple": 1.5, "ragged": "padded"}, "expected an int of at least 1"),
        ({"transform_arrow": 3}, "give a function of one record batch"),
        ({"vocabulary": ["a"]}, "give the values by column name"),
        ({"vocabulary": {"c": "xx"}}, "give a list of them"),
        ({"vocabulary": {"c": ["x", "x"]}}, "is listed twice"),
        ({"vocabulary": {"c": ["x", None]}}, "have a null"),
        ({"vocabulary": {"q": ["x"]}}, 'vocabulary= names "q", and the columns'),
    ]:
        with pytest.raises((TypeError, ValueError), match=match):
            arrowdl.Loader(TABLE, 4, **group(**options))


# ---- dtype, stack


def test_one_dtype_for_all_numbers() -> None:
    batch = load(dtype=np.float32, nulls="nan", ragged="offsets", columns=["id", "a", "flag", "l"])[
        0
    ]
    assert [batch[name].dtype for name in ("id", "a", "flag")] == ["f4", "f4", "?"]
    assert batch["l"][0].dtype == "f4"
    np.testing.assert_array_equal(batch["a"], np.float32([np.nan, 1, 2, np.nan]))


def test_a_matrix_of_columns_of_several_types() -> None:
    stack = {"x": ["a", "b", "flag"]}
    with pytest.raises(BufferError, match=r'one dtype.*dtype="float32"'):
        load(stack=stack, nulls="fill", ragged="offsets")
    batch = load(
        stack=stack, nulls={"x": "nan", "a": "fill"}, ragged="offsets", dtype={"x": "float32"}
    )[0]
    expected = [[0, np.nan, 1], [1, 0.5, 0], [2, 1, 1], [0, 1.5, 0]]
    np.testing.assert_array_equal(batch["x"], np.float32(expected))
    assert batch["id"].dtype == "i8"
    assert list(batch) == ["x", "id", "l", "c"]


def test_a_value_that_does_not_fit() -> None:
    table = pa.table({"x": [1, 2, 3, 4, 5, 1000]})
    with pytest.raises(ValueError, match=r'field "x": row 1: 1000 is beyond the range of int8'):
        load(table, dtype="int8")


@pytest.mark.parametrize("options", [{"num_workers": 1}, {"shuffle": True}, {"device": "cpu"}])
def test_the_same_options_everywhere(options: dict[str, Any]) -> None:
    asked: dict[str, Any] = {
        "nulls": {"a": "fill", "b": "nan"},
        "ragged": {"l": "padded", "c": "offsets"},
        "dtype": {"a": "float64"},
        "pad_value": {"l": -1},
        "pad_to_multiple": 4,
    }
    for batch in load(**asked, **options):
        for i, number in enumerate(batch["id"].tolist()):
            assert batch["a"][i] == (0 if number % 3 == 0 else number)
            expected = [*range(number % 4), -1, -1, -1, -1][:4]
            assert batch["l"][0][i].tolist() == expected
        assert batch["a"].dtype == "f8"
        assert np.isnan(batch["b"]).tolist() == [i % 4 == 0 for i in batch["id"].tolist()]


def test_jagged_columns_beside_padded_ones() -> None:
    batch = next(iter(arrowdl.Loader(TABLE, 4, columns=["l", "c"], ragged={"l": "padded"})))
    assert batch["l"][0].tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 2]]
    assert batch["c"].is_nested


# ---- padding


def test_padded_rows() -> None:
    (rows, lengths) = load(
        columns=["l"], ragged="padded", pad_value=-1, max_length=2, pad_to_multiple=3
    )[0]["l"]
    assert rows.tolist() == [[-1] * 3, [0, -1, -1], [0, 1, -1], [0, 1, -1]]
    assert lengths.tolist() == [0, 1, 2, 2]


# ---- fields of structs

IMAGES = [
    None if i % 5 == 0 else {"bytes": None if i % 3 == 0 else b"x" * i, "at": {"x": i, "y": -i}}
    for i in range(ROWS)
]
NESTED = pa.table(
    {
        "id": range(ROWS),
        "image": pa.array(
            IMAGES,
            pa.struct(
                [
                    ("bytes", pa.binary()),
                    ("at", pa.struct([("x", pa.int64()), ("y", pa.int64())])),
                ]
            ),
        ),
        "image.dot": range(ROWS, 2 * ROWS),
    }
)


def write_parquet(folder: Path) -> Any:
    pq.write_table(NESTED, folder / "a.parquet", row_group_size=3)
    return str(folder)


def write_ipc(folder: Path) -> Any:
    path = str(folder / "a.arrow")
    pyarrow.feather.write_feather(NESTED, path, compression="uncompressed")
    return path


NESTED_SOURCES: dict[str, Callable[[Path], Any]] = {
    "table": lambda _: NESTED,
    "parquet": write_parquet,
    "ipc": write_ipc,
    "dataset": lambda folder: ds.dataset(write_ipc(folder), format="ipc"),
    "stream": lambda _: (
        lambda: pa.RecordBatchReader.from_batches(NESTED.schema, NESTED.to_batches(3))
    ),
}


@pytest.mark.parametrize("kind", NESTED_SOURCES)
def test_fields_by_their_paths(kind: str, tmp_path: Path) -> None:
    source = NESTED_SOURCES[kind](tmp_path)
    seen: dict[str, list[Any]] = {"image.bytes": [], "image.at.x": [], "image.dot": []}
    for batch in load(source, 4, columns=list(seen), nulls="mask", ragged="offsets"):
        assert list(batch) == list(seen)
        (values, offsets), mask = batch["image.bytes"]
        for i, is_valid in enumerate(mask.tolist()):
            row = bytes(values[offsets[i] : offsets[i + 1]])
            seen["image.bytes"].append(row if is_valid else None)
        for name in ("image.at.x", "image.dot"):
            numbers, mask = batch[name]
            pairs = zip(numbers.tolist(), mask.tolist(), strict=True)
            seen[name] += [number if is_valid else None for number, is_valid in pairs]
    assert seen["image.bytes"] == [None if i is None else i["bytes"] for i in IMAGES]
    assert seen["image.at.x"] == [None if i is None else i["at"]["x"] for i in IMAGES]
    assert seen["image.dot"] == list(range(ROWS, 2 * ROWS))


def test_paths_that_do_not_exist() -> None:
    for name, match in [
        ("image.size", r"the fields of \"image\" are \['bytes', 'at'\]"),
        ("id.x", '"id" is int64, which has no fields'),
        ("img.bytes", "not one column of the source"),
    ]:
        with pytest.raises(ValueError, match=match):
            arrowdl.Loader(NESTED, 4, columns=[name])


def test_a_stream_without_batches_and_a_path() -> None:
    def make() -> Any:
        return pa.RecordBatchReader.from_batches(NESTED.schema, [])

    assert load(make, columns=["image.bytes"]) == []
