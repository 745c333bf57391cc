"""pandas' unnamed index, which a filter leaves on a frame, is not a column; a named one is."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from helpers.options import group

FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [5.0, 6.0, 7.0, 8.0]})
UNNAMED = FRAME.set_index(pd.Index([7, 5, 4, 1]))
NAMED = FRAME.set_index(pd.Index([7.0, 5.0, 4.0, 1.0], name="row"))
BOTH = FRAME.set_index([pd.Index([7, 5, 4, 1]), pd.Index([1.0, 2.0, 3.0, 4.0], name="row")])
INDEX = "__index_level_0__"

EXPECTED = [(UNNAMED, ["x", "y"]), (NAMED, ["x", "y", "row"]), (BOTH, ["x", "y", "row"])]
WAYS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "frame": lambda frame: frame,
    "table": pa.Table.from_pandas,
    "batch": pa.RecordBatch.from_pandas,
    "from_arrow": arrowdl.from_arrow,
    "sliced": lambda frame: arrowdl.from_arrow(pd.concat([frame, frame]))[1:5],
    "gathered": lambda frame: arrowdl.from_arrow(pa.concat_tables([pa.table(frame)[:1]] * 4)),
    "stream": lambda frame: next(arrowdl.from_arrow_stream(frame).rebatch(4)),
}


@pytest.mark.parametrize(("frame", "names"), EXPECTED, ids=["unnamed", "named", "both"])
@pytest.mark.parametrize("way", WAYS)
def test_conversions(way: str, frame: pd.DataFrame, names: list[str]) -> None:
    source = WAYS[way](frame)
    assert list(arrowdl.to_numpy(source)) == names
    assert list(arrowdl.to_torch(source, nulls="mask")) == names
    assert arrowdl.to_numpy(source, stack=True, dtype="float32").shape == (4, len(names))
    assert list(arrowdl.to_numpy(source, dtype={"x": "float32"})) == names


def test_values_are_those_of_the_columns() -> None:
    matrix = arrowdl.to_numpy(UNNAMED, stack=True)
    np.testing.assert_array_equal(matrix, FRAME.to_numpy())
    np.testing.assert_array_equal(arrowdl.to_numpy(UNNAMED[1:])["y"], [6.0, 7.0, 8.0])


def test_an_array_keeps_the_index_for_pandas() -> None:
    array = arrowdl.from_arrow(UNNAMED)
    assert array.field_names == ["x", "y", INDEX]
    pd.testing.assert_frame_equal(pa.table(array).to_pandas(), UNNAMED)


def test_a_column_of_that_name_is_a_column() -> None:
    frame = FRAME.assign(**{INDEX: [1.0, 2.0, 3.0, 4.0]})
    assert list(arrowdl.to_numpy(frame)) == ["x", "y", INDEX]
    assert list(arrowdl.to_numpy(pa.table(frame).replace_schema_metadata())) == ["x", "y", INDEX]
    without = pa.table(UNNAMED).replace_schema_metadata()
    assert list(arrowdl.to_numpy(without)) == ["x", "y", INDEX], "nothing says that it is an index"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "null", '{"index_columns": 1}', '{"index_columns": ["__index_level_0__"]}'],
)
def test_metadata_that_says_nothing_is_passed_over(text: str) -> None:
    table = pa.table(UNNAMED).replace_schema_metadata({"pandas": text})
    assert list(arrowdl.to_numpy(table)) == ["x", "y", INDEX]


def test_an_index_that_is_chosen_is_a_column() -> None:
    chosen = pa.table(UNNAMED).select([INDEX])
    assert list(arrowdl.to_numpy(chosen)) == [INDEX]
    stream = arrowdl.from_arrow_stream(UNNAMED).select([INDEX, "x"])
    assert list(arrowdl.to_numpy(next(stream))) == [INDEX, "x"]


def write_parquet(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_parquet(folder / "a.parquet")
    return str(folder / "a.parquet")


def write_ipc(frame: pd.DataFrame, folder: Path, compression: Any = "uncompressed") -> str:
    feather.write_feather(pa.table(frame), folder / "a.arrow", compression=compression)
    return str(folder / "a.arrow")


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "frame": lambda frame, folder: frame,
    "table": lambda frame, folder: pa.table(frame),
    "batches": lambda frame, folder: pa.table(frame).to_batches(max_chunksize=3),
    "array": lambda frame, folder: arrowdl.from_arrow(frame),
    "parquet": write_parquet,
    "file object": lambda frame, folder: io.BytesIO(
        Path(write_parquet(frame, folder)).read_bytes()
    ),
    "dataset": lambda frame, folder: ds.dataset(write_parquet(frame, folder)),
    "filtered dataset": lambda frame, folder: ds.dataset(write_parquet(frame, folder)).filter(
        pc.field("x") > 0
    ),
    "dataset in memory": lambda frame, folder: ds.dataset(pa.table(frame)),
    "mapped": write_ipc,
    "compressed": lambda frame, folder: write_ipc(frame, folder, "lz4"),
    "stream": lambda frame, folder: lambda: pa.table(frame).to_reader(),
    "generator": lambda frame, folder: lambda: iter(pa.table(frame).to_batches()),
}


@pytest.mark.parametrize(("frame", "names"), EXPECTED, ids=["unnamed", "named", "both"])
@pytest.mark.parametrize("kind", SOURCES)
def test_loaders(kind: str, frame: pd.DataFrame, names: list[str], tmp_path: Path) -> None:
    source = SOURCES[kind](frame, tmp_path)
    for options in ({}, {"shuffle": True}, {"stack": {"both": ["y", "x"]}}):
        rest = [name for name in names if "stack" not in options or name == "row"]
        expected = ["both", *rest] if "stack" in options else names
        for batch in arrowdl.Loader(source, 2, framework="numpy", **group(**options)):
            assert list(batch) == expected
    (matrix,) = arrowdl.Loader(source, 4, framework="numpy", stack=True, dtype="float64")
    assert matrix.shape == (4, len(names))


@pytest.mark.parametrize("kind", SOURCES)
def test_loaders_read_an_index_that_is_chosen(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](UNNAMED, tmp_path)
    for columns in ([INDEX], ["y", INDEX]):
        batches = list(arrowdl.Loader(source, 4, framework="numpy", columns=columns))
        assert [list(batch) for batch in batches] == [columns]
        assert batches[0][INDEX].tolist() == [7, 5, 4, 1]
    if kind in ("parquet", "dataset", "compressed"):
        (batch,) = arrowdl.Loader(source, 4, framework="numpy", filter=pc.field(INDEX) > 4)
        assert {name: list(values) for name, values in batch.items()} == {"x": [1, 2], "y": [5, 6]}


def test_plans_and_workers_and_map_datasets(tmp_path: Path) -> None:
    path = write_parquet(UNNAMED, tmp_path)
    loader = arrowdl.Loader(path, 2, framework="numpy")
    for again in (
        arrowdl.Loader(path, 2, framework="numpy", storage=arrowdl.Storage(plan=loader.plan())),
        arrowdl.Loader(path, 2, framework="numpy", storage=arrowdl.Storage(decoder="polars")),
        arrowdl.Loader(path, 2, framework="numpy", num_workers=1),
    ):
        assert [list(batch) for batch in again] == [["x", "y"]] * 2
    assert list(loader.map_dataset()[0]) == ["x", "y"]
    mixed = arrowdl.Loader.mix(
        {"a": path, "b": FRAME},
        weights={"a": 1, "b": 1},
        ranks=arrowdl.Ranks(global_batch_size=4),
        framework="numpy",
    )
    assert {tuple(batch) for batch in mixed} == {("x", "y")}


def test_old_metadata_names_the_index_alike(tmp_path: Path) -> None:
    metadata = json.loads(pa.table(UNNAMED).schema.metadata[b"pandas"])
    del metadata["column_indexes"], metadata["attributes"]
    table = pa.table(UNNAMED).replace_schema_metadata({"pandas": json.dumps(metadata)})
    assert list(arrowdl.to_numpy(table)) == ["x", "y"]
    pq.write_table(table, tmp_path / "old.parquet")
    (batch,) = arrowdl.Loader(str(tmp_path / "old.parquet"), 4, framework="numpy")
    assert list(batch) == ["x", "y"]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_some_files_may_lack_the_index(kind: str, tmp_path: Path) -> None:
    for name, frame in (("a", FRAME), ("b", UNNAMED), ("c", FRAME)):
        if kind == "parquet":
            frame.to_parquet(tmp_path / f"{name}.parquet")
        else:
            feather.write_feather(
                pa.table(frame), tmp_path / f"{name}.arrow", compression="uncompressed"
            )
    for options in ({}, {"memory_map": False}):
        batches = list(arrowdl.Loader(tmp_path, 4, framework="numpy", **group(**options)))
        assert [list(batch) for batch in batches] == [["x", "y"]] * 3
