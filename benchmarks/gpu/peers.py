"""Epochs beside other libraries': torch's DataLoader over pinned memory, JAX, DALI, cuDF.

A library that the machine lacks is a row that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import torch

from benchmarks.gpu.cases import Call, Names
from benchmarks.gpu.loader import BATCH_ROWS, WIDTH, make_table, make_training_names
from benchmarks.gpu.place import Place

FLAT_COLUMNS = 32


@dataclass(frozen=True)
class Peer:
    call: Call
    # raises ImportError without the library, RuntimeError if it finds no device
    make_names: Callable[[Place], Names]


class _PinnedRows:
    """torch's DataLoader with pinned batches, which copies each of them to the device."""

    def __init__(self, rows: torch.Tensor, place: Place) -> None:
        self._device = place.device
        self._loader = torch.utils.data.DataLoader(
            _Batches(rows, place.shrink(BATCH_ROWS)),
            batch_size=None,
            num_workers=2 if place.is_gpu else 0,
            persistent_workers=place.is_gpu,
            pin_memory=place.is_gpu,
        )

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self._loader:
            yield {"x": batch.to(self._device, non_blocking=True)}


class _Batches(torch.utils.data.Dataset):  # type: ignore[misc]
    """A slice of the rows for each batch: no row is collated on its own."""

    def __init__(self, rows: torch.Tensor, size: int) -> None:
        self._rows, self._size = rows, size

    def __len__(self) -> int:
        return len(self._rows) // self._size

    def __getitem__(self, i: int) -> torch.Tensor:
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self._rows[i * self._size : (i + 1) * self._size].clone()


def _get_rows(place: Place) -> np.ndarray[Any, Any]:
    rows: np.ndarray[Any, Any] = (
        make_table(place)["x"].combine_chunks().flatten().to_numpy().reshape(-1, WIDTH)
    )
    return rows


def _make_torch_names(place: Place) -> Names:
    return {
        **make_training_names(place),
        "pinned": _PinnedRows(torch.from_numpy(_get_rows(place).copy()), place),
    }


def _make_jax_names(place: Place) -> Names:
    import jax

    devices = jax.devices(place.device)  # RuntimeError without a GPU
    weights = jax.device_put(np.full((WIDTH, 4 * WIDTH), 0.01, np.float32), devices[0])

    @jax.jit  # type: ignore[untyped-decorator]
    def step(weights: Any, x: Any) -> Any:
        def loss(weights: Any) -> Any:
            return (jax.numpy.maximum(x @ weights, 0) ** 2).mean()

        return weights - 1e-6 * jax.grad(loss)(weights)

    def train(batches: Any) -> None:
        made = weights
        for batch in batches:
            made = step(made, batch["x"])
        made.block_until_ready()

    loader = arrowdl.Loader(
        make_table(place), place.shrink(BATCH_ROWS), framework="jax", device=place.device
    )
    return {"loader": loader, "resident": list(loader), "train_jax": train}


def _make_dali_names(place: Place) -> Names:
    from nvidia.dali import fn, pipeline_def, types  # type: ignore[import-not-found]

    rows, size = _get_rows(place), place.shrink(BATCH_ROWS)
    starts = range(0, len(rows), size)

    @pipeline_def(batch_size=1, num_threads=4, device_id=0 if place.is_gpu else None)  # type: ignore[untyped-decorator]
    def make_pipeline() -> Any:
        def read(sample: Any) -> Any:
            start = starts[sample.idx_in_epoch % len(starts)]
            return rows[start : start + size]

        batch = fn.external_source(source=read, batch=False, dtype=types.FLOAT)
        return batch.gpu() if place.is_gpu else batch

    pipeline = make_pipeline()
    pipeline.build()

    def run() -> None:
        for _ in starts:
            pipeline.run()
        place.synchronize()

    return {**make_training_names(place), "run_dali": run, "drain": _make_drain(place)}


def _make_cudf_names(place: Place) -> Names:
    import cudf  # type: ignore[import-not-found]

    values = np.random.default_rng(7).random((1 << 20, FLAT_COLUMNS), np.float32)
    flat = pa.table({f"c{i}": values[:, i] for i in range(FLAT_COLUMNS)})
    (rows,) = flat.to_batches()
    return {
        "rows": arrowdl.from_arrow(rows),
        "flat": flat,
        "cudf": cudf,
        "finish": place.make_finish(),
    }


def _make_drain(place: Place) -> Callable[[Any], None]:
    def drain(batches: Any) -> None:
        for batch in batches:
            del batch
        place.synchronize()

    return drain


PEERS = [
    Peer(
        Call("beside-dataloader", "train(loader)", "train(pinned)", target=1.0, may_wait=True),
        _make_torch_names,
    ),
    Peer(
        Call(
            "jax-training", "train_jax(loader)", "train_jax(resident)", target=1.02, may_wait=True
        ),
        _make_jax_names,
    ),
    Peer(
        Call("beside-dali", "drain(loader)", "run_dali()", target=1.0, may_wait=True),
        _make_dali_names,
    ),
    Peer(
        Call(
            "beside-cudf",
            "rows.to('cuda').synchronize()",
            "cudf.DataFrame.from_arrow(flat); finish()",
            target=1.0,
            may_wait=True,
        ),
        _make_cudf_names,
    ),
]
