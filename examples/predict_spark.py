"""A PyTorch model in Spark: mapInArrow of batches, in Spark's Python workers."""

import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import torch
from pyspark.sql import SparkSession
from torch import nn

# Spark has no fixed-size lists: map makes the lists that its schema names.
SCHEMA = pa.schema({"score": pa.float32(), "embedding": pa.list_(pa.float32())})
SPARK_SCHEMA = "id long, score float, embedding array<float>"
WEIGHT = np.linspace(-1, 1, 8, dtype="float32").reshape(4, 2)


def predict(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Score a partition: Spark's batches are read ahead while the model works."""
    hidden = nn.Linear(2, 4, bias=False)
    hidden.load_state_dict({"weight": torch.from_numpy(WEIGHT)})

    def model(x: torch.Tensor) -> dict[str, torch.Tensor]:
        embedding = hidden(x)
        return {"score": embedding.sum(1), "embedding": embedding}

    first = next(batches, None)
    if first is None:  # a partition without rows
        return
    stream = arrowdl.from_arrow_stream(chain([first], batches)).map(
        model, columns=["x0", "x1"], stack=True, keep=["id"], batch_size=256, schema=SCHEMA
    )
    yield from pa.RecordBatchReader.from_stream(stream)


def main(folder: Path | None = None) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    try:
        rows = session.range(0, 2_000, 1, numPartitions=2).selectExpr(
            "id", "CAST(id AS FLOAT) AS x0", "CAST(-id AS FLOAT) AS x1"
        )
        made = rows.where("id < 1000").mapInArrow(predict, SPARK_SCHEMA).toArrow().sort_by("id")
    finally:
        session.stop()
    x = np.arange(1_000, dtype="float32")
    expected = np.stack([x, -x], 1) @ WEIGHT.T
    print("Spark:", made.num_rows, "rows")
    print("scores:", np.allclose(made["score"], expected.sum(1)))
    print("embeddings:", np.allclose(made["embedding"].to_pylist(), expected))


if __name__ == "__main__":
    main()
