"""Keys of folders that are columns of the files too: the folder's value, in the file's type."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from helpers.options import group


def write(folder: Path, key: str, column: pa.Array, kind: str = "parquet") -> None:
    (folder / key).mkdir()
    table = pa.table({"d": column, "x": pa.array([1.0, 2.0])})
    if kind == "parquet":
        pq.write_table(table, folder / key / "a.parquet")
    else:
        feather.write_feather(table, folder / key / "a.arrow", compression="uncompressed")


def read(folder: Path, **options: Any) -> pa.Table:
    batches = list(arrowdl.Loader(folder, 2, framework="numpy", **group(**options)))
    return {name: [v for b in batches for v in b[name].tolist()] for name in batches[0]}


CASES = [
    (pa.int64(), [1, 2], ["d=1", "d=2"], [1, 1, 2, 2]),
    (pa.int16(), [1, 2], ["d=1", "d=2"], [1, 1, 2, 2]),
    (pa.float64(), [0.5, 2.0], ["d=0.5", "d=2"], [0.5, 0.5, 2.0, 2.0]),
    (pa.date32(), [1, 2], ["d=1970-01-02", "d=1970-01-03"], [1, 1, 2, 2]),
    (pa.bool_(), [True, False], ["d=true", "d=false"], [False, False, True, True]),
]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(("type", "values", "keys", "expected"), CASES)
def test_the_key_has_the_type_of_the_files(
    tmp_path: Path, type: Any, values: Any, keys: list[str], expected: Any, kind: str
) -> None:
    for value, key in zip(values, keys, strict=True):
        write(tmp_path, key, pa.array([value] * 2, type), kind)
    assert read(tmp_path) == {"d": expected, "x": [1.0, 2.0] * 2}
    assert read(tmp_path, columns=["x"]) == {"x": [1.0, 2.0] * 2}
    assert read(tmp_path, columns=["d"]) == {"d": expected}
    if kind == "parquet":
        loader = arrowdl.Loader(tmp_path, 2, framework="numpy")
        assert read(tmp_path, plan=loader.plan())["d"] == expected
        assert [row["d"] for row in map(loader.map_dataset().__getitem__, range(4))] == expected
        assert read(tmp_path, decoder="polars")["d"] == expected


def test_filters_read_the_key(tmp_path: Path) -> None:
    for value in (1, 2):
        write(tmp_path, f"d={value}", pa.array([value] * 2, pa.int64()))
    assert read(tmp_path, filter=pc.field("d") == 2) == {"d": [2, 2], "x": [1.0, 2.0]}


def test_strings_keep_their_zeros(tmp_path: Path) -> None:
    for key in ("01", "02"):
        write(tmp_path, f"d={key}", pa.array([key] * 2))
    vocabulary = {"d": ["01", "02"]}
    assert read(tmp_path, vocabulary=vocabulary)["d"] == [0, 0, 1, 1]


def test_a_type_that_lacks_values_gives_way(tmp_path: Path) -> None:
    for key in ("a", "b"):
        write(tmp_path, f"d={key}", pa.array([1, 2]))
    assert read(tmp_path, vocabulary={"d": ["a", "b"]})["d"] == [0, 0, 1, 1]
    assert read(tmp_path, columns=["x"]) == {"x": [1.0, 2.0] * 2}


def test_the_log_says_once_that_values_differ(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for key in (1, 2):
        write(tmp_path, f"d={key}", pa.array([7, 7]))
    with caplog.at_level(logging.WARNING, "arrowdl.loader"):
        assert read(tmp_path)["d"] == [1, 1, 2, 2]
    assert [record.getMessage().count("folder says 1") for record in caplog.records] == [1]
    caplog.clear()
    same = tmp_path / "same"
    same.mkdir()
    write(same, "d=1", pa.array([1, 1]))
    with caplog.at_level(logging.WARNING, "arrowdl.loader"):
        assert read(same)["d"] == [1, 1]
    assert not caplog.records


def test_keys_that_are_no_columns_are_as_before(tmp_path: Path) -> None:
    for year, day in ((1, datetime.date(2024, 1, 1)), (2, datetime.date(2024, 1, 2))):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        write(folder, f"d={day}", pa.array([day] * 2))
    found = read(tmp_path)
    assert found["year"] == [1, 1, 2, 2]
    assert len(set(found["d"])) == 2
