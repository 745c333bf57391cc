#!/usr/bin/env bash
# deltalake 1.6.6 writes a table with a column of arrow.fixed_shape_tensor, and then no column of it can be read.
# Delta stores the column as a list of any length and keeps the extension's name in its schema, which pyarrow 26.0.1
# refuses for a list: `to_pyarrow_table` raises, also for `columns=` without that column.
# Seen: ArrowInvalid: Expected FixedSizeList storage type, got list<element: float>
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'EOF'
import sys

import deltalake
import numpy as np
import pyarrow as pa

tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((3, 2, 2), "float32"))
deltalake.write_deltalake(sys.argv[1] + "/table", pa.table({"x": [1, 2, 3], "t": tensors}))
table = deltalake.DeltaTable(sys.argv[1] + "/table")
for columns in (None, ["x"], ["t"]):
    try:
        table.to_pyarrow_table(columns=columns)
        raise SystemExit(f"the columns {columns} can be read now")
    except pa.ArrowInvalid as error:
        print(columns, "ArrowInvalid:", error)
        assert "Expected FixedSizeList storage type" in str(error)
EOF
