#!/usr/bin/env bash
# DataFusion 55.0.0 has batches with `__arrow_c_array__`, which always raises an AttributeError.
# The method of datafusion.RecordBatch calls one of its native batch that does not exist, so `hasattr` is true and
# each consumer of the PyCapsule interface fails; `to_pyarrow()` and the stream of the DataFrame work.
# Seen: AttributeError: 'datafusion.RecordBatch' object has no attribute '__arrow_c_array__'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet datafusion==55.0.0 pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'EOF'
import datafusion
import pyarrow as pa

frame = datafusion.SessionContext().from_pydict({"a": [1, 2]})
batch = next(iter(frame.execute_stream()))
assert hasattr(batch, "__arrow_c_array__")
assert batch.to_pyarrow().to_pydict() == {"a": [1, 2]}
assert pa.table(frame).to_pydict() == {"a": [1, 2]}
try:
    pa.record_batch(batch)
    raise SystemExit("the method works now")
except AttributeError as error:
    print("AttributeError:", error)
EOF
