#!/usr/bin/env bash
# LadybugDB 0.15.3 (`LOAD FROM` of a pyarrow table): run-end encoded columns are read as one value for all rows, views of
# lists lose items behind a null, and structs with a null row come back as an array whose children are shorter than it,
# which pyarrow calls invalid. None of them is an error of LadybugDB. `import importlib.util` is needed before: without
# it every scan raises "module 'importlib' has no attribute 'util'".
# Seen: run ends: ['b', 'b', 'b'] of ['a', 'a', 'b']; list view: [[1, None], [2, None, 4]] of [[1, None], [2, 3, 4]];
#       struct: Struct child array #0 has length smaller than expected for struct array (2 < 3)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet real-ladybug==0.15.3 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import importlib.util

import pyarrow as pa
import real_ladybug

connection = real_ladybug.Connection(real_ladybug.Database(":memory:"))


def scan(array):
    source = pa.table({"x": array})
    source.validate(full=True)
    return connection.execute("LOAD FROM source RETURN *").get_as_arrow()


runs = scan(pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]))["x"].to_pylist()
print("run ends:", runs, "of ['a', 'a', 'b']")
assert runs == ["b", "b", "b"]
lists = [[1, None], [2, 3, 4]]
views = scan(pa.array(lists, pa.list_view(pa.int64())))["x"].to_pylist()
print("list view:", views, "of", lists)
assert views == [[1, None], [2, None, 4]]
assert scan(pa.array(lists))["x"].to_pylist() == lists, "lists are right"
structs = scan(pa.array([{"a": 1}, None, {"a": 3}]))
try:
    structs.validate()
except pa.ArrowInvalid as error:
    print("struct:", error)
    assert "has length smaller than expected" in str(error)
else:
    raise SystemExit("a struct with a null row is valid now")
EOF
