"""What errors of a Loader name: the file, the row group, the column, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._batches.explain import explain_errors
from helpers.options import group
from helpers.processes import run_python

TABLE = pa.table({"x": range(2000), "y": [float(i * 7919 % 1000) for i in range(2000)]})


def write(path: Path, table: pa.Table, rows: int = 500) -> None:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
        return
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, rows)


def fail(source: Any, **options: Any) -> str:
    """The text of the error that reading raises, with its notes."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        list(arrowdl.Loader(source, 100, **group(**{"framework": "numpy", **options})))
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


# ---- types


def test_types_without_a_tensor_are_cast_by_an_option_of_the_loader() -> None:
    table = pa.table({"id": range(4), "price": pa.array(range(4), pa.decimal128(22, 2))})
    assert 'give the Loader dtype="float64"' in fail(table)
    spans = pa.table({"span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    assert "cast it in transform_arrow=, or leave it out of columns=" in fail(spans)
    assert 'jax_enable_x64", True) first, or cast with dtype=' in fail(table, framework="jax")
    schema = pa.schema({"id": pa.int32(), "price": pa.float64()})

    def cast(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.cast(schema)

    (batch,) = arrowdl.Loader(table, 4, framework="jax", transform_arrow=cast, dtype="float32")
    assert batch["price"].tolist() == [0, 1, 2, 3]


# ---- nulls


NULL_TABLES = {
    "numbers": pa.table({"v": [1, None]}),
    "fields": pa.table({"v": [{"a": 1}, {"a": None}]}),
    "lists": pa.table({"v": [[1], None]}),
    "texts": pa.table({"v": ["a", None]}),
}


@pytest.mark.parametrize("name", NULL_TABLES)
def test_a_null_names_the_option_of_the_loader(name: str) -> None:
    text = fail(NULL_TABLES[name])
    assert 'give the Loader nulls="fill"' in text
    assert 'field "v"' in text
    assert "to_torch" not in text


def test_a_null_in_a_matrix_names_the_option_of_the_loader() -> None:
    table = pa.table({"a": [1, None], "b": [1, 2]})
    assert 'give the Loader nulls="fill"' in fail(table, stack=True)
    assert 'give the Loader nulls="fill"' in fail(table, stack={"m": ["b"]})


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"shuffle": True}], ids=str)
def test_a_file_without_the_column_is_named(
    options: dict[str, Any], suffix: str, tmp_path: Path
) -> None:
    for i in range(5):
        write(tmp_path / f"{i}{suffix}", TABLE.select(["x"]) if i == 3 else TABLE)
    text = fail(tmp_path, **options)
    assert f"The file '{tmp_path}/3{suffix}' lacks this column: its rows are null" in text
    write(tmp_path / f"4{suffix}", TABLE.select(["x"]))
    text = fail(tmp_path, **options)
    assert f"2 files lack this column, and '{tmp_path}/3{suffix}' is the first" in text


def test_the_row_group_with_nulls_is_named(tmp_path: Path) -> None:
    for i in range(5):
        v = pa.array(range(100)) if i != 3 else pa.array([*range(60), None, None, *range(38)])
        write(tmp_path / f"{i}.parquet", pa.table({"v": v}), 50)
    assert f"Row group 1 of '{tmp_path}/3.parquet' has 2 of them" in fail(tmp_path)
    assert "Row group 1" in fail(ds.dataset(tmp_path))


def test_nulls_of_columns_of_directories_and_of_nested_fields(tmp_path: Path) -> None:
    table = pa.table({"v": [{"a": 1}, {"a": None}]})
    write(tmp_path / "k=1/a.parquet", table)
    text = fail(tmp_path)
    assert 'field "v": field "a"' in text
    assert "lacks" not in text


# ---- lists


@pytest.mark.parametrize("ragged", ["jagged", "padded"])
@pytest.mark.parametrize(
    "values", [[["a"], ["b", "c"]], [[[1]], [[2], [3]]], [[{"a": 1}]]], ids=str
)
def test_lists_of_texts_are_sent_to_what_works(values: list[Any], ragged: str) -> None:
    table = pa.table({"v": values})
    assert 'ragged="offsets"' in fail(table, ragged=ragged, framework="torch")
    assert len(list(arrowdl.Loader(table, 9, ragged="offsets", framework="torch"))) == 1


# ---- files that cannot be read


def damage(path: Path, group: int, column: int) -> None:
    """Overwrite the start of a column's first page, its header."""
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(column)
    data = bytearray(path.read_bytes())
    start = min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset)))
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"num_workers": 1}], ids=str)
def test_a_damaged_page_names_file_row_group_and_column(
    options: dict[str, Any], tmp_path: Path
) -> None:
    for i in range(20):
        write(tmp_path / f"{i:02}.parquet", TABLE)
    damage(tmp_path / "11.parquet", 2, 1)
    text = fail(tmp_path, **options)
    assert f"arrowdl.Loader cannot read '{tmp_path}/11.parquet', row group 2, column \"y\"" in text
    assert "write the file again, or leave it out" in text
    assert len(list(arrowdl.Loader(tmp_path, 1000, columns=["x"], framework="numpy"))) == 40


