#!/usr/bin/env bash
# pyarrow reads INT96 timestamps outside the years 1677 to 2262 as other years, without an error.
#
# Versions: pyarrow 26.0.1, duckdb 2.0.0, Python 3.11, Linux.
# An INT96 timestamp of Parquet (what Spark writes by default) has a Julian day and the nanoseconds
# of that day. pyarrow makes them nanoseconds since 1970 in 64 bits, which wrap. 9999-12-31 and
# 0001-01-01 are usual for "no end" and "no beginning". The file's own Arrow schema, which says
# timestamp[us], changes nothing. DuckDB, and pyarrow with coerce_int96_timestamp_unit="us", are
# right. That unit in turn cuts nanoseconds, also in silence.
#
# Output:
#   written                  9999-12-31 00:00:00           0001-01-01 00:00:00
#   pyarrow                  1816-03-29T05:56:08.066277376 1754-08-30T22:43:41.128654848
#   pyarrow, microseconds    9999-12-31T00:00:00.000000    0001-01-01T00:00:00.000000
#   duckdb                   9999-12-31 00:00:00           0001-01-01 00:00:00
#   1 ns after 1970 as microseconds: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1 duckdb==2.0.0 numpy==2.4.6
cat > show.py <<'PYTHON'
from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

times = [datetime(9999, 12, 31), datetime(1, 1, 1)]
table = pa.table({"t": pa.array(times, pa.timestamp("us"))})
pq.write_table(table, "t.parquet", use_deprecated_int96_timestamps=True)
assert pq.ParquetFile("t.parquet").schema.column(0).physical_type == "INT96"
assert b"ARROW:schema" in pq.ParquetFile("t.parquet").metadata.metadata

wrapped = pq.read_table("t.parquet")["t"].to_numpy().astype(str).tolist()
right = pq.ParquetFile("t.parquet", coerce_int96_timestamp_unit="us").read()["t"]
right = right.to_numpy().astype(str).tolist()
by_duckdb = [row[0] for row in duckdb.sql("from 't.parquet'").fetchall()]
rows = {"written": times, "pyarrow": wrapped, "pyarrow, microseconds": right, "duckdb": by_duckdb}
for name, values in rows.items():
    print(f"{name:24} {values[0]!s:29} {values[1]}")

assert wrapped == ["1816-03-29T05:56:08.066277376", "1754-08-30T22:43:41.128654848"]
assert [value[:19] for value in right] == ["9999-12-31T00:00:00", "0001-01-01T00:00:00"]
assert by_duckdb == times

table = pa.table({"t": pa.array([1], pa.timestamp("ns"))})
pq.write_table(table, "ns.parquet", use_deprecated_int96_timestamps=True)
cut = pq.ParquetFile("ns.parquet", coerce_int96_timestamp_unit="us").read()["t"]
print("1 ns after 1970 as microseconds:", cut.cast(pa.int64())[0])
assert cut.cast(pa.int64()).to_pylist() == [0]
PYTHON
venv/bin/python show.py
