"""A PyTorch model over a table: predictions written by pyarrow, queried by DuckDB and polars."""

import tempfile
from pathlib import Path

import arrowdl
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import torch
from torch import nn

ROWS, FEATURES = 20_000, ["x0", "x1", "x2"]


def write_rows(folder: Path) -> None:
    x = np.random.default_rng(0).normal(size=(3, ROWS)).astype("float32")
    table = pa.table({"id": range(ROWS), **dict(zip(FEATURES, x, strict=True))})
    ds.write_dataset(
        table, folder, format="parquet", max_rows_per_file=7_000, max_rows_per_group=7_000
    )


class Model(nn.Module):
    """A score and an embedding for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(3, 8)
        self.last = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        embedding = self.hidden(x).relu()
        return {"score": self.last(embedding).sigmoid().squeeze(1), "embedding": embedding}


def main(folder: Path) -> None:
    torch.manual_seed(0)
    model = Model().eval()
    write_rows(folder / "rows")
    options = {"columns": FEATURES, "stack": True, "keep": ["id"], "batch_size": 4_096}

    # From files to files, batch by batch: the reader decodes, the model computes and the writer
    # compresses at the same time. device="cuda" copies batches there and results back.
    rows = ds.dataset(folder / "rows").scanner().to_reader()
    scored = arrowdl.from_arrow_stream(rows).map(model, **options)
    ds.write_dataset(pa.RecordBatchReader.from_stream(scored), folder / "scored", format="parquet")
    written = ds.dataset(folder / "scored")
    print(written.count_rows(), "rows:", ", ".join(written.schema.names))

    with duckdb.connect() as connection:
        # DuckDB reads the stream of predictions.
        table = ds.dataset(folder / "rows").to_table()
        stream = arrowdl.from_arrow_stream(table).map(model, layout="list", **options)
        connection.register("scored", stream)
        ((count, kind),) = connection.sql(
            "SELECT count(*) FILTER (score > 0.5), typeof(any_value(embedding)) FROM scored"
        ).fetchall()
        print("DuckDB:", count, "above 0.5, embeddings of", kind)

        # Or it calls the model, as a function of columns.
        def score(x0: pa.ChunkedArray, x1: pa.ChunkedArray, x2: pa.ChunkedArray) -> pa.ChunkedArray:
            given = pa.table([x0, x1, x2], names=FEATURES)
            return pa.table(arrowdl.from_arrow_stream(given).map(model, stack=True))["score"]

        connection.create_function("score", score, ["FLOAT"] * 3, "FLOAT", type="arrow")
        connection.register("rows", table)
        called = connection.sql("SELECT count(*) FROM rows WHERE score(x0, x1, x2) > 0.5")
        print("the same:", called.fetchall() == [(count,)])
        connection.remove_function("score")

    # In a lazy query of polars.
    query = pl.scan_parquet(folder / "rows" / "*.parquet")
    embedded = query.map_batches(
        lambda frame: pl.DataFrame(
            arrowdl.from_arrow_stream(frame).map(model, layout="list", **options)
        ),
        schema={"id": pl.Int64, "score": pl.Float32, "embedding": pl.Array(pl.Float32, 8)},
    )
    print("polars:", embedded.filter(pl.col("score") > 0.5).collect().height == count)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
