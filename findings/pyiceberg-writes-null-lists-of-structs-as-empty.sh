#!/usr/bin/env bash
# pyiceberg writes null lists of structs, and null maps of structs, as empty ones.
#
# Versions: pyiceberg 0.12.0, pyarrow 26.0.1, numpy 2.4.6, Python 3.11, Linux.
# Table.append() keeps null lists of numbers, of texts and of lists, null maps of numbers, and null structs. A
# list whose items are structs, or a map whose values are, is put together again from its offsets
# alone: the rows that were null have no items, and are no longer null. Nothing is raised.
#
# Output (column, nulls given, nulls in the Parquet file, nulls of a scan):
#   list of numbers 1 1 1
#   list of structs 1 0 0
#   map of numbers  1 1 1
#   map of structs  1 0 0
#   struct          1 1 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet 'pyiceberg[sql-sqlite,pyarrow]==0.12.0' pyarrow==26.0.1 numpy==2.4.6
cat > show.py <<'PYTHON'
import os

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

folder = os.getcwd()
catalog = load_catalog("c", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
catalog.create_namespace("n")
inner = pa.struct({"a": pa.int64()})
columns = {
    "list of numbers": pa.array([[1], None, []]),
    "list of structs": pa.array([[{"a": 1}], None, []]),
    "map of numbers": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "map of structs": pa.array([[("k", {"a": 1})], None, []], pa.map_(pa.string(), inner)),
    "struct": pa.array([{"a": 1}, None, {"a": None}]),
}
found = {}
for i, (name, values) in enumerate(columns.items()):
    given = pa.table({"x": values})
    table = catalog.create_table(f"n.t{i}", given.schema)
    table.append(given)
    path = table.inspect.files()["file_path"][0].as_py().removeprefix("file://")
    nulls = sum(row is None for row in pq.read_table(path)["x"].to_pylist())
    scanned = table.scan().to_arrow()["x"].to_pylist()
    found[name] = (values.null_count, nulls, sum(row is None for row in scanned))
    print(f"{name:15}", *found[name])
assert found == {
    "list of numbers": (1, 1, 1),
    "list of structs": (1, 0, 0),
    "map of numbers": (1, 1, 1),
    "map of structs": (1, 0, 0),
    "struct": (1, 1, 1),
}
PYTHON
venv/bin/python -W ignore show.py
