#!/usr/bin/env bash
# modin 0.37.1, `modin.pandas.io.from_arrow`: a column of integers with nulls is float64 in memory, and its dtype stays
# int64. modin's own values are right; a reader by the dataframe interchange protocol, such as pyarrow 26.0.1, gets
# the bits of the floats, and no nulls, without an error. Dates are objects in memory, and said to be datetime64[ms].
# The protocol's own parts disagree: describe_null is NON_NULLABLE, null_count is 1.
# Seen: dtype int64, in memory float64, values [1.0, nan, 3.0]
#       pyarrow reads [4607182418800017408, 9221120237041090560, 4613937818241073152]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet modin==0.37.1 pandas==2.3.3 pyarrow==26.0.1 numpy==2.4.6
MODIN_ENGINE=Python "$folder/venv/bin/python" - <<'EOF'
import warnings

warnings.simplefilter("ignore")
import numpy as np
import pyarrow as pa
import pyarrow.interchange
from modin.pandas.io import from_arrow, to_pandas

frame = from_arrow(pa.table({"x": pa.array([1, None, 3]), "y": pa.array([1, 2, 3])}))
held = to_pandas(frame)["x"]
print(f"dtype {frame.dtypes['x']}, in memory {held.dtype}, values {held.tolist()}")
assert frame.dtypes["x"] == "int64"
assert held.dtype == "float64"
read = pyarrow.interchange.from_dataframe(frame)
print("pyarrow reads", read["x"].to_pylist())
assert read["x"].to_pylist() == np.array([1, np.nan, 3]).view("int64").tolist()
assert read["y"].to_pylist() == [1, 2, 3], "without nulls it is right"
column = frame.__dataframe__().get_column_by_name("x")
assert column.describe_null[0] == 0  # NON_NULLABLE
assert column.null_count == 1
days = from_arrow(pa.table({"d": pa.array([20000], pa.date32())}))
assert days.dtypes["d"] == "datetime64[ms]"
assert to_pandas(days)["d"].dtype == object
EOF
