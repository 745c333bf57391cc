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
import torch

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


def make_kinds(x: Any) -> dict[str, Any]:
    """A column of each kind of result: torch has bfloat16."""
    ends = torch.tensor([0, *[int(v * 4) % 3 for v in x]]).cumsum(0)
    pair = torch.stack([x, -x], 1)
    return {
        "matrix": pair,
        "struct": {"a": x, "b": x > 1},
        "ragged": (torch.arange(int(ends[-1]), dtype=torch.float32), ends),
        "brain": x.bfloat16(),
        "brains": pair.bfloat16(),
        "text": [f"{v:.2f}" for v in x],
    }


# bfloat16 is bytes to an engine; a schema makes it float32.
KINDS = pa.schema(
    {
        "matrix": pa.list_(pa.float32(), 2),
        "struct": pa.struct({"a": pa.float32(), "b": pa.bool_()}),
        "ragged": pa.list_(pa.float32()),
        "brain": pa.float32(),
        "brains": pa.list_(pa.float32(), 2),
        "text": pa.string(),
    }
)


def list_expected(batch: int = 8) -> list[tuple[Any, ...]]:
    rows = []
    for i in range(20):
        start = sum(j % 3 for j in range(i - i % batch, i))
        x, ragged = i / 4, [float(start + j) for j in range(i % 3)]
        rows.append((i, [x, -x], {"a": x, "b": x > 1}, ragged, x, [x, -x], f"{x:.2f}"))
    return rows


def run_kinds(schema: Any = KINDS) -> arrowdl.DeviceStream:
    few = TABLE.slice(0, 20)
    options: dict[str, Any] = {"framework": "torch", "batch_size": 8, "keep": ["id"]}
    return run(make_kinds, few, schema=schema, **options)


def test_each_kind_of_result_in_duckdb_and_polars() -> None:
    with duckdb.connect() as connection:
        connection.register("made", run_kinds())
        found = connection.sql("SELECT * FROM made").fetchall()
    rows = [tuple(list(v) if isinstance(v, tuple) else v for v in row) for row in found]
    assert rows == list_expected()
    assert pl.DataFrame(run_kinds()).rows() == list_expected()
    assert pl.DataFrame(run_kinds(None))["brain"].to_list()[4] == b"\x80?", "1.0, without a schema"


def test_an_error_of_the_model_in_polars_names_its_rows() -> None:
    def fail(x: Any) -> Any:
        return 1 / 0 if x[0] >= 3_000 / 4 else x

    message = r"(?s)ZeroDivisionError: division by zero.*in map\(\), with rows 3000 to 3999"
    with pytest.raises(pl.exceptions.ComputeError, match=message):
        pl.DataFrame(run(fail))
    lazy = pl.LazyFrame(TABLE).map_batches(
        lambda rows: pl.DataFrame(run(fail, rows)), schema={"id": pl.Int64, "output": pl.Float32}
    )
    with pytest.raises(pl.exceptions.ComputeError, match=message):
        lazy.collect()
