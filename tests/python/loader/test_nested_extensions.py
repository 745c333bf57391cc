"""Extension types of the items of fixed-size lists, in worker processes.

pyarrow 26 pickles `pa.list_(field, n)` without the field: `FixedSizeListType.__reduce__`.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

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
