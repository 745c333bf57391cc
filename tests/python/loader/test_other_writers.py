"""Parquet files as other libraries write them: cut statistics, encodings that pyarrow lacks."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.processes import run_python

WIDTH = 70  # bytes: arrow-rs cuts statistics to 64
CUT = 64


def cut_statistics(path: Path) -> None:
    """Cut the bounds of a column of 70 bytes to 64 bytes, as arrow-rs does."""
    data = path.read_bytes()
    (size,) = struct.unpack("<I", data[-8:-4])
    pages, footer = data[: -8 - size], data[-8 - size : -8]
    for value in (b"a" * WIDTH, b"b" * WIDTH):
        whole = bytes([WIDTH]) + value  # Thrift's binary: the length, the bytes
        assert whole in footer
        footer = footer.replace(whole, bytes([CUT]) + value[:CUT])
    path.write_bytes(pages + footer + struct.pack("<I", len(footer)) + b"PAR1")


def write_cut(path: Path) -> Path:
    keys = pa.array([b"a" * WIDTH, None, b"b" * WIDTH, b"a" * WIDTH], pa.binary(WIDTH))
    pq.write_table(pa.table({"id": range(4), "k": [1, 1, 1, 1], "key": keys}), path)
    cut_statistics(path)
    return path


READINGS = [
    'Loader({path!r}, 2, framework="numpy", nulls="mask", filter=ds.field("key").is_valid())',
    'Loader({path!r}, 2, framework="numpy", nulls="mask", filter=ds.field("key").is_null())',
    'Loader({path!r}, 2, framework="numpy")',  # the error counts the nulls
    'Loader({folder!r}, 2, framework="numpy", nulls="mask", filter=ds.field("id") > 0)',
    'Loader({path!r}, 2, framework="numpy", nulls="mask", shuffle=True)',  # measures its rows
]


@pytest.mark.parametrize("reading", READINGS)
def test_cut_statistics_do_not_end_the_process(reading: str, tmp_path: Path) -> None:
    """pyarrow ends the process when it compares bounds that are shorter than their type."""
    (tmp_path / "k=1").mkdir()
    path = write_cut(tmp_path / "k=1/a.parquet")
    code = reading.format(path=str(path), folder=str(tmp_path))
    run_python(f"""
        import pyarrow.dataset as ds
        from arrowdl import Loader
        try:
            assert sum(len(batch["id"][0]) for batch in {code}) in (1, 3, 4)
        except BufferError as error:
            assert "has nulls" in str(error), error
        """)


def test_sizes_are_estimated_with_cut_statistics(tmp_path: Path) -> None:
    path = write_cut(tmp_path / "a.parquet")
    out = run_python(f"""
        import pyarrow.parquet as pq
        from arrowdl.loader._sources.row_bytes import measure_row_group
        print(measure_row_group(pq.ParquetFile({str(path)!r}).metadata, 0)["key"] > 20)
        """)
    assert out == "True\n"


def test_inspect_reads_cut_statistics(tmp_path: Path) -> None:
    path = write_cut(tmp_path / "a.parquet")
    out = run_python(f"""
        import sys
        from arrowdl.__main__ import main
        sys.exit(main(["inspect", {str(path)!r}]))
        """)
    assert "key" in out


def write_wide_deltas(path: Path) -> None:
    """Write a page of int32 whose deltas have 64 bits, as DuckDB does.

    The footer and the page's header are pyarrow's. The values are 2**31 - 1 and -(2**31), in turn:
    their least delta, 1 - 2**32, is below all of int32.
    """
    values = pa.array([2**31 - 1, -(2**31)] * 64, pa.int32())
    pq.write_table(
        pa.table({"id": range(128), "x": values}),
        path,
        use_dictionary=False,
        column_encoding={"x": "DELTA_BINARY_PACKED"},
        compression="none",
        write_statistics=False,
    )
    data = path.read_bytes()
    narrow = write_varint(zigzag(-1))  # of 32 bits: the deltas are 1 and -1
    start = b"\x80\x01\x04" + write_varint(128) + write_varint(zigzag(2**31 - 1))
    assert data.count(start + narrow) == 1
    wide = start + write_varint(zigzag(1 - 2**32))
    place = data.index(start + narrow)
    path.write_bytes(data[:place] + wide + data[place + len(wide) :])


def zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def write_varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


@pytest.mark.parametrize("options", [{}, {"shuffle": True}], ids=str)
def test_an_encoding_that_pyarrow_lacks_names_other_readers(
    options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    write_wide_deltas(path)
    with pytest.raises(OSError, match="InitBlock") as caught:
        list(arrowdl.Loader(path, 50, framework="numpy", **options))
    text = "\n".join(caught.value.__notes__)
    assert f"cannot read '{path}', row group 0, column \"x\"" in text
    assert "polars and DuckDB decode some Parquet files that pyarrow does not" in text
    assert "Loader(polars.read_parquet(path))" in text
    assert len(list(arrowdl.Loader(path, 64, columns=["id"], framework="numpy"))) == 2


def test_lists_of_another_structure_name_the_file(tmp_path: Path) -> None:
    """Hyper marks groups as lists that have no repeated group: pyarrow makes no schema."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "x": [[1, 2], []]}), path, store_schema=False)
    data = path.read_bytes()
    repeated, optional = (bytes([2 * kind, 0x18, 4]) + b"list" for kind in (2, 1))
    assert data.count(repeated) == 1
    path.write_bytes(data.replace(repeated, optional))
    for source in (path, [path, path], tmp_path):
        with pytest.raises(pa.ArrowInvalid, match="LIST-annotated") as caught:
            arrowdl.Loader(source, 2, framework="numpy")
        text = "\n".join(caught.value.__notes__)
        assert f"while arrowdl.Loader read '{path}'. polars and DuckDB decode" in text
