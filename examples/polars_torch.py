"""A polars frame to one PyTorch matrix, and predictions back as a column."""

import arrowdl
import polars as pl
import torch

frame = pl.DataFrame(
    {
        "city": ["New York", "Boston", "New York"],
        "x": [0.5, 1.5, 2.5],
        "y": [1.0, 2.0, 3.0],
    },
    schema_overrides={"city": pl.Enum(["Boston", "New York"]), "x": pl.Float32, "y": pl.Float32},
)

# Columns of one type as one matrix: this needs a copy.
matrix = arrowdl.to_torch(frame.select("x", "y"), stack=True)
print("matrix:", matrix.tolist())

# Categories are their codes.
print("city:", arrowdl.to_torch(frame["city"]).tolist())

# layout="list" writes a matrix as the column type that polars calls Array.
hidden = arrowdl.to_arrow_device(torch.tanh(matrix @ torch.eye(2)), layout="list")
print(frame.with_columns(hidden=pl.Series(hidden)))
