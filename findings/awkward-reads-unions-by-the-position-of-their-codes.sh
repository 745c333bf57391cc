#!/usr/bin/env bash
# awkward 2.14.0 reads Arrow's unions as if the type codes were 0, 1, ...: it takes a code for the number of a child.
# The codes are those of the type, `+us:1,0`: the schema says which child has which. With the codes [1, 0] each value
# comes from the other child, without an error, in sparse and dense unions. With [0, 1], pyarrow's default, it is
# right. pyarrow 26.0.1 and datafusion 55.0.0 read the codes.
# Guessed before the run: codes other than 0, 1, ... are read right, or refused.
# Seen for ['a', 2] with the codes [1, 0]: awkward [1, 'b']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet awkward==2.14.0 datafusion==55.0.0 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import awkward as ak
import datafusion
import pyarrow as pa

expected = ["a", 2]
numbers, texts = pa.array([1, 2]), pa.array(["a", "b"])
rows = pa.array([0, 1], pa.int32())
found = {}
for codes in ([0, 1], [1, 0]):
    ids = pa.array(codes[::-1], pa.int8())  # the first row is a text, the second a number
    children = [[numbers, texts], ["i", "s"], codes]
    sparse = pa.UnionArray.from_sparse(ids, *children)
    dense = pa.UnionArray.from_dense(ids, rows, *children)
    for union in (sparse, dense):
        union.validate(full=True)
        assert union.to_pylist() == expected
        frame = datafusion.SessionContext().from_arrow(pa.table({"x": union}))
        assert frame.to_arrow_table()["x"].to_pylist() == expected
    read = ak.from_arrow(sparse).to_list()
    print(f"codes {codes}: pyarrow {sparse.to_pylist()}, awkward {read}")
    assert ak.from_arrow(dense).to_list() == read
    found[tuple(codes)] = read
assert found == {(0, 1): expected, (1, 0): [1, "b"]}
EOF
