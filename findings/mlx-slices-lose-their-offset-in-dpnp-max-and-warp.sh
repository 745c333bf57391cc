#!/usr/bin/env bash
# A slice of an mlx 0.32.4 array is exported by DLPack with its base's address and a byte_offset.
# dpnp 0.20.0, MAX 26.7.0 and warp-lang 1.19.0 do not read byte_offset: the slice x[2:5] of 0 to 5 is
# read from the base's first value, without an error. NumPy 2.4.6 reads the slice.
# Seen: mlx and numpy [2.0, 3.0, 4.0]; dpnp, MAX and warp [0.0, 1.0, 2.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "mlx[cpu]==0.32.4" dpctl==0.22.1 dpnp==0.20.0 \
  intel-opencl-rt==2026.2.0 max==26.7.0 warp-lang==1.19.0 numpy==2.4.6
# SYCL's device for the CPU is this library's.
export OCL_ICD_FILENAMES="$folder/venv/lib/libintelocl.so"
"$folder/venv/bin/python" - <<'EOF'
import dpnp
import max.driver
import mlx.core as mx
import numpy as np
import warp as wp

wp.config.quiet = True
wp.init()
base = mx.arange(6.0)
piece = base[2:5]
mx.eval(piece)
read = {
    "mlx": piece.tolist(),
    "numpy": np.from_dlpack(piece).tolist(),
    "dpnp": dpnp.asnumpy(dpnp.from_dlpack(piece)).tolist(),
    "MAX": max.driver.Buffer.from_dlpack(piece).to_numpy().tolist(),
    "warp": wp.from_dlpack(piece).numpy().tolist(),
}
for name, values in read.items():
    print(f"{name:5} {values}")
assert read["mlx"] == read["numpy"] == [2, 3, 4]
assert read["dpnp"] == read["MAX"] == read["warp"] == [0, 1, 2]
EOF
