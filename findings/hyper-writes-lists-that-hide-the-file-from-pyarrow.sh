#!/usr/bin/env bash
# pyarrow opens no Parquet file of Tableau's Hyper that has a list, whichever columns are read.
#
# Versions: tableauhyperapi 0.0.26963, pyarrow 26.0.1, polars 2.1.0, numpy 2.4.6, Python 3.11, Linux.
# The format has a list as three levels: a group that is marked as LIST, a repeated group, the items.
# Hyper's COPY ... TO marks the repeated group as LIST, too, as if its items were lists. pyarrow raises
# while it makes the schema, so the columns beside the list cannot be read either. polars and Hyper
# itself read the lists.
#
# Output (columns, what pyarrow says, polars):
#   id     [1, 2]
#   id, x  Non-repeated nodes in a LIST-annotated group are not supported. [[1, 2], None]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet tableauhyperapi==0.0.26963 pyarrow==26.0.1 polars==2.1.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tableauhyperapi import Connection, HyperProcess, Telemetry

given = pa.table({"id": [1, 2], "x": pa.array([[1, 2], None])})
pq.write_table(given, "given.parquet")
with HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU) as process:
    with Connection(process.endpoint) as connection:
        for columns in ("id", "id, x"):
            name = columns.replace(", ", "")
            connection.execute_command(
                f"COPY (SELECT {columns} FROM external('given.parquet')) TO '{name}.parquet'"
                " WITH (FORMAT 'parquet')"
            )
        query = "SELECT count(*) FROM external('idx.parquet') WHERE x IS NULL"
        assert connection.execute_scalar_query(query) == 1
found = {}
for name in ("id", "idx"):
    try:
        found[name] = pq.read_table(f"{name}.parquet", columns=["id"])["id"].to_pylist()
    except pa.ArrowInvalid as error:
        found[name] = str(error)
lists = pl.read_parquet("idx.parquet")["x"].to_list()
print("id    ", found["id"])
print("id, x ", found["idx"], lists)
assert found == {
    "id": [1, 2],
    "idx": "Non-repeated nodes in a LIST-annotated group are not supported.",
}
assert lists == [[1, 2], None]
PYTHON
venv/bin/python show.py
