#!/usr/bin/env bash
# arro3-core 0.9.1, datafusion 55.0.0 and vortex-data 0.93.0 (all arrow-rs) cannot import a slice of a fixed-size list
# whose items are structs (boxes of points): arrow-rs cuts the fields of the structs to the slice, keeps the structs'
# offset, and applies it again. Each raises PanicException, which `except Exception` does not catch.
# Slices of vectors of numbers, of lists of structs and of structs are read. polars 2.1.0 and duckdb 2.0.1 read it.
# Guessed before the run: all of them read it.
# Seen: PanicException: assertion failed: end <= self.len()
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet arro3-core==0.9.1 datafusion==55.0.0 vortex-data==0.93.0 polars==2.1.0 \
  duckdb==2.0.1 pyarrow==26.0.1 numpy==2.4.6
RUST_BACKTRACE=0 "$folder/venv/bin/python" - 2>"$folder/log" <<'EOF' || { tail -n 5 "$folder/log" >&2; exit 1; }
import arro3.core
import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import vortex

points = pa.array([{"x": i} for i in range(6)])
boxes = pa.FixedSizeListArray.from_arrays(points, 2)[1:]
boxes.validate(full=True)
table = pa.table({"box": boxes})
rows = [[{"x": 2}, {"x": 3}], [{"x": 4}, {"x": 5}]]
readers = {
    "arro3": lambda table: pa.table(arro3.core.Table(table)),
    "datafusion": lambda table: datafusion.SessionContext().from_arrow(table).to_arrow_table(),
    "vortex": lambda table: vortex.array(table).to_arrow_table(),
}
for name, read in readers.items():
    try:
        read(table)
    except Exception:
        raise AssertionError(f"{name} raises an Exception now")
    except BaseException as error:
        print(f"{name}: {type(error).__name__}: {error}")
        assert type(error).__name__ == "PanicException"
    else:
        raise AssertionError(f"{name} reads the slice now")
    numbers = pa.FixedSizeListArray.from_arrays(pa.array(range(6)), 2)[1:]
    lists = pa.ListArray.from_arrays([0, 2, 4, 6], points)[1:]
    for other in (numbers, lists, points[1:], boxes.take(pa.array([0, 1]))):
        assert read(pa.table({"box": other}))["box"].to_pylist() == other.to_pylist()
assert pl.DataFrame(table)["box"].to_list() == rows
assert duckdb.from_arrow(table).to_arrow_table()["box"].to_pylist() == rows
EOF
