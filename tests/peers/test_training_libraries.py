"""Objects and types of tables, datasets and engines: what is read, and what errors say to pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arrowdl
import datafusion
import datasets
import lance
import lance.arrow
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

TABLE = pa.table({"x": [1, 2, 3], "y": [0.5, 1.5, 2.5]})


def refuse(obj: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=rf"^to_numpy\(\) cannot read .*{advice}"):
        arrowdl.to_numpy(obj)


def read(source: Any) -> list[int]:
    return arrowdl.to_numpy(source)["x"].tolist()


def load(source: Any) -> list[int]:
    batches = [batch["x"] for batch in arrowdl.Loader(source, 2, framework="numpy")]
    return np.concatenate(batches).tolist()


def test_tables_and_queries_of_delta(tmp_path: Path) -> None:
    write_deltalake(tmp_path, TABLE)
    table = DeltaTable(tmp_path)
    refuse(table, r"from_arrow_stream\(table\.to_pyarrow_dataset\(\)\)")
    assert read(table.to_pyarrow_table()) == load(table) == [1, 2, 3]
    builder = QueryBuilder().register("t", table)
    refuse(builder, r"builder\.execute\(sql\)")
    query = "SELECT * FROM t WHERE x > 1 ORDER BY x"
    assert read(builder.execute(query)) == load(lambda: builder.execute(query)) == [2, 3]


def test_datasets_columns_and_splits_of_hugging_face() -> None:
    dataset = datasets.Dataset(TABLE)
    refuse(dataset, r"dataset\.with_format\('arrow'\)\[:\]")
    assert read(dataset.with_format("arrow")[:]) == load(dataset) == [1, 2, 3]
    refuse(dataset["x"], r"dataset\.with_format\('arrow'\)\[:\]\[name\]")
    assert arrowdl.to_numpy(dataset.with_format("arrow")[:]["x"]).tolist() == [1, 2, 3]
    refuse(datasets.DatasetDict(train=dataset), r"splits 'train': .*dataset\['train'\]")
    refuse(dataset.data, r"table\.table, a pyarrow\.Table")


def test_arrays_of_hugging_face_have_their_shape() -> None:
    rows = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    features = datasets.Features({"x": datasets.Array2D((2, 2), "float32")})
    dataset = datasets.Dataset.from_dict({"x": rows}, features)
    assert read(dataset.with_format("arrow")[:]) == rows
    (batch,) = arrowdl.Loader(dataset, 2, framework="numpy")
    assert (batch["x"].dtype, batch["x"].tolist()) == (np.float32, rows)


def test_queries_and_bfloat16_of_lance(tmp_path: Path) -> None:
    halves = lance.arrow.bfloat16_array([1.5, -2.0, 0.5])
    dataset = lance.write_dataset(TABLE.append_column("half", halves), tmp_path / "rows.lance")
    query = dataset.sql("SELECT x FROM dataset WHERE x > 1 ORDER BY x").build()
    refuse(query, r"query\.to_stream_reader\(\)")
    assert read(query.to_stream_reader()) == load(lambda: query.to_stream_reader()) == [2, 3]
    column = arrowdl.to_numpy(dataset.to_table())["half"]
    assert (column.dtype, column.tolist()) == (ml_dtypes.bfloat16, [1.5, -2, 0.5])
    (batch,) = arrowdl.Loader(dataset, 3, framework="numpy", columns=["half"])
    assert (batch["half"].dtype, batch["half"].tolist()) == (column.dtype, column.tolist())


def test_frames_batches_and_streams_of_datafusion() -> None:
    context = datafusion.SessionContext()
    frame = context.from_arrow(TABLE).filter(datafusion.col("x") > 1)
    assert read(frame) == load(frame) == load(lambda: frame) == [2, 3], "each runs the plan"
    refuse(frame.execute_stream(), "pass the DataFrame itself")
    batch = next(iter(frame.execute_stream()))
    assert read(batch.to_pyarrow()) == [2, 3]
    with pytest.raises(AttributeError) as caught:
        arrowdl.from_arrow(batch)  # findings/datafusion-record-batch-promises-...
    assert caught.value.__notes__[-1].endswith("pass batch.to_pyarrow()")


def test_datafusion_keeps_the_types_of_tensors() -> None:
    tensors = {
        "flag": np.array([True, False]),
        "cube": np.arange(8, dtype="float16").reshape(2, 2, 2),
    }
    frame = datafusion.SessionContext().from_arrow(arrowdl.to_arrow_device(tensors))
    for name, values in arrowdl.to_numpy(frame).items():
        assert (values.dtype, values.tolist()) == (tensors[name].dtype, tensors[name].tolist())
    plain = arrowdl.to_arrow_device(tensors, extensions=False)
    frame = datafusion.SessionContext().from_arrow(plain).filter(datafusion.col("flag"))
    assert arrowdl.to_numpy(frame)["cube"].tolist() == [[[0, 1], [2, 3]]]


@pytest.mark.parametrize("kind", ["boxes", "structs", "union"])
def test_datafusion_reads_slices_of_structs_and_unions(kind: str) -> None:
    """findings/arrow-rs-panics-at-slices-of-vectors-of-structs.sh, and that of sparse unions."""
    points = pa.array([{"x": i} for i in range(12)])
    boxes = pa.FixedSizeListArray.from_arrays(points, 2)
    structs = pa.StructArray.from_arrays([pa.StructArray.from_arrays([points], ["p"])], ["q"])
    codes = pa.array([0, 1] * 6, pa.int8())
    union = pa.UnionArray.from_sparse(codes, [pa.array(range(12)), pa.array(list("abcdefghijkl"))])
    column = {"boxes": boxes, "structs": structs, "union": union}[kind]
    for rows in (
        arrowdl.to_arrow_device({"c": column})[1:5],
        arrowdl.to_arrow_device({"c": column[1:5]}),
        arrowdl.to_arrow_device(pa.record_batch({"c": column[1:5]})),
    ):
        frame = datafusion.SessionContext().from_arrow(rows)
        assert frame.to_arrow_table()["c"].to_pylist() == column[1:5].to_pylist()
