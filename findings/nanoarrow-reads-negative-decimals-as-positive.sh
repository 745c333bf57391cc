#!/usr/bin/env bash
# nanoarrow 0.9.0 turns negative decimals (128 and 256 bits) into Python decimals without their sign:
# the integer is read as unsigned. pyarrow 26.0.1 and a cast to float64 read the right value.
# Seen: -1.50 as decimal128(9, 2) reads 3.40282367E+36, 2**128 - 150 rounded to nine digits
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nanoarrow==0.9.0 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'EOF'
from decimal import Decimal

import nanoarrow as na
import pyarrow as pa

prices = [Decimal("1.50"), Decimal("-1.50")]
for make, bits in ((pa.decimal128, 128), (pa.decimal256, 256)):
    array = pa.array(prices, make(9, 2))
    read = na.Array(array).to_pylist()
    print(array.type, "pyarrow", array.to_pylist(), "nanoarrow", read)
    assert array.to_pylist() == prices
    assert read[0] == prices[0]
    assert float(read[1]) / (2**bits / 100) > 0.99999
EOF
