#!/usr/bin/env bash
# pyarrow's filters lose rows with NaN of Parquet files that have statistics, without an error.
#
# Versions: pyarrow 26.0.1, numpy 2.4.6, Python 3.11, Linux.
# The bounds of a row group leave NaN out, as Parquet's specification says. pyarrow takes them for
# bounds of all values: a row group of [3.0, NaN, 3.0] has x == 3.0, so that no filter is asked of
# its rows. The same table, and the same file without statistics, give other rows. Datasets,
# read_table(filters=) and what is built on them do so: of pyiceberg 0.12.0,
# scan(row_filter="x is nan") gave the second of the two rows, too.
#
# Output (of the table, of the file):
#   is_nan(x)                                     [1, 5]         [5]
#   (x != 3)                                      [1, 3, 4, 5]   [3, 4, 5]
#   invert((x < 10))                              [1, 5]         []
#   (x != x)                                      [1, 5]         [5]
#   is_in(x, {value_set=double:[ nan ], null_mat  [1, 5]         []
#   invert(is_finite(x))                          [1, 5]         [5]
#   is_null(x, {nan_is_null=true})                [1, 5]         []
#   if_else((x < 10), false, true)                [1, 5]         []
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

nan = float("nan")
x = pc.field("x")
table = pa.table({"i": range(6), "x": [3.0, nan, 3.0, 1.0, 2.0, nan]})
pq.write_table(table, "with.parquet", row_group_size=3)
pq.write_table(table, "without.parquet", row_group_size=3, write_statistics=False)


def read(path, filter):
    return ds.dataset(path).to_table(filter=filter)["i"].to_pylist()


filters = [
    pc.is_nan(x),
    x != 3.0,
    ~(x < 10),
    x != x,
    x.isin([nan]),
    ~pc.is_finite(x),
    x.is_null(nan_is_null=True),
    pc.if_else(x < 10, False, True),
]
lost = 0
for filter in filters:
    expected = table.filter(filter)["i"].to_pylist()
    assert read("without.parquet", filter) == expected
    found = read("with.parquet", filter)
    lost += found != expected
    print(f"{' '.join(str(filter).split())[:44]:45} {expected!s:14} {found}")
assert lost == len(filters)
assert pq.read_table("with.parquet", filters=pc.is_nan(x))["i"].to_pylist() == [5]
PYTHON
venv/bin/python show.py
