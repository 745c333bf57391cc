#!/usr/bin/env bash
# nanoarrow 0.9.0 turns a slice of a float16 or fixed-size binary array into Python objects from the
# parent's first row: the validity is the slice's, the values are not. Other types are right.
# `Array.to_pylist()`, `iter_py()` and streams alike; pyarrow 26.0.1 reads the same slice right.
# Seen: float16 [0, None, 2, 3, 4][2:] reads [0.0, 0.0, 2.0, 3.0, 4.0], fixed-size binary
# [b'aa', b'bb', b'cc'][1:] reads [b'aa', b'bb', b'cc']: even the length is the parent's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nanoarrow==0.9.0 pyarrow==26.0.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import nanoarrow as na
import numpy as np
import pyarrow as pa

half = pa.array([None if i == 1 else np.float16(i) for i in range(5)], pa.float16())[2:]
fixed = pa.array([b"aa", b"bb", b"cc"], pa.binary(2))[1:]
single = pa.array([0.0, None, 2.0, 3.0, 4.0], pa.float32())[2:]
for array in (half, fixed, single):
    print(array.type, "pyarrow", array.to_pylist(), "nanoarrow", na.Array(array).to_pylist())
assert na.Array(single).to_pylist() == single.to_pylist() == [2, 3, 4]
assert half.to_pylist() == [2, 3, 4]
assert na.Array(half).to_pylist() == [0, 0, 2, 3, 4]
assert fixed.to_pylist() == [b"bb", b"cc"]
assert na.Array(fixed).to_pylist() == [b"aa", b"bb", b"cc"]
EOF
