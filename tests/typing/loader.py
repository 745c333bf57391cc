"""Programs with a `Loader` that a type checker accepts, and the types that they get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

from arrowdl import DeviceArray, DeviceStream, Loader
from arrowdl.loader import MapDataset, Stats


def sources(array: DeviceArray, stream: DeviceStream) -> list[Loader]:
    def make() -> DeviceStream:
        return stream

    return [
        Loader(array, 8),
        Loader(stream, 8),
        Loader(make, 8),
        Loader("rows.parquet", 8),
        Loader(Path("rows.parquet"), 8),
        Loader([Path("a.arrow"), "b.arrow"], 8),
        Loader([array, array], 8),
    ]


def options(table: DeviceArray) -> Loader:
    return Loader(
        table,
        8,
        columns=["x", "y"],
        framework="jax",
        device=("cuda", 0),
        shuffle=True,
        seed=1,
        num_workers=2,
        nulls={"x": "fill"},
        ragged={"y": "padded"},
        dtype={"x": "float32"},
        pad_value={"y": -1},
        max_length=10,
        pad_to_multiple=8,
        vocabulary={"x": ["a", "b"]},
        transform_arrow=lambda batch: {"x": batch["x"]},
        stack={"features": ["x", "y"]},
        transform=lambda batch: batch,
        buffer_size=1_000,
    )


def refused(table: DeviceArray) -> None:
    Loader(table, 8, framework="tensorflow")  # type: ignore[arg-type]
    Loader(table, 8, nulls="drop")  # type: ignore[arg-type]
    Loader(table, 8, nulls={"x": "drop"})  # type: ignore[dict-item]
    Loader(3, 8)  # type: ignore[arg-type]
    Loader(table, 8, workers=2)  # type: ignore[call-arg]


def results(loader: Loader) -> None:
    assert_type(iter(loader), Iterator[Any])
    assert_type(len(loader), int)
    assert_type(loader.epoch, int)
    assert_type(loader.valid_rows, int)
    assert_type(loader.vocabulary("x"), Any)
    assert_type(loader.state_dict(), dict[str, Any])
    assert_type(loader.stats(), Stats)
    assert_type(loader.stats().source_seconds, float)
    assert_type(loader.map_dataset(), MapDataset)
    assert_type(len(loader.map_dataset(cache_bytes=0)), int)
