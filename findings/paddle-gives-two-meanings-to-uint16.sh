#!/usr/bin/env bash
# paddle 3.3.1: `to_tensor` reads NumPy's uint16 as bfloat16, bit by bit, without an error: token ids of 16 bits become
# numbers near 0. `from_dlpack` of the same array keeps the numbers, and the dtype prints as bfloat16 too, without being
# equal to it; nothing but a cast computes with it. `numpy()` of both is the same uint16 array.
# Seen for [1, 2, 50256]: from_dlpack paddle.bfloat16 [1, 2, 50256], to_tensor paddle.bfloat16 [0, 0, -832]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet paddlepaddle==3.3.1 setuptools==84.2.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'EOF'
import numpy as np
import paddle

tokens = np.array([1, 2, 50256], "uint16")
seen = {}
for take in (paddle.from_dlpack, paddle.to_tensor):
    tensor = take(tokens)
    seen[take.__name__] = tensor.astype("int64").tolist()
    print(take.__name__, tensor.dtype, seen[take.__name__])
    assert str(tensor.dtype) == "paddle.bfloat16"
    assert (tensor.dtype == paddle.bfloat16) == (take is paddle.to_tensor)
    assert tensor.numpy().dtype == "uint16" and tensor.numpy().tolist() == tokens.tolist()
assert seen == {"from_dlpack": [1, 2, 50256], "to_tensor": [0, 0, -832]}
bits = (tokens.astype("uint32") << 16).view("float32")
assert np.array_equal(paddle.to_tensor(tokens).astype("float32").numpy(), bits)
try:
    paddle.from_dlpack(tokens) + 1
except RuntimeError as error:
    assert "uint16" in str(error)
else:
    raise SystemExit("uint16 has arithmetic now")
EOF
