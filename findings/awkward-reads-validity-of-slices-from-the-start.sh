#!/usr/bin/env bash
# awkward 2.14.0 reads the values of a sliced Arrow array from the slice's first row, and its validity from the row
# that the whole array begins with. A slice with nulls loses values and shows others, without an error.
# It does the same with a table, so a batch after the first of a filtered or cut table is read wrong.
# Seen for [1, None, 3, 4][1:]: pyarrow [None, 3, 4], polars [None, 3, 4], awkward [0, None, 4]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet awkward==2.14.0 pyarrow==26.0.1 polars==2.1.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import awkward as ak
import polars as pl
import pyarrow as pa

slices = {
    "ints": pa.array([1, None, 3, 4])[1:],
    "bools": pa.array([True, None, False, True])[1:],
    "strings": pa.array(["a", None, "c", "d"])[1:],
    "vectors": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int64(), 2))[1:],
}
for name, array in slices.items():
    read = ak.from_arrow(array).to_list()
    print(f"{name:8} pyarrow {array.to_pylist()}, awkward {read}")
    assert read != array.to_pylist(), f"{name} are right now"
    # A copy of the rows begins with its own bit, and is read right.
    copy = array.take(pa.array(range(len(array))))
    assert ak.from_arrow(copy).to_list() == array.to_pylist()
ints = slices["ints"]
assert pl.Series(ints).to_list() == ints.to_pylist() == [None, 3, 4]
assert ak.from_arrow(ints).to_list() == [0, None, 4]
table = pa.table({"x": [1, None, 3, 4]}).slice(1)
assert ak.from_arrow(table)["x"].to_list() == [0, None, 4]
# Without nulls, a slice is read right.
assert ak.from_arrow(pa.array([1, 2, 3, 4])[1:]).to_list() == [2, 3, 4]
EOF