def test_a_value_that_cannot_be_cast_names_file_row_group_and_column(tmp_path: Path) -> None:
    for i in range(4):
        write(
            tmp_path / f"{i}.parquet",
            pa.table({"a": range(20), "x": ["1"] * 10 + [str(i)] * 10}),
            10,
        )
    write(tmp_path / "2.parquet", pa.table({"a": range(20), "x": ["1"] * 10 + ["one"] * 10}), 10)
    dataset = ds.dataset(tmp_path, schema=pa.schema({"a": pa.int64(), "x": pa.int32()}))
    text = fail(dataset)
    assert f"column \"x\" of '{tmp_path}/2.parquet', row group 1" in text


def test_a_damaged_ipc_file_is_named(tmp_path: Path) -> None:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for i in range(5):
        with pa.ipc.new_file(tmp_path / f"{i}.arrow", TABLE.schema, options=options) as writer:
            writer.write_table(TABLE, 500)
    path = tmp_path / "3.arrow"
    data = bytearray(path.read_bytes())
    start = data.index(b"\x04\x22\x4d\x18")  # LZ4's magic number
    data[start : start + 4] = b"\xff" * 4
    path.write_bytes(data)
    for memory_map in (True, False):
        text = fail(tmp_path, memory_map=memory_map)
        assert f"'{path}'" in text
        assert "0.arrow" not in text


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize(
    "content", [b"", b"x", b"Not such a file at all.", b"ARROW1\0\0, and no more"]
)
def test_a_file_of_another_kind_is_named(content: bytes, suffix: str, tmp_path: Path) -> None:
    for i in range(5):
        write(tmp_path / f"{i}{suffix}", TABLE)
    (tmp_path / f"3{suffix}").write_bytes(content)
    assert f"'{tmp_path}/3{suffix}'" in fail(tmp_path)
    assert f"'{tmp_path}/3{suffix}'" in fail(tmp_path, memory_map=False, filter=ds.field("x") > 3)


MISSING = """
from fsspec.implementations.local import LocalFileSystem
import arrowdl, pyarrow as pa, pyarrow.dataset as ds, pyarrow.fs as fs, pyarrow.parquet as pq
import os, sys, tempfile

missing, seen = "", []

class Filesystem(LocalFileSystem):
    def open(self, path, *args, **kwargs):
        seen.append(path)
        if missing and path.endswith(missing) and (not once or seen.count(path) == 1):
            raise error("no such object")
        return super().open(path, *args, **kwargs)

folder = tempfile.TemporaryDirectory()
paths = [f"{folder.name}/{i:02}.parquet" for i in range(40)]
for path in paths:
    pq.write_table(pa.table({"x": range(40)}), path, row_group_size=20)
filesystem = fs.PyFileSystem(fs.FSSpecHandler(Filesystem()))
loader = arrowdl.Loader(ds.dataset(paths, filesystem=filesystem), 10, framework="numpy")
for once, error in ((False, FileNotFoundError), (False, PermissionError), (True, TimeoutError)):
    missing = "23.parquet"
    seen.clear()
    try:
        list(loader)
    except error as caught:
        print(str(caught), *caught.__notes__)
sys.stdout.flush()
folder.cleanup()
os._exit(0)
"""


def test_a_missing_object_is_named() -> None:
    """In a file system whose errors do not name the path."""
    first, second, third = run_python(MISSING).splitlines()
    for line in (first, second):
        assert "no such object arrowdl.Loader cannot read '" in line
        assert "/23.parquet', which cannot be opened: leave it out" in line
    assert "/23.parquet'" in third
    assert third.endswith("they can be read now: try again")


def test_a_search_for_nulls_that_fails_hides_nothing() -> None:
    def find(column: str) -> str:
        raise OSError("gone")

    def convert(array: Any) -> Any:
        return arrowdl.to_numpy(array)

    array = arrowdl.from_arrow(pa.record_batch({"x": [1, None]}))
    with pytest.raises(
        BufferError, match='no place for them: give the Loader nulls="fill"'
    ) as caught:
        explain_errors(convert, find)(array)
    assert caught.value.__notes__ == ["arrowdl.Loader could not find the file with the nulls: gone"]


def test_other_errors_of_a_conversion_stay_as_they_are() -> None:
    assert fail(pa.table({"v": pa.nulls(2)})) == (
        'field "v": null has no values: cast it to a type that has'
    )


WHERE_IT_WAS = """
missing = "33.parquet"
once, error = False, OSError
opened = ds.dataset(paths, filesystem=filesystem).filter(ds.field("x") >= 0)
loader = arrowdl.Loader(opened, 10, framework="numpy")
seen.clear()
try:
    list(loader)
except OSError as caught:
    print(str(caught), *caught.__notes__)
print(seen.count(paths[0]))
sys.stdout.flush()
folder.cleanup()
os._exit(0)
"""


def test_the_search_begins_where_reading_was() -> None:
    """What was read before may be a thousand files."""
    line, opens = run_python(MISSING.split("loader = ")[0] + WHERE_IT_WAS).splitlines()
    assert "/33.parquet', which cannot be opened" in line
    assert opens == "2", "for its footer and its pages"
