#!/usr/bin/env bash
# pyarrow.compute.and_() and or_() take expressions and return filters that no scan can evaluate.
#
# Versions: pyarrow 26.0.1, numpy 2.4.6, Python 3.11, Linux.
# Functions of pyarrow.compute return an expression if an argument is one. and_() and or_() name the
# Python function in it, with its underscore; the function of Arrow is named "and".
# The expression prints, pickles and can be combined, and fails when a table, a dataset or a Parquet
# file is filtered by it. and_kleene(), or_kleene(), and_not(), xor(), invert(), & and | work.
#
# Output:
#   and_: prints as and_((x > 1), (x < 3)), then ArrowKeyError: No function registered with name: and_
#   or_: prints as or_((x > 1), (x < 3)), then ArrowKeyError: No function registered with name: or_
#   and_kleene: 1 rows
#   or_kleene: 3 rows
#   and_not: 1 rows
#   xor: 2 rows
#   of arrays: [False, True, False]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1 numpy==2.4.6
cat > show.py <<'PYTHON'
import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

table = pa.table({"x": [1, 2, 3]})
more, less = pc.field("x") > 1, pc.field("x") < 3
for name in ("and_", "or_"):
    filter = getattr(pc, name)(more, less)
    texts = set()
    for expression in (filter, pickle.loads(pickle.dumps(filter)), ~filter):
        for source in (table, ds.dataset(table)):
            try:
                source.filter(expression).to_table() if source is not table else source.filter(expression)
            except pa.lib.ArrowKeyError as error:
                texts.add(str(error).strip("'"))
    print(f"{name}: prints as {filter}, then ArrowKeyError: {', '.join(texts)}")
    assert texts == {f"No function registered with name: {name}"}
for name, rows in (("and_kleene", 1), ("or_kleene", 3), ("and_not", 1), ("xor", 2)):
    assert table.filter(getattr(pc, name)(more, less)).num_rows == rows
    print(f"{name}: {rows} rows")
arrays = pc.and_(pa.array([False, True, True]), pa.array([True, True, False])).to_pylist()
print(f"of arrays: {arrays}")
assert arrays == [False, True, False]
PYTHON
venv/bin/python show.py
