#!/usr/bin/env bash
# pyarrow cannot read 32-bit integers of DuckDB's Parquet files of version 2 whose neighbours are far apart.
#
# Versions: duckdb 2.0.0, pyarrow 26.0.1, polars 2.1.0, numpy 2.4.6, Python 3.11, Linux.
# With PARQUET_VERSION v2, DuckDB writes INTEGER columns without many repeated values as
# DELTA_BINARY_PACKED, and computes the deltas in 64 bits: between -2**31 and 2**31 - 1 they have 33.
# The format's description has deltas of the column's own width, which wrap around. pyarrow's error
# says that the stream ends early, as if the file were cut off; DuckDB and polars read the values. It
# takes one pair of neighbours more than 2**31 apart: ids that are hashes are enough. BIGINT columns
# with the same values are read.
#
# Output (type, what pyarrow says, DuckDB, polars):
#   int32 Unexpected end of stream: InitBlock EOF True True
#   int64 True True True
#   small True True True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet duckdb==2.0.0 pyarrow==26.0.1 polars==2.1.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

hashes = np.random.default_rng(0).integers(-(2**31), 2**31, 4000)
columns = {"int32": hashes.astype("int32"), "int64": hashes, "small": (hashes // 4).astype("int32")}
found = {}
for name, values in columns.items():
    con = duckdb.connect()
    con.register("given", pa.table({"x": values}))
    con.sql("COPY (SELECT * FROM given) TO 'x.parquet' (FORMAT parquet, PARQUET_VERSION v2)")
    assert pq.ParquetFile("x.parquet").metadata.row_group(0).column(0).encodings == (
        "DELTA_BINARY_PACKED",
    )
    try:
        said = pq.read_table("x.parquet")["x"].to_pylist() == values.tolist()
    except OSError as error:
        said = str(error)
    own = [row[0] for row in con.sql("SELECT x FROM 'x.parquet'").fetchall()]
    other = pl.read_parquet("x.parquet")["x"].to_list()
    found[name] = (said, own == values.tolist(), other == values.tolist())
    print(name, *found[name])
assert found == {
    "int32": ("Unexpected end of stream: InitBlock EOF", True, True),
    "int64": (True, True, True),
    "small": (True, True, True),
}
PYTHON
venv/bin/python show.py
