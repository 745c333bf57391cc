#!/usr/bin/env bash
# MAX 26.7.0 reads tensors of other libraries by DLPack as if they had no strides, without an error.
# `Buffer.from_dlpack` looks for a method `is_contiguous()` (torch has one); without it strides are ignored.
# A transposed array of warp-lang 1.19.0, whose `is_contiguous` is an attribute, comes out with other values.
# Seen: warp [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]], MAX [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet max==26.7.0 warp-lang==1.19.0 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'EOF'
import max.driver
import numpy as np
import warp as wp

wp.config.quiet = True
wp.init()
array = wp.array(np.arange(6, dtype="float32").reshape(2, 3), device="cpu").transpose()
theirs = array.numpy().tolist()
read = max.driver.Buffer.from_dlpack(array).to_numpy().tolist()
print("warp", theirs)
print("MAX ", read)
assert theirs == [[0, 3], [1, 4], [2, 5]]
assert read == [[0, 1], [2, 3], [4, 5]]
EOF
