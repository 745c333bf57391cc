#!/usr/bin/env bash
# datafusion 55.0.0 and arro3-core 0.9.1 (both arrow-rs) import a slice of a sparse union with the
# type ids of the slice and the children of the whole: other values, without an error.
# In the C data interface an offset of a sparse union counts for its children, too.
# Seen: [0, 'one', 2, 'three', 4][2:] is pyarrow's [2, 'three', 4], and theirs [0, 'one', 2]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet datafusion==55.0.0 arro3-core==0.9.1 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'EOF'
import arro3.core
import datafusion
import pyarrow as pa

types = pa.array([0, 1, 0, 1, 0], pa.int8())
numbers = pa.array([0, 1, 2, 3, 4], pa.int32())
words = pa.array(["zero", "one", "two", "three", "four"])
whole = pa.UnionArray.from_sparse(types, [numbers, words])
table = pa.table({"u": whole}).slice(2)
expected = table["u"].to_pylist()
by_arro3 = pa.table(arro3.core.Table(table))["u"].to_pylist()
by_datafusion = datafusion.SessionContext().from_arrow(table).to_arrow_table()["u"].to_pylist()
print("pyarrow   ", expected)
print("arro3     ", by_arro3)
print("datafusion", by_datafusion)
assert expected == [2, "three", 4]
assert by_arro3 == by_datafusion == [0, "one", 2]
EOF
