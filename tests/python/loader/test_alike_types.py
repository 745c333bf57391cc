"""Files whose columns differ in what makes no other tensor: offsets of strings and lists."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from helpers.options import group

NUMBERS = [[1, 2], [3, 4]]
PAIRS: list[tuple[str, Any, list[Any]]] = [
    ("strings", ["a", "bc"], [pa.string(), pa.large_string(), pa.string_view()]),
    ("views first", ["a", "bc"], [pa.string_view(), pa.string()]),
    ("binary", [b"a", b"bc"], [pa.binary(), pa.large_binary(), pa.binary_view()]),
    ("lists", [[1], [2, 3]], [pa.list_(pa.int32()), pa.large_list(pa.int32())]),
    ("fixed", NUMBERS, [pa.list_(pa.int32()), pa.list_(pa.int32(), 2), pa.large_list(pa.int32())]),
    ("fixed first", NUMBERS, [pa.list_(pa.int32(), 2), pa.list_(pa.int32())]),
    (
        "nested",
        [[["a"]], [["b", "c"], []]],
        [pa.list_(pa.list_(pa.string())), pa.large_list(pa.list_(pa.large_string()))],
    ),
    (
        "structs",
        [{"s": "a"}, {"s": "b"}],
        [pa.struct([("s", pa.string())]), pa.struct([("s", pa.large_string())])],
    ),
]


def write(folder: Path, values: Any, types: list[Any], kind: str) -> None:
    for i, type in enumerate(types):
        table = pa.table({"x": pa.array(values, type), "id": [2 * i, 2 * i + 1]})
        if kind == "parquet":
            pq.write_table(table, folder / f"{i}.parquet")
        else:
            feather.write_feather(table, folder / f"{i}.arrow", compression=kind)


def read(source: Any, **options: Any) -> list[Any]:
    """Return the values of the Arrow batches of a Loader."""
    found: list[Any] = []

    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        found.extend(batch.column("x").to_pylist())
        return batch.select(["id"])

    ids = [
        int(number)
        for batch in arrowdl.Loader(
            source, 2, framework="numpy", transform_arrow=keep, prefetch=0, **group(**options)
        )
        for number in batch["id"]
    ]
    return [value for _, value in sorted(zip(ids, found, strict=True), key=lambda pair: pair[0])]


@pytest.mark.parametrize("kind", ["parquet", "uncompressed", "lz4"])
@pytest.mark.parametrize(("name", "values", "types"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_files_are_read_together(
    tmp_path: Path, name: str, values: Any, types: list[Any], kind: str
) -> None:
    write(tmp_path, values, types, kind)
    assert read(tmp_path) == values * len(types)
    assert read(tmp_path, shuffle=True, seed=1) == values * len(types)
    if kind == "parquet":
        files = [io.BytesIO(path.read_bytes()) for path in sorted(tmp_path.iterdir())]
        assert read(files) == values * len(types)
        assert read(tmp_path, decoder="polars") == values * len(types)
    if name == "fixed":
        batches = list(arrowdl.Loader(tmp_path, 2, framework="numpy"))
        assert [batch["x"].tolist() for batch in batches] == [values] * 3
    if name == "lists":
        assert read(tmp_path, filter=pc.field("id") > 0) == (values * 2)[1:]


def test_lists_of_another_length_are_an_error(tmp_path: Path) -> None:
    types = [pa.list_(pa.int32(), 2), pa.list_(pa.int32())]
    for i, (type, values) in enumerate(zip(types, (NUMBERS, [[1]]), strict=True)):
        pq.write_table(pa.table({"x": pa.array(values, type)}), tmp_path / f"{i}.parquet")
    with pytest.raises((ValueError, RuntimeError, OSError), match="lists are all"):
        list(arrowdl.Loader(tmp_path, 2, framework="numpy"))


@pytest.mark.parametrize(
    "types",
    [
        [pa.int32(), pa.int64()],
        [pa.string(), pa.binary()],
        [pa.list_(pa.int32()), pa.list_(pa.int64())],
        [pa.list_(pa.int32()), pa.list_view(pa.int32())],
    ],
)
def test_other_tensors_are_refused(tmp_path: Path, types: list[Any]) -> None:
    for i, type in enumerate(types):
        table = pa.table({"x": pa.nulls(1, type), "id": [i]})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    with pytest.raises(ValueError, match=r'has other types than.*"x" is'):
        arrowdl.Loader(tmp_path, 2)
    assert [batch["id"].tolist() for batch in arrowdl.Loader(tmp_path, 2, columns=["id"])]


def write_twins(path: Path, kind: str) -> None:
    twins = pa.table([[1, 2], [3, 4], [5, 6]], ["a", "a", "x"])
    if kind == "parquet":
        pq.write_table(twins, path)
    else:
        with pa.ipc.new_file(path, twins.schema) as writer:
            writer.write_table(twins)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_one_name_that_are_not_read(tmp_path: Path, kind: str) -> None:
    write_twins(tmp_path / f"0.{kind}", kind)
    other = pa.table({"x": [7, 8], "a": [1, 1]})
    if kind == "parquet":
        pq.write_table(other, tmp_path / f"1.{kind}")
    else:
        with pa.ipc.new_file(tmp_path / f"1.{kind}", other.schema) as writer:
            writer.write_table(other)
    first = tmp_path / f"0.{kind}"
    sources = [first, tmp_path, io.BytesIO(first.read_bytes())]
    for source in sources:
        for options in ({}, {"shuffle": True}, {"memory_map": False}, {"num_workers": 1}):
            loader = arrowdl.Loader(source, 4, framework="numpy", columns=["x"], **group(**options))
            (batch,) = loader
            expected = [5, 6, 7, 8] if source == tmp_path else [5, 6]
            assert sorted(batch["x"].tolist()) == expected
        with pytest.raises(ValueError, match=r'2 columns named "a"|"a" is not one column'):
            arrowdl.Loader(source, 4, columns=["a"])
        with pytest.raises(ValueError, match='2 columns named "a"'):
            arrowdl.Loader(source, 4)
    filtered = arrowdl.Loader(first, 4, framework="numpy", columns=["x"], filter=pc.field("x") > 5)
    assert [batch["x"].tolist() for batch in filtered] == [[6]]


def test_tables_with_columns_of_one_name() -> None:
    twins = pa.table([[1, 2], [3, 4], [5, 6]], ["a", "a", "x"])
    for source in (twins, arrowdl.from_arrow(twins), lambda: twins.to_reader()):
        (batch,) = arrowdl.Loader(source, 4, framework="numpy", columns=["x"])
        assert batch["x"].tolist() == [5, 6]
