#!/usr/bin/env bash
# PySpark 4.3.0: DataFrame.__arrow_c_stream__, which pyarrow, polars and duckdb take, raises AssertionError without a word
# if any column is a TIMESTAMP, Spark's usual time. Such a column of TIMESTAMP_NTZ, and toArrow() of the same frame,
# work. So `pa.table(frame)` depends on a column that the reader may not use.
# Seen: stream of TIMESTAMP: AssertionError(); toArrow(): timestamp[us, tz=UTC]; stream of TIMESTAMP_NTZ: timestamp[us]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.3.0 pandas==2.3.3 pyarrow==26.0.1 numpy==2.4.6
PYSPARK_PYTHON="$folder/venv/bin/python" "$folder/venv/bin/python" - 2>"$folder/log" <<'EOF' || { tail -n 5 "$folder/log" >&2; exit 1; }
import pyarrow as pa
from pyspark.sql import SparkSession

build = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = build.config("spark.sql.session.timeZone", "UTC").getOrCreate()
frame = spark.sql("SELECT 1 AS a, TIMESTAMP '2026-01-01 02:03:04' AS x")
try:
    pa.RecordBatchReader.from_stream(frame)
except AssertionError as error:
    print("stream of TIMESTAMP:", repr(error))
    assert str(error) == ""
else:
    raise SystemExit("a stream with TIMESTAMP is given now")
print("toArrow():", frame.toArrow().schema.field("x").type)
assert frame.toArrow().schema.field("x").type == pa.timestamp("us", "UTC")
naive = spark.sql("SELECT TIMESTAMP_NTZ '2026-01-01 02:03:04' AS x")
print("stream of TIMESTAMP_NTZ:", pa.table(naive).schema.field("x").type)
assert pa.table(naive).schema.field("x").type == pa.timestamp("us")
EOF
