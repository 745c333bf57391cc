"""Programs with a `Loader` that a type checker accepts, and the types that they get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

from arrowdl import (
    Audio,
    Buckets,
    DeviceArray,
    DeviceStream,
    Image,
    Loader,
    Padded,
    Ranks,
    Report,
    Seed,
    Shuffle,
    Skip,
    Storage,
    Tokenize,
    Tokens,
)
from arrowdl.loader import FilePlan, MapDataset, Pack, Retries, Stats


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
        columns=["x", "y"],
        framework="jax",
        device=("cuda", 0),
        shuffle=Shuffle(1_000),
        seed=Seed(1, transforms=False),
        num_workers=2,
        nulls={"x": "fill"},
        ragged={"y": Padded(-1, max_length=10, multiple=8), "x": "jagged"},
        dtype={"x": "float32"},
        vocabulary={"x": ["a", "b"]},
        transform_arrow=lambda batch: {"x": batch["x"]},
        stack={"features": ["x", "y"]},
        transform=lambda batch: batch,
        batching=Buckets("y", window=1_000),
        ranks=Ranks(0, 2, global_batch_size=Tokens(4096, column="y"), splits=4),
        storage=Storage(retries=Retries(5), plan="share", decoder="polars"),
        on_error=Skip(100),
        progress=Report(every=60, function=lambda stats: None),
    )


def objects(table: DeviceArray, plan: FilePlan) -> list[Loader]:
    assert_type(Tokens(8).column, str | None)
    assert_type(Ranks(0, 2).global_batch_size, int | Tokens | None)
    return [
        Loader(table, Tokens(4096), batching=Pack("y", 64), storage=Storage(plan=plan)),
        Loader(table, ranks=Ranks(global_batch_size=512), ragged=Padded(), progress=True),
        Loader(table, 8, transform_arrow={"x": lambda column: column.to_pylist()}),
        Loader(table, 8, transform_arrow={"x": Image((8, 8), mode="L", crop="random")}),
        Loader(table, 8, transform_arrow={"x": Audio(16_000, mono=False)}),
        Loader(table, 8, transform_arrow=[lambda batch: batch[:1], {"x": lambda x: x}]),
        Loader(table, 8, transform_arrow={"x": Tokenize(object(), max_length=8)}),
        Loader.mix({"a": table}, {"a": 1}, ranks=Ranks(global_batch_size=8), nulls="fill"),
    ]


def refused(table: DeviceArray) -> None:
    Loader(table, 8, framework="tensorflow")  # type: ignore[arg-type]
    Loader(table, 8, nulls="drop")  # type: ignore[arg-type]
    Loader(table, 8, nulls={"x": "drop"})  # type: ignore[dict-item]
    Loader(3, 8)  # type: ignore[arg-type]
    Loader(table, 8, transform_arrow={"x": 3})  # type: ignore[dict-item]
    Loader(table, 8, workers=2)  # type: ignore[call-arg]
    Loader(table, 8, splits=4)  # type: ignore[call-arg]
    Loader(table, 8, ranks=Tokens(8))  # type: ignore[arg-type]
    Loader(table, 8, batching="y")  # type: ignore[arg-type]
    Loader(table, 8, on_error="ignore")  # type: ignore[arg-type]
    Audio("16k")  # type: ignore[arg-type]
    Image(224)  # type: ignore[arg-type]
    Image((8, 8), mode="CMYK")  # type: ignore[arg-type]
    Tokenize(object(), max_length="8")  # type: ignore[arg-type]
    Ranks(0, 1, 512)  # type: ignore[call-arg]
    Storage("folder")  # type: ignore[call-arg]
    Storage(plan=3)  # type: ignore[arg-type]
    Padded(max_length="4")  # type: ignore[arg-type]
    Seed(1).number = 2  # type: ignore[misc]


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
