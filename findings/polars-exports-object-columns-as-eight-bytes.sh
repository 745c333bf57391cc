#!/usr/bin/env bash
# polars 2.1.0 exports a column of Python objects over the PyCapsule interface, without an error and without metadata.
# A consumer gets fixed_size_binary[8], which has none of the values: eight bytes a row that mean something to the
# process alone. `DataFrame.write_parquet` refuses the same column.
# Seen: fixed_size_binary[8] None, and equal rows of the column are not equal values
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0 pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'EOF'
import sys

import polars as pl
import pyarrow as pa

values = [{"a": 1}, {"a": 1}]
frame = pl.DataFrame({"id": [1, 2], "value": pl.Series(values, dtype=pl.Object)})
table = pa.table(frame)
field = table.schema.field("value")
assert (field.type, field.metadata) == (pa.binary(8), None), field
first, second = table["value"].to_pylist()
assert values[0] == values[1] and first != second
try:
    frame.write_parquet(f"{sys.argv[1]}/objects.parquet")
    raise SystemExit("Parquet takes the column now")
except pl.exceptions.ComputeError as error:
    print(field.type, field.metadata, type(error).__name__)
EOF
