#!/usr/bin/env bash
# warp-lang 1.19.0 writes into NumPy arrays that are marked read-only, without an error or a warning.
# `wp.array(x, copy=False)` aliases a read-only array, and `fill_` changes it; `wp.from_dlpack` refuses the same array.
# Seen: before [1. 2. 3.], after [5. 5. 5.], writeable False
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet warp-lang==1.19.0 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'EOF'
import numpy as np
import warp as wp

wp.config.quiet = True
wp.init()
numbers = np.array([1, 2, 3], "float32")
numbers.flags.writeable = False
print("before", numbers)
try:
    wp.from_dlpack(numbers)
    raise SystemExit("from_dlpack took a read-only array")
except BufferError as error:
    print("from_dlpack:", error)
wp.array(numbers, dtype=wp.float32, device="cpu", copy=False).fill_(5)
print("after", numbers, "writeable", numbers.flags.writeable)
assert numbers.tolist() == [5, 5, 5]
assert not numbers.flags.writeable
EOF
