"""Extension types of the items of fixed-size lists, in worker processes.

pyarrow 26 pickles `pa.list_(field, n)` without the field: `FixedSizeListType.__reduce__`.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import arrowdl
import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from arrowdl.loader._sources.table import TableSource

TENSOR = torch.arange(12, dtype=torch.bfloat16).reshape(6, 2)


def make_table() -> pa.Table:
    return pa.table(pa.record_batch(arrowdl.to_arrow_device({"x": TENSOR}, layout="list")))


def test_pyarrow_drops_the_field_of_the_items() -> None:
    kind = make_table().schema.field("x").type
    assert kind.field(0).metadata[b"ARROW:extension:name"] == b"arrowdl.bfloat16"
    assert pickle.loads(pickle.dumps(kind)).field(0).metadata is None


@pytest.mark.parametrize("kind", ["table", "parquet"])
def test_worker_processes_know_the_type(kind: str, tmp_path: Path) -> None:
    source: Any = make_table()
    if kind == "parquet":
        pq.write_table(source, tmp_path / "x.parquet")
        source = tmp_path
    with arrowdl.Loader(source, 4, framework="torch", num_workers=1) as loader:
        read = torch.cat([batch["x"] for batch in loader])
    assert read.dtype is torch.bfloat16
    assert torch.equal(read, TENSOR)


def make_columns(kind: str) -> pa.Table:
    """A column whose items have an extension, inside a type that pyarrow cannot cast to."""
    rows = make_table().column("x").chunk(0)
    inner = pa.list_(rows.type.field(0).with_name("number").with_nullable(False), 2)
    values = pa.FixedSizeListArray.from_arrays(rows.flatten(), type=inner)
    field = pa.field("item", inner)
    if kind == "run ends":
        ends = pa.array(range(1, len(values) + 1), pa.int32())
        made = pa.RunEndEncodedArray.from_arrays(
            ends, values, pa.run_end_encoded(pa.int32(), inner)
        )
    elif kind == "list view":
        counts = pa.array(range(len(values)), pa.int32())
        made = pa.ListViewArray.from_arrays(
            counts, pa.array([1] * len(values), pa.int32()), values, type=pa.list_view(field)
        )
    else:
        made = pa.UnionArray.from_sparse(pa.array([0] * len(values), pa.int8()), [values])
    return pa.table({"x": made, "y": list(range(len(values)))})


@pytest.mark.parametrize("kind", ["run ends", "list view", "union"])
def test_types_without_a_cast_are_pickled(kind: str) -> None:
    table = make_columns(kind)
    source = TableSource(table, None)
    read = pickle.loads(pickle.dumps(source))
    assert read._table.schema.equals(table.schema, check_metadata=True)
    assert read._table.to_pydict() == table.to_pydict()
    assert read.describe() == source.describe()
    with arrowdl.Loader(table, 4, columns=["y"], framework="numpy") as loader:
        copy = pickle.loads(pickle.dumps(loader))
        assert [batch["y"].tolist() for batch in copy] == [[0, 1, 2, 3], [4, 5]]


def test_a_table_without_rows_is_pickled() -> None:
    table = make_table()
    for empty in (table.slice(0, 0), table.schema.empty_table()):
        read = pickle.loads(pickle.dumps(TableSource(empty, None)))
        assert read._table.schema.equals(table.schema, check_metadata=True)
        assert read.num_rows == 0


def test_worker_processes_send_packed_values_of_jax() -> None:
    tensor = (jax.numpy.arange(48) % 3).reshape(6, 8).astype("int4")
    table = pa.table(pa.record_batch(arrowdl.to_arrow_device({"x": tensor}, layout="list")))
    with arrowdl.Loader(table, 4, framework="jax", num_workers=1) as loader:
        parts = [batch["x"] for batch in loader]
    read = jax.numpy.concatenate(parts)
    assert read.dtype == "int4"
    assert np.array_equal(np.asarray(read, np.int8), np.asarray(tensor, np.int8))
