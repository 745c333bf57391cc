#!/usr/bin/env bash
# Lance (pylance 14.0.2) refuses a filter expression because of the type of a column that it neither names nor reads.
# A pyarrow expression is sent as Substrait with the schema of the whole dataset, which has no large_list, no duration
# and, in Lance, no time64; the same filter as SQL works.
# Seen: ArrowNotImplementedError: conversion to substrait::Type from large_list<item: int64>
#       ArrowNotImplementedError: conversion to substrait::Type from duration[us]
#       ValueError: Not supported: ... Unsupported Substrait type: Time(...)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pylance==14.0.2 pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'EOF'
import sys

import lance
import pyarrow as pa
import pyarrow.compute as pc

others = {
    "large_list": pa.array([[1], [2], [3]], pa.large_list(pa.int64())),
    "duration": pa.array([1, 2, 3], pa.duration("us")),
    "time64": pa.array([1, 2, 3], pa.time64("us")),
}
for name, column in others.items():
    table = pa.table({"x": [1, 2, 3], name: column})
    dataset = lance.write_dataset(table, f"{sys.argv[1]}/{name}")
    assert dataset.to_table(columns=["x"], filter="x > 1").to_pydict() == {"x": [2, 3]}
    try:
        dataset.to_table(columns=["x"], filter=pc.field("x") > 1)
        raise SystemExit(f"an expression works beside {name} now")
    except (NotImplementedError, ValueError) as error:
        print(f"{type(error).__name__}: {str(error)[:110]}")
        assert "substrait" in str(error).lower()
EOF
