"""A DuckDB query to tensors, and tensors as a table of the next query."""

import arrowdl
import duckdb
import torch

# A relation is an Arrow stream. NULL becomes 0 only if you ask for it.
trips = duckdb.sql("""
    SELECT range AS id, (range * 1.5)::FLOAT AS km,
           CASE WHEN range % 3 > 0 THEN (range * 10)::FLOAT END AS minutes
    FROM range(6)
""")
columns = arrowdl.to_torch(trips, nulls="mask")
(ids, _), (km, _), (minutes, known) = (columns[name] for name in ("id", "km", "minutes"))
print("known minutes:", minutes[known].tolist())

# A least-squares fit, and its prediction for every trip.
slope = torch.linalg.lstsq(km[known, None], minutes[known, None]).solution
predicted = arrowdl.to_arrow_device({"id": ids, "minutes": (km[:, None] @ slope).flatten()})

# DuckDB finds the DeviceArray by the name of its variable.
print(
    duckdb.sql("""
        SELECT t.id, t.minutes AS actual, round(p.minutes, 1) AS predicted
        FROM trips t JOIN predicted p USING (id) ORDER BY t.id
    """)
)
