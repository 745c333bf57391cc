#!/usr/bin/env bash
# pyarrow 26.0.1 fails with an AttributeError of its own where a producer does not give the requested type.
# `pyarrow.array(x, type=t)` passes `requested_schema`, which Arrow's PyCapsule interface lets a producer ignore.
# pyarrow means to cast such a result, and calls `cast` of a function instead of the array.
# Seen: AttributeError: '_cython_3_3_0.cython_function_or_method' object has no attribute 'cast'
# `pyarrow.chunked_array` of a stream casts as it should.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'EOF'
import pyarrow as pa


class Producer:
    """Gives int64 whatever is requested, as the protocol allows."""

    def __arrow_c_array__(self, requested_schema=None):
        return pa.array([1, 2]).__arrow_c_array__()

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.chunked_array([[1, 2]]).__arrow_c_stream__()


assert pa.array(Producer()).type == pa.int64()
assert pa.array(Producer(), type=pa.int64()).type == pa.int64()
assert pa.chunked_array(Producer(), type=pa.int32()).type == pa.int32()
try:
    pa.array(Producer(), type=pa.int32())
    raise SystemExit("pyarrow.array casts now")
except AttributeError as error:
    print("AttributeError:", error)
    assert "has no attribute 'cast'" in str(error)
EOF
