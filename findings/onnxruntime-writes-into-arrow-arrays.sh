#!/usr/bin/env bash
# onnxruntime 1.32.0 writes into the memory of an immutable Arrow array, without an error.
# `OrtValue.from_dlpack` asks for a capsule from before DLPack 1.0, which has no flag for read-only memory; pyarrow
# 26.0.1 gives one (with a DeprecationWarning), and `update_inplace` changes the pyarrow array. NumPy refuses to give
# such a capsule of a read-only array.
# Seen: before [1.0, 2.0, 3.0], after [9.0, 9.0, 9.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnxruntime==1.32.0 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'EOF'
import warnings

import numpy as np
import onnxruntime as ort
import pyarrow as pa

column = pa.array([1, 2, 3], pa.float32())
print("before", column.to_pylist())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    value = ort.OrtValue.from_dlpack(column)
value.update_inplace(np.full(3, 9, "float32"))
print("after", column.to_pylist())
assert column.to_pylist() == [9, 9, 9]
EOF
