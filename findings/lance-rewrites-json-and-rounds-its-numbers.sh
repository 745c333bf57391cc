#!/usr/bin/env bash
# pylance 14.0.2 stores a column of arrow.json in a binary form and gives back another text: keys in another order,
# integers of more than 64 bits as rounded floats, 1E400 as null, without an error. Parquet by pyarrow 26.0.1 keeps
# the text. An id or a hash in JSON is another one afterwards.
# Seen: {"id": 123456789012345678901} comes back as {"id":1.2345678901234568e+20}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pylance==14.0.2 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'EOF'
import json
import sys

import lance
import pyarrow as pa
import pyarrow.parquet as pq

texts = ['{"id": 123456789012345678901}', '{"b": 1, "a": 2}', "[1.10, 1E400]", "18446744073709551615"]
table = pa.table({"x": pa.array(texts, pa.json_())})
lance.write_dataset(table, sys.argv[1] + "/dataset")
stored = lance.dataset(sys.argv[1] + "/dataset").to_table()
assert stored.schema.field("x").type == pa.json_()
for text, back in zip(texts, stored["x"].to_pylist(), strict=True):
    print(f"{text:30} {back}")
assert stored["x"].to_pylist() == [
    '{"id":1.2345678901234568e+20}',
    '{"a":2,"b":1}',
    "[1.1,null]",
    "18446744073709551615",
]
assert json.loads(texts[0])["id"] != json.loads(stored["x"][0].as_py())["id"]
pq.write_table(table, sys.argv[1] + "/file.parquet")
assert pq.read_table(sys.argv[1] + "/file.parquet")["x"].to_pylist() == texts
EOF
