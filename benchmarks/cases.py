"""The cases: each call of arrowdl, and the call of a peer that does the same work."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import arrowdl
import numpy as np
import polars as pl
import pyarrow as pa
import torch

Names = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes
    ----------
    name : str
        For selection on the command line and in the results.
    ours, peer : str
        The two statements.
    target : float
        The largest allowed ratio of the time of `ours` to that of `peer`.
    make_names : callable
        Returns the names that the statements use; called just before the case runs.
    """

    name: str
    ours: str
    peer: str
    target: float
    make_names: Callable[[], Names]


ROWS = 1000
WIDTH = 768
COLUMNS = 10
MATRIX_ROWS = 1_000_000
BOOLS = 64 << 20


def _count_up(size: int) -> Any:
    return np.arange(size, dtype=np.float32)


def _make_vector() -> Names:
    values = _count_up(ROWS)
    pyarrow_array = pa.array(values)
    return {
        "numpy_array": values,
        "pyarrow_array": pyarrow_array,
        "torch_tensor": torch.arange(ROWS, dtype=torch.float32),
        "device_array": arrowdl.from_arrow(pyarrow_array),
        "pyarrow": pa,
        "to_arrow_device": arrowdl.to_arrow_device,
        "to_torch": arrowdl.to_torch,
        "torch": torch,
        "np": np,
    }


def _make_batch(rows: int) -> pa.RecordBatch:
    values = _count_up(rows)
    return pa.record_batch({f"x{i}": pa.array(values + i) for i in range(COLUMNS)})


def _make_wide_names() -> Names:
    columns = {f"x{i}": _count_up(100_000) for i in range(100)}
    batch = arrowdl.from_arrow(pa.record_batch(columns))
    matrix = arrowdl.to_torch(batch, stack=True)
    return {"to_torch": arrowdl.to_torch, "batch": batch, "matrix": matrix}


def _make_batch_names(rows: int) -> Names:
    return {"batch": _make_batch(rows), "to_torch": arrowdl.to_torch, "torch": torch}


def _make_vectors() -> Names:
    values = _count_up(ROWS * WIDTH)
    return {
        "fsl": pa.FixedSizeListArray.from_arrays(pa.array(values), WIDTH),
        "series": pl.Series(values.reshape(ROWS, WIDTH)),
        "to_torch": arrowdl.to_torch,
        "torch": torch,
    }


def _make_bools() -> Names:
    bits = pa.array(np.arange(BOOLS) % 3 == 0)
    source: Any = np.ones(BOOLS, dtype=np.uint8)
    return {
        "bits": bits,
        "source": source,
        "target": np.zeros_like(source),
        "to_torch": arrowdl.to_torch,
        "np": np,
    }


def _make_model() -> Names:
    """A model of one thread that takes 10 ms for a batch of 4,096 x 32 floats; forty batches."""
    matrix = np.random.default_rng(0).normal(size=(163_840, 32)).astype("float32")
    batches = np.split(matrix, 40)

    def model(batch: Any) -> Any:
        made = batch
        for _ in range(calls):
            made = np.sin(made)
        return made

    calls = 20
    seconds = min(timeit.repeat(lambda: model(batches[0]), number=1, repeat=20))
    calls = max(1, round(calls * 0.010 / seconds))
    column = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 32)
    return {
        "table": pa.table({"id": np.arange(len(matrix)), "x": column}),
        "model": model,
        "batches": batches,
        "from_arrow_stream": arrowdl.from_arrow_stream,
    }


CASES = [
    Case(
        "torch-from-dlpack",
        "torch.from_dlpack(device_array)",
        "torch.from_dlpack(numpy_array)",
        1.0,
        _make_vector,
    ),
    Case(
        "numpy-from-dlpack",
        "np.from_dlpack(device_array)",
        "np.from_dlpack(numpy_array)",
        1.1,
        _make_vector,
    ),
    Case(
        "to-torch",
        "to_torch(device_array)",
        "torch.from_dlpack(device_array)",
        0.4,
        _make_vector,
    ),
    Case(
        "to-torch-pyarrow",
        "to_torch(pyarrow_array)",
        "torch.from_dlpack(pyarrow_array)",
        0.6,
        _make_vector,
    ),
    Case(
        "to-arrow",
        "to_arrow_device(torch_tensor)",
        "pyarrow.Array.from_dlpack(torch_tensor)",
        0.15,
        _make_vector,
    ),
    Case(
        "record-batch",
        "to_torch(batch)",
        "{name: torch.from_dlpack(batch[name]) for name in batch.schema.names}",
        0.3,
        lambda: _make_batch_names(ROWS),
    ),
    Case(
        "fixed-size-list",
        "to_torch(fsl)",
        "torch.from_dlpack(fsl.to_tensor())",
        0.4,
        _make_vectors,
    ),
    Case(
        "polars-array",
        "to_torch(series)",
        "series.to_torch()",
        0.1,
        _make_vectors,
    ),
    Case(
        "bool-bits",
        "to_torch(bits)",
        "np.copyto(target, source)",
        1.5,
        _make_bools,
    ),
    Case(
        "stack",
        "to_torch(batch, stack=True)",
        "batch.to_tensor()",
        0.7,
        lambda: _make_batch_names(MATRIX_ROWS),
    ),
    Case(
        "stack-wide",
        "to_torch(batch, stack=True)",
        "matrix.clone()",
        1.7,
        _make_wide_names,
    ),
    Case(
        "map",
        'for _ in from_arrow_stream(table).map(model, columns="x", batch_size=4096, '
        'framework="numpy"): pass',
        "for batch in batches: model(batch)",
        1.05,
        _make_model,
    ),
]
