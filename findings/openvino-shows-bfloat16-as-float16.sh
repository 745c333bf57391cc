#!/usr/bin/env bash
# OpenVINO 2026.4.1 shows the memory of a bfloat16 tensor as a NumPy array of float16, without an error.
# `Tensor.data` of type bf16 has the dtype float16 over the bits of bfloat16: 1.0 and 2.0 read 1.875 and 2.0.
# Seen: Tensor type bf16, data dtype float16, values [1.875, 2.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet openvino==2026.4.1 numpy==2.4.6
"$folder/venv/bin/python" - "$folder" <<'EOF'
import numpy as np
import openvino as ov

tensor = ov.Tensor(ov.Type.bf16, ov.Shape([2]))
tensor.data.view("uint16")[:] = [0x3F80, 0x4000]  # 1.0 and 2.0 in bfloat16
print("Tensor type", tensor.element_type, "data dtype", tensor.data.dtype, tensor.data.tolist())
assert tensor.element_type == ov.Type.bf16
assert tensor.data.dtype == np.float16
assert tensor.data.tolist() == [1.875, 2.0]
EOF
