#!/usr/bin/env bash
# pyarrow's isin() loses rows of zeros of Parquet files that have statistics, without an error.
#
# Versions: pyarrow 26.0.1, numpy 2.4.6, Python 3.11, Linux.
# The data has no -0.0. Writers give a row group of zeros the bounds -0.0 and 0.0, as Parquet's
# specification asks, since they may have either sign. pyarrow finds both bounds equal, and asks
# the filter of the lower one, -0.0, in place of the rows. A comparison takes it for 0.0; a set
# does not. With row groups of 100 times 0.0, 1.0 and 2.0, isin([0.0, 2.0]) keeps 100 rows.
#
# Output (rows of the table, of the file):
#   double: the bounds of the zeros are -0.0 and 0.0
#     is_in(y, {value_set=double:[ 0, 2 ],       200  100
#     is_in(y, {value_set=double:[ 0 ], nu       100    0
#     invert(is_in(y, {value_set=double:[        300  200
#     (y == 0)                                   100  100
#   and the same of floats of 32 bits
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1 numpy==2.4.6
cat > show.py <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

y = pc.field("y")
for type in (pa.float64(), pa.float32()):
    table = pa.table({"y": pa.array([0.0] * 100 + [1.0] * 100 + [2.0] * 100, type)})
    pq.write_table(table, "y.parquet", row_group_size=100)
    bounds = pq.ParquetFile("y.parquet").metadata.row_group(0).column(0).statistics
    print(f"{type}: the bounds of the zeros are {bounds.min} and {bounds.max}")
    assert str(bounds.min) == "-0.0" and str(bounds.max) == "0.0"
    found = []
    for filter in (y.isin([0.0, 2.0]), y.isin([0.0]), ~y.isin([-0.0]), y == 0.0):
        expected = table.filter(filter).num_rows
        found.append((expected, ds.dataset("y.parquet").to_table(filter=filter).num_rows))
        print(f"  {' '.join(str(filter).split())[:36]:40} {found[-1][0]:5} {found[-1][1]:4}")
    assert found == [(200, 100), (100, 0), (300, 200), (100, 100)]
PYTHON
venv/bin/python show.py
