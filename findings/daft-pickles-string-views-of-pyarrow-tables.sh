#!/usr/bin/env bash
# polars 2.1.0 exports strings as Arrow's string_view. daft 0.7.26 refuses such a column of an Arrow stream, and takes it
# of a pyarrow table as Python objects, without an error: it comes out as pickles, in Arrow and in Parquet. So do views
# of bytes, and dictionaries. The same strings as `large_string` stay strings by both ways.
# Seen: polars' frame: DaftError::ValueError Unsupported Arrow DataType: Utf8View; pyarrow's table of it: Python
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet daft==0.7.26 polars==2.1.0 pyarrow==25.0.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import pickle

import daft
import polars as pl
import pyarrow as pa

frame = pl.DataFrame({"x": ["a", None, "longer than twelve"]})
assert pa.table(frame).schema.field("x").type == pa.string_view()
try:
    daft.from_arrow(frame)
except daft.exceptions.DaftCoreException as error:
    print("polars' frame:", error)
    assert "Utf8View" in str(error)
else:
    raise SystemExit("a stream of string views is taken now")
taken = daft.from_arrow(pa.table(frame))
print("pyarrow's table of it:", taken.schema()["x"].dtype)
assert taken.schema()["x"].dtype == daft.DataType.python()
column = taken.to_arrow()["x"].combine_chunks()
stored = getattr(column, "storage", column).to_pylist()
print("in Arrow:", column.type, stored[0])
assert pickle.loads(stored[0]) == "a"
plain = pa.table(frame).cast(pa.schema({"x": pa.large_string()}))
assert daft.from_arrow(plain).schema()["x"].dtype == daft.DataType.string()
EOF
