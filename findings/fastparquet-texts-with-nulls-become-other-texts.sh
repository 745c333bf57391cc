#!/usr/bin/env bash
# With has_nulls="infer", fastparquet writes texts of pandas 3 that other readers read as other texts.
#
# Versions: fastparquet 2026.9.0, pandas 3.1.1, numpy 2.4.6, pyarrow 26.0.1, Python 3.11, Linux.
# "infer" means that columns of the dtype object may have nulls. The texts of pandas 3 have the dtype
# str. fastparquet calls their column required, which has no levels of nulls in its pages, and yet writes
# them. fastparquet reads the levels whatever the schema says. pyarrow reads them as the first text, so
# that each text is a row late; in longer columns the page is an error. pandas 2 had object, and has_nulls=True, the
# default, is right.
#
# Output (has_nulls=, fastparquet, pyarrow):
#   True  ['a', nan, 'b'] ['a', None, 'b']
#   infer ['a', nan, 'b'] ['\x03\x05', 'a', 'b']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet fastparquet==2026.9.0 pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1
cat > show.py <<'PYTHON'
import fastparquet
import pandas as pd
import pyarrow.parquet as pq

frame = pd.DataFrame({"text": ["a", None, "b"]})
assert frame["text"].dtype == "str"
found = {}
for has_nulls in (True, "infer"):
    fastparquet.write("x.parquet", frame, has_nulls=has_nulls, write_index=False)
    own = fastparquet.ParquetFile("x.parquet").to_pandas()["text"].tolist()
    column = pq.read_table("x.parquet")["text"].to_pylist()
    found[has_nulls] = (str(own), column)
    print(f"{has_nulls!s:5} {own} {column}")
assert found == {
    True: ("['a', nan, 'b']", ["a", None, "b"]),
    "infer": ("['a', nan, 'b']", ["\x03\x05", "a", "b"]),
}
PYTHON
venv/bin/python show.py
