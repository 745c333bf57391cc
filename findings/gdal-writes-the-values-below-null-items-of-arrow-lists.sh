#!/usr/bin/env bash
# pyogrio 0.13.0 (GDAL 3.12.4) writes Arrow tables, and does not look at the validity of the items of a list: a null
# item is written as the number that is in its memory, a null string as "". Null lists and null numbers are right.
# A vector with a missing value is read back as another vector, without an error, in GeoJSON as in GeoPackage.
# Seen: [1, None, 3] with a 7 below the null is read back as [1, 7, 3], ["a", None] as ["a", ""]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyogrio==0.13.0 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'EOF'
import json
import sys

import pyarrow as pa
import pyogrio

DRIVERS = {"GeoJSON": "geojson", "GPKG": "gpkg"}


def write_and_read(array, driver):
    path = f"{sys.argv[1]}/{len(array)}-{array.type.id}.{DRIVERS[driver]}"
    pyogrio.write_arrow(pa.table({"x": array}), path, driver=driver, geometry_type=None)
    rows = pyogrio.read_arrow(path)[1]["x"].to_pylist()
    return [json.loads(row) if isinstance(row, str) else row for row in rows]


numbers = pa.array([1, 7, 3, 4]).buffers()[1]
valid = pa.array([True, False, True, True]).buffers()[1]
values = pa.Array.from_buffers(pa.int64(), 4, [valid, numbers])
lists = pa.ListArray.from_arrays([0, 3, 4], values)
texts = pa.array([["a", None], None])
assert lists.to_pylist() == [[1, None, 3], [4]]
for driver in DRIVERS:
    seen = write_and_read(lists, driver), write_and_read(texts, driver)
    print(f"{driver:8} {lists.to_pylist()} is {seen[0]}, {texts.to_pylist()} is {seen[1]}")
    assert seen == ([[1, 7, 3], [4]], [["a", ""], None])
plain = pa.array([1, None, 3])
assert write_and_read(plain, "GeoJSON") == [1, None, 3]
EOF
