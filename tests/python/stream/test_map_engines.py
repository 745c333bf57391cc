"""`DeviceStream.map` in pyarrow, DuckDB and polars: written, queried, and called by the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arrowdl
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

ROWS = 20_000
IDS = np.arange(ROWS)
GROUPS: dict[str, Any] = {"max_rows_per_group": 5_000}
TABLE = pa.table({"id": IDS, "x": (IDS / 4).astype("float32")})


def embed(x: Any) -> Any:
    return {"twice": 2 * x, "embedding": np.stack([x, -x], 1)}


def run(model: Any = embed, source: Any = TABLE, **options: Any) -> arrowdl.DeviceStream:
    options = {"columns": "x", "batch_size": 1_000, "framework": "numpy", **options}
    return arrowdl.from_arrow_stream(source).map(model, **options)


def test_pyarrow_writes_it(tmp_path: Path) -> None:
    """From a scan of files to files: neither is in memory as a whole."""
    ds.write_dataset(TABLE, tmp_path / "in", format="parquet", max_rows_per_file=7_000, **GROUPS)
    scan = ds.dataset(tmp_path / "in").scanner(columns=["id", "x"]).to_reader()
    reader = pa.RecordBatchReader.from_stream(run(source=scan))
    ds.write_dataset(reader, tmp_path / "out", format="parquet", max_rows_per_file=9_000, **GROUPS)
    made = ds.dataset(tmp_path / "out").to_table().sort_by("id")
    assert made.select(["id", "x"]).equals(TABLE)
    assert made.schema.field("embedding").type == pa.fixed_shape_tensor(pa.float32(), [2])
    assert np.array_equal(made["twice"], IDS / 2)


def test_duckdb_queries_it() -> None:
    with duckdb.connect() as connection:
        connection.register("scored", run(layout="list"))
        made = connection.sql(
            "SELECT count(*), sum(twice), typeof(any_value(embedding)) FROM scored WHERE id > 9999"
        ).fetchall()
    assert made == [(ROWS / 2, (IDS[10_000:] / 2).sum(), "FLOAT[2]")]


def test_an_error_of_the_model_ends_a_query_of_duckdb() -> None:
    def fail(x: Any) -> Any:
        if x[0] == 2_000 / 4:
            raise ZeroDivisionError("of the model")
        return x

    message = r"ZeroDivisionError: of the model\n.*in map\(\), with rows 2000 to 2999"
    with duckdb.connect() as connection:
        connection.register("scored", run(fail))
        with pytest.raises(duckdb.Error, match=f"(?s){message}"):
            connection.sql("SELECT sum(output) FROM scored").fetchall()


def test_duckdb_calls_it() -> None:
    """A function of type "arrow", which DuckDB calls with some thousand rows, in its threads."""

    def score(x: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.table(run(lambda x: 2 * x, pa.table({"x": x}), keep=()))["output"]

    with duckdb.connect() as connection:
        connection.create_function("score", score, ["FLOAT"], "FLOAT", type="arrow")
        connection.register("rows_", TABLE)
        made = connection.sql("SELECT sum(score(x)) FROM rows_ WHERE id > 5").fetchall()
        connection.remove_function("score")
    assert made == [((IDS[6:] / 2).sum(),)]


def test_polars_reads_and_calls_it() -> None:
    frame = pl.DataFrame(run(layout="list"))
    assert frame.schema["embedding"] == pl.Array(pl.Float32, 2)
    assert np.array_equal(frame["twice"].to_numpy(), IDS / 2)

    lazy = pl.LazyFrame({"id": IDS, "x": (IDS / 4).astype("float32")})
    scored = lazy.map_batches(
        lambda rows: pl.DataFrame(run(lambda x: 2 * x, rows)),
        schema={**lazy.collect_schema(), "output": pl.Float32},
    )
    made = scored.filter(pl.col("id") >= 10_000).collect()
    assert np.array_equal(made["output"].to_numpy(), IDS[10_000:] / 2)
