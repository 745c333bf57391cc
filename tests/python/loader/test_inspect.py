"""``python -m arrowdl inspect``: what the metadata of files say."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from arrowdl.__main__ import main
from arrowdl._commands import footers, sources
from arrowdl._commands import inspect_command as advise

ROWS = 4_000
COLUMNS: dict[str, Any] = {
    "id": pa.array(range(ROWS), pa.int32()),
    "x": [i % 7 / 3 for i in range(ROWS)],
    "y": pa.array([None if i % 4 == 0 else i % 5 for i in range(ROWS)], pa.int8()),
    "flag": [i % 3 == 0 for i in range(ROWS)],
    "city": ["Amsterdam", "Berlin"] * (ROWS // 2),
    "words": pa.array([[1, 2]] * ROWS, pa.list_(pa.int32())),
    "price": pa.array([Decimal("1.50")] * ROWS, pa.decimal128(9, 2)),
}

Inspect = Callable[..., dict[str, Any]]


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str]) -> Inspect:
    def run(*arguments: Any) -> dict[str, Any]:
        options = ["--json", "--framework", "numpy"]
        assert main(["inspect", *map(str, arguments), *options]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run


def write(folder: Path, name: str = "a.parquet", rows: int = 500, **options: Any) -> pa.Table:
    table = pa.table(COLUMNS)
    pq.write_table(table, folder / name, row_group_size=rows, **options)
    return table


def test_facts_are_those_of_the_files(tmp_path: Path, inspect: Inspect) -> None:
    table = write(tmp_path, compression="gzip")
    write(tmp_path, "b.parquet", 1_000)
    found = inspect(tmp_path)
    assert found["kind"] == "Parquet files"
    assert (found["files"], found["files_read"], found["rows"]) == (2, 2, 2 * ROWS)
    assert found["file_bytes"] == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert found["row_groups"] == 12
    assert found["group_rows"] == {"least": 500, "median": 500, "largest": 1_000}
    assert found["codecs"] == ["gzip", "snappy"]
    columns = {column["name"]: column for column in found["columns"]}
    assert list(columns) == table.column_names
    assert columns["id"]["tensor"] == {"dtype": "int32", "shape": [None], "nulls": None}
    assert columns["words"]["tensor"][0]["dtype"] == "int32"
    assert columns["words"]["type"] == "list<element: int32>"
    assert columns["y"]["nulls"] == 2 * table["y"].null_count
    assert columns["words"]["nulls"] is None
    assert columns["flag"]["copied"] == "bits are unpacked"
    assert columns["id"]["copied"] == ""
    metadata = [pq.read_metadata(path) for path in tmp_path.iterdir()]
    stored = sum(
        one.row_group(i).column(0).total_compressed_size
        for one in metadata
        for i in range(one.num_row_groups)
    )
    assert columns["id"]["stored_bytes"] == stored
    assert columns["price"]["tensor"] is None
    assert "decimal128(9,2) has no" in columns["price"]["problem"]


def test_a_column_becomes_what_batches_have(tmp_path: Path, inspect: Inspect) -> None:
    write(tmp_path)
    names = [name for name in COLUMNS if name not in ("price", "y")]
    loader = arrowdl.Loader(tmp_path, 8, columns=names, framework="numpy")
    batch = next(iter(loader))
    for column in inspect(tmp_path)["columns"]:
        if column["name"] in names:
            value, tensor = batch[column["name"]], column["tensor"]
            if isinstance(value, tuple):
                value, tensor = value[0], tensor[0]
            assert (tensor["dtype"], len(tensor["shape"])) == (str(value.dtype), value.ndim)


def test_advice(tmp_path: Path, inspect: Inspect) -> None:
    write(tmp_path, compression="gzip")
    advice = "\n".join(inspect(tmp_path)["advice"])
    for text in (
        "row groups are small (median ",
        "gzip decodes slowly",
        'field "price": decimal128(9,2) has no DLPack type',
        '"y": nulls: give nulls= a policy',
        '"x": float64, which training seldom needs',
        '"city": few distinct strings: vocabulary=',
        '"id": rows are sorted by these: shuffle=True mixes them',
    ):
        assert text in advice
    assert "arrowdl.Image" not in advice


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.struct({"bytes": pa.binary(), "path": pa.string()})]
)
def test_advice_on_images(kind: pa.DataType, tmp_path: Path, inspect: Inspect) -> None:
    table = pa.table({"image": pa.nulls(3, kind), "label": pa.array([3, 1, 2])})
    pq.write_table(table, tmp_path / "a.parquet")
    advice = "\n".join(inspect(tmp_path)["advice"])
    assert '"image": bytes: transform_arrow= with arrowdl.Image or Audio decodes' in advice


def test_large_row_groups(
    tmp_path: Path, inspect: Inspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advise, "_LARGE", 2**20)
    table = pa.table({"x": pa.array(range(400_000), pa.int32())})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, compression="zstd")
    advice = "\n".join(inspect(tmp_path)["advice"])
    assert "row groups are large (up to 1.6 MB before compression)" in advice
    assert "mixes those of 1 row groups only" in advice
    assert "sorted" not in advice


def test_good_files_get_no_advice(tmp_path: Path, inspect: Inspect) -> None:
    table = pa.table({"x": pa.array([(7 * i) % 1_001 for i in range(600_000)], pa.float32())})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    assert inspect(tmp_path)["advice"] == []


def test_columns_of_folders_and_missing_columns(tmp_path: Path, inspect: Inspect) -> None:
    for day in ("1", "2"):
        (tmp_path / f"day={day}").mkdir()
        write(tmp_path / f"day={day}")
    pq.write_table(pa.table({"new": [1]}), tmp_path / "day=2" / "b.parquet")
    columns = {column["name"]: column for column in inspect(tmp_path)["columns"]}
    assert columns["day"]["type"] == "int32"
    assert columns["day"]["stored_bytes"] is None
    assert columns["new"]["nulls"] == 0


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_files_of_arrow(tmp_path: Path, inspect: Inspect, compression: str) -> None:
    table = pa.table({name: COLUMNS[name] for name in ("id", "flag")})
    pa.feather.write_feather(table, tmp_path / "a.arrow", compression=compression, chunksize=500)
    found = inspect(tmp_path / "a.arrow")
    how = "mapped into memory" if compression == "uncompressed" else "decoded"
    assert found["kind"] == f"Arrow IPC files, which are {how}"
    assert (found["files"], found["rows"]) == (1, ROWS)
    assert [column["type"] for column in found["columns"]] == ["int32", "bool"]


def test_statistics_of_very_many_files(
    tmp_path: Path, inspect: Inspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(5):
        pq.write_table(pa.table({"id": [i]}), tmp_path / f"{i}.parquet")
    monkeypatch.setattr(footers, "_MOST_FILES", 2)
    found = inspect(*sorted(tmp_path.iterdir()))
    assert (found["files"], found["files_read"], found["row_groups"]) == (5, 2, 5)


def test_nothing_but_metadata_is_read(tmp_path: Path, inspect: Inspect) -> None:
    coded = pa.table({"c": pa.array(["a", "b"] * 50).dictionary_encode()})
    path = tmp_path / "a.parquet"
    pq.write_table(coded, path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset
    data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    path.write_bytes(data)
    (column,) = inspect(path)["columns"]
    assert column["tensor"]["dtype"] == "int32"


def test_the_report_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert main(["inspect", str(tmp_path / "*.parquet"), "--framework", "numpy"]) == 0
    out, _ = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "source       Parquet files"
    assert lines[2:5] == [
        "rows         4,000",
        "row groups   8",
        "  rows       500 to 500, median 500",
    ]
    header = next(i for i, line in enumerate(lines) if line.startswith("column"))
    names = ["column", "Arrow", "type", "tensor", "copied", "nulls", "stored"]
    assert lines[header].split() == names
    assert lines[header + 1].startswith("id      int32")
    assert any(line.startswith("- ") for line in lines)


def test_a_terminal_gets_no_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of columns and of fields are in the table, in advice and in errors."""
    name = "a\x1b]0;title\x07\n\x9b"
    table = pa.table({name: pa.array([1.5], pa.float64()), "s": [{name: 1}], "ë ": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert main(["inspect", str(tmp_path), "--framework", "numpy"]) == 0
    out, _ = capsys.readouterr()
    assert out.replace("\n", "").isprintable()
    assert "\na\\x1b]0;title\\x07\\n\\x9b  double" in out
    assert '- "a\\x1b]0;title\\x07\\n\\x9b": float64' in out
    assert "\në " in out
    pq.write_table(table.set_column(0, name, [[1]]), tmp_path / "b.parquet")
    assert main(["inspect", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.replace("\n", "").isprintable()
    assert "a\\x1b]0;title" in error


def test_what_cannot_be_read_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["inspect", str(tmp_path / "missing")]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    (tmp_path / "_delta_log").mkdir()
    monkeypatch.setitem(sources._LIBRARIES, "delta", "no_such_module")
    assert main(["inspect", str(tmp_path)]) == 1
    assert "a table of delta needs no_such_module: pip install" in capsys.readouterr().err
    assert main(["inspect", str(tmp_path), "other"]) == 1
    assert "is a table: give it alone" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["inspect"])
    assert caught.value.code == 2


def test_tables_are_found_by_their_folders(tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lance" / "_versions").mkdir(parents=True)
    metadata = tmp_path / "iceberg" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "1.metadata.json").touch()
    for kind in ("delta", "lance", "iceberg"):
        assert sources.find_kind(str(tmp_path / kind)) == kind
    assert sources.find_kind("s3://bucket/rows.lance/") == "lance"
    assert sources.find_kind("s3://bucket/table/metadata/1.metadata.json") == "iceberg"
    assert sources.find_kind(str(tmp_path)) is None


def test_long_types_are_cut_in_the_table_alone(
    tmp_path: Path, inspect: Inspect, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = pa.struct([(f"field {i}", pa.int8()) for i in range(50)])
    pq.write_table(pa.table({"s": pa.array([{"field 0": 1}], kind)}), tmp_path / "a.parquet")
    assert inspect(tmp_path)["columns"][0]["type"] == str(kind)
    assert main(["inspect", str(tmp_path), "--framework", "numpy"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) < 150
