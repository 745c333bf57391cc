#!/usr/bin/env bash
# pyarrow 26.0.1: `Schema.empty_table()` raises for a list of an extension type, which it makes of the type alone.
# `Table.from_batches([], schema)` makes the same table.
# Seen: ArrowNotImplementedError: extension
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1
"$folder/venv/bin/python" - <<'EOF'
import pyarrow as pa

schema = pa.schema({"ids": pa.list_(pa.uuid())})
assert pa.schema({"id": pa.uuid()}).empty_table().num_rows == 0
assert pa.Table.from_batches([], schema).schema == schema
try:
    schema.empty_table()
    raise SystemExit("it makes the table now")
except pa.ArrowNotImplementedError as error:
    print("ArrowNotImplementedError:", error)
EOF
