#!/usr/bin/env bash
# Lance's filters, given as pyarrow expressions, keep other rows than Arrow where there is NaN.
#
# Versions: pylance 14.0.2, pyarrow 26.0.1, Python 3.11, Linux.
# to_table(filter=) takes an expression of pyarrow. In pyarrow, a comparison with NaN is false. Lance
# orders floats: NaN comes after all numbers, NaN with the sign bit before them. So x > 1 keeps NaN,
# x < 0 keeps the NaN with the sign bit, and a row is in the result of one library alone. Sets differ
# in the other direction: pyarrow's isin([0.0]) leaves -0.0 out, Lance's keeps it.
#
# Output (rows of pyarrow's table, of Lance):
#   (x > 1)              [0, 5, 6]         [0, 1, 5, 6]
#   (x < 0)              []                [4]
#   (x >= 0)             [0, 2, 3, 5, 6]   [0, 1, 2, 3, 5, 6]
#   isin([0.0])          [3]               [2, 3]
#   is_nan(x)            [1, 4]            [1, 4]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pylance==14.0.2 pyarrow==26.0.1 numpy==2.4.6
cat > show.py <<'PYTHON'
import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

nan = np.float64("nan")
values = np.array([3.0, nan, -0.0, 0.0, np.copysign(nan, -1.0), 2.0, 1e300])
table = pa.table({"i": range(7), "x": values})
dataset = lance.write_dataset(table, "x.lance")
x = pc.field("x")
filters = {
    "(x > 1)": x > 1,
    "(x < 0)": x < 0.0,
    "(x >= 0)": x >= 0.0,
    "isin([0.0])": x.isin([0.0]),
    "is_nan(x)": pc.is_nan(x),
}
found = {}
for name, filter in filters.items():
    rows = [own.to_pylist() for own in (table.filter(filter)["i"], dataset.to_table(filter=filter)["i"])]
    found[name] = tuple(rows)
    print(f"{name:20} {rows[0]!s:17} {rows[1]}")
assert found == {
    "(x > 1)": ([0, 5, 6], [0, 1, 5, 6]),
    "(x < 0)": ([], [4]),
    "(x >= 0)": ([0, 2, 3, 5, 6], [0, 1, 2, 3, 5, 6]),
    "isin([0.0])": ([3], [2, 3]),
    "is_nan(x)": ([1, 4], [1, 4]),
}
PYTHON
venv/bin/python show.py
