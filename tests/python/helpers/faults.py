"""Parquet files with checksums, and damage to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq


def write_checked(path: Path, table: pa.Table, group_rows: int) -> None:
    """Write a file with a checksum of each page."""
    pq.write_table(
        table,
        path,
        row_group_size=group_rows,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )


def open_checked(paths: Any) -> ds.Dataset:
    """A dataset that compares the checksums."""
    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    return ds.dataset(paths, format=ds.ParquetFileFormat(default_fragment_scan_options=options))


def flip_value(path: Path, group: int, column_index: int = 0) -> None:
    """Flip the last bits of a row group's column: only the checksum tells."""
    column = pq.read_metadata(path).row_group(group).column(column_index)
    end = column.data_page_offset + column.total_compressed_size
    with open(path, "r+b") as file:
        file.seek(end - 1)
        byte = file.read(1)[0]
        file.seek(end - 1)
        file.write(bytes([byte ^ 0x55]))


def truncate(path: Path) -> None:
    """Cut off the footer."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
