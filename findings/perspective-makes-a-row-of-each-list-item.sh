#!/usr/bin/env bash
# perspective 5.6.1 makes a row of each item of a list column when it takes an Arrow table, and repeats the other
# columns beside it, without an error or an option that was asked for: a sum over another column counts a row as
# often as its list has items. An empty list and a null list become the same, one row with null. Two list columns
# are zipped, and refused if their lengths differ. A struct becomes a column for each field.
# Guessed before the run: a list column is refused, as fixed-size lists are, or shown as text.
# Seen: 3 rows become 4, and the sum of the prices 10 + 20 + 30 is 70.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet perspective-python==5.6.1 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'EOF'
import perspective
import pyarrow as pa

source = pa.table({"price": [10.0, 20.0, 30.0], "tags": [["a", "b"], [], None]})
table = perspective.table(source)
seen = table.view().to_columns()
print(f"{source.num_rows} rows become {table.size()}: {seen}")
assert table.size() == 4
assert seen == {"price": [10.0, 10.0, 20.0, 30.0], "tags": ["a", "b", None, None]}
assert sum(seen["price"]) == 70.0 != sum(source["price"].to_pylist())

try:
    perspective.table(pa.table({"x": [[1, 2]], "y": [[5]]}))
except Exception as error:
    print(error)
    assert "differing length in row 0" in str(error)
else:
    raise AssertionError("lists of other lengths are taken now")
try:
    perspective.table(pa.table({"x": pa.array([[1, 2]], pa.list_(pa.int64(), 2))}))
except Exception as error:
    assert "fixed_size_list" in str(error)
else:
    raise AssertionError("fixed-size lists are taken now")
assert perspective.table(pa.table({"s": [{"a": 1}]})).schema() == {"s.a": "integer"}
EOF
