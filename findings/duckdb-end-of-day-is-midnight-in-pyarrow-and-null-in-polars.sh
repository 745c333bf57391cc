#!/usr/bin/env bash
# DuckDB 2.0.1 has the time '24:00:00', the end of a day, as PostgreSQL has, and exports it to Arrow and Parquet as
# 86,400,000,000 microseconds, which Arrow's time64 does not have: the array is not valid, and nothing says so.
# pyarrow 26.0.1 reads it as 00:00, the start of the day, polars 2.1.0 as null, pandas 3.1.1 raises. The row that
# DuckDB has as the greatest of all is the least of all in one library, and missing in the other.
# Guessed before the run: pyarrow raises, polars has 23:59:59.999999.
# Seen: DuckDB max 24:00:00; pyarrow [23:59:59, 00:00:00, 00:00:00]; polars [23:59:59, None, 00:00:00];
#       pandas ValueError: hour must be in 0..23
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==2.0.1 polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/times.parquet" <<'EOF'
import sys
from datetime import time

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

path = sys.argv[1]
connection = duckdb.connect()
query = "SELECT t::TIME AS t FROM (VALUES ('23:59:59'), ('24:00:00'), ('00:00:00')) AS rows(t)"
assert connection.sql(f"SELECT max(t)::VARCHAR FROM ({query})").fetchall() == [("24:00:00",)]
assert connection.sql(f"SELECT * FROM ({query}) WHERE t = '00:00:00'").fetchall() == [(time(0),)]
connection.sql(query).write_parquet(path)
table = connection.sql(query).to_arrow_table()
frame = pl.DataFrame(connection.sql(query))
print("pyarrow", table["t"].to_pylist(), "polars", frame["t"].to_list())
late, start = time(23, 59, 59), time(0)
assert table["t"].to_pylist() == pq.read_table(path)["t"].to_pylist() == [late, start, start]
assert frame["t"].to_list() == pl.read_parquet(path)["t"].to_list() == [late, None, start]
assert table["t"].cast(pa.int64()).to_pylist()[1] == 86_400_000_000
try:
    table.validate(full=True)
except pa.ArrowInvalid as error:
    print("pyarrow's validate:", error)
else:
    raise AssertionError("the array is valid now")
try:
    table.to_pandas()
except ValueError as error:
    print("pandas ValueError:", error)
    assert "hour must be in 0..23" in str(error)
else:
    raise AssertionError("pandas reads it now")
EOF
