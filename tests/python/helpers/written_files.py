"""Files of a table's rows, as the loader's property tests read them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq


def write_parts(folder: str, parts: Iterable[pa.Table], kind: str, cut: int) -> None:
    """Write a file of each part, in their order: Arrow IPC if `kind` is "ipc" or "compressed".

    Others are Parquet, in row groups of `cut` rows.
    """
    for i, part in enumerate(parts):
        if kind in ("ipc", "compressed"):
            codec = "uncompressed" if kind == "ipc" else "lz4"
            feather.write_feather(part, f"{folder}/{i}.arrow", compression=codec)
        else:
            pq.write_table(part, f"{folder}/{i}.parquet", row_group_size=cut)
