#!/usr/bin/env bash
# fastparquet writes pandas datetimes of seconds, and INT96 of any unit but nanoseconds, as other times.
#
# Versions: fastparquet 2026.9.0, pandas 3.1.1, numpy 2.4.6, pyarrow 26.0.1, Python 3.11, Linux.
# pandas 3 keeps datetime64 of the unit s, ms, us or ns, and to_datetime() of texts gives us. fastparquet
# writes the counts without their unit. With times="int64" seconds are divided by 1000 and called
# milliseconds. With times="int96" the counts of any unit are called nanoseconds. The write raises nothing,
# and fastparquet itself reads the wrong times, or an error for seconds. It is right for int64 of ms, us
# and ns, and for int96 of ns. The way round is series.dt.as_unit("ns").
#
# Output (unit, times=, what pyarrow reads of 2026-01-02 03:04:05):
#   s  int64 1970-01-01 00:29:27.323000
#   s  int96 1970-01-01 00:00:01.767323
#   ms int64 2026-01-02 03:04:05
#   ms int96 1970-01-01 00:29:27.323045
#   us int64 2026-01-02 03:04:05
#   us int96 1970-01-21 10:55:23.045000
#   ns int64 2026-01-02 03:04:05
#   ns int96 2026-01-02 03:04:05
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet fastparquet==2026.9.0 pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1
cat > show.py <<'PYTHON'
import fastparquet
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

right = pd.Timestamp("2026-01-02 03:04:05")
found = {}
for unit in ("s", "ms", "us", "ns"):
    frame = pd.DataFrame({"t": pd.Series([right]).dt.as_unit(unit)})
    assert frame["t"].dtype == f"datetime64[{unit}]"
    for times in ("int64", "int96"):
        fastparquet.write("x.parquet", frame, times=times, write_index=False)
        column = pq.read_table("x.parquet")["t"].cast(pa.timestamp("us"), safe=False)
        found[unit, times] = str(column[0].as_py())
        print(f"{unit:2} {times} {found[unit, times]}")
assert found == {
    ("s", "int64"): "1970-01-01 00:29:27.323000",
    ("s", "int96"): "1970-01-01 00:00:01.767323",
    ("ms", "int64"): str(right),
    ("ms", "int96"): "1970-01-01 00:29:27.323045",
    ("us", "int64"): str(right),
    ("us", "int96"): "1970-01-21 10:55:23.045000",
    ("ns", "int64"): str(right),
    ("ns", "int96"): str(right),
}
PYTHON
venv/bin/python show.py
