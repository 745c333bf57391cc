#!/usr/bin/env bash
# pyarrow refuses Parquet files of DuckDB whose ARRAY column has a null row.
#
# Versions: duckdb 2.0.0, pyarrow 26.0.1, polars 2.1.0, numpy 2.4.6, Python 3.11, Linux.
# A null list is one entry of a Parquet column. DuckDB writes a null FLOAT[3] as three, whose second
# and third say that they continue a list that is null. pyarrow says that the offsets of the lists go
# beyond their values; DuckDB and polars read the rows. Null items are right, and so is a cast to
# FLOAT[], a list of any length.
#
# Output (rows, entries in the file, pyarrow, DuckDB, polars):
#   null row         9 Length spanned by list offsets (8) larger than values array (length 6) True True
#   null item        9 True True True
#   null row, a list 7 True True True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet duckdb==2.0.0 pyarrow==26.0.1 polars==2.1.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import duckdb
import polars as pl
import pyarrow.parquet as pq

rows = {
    "null row": [[1.0, 2.0, 3.0], None, [4.0, 5.0, 6.0]],
    "null item": [[1.0, None, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
}
rows["null row, a list"] = rows["null row"]
found = {}
for name, values in rows.items():
    type = "FLOAT[]" if name.endswith("list") else "FLOAT[3]"
    con = duckdb.connect()
    con.execute(f"CREATE TABLE given AS SELECT unnest(?::{type}[]) AS x", [values])
    con.sql("COPY given TO 'x.parquet' (FORMAT parquet)")
    entries = pq.ParquetFile("x.parquet").metadata.row_group(0).column(0).num_values
    try:
        said = pq.read_table("x.parquet")["x"].to_pylist() == values
    except ValueError as error:
        said = str(error)
    own = [row[0] and list(row[0]) for row in con.sql("SELECT x FROM 'x.parquet'").fetchall()]
    other = pl.read_parquet("x.parquet")["x"].to_list()
    found[name] = (entries, said, own == values, other == values)
    print(f"{name:16}", *found[name])
refused = "Length spanned by list offsets (8) larger than values array (length 6)"
assert found == {
    "null row": (9, refused, True, True),
    "null item": (9, True, True, True),
    "null row, a list": (7, True, True, True),
}
PYTHON
venv/bin/python show.py
