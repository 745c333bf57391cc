#!/usr/bin/env bash
# polars 2.1.0 refuses a slice of a fixed-size list array that has nulls, as a Series or a column, with
# an error that blames the data: it compares the slice's rows with the parent's values. A slice of an
# array without nulls is taken, and so is a copy of the slice.
# Seen: ComputeError: validity mask length must be equal to the number of values divided by size
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'EOF'
import polars as pl
import pyarrow as pa

vectors = pa.array([[0, 1], None, [4, 5], [6, 7]], pa.list_(pa.int32(), 2))
vectors.validate(full=True)
vectors[1:].validate(full=True)
expected = [None, [4, 5], [6, 7]]
assert vectors[1:].to_pylist() == expected
plain = pa.array([[0, 1], [2, 3], [4, 5]], pa.list_(pa.int32(), 2))
assert pl.Series(vectors).to_list() == vectors.to_pylist()
assert pl.Series(plain[1:]).to_list() == [[2, 3], [4, 5]]
copy = pa.concat_arrays([vectors[1:], vectors[:0]])
assert pl.Series(copy).to_list() == expected
try:
    print(pl.Series(vectors[1:]).to_list())
except pl.exceptions.ComputeError as error:
    print("ComputeError:", error)
    assert "validity mask length" in str(error)
else:
    raise AssertionError("polars takes the slice")
EOF
