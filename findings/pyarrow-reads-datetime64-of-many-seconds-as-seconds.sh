#!/bin/sh
# pyarrow 26.0.1 reads NumPy's datetime64 with a multiple of a unit as times of that unit: a value of
# datetime64[25s] counts periods of 25 seconds, and 1 becomes 1 second after 1970 instead of 25.
# There is neither an error nor a warning. NumPy 2.4.6 casts it right. It is the same for
# timedelta64[2ns] and the like, where the unit is one of Arrow's (s, ms, us, ns).
# Seen: numpy 25 s, pyarrow 1 s for datetime64[25s]; numpy 20 ns, pyarrow 10 ns for timedelta64[2ns].
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q numpy==2.4.6 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import pyarrow as pa

times = np.array([1, 2], "datetime64[25s]")
assert times.astype("datetime64[s]").astype("int64").tolist() == [25, 50]
read = pa.array(times)
print("numpy", times.astype("datetime64[s]").tolist(), "pyarrow", read.to_pylist())
assert read.type == pa.timestamp("s")
assert read.cast(pa.int64()).to_pylist() == [1, 2], "pyarrow reads the multiple now"

spans = np.array([10], "timedelta64[2ns]")
assert spans.astype("timedelta64[ns]").astype("int64").tolist() == [20]
assert pa.array(spans).type == pa.duration("ns")
assert pa.array(spans).cast(pa.int64()).to_pylist() == [10], "pyarrow reads the multiple now"
PYTHON
