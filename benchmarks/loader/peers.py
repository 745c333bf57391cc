"""Passes of Hugging Face datasets and Ray Data, in the environment of `make bench BENCH=peers`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow.parquet as pq

from benchmarks.loader.cases import Case, Pass, drain
from benchmarks.loader.data import BATCH_ROWS

PACKAGES = [
    *("arrowdl", "torch", "numpy", "pyarrow", "datasets", "grain", "lancedb", "litdata", "pylance"),
    *("ray", "torchdata"),
]
FEW_ROWS = 20_000  # of `tab`, where a peer takes minutes for all of them


def make_peer_cases(folder: Path) -> Iterator[Case]:
    """Passes over the files of `data.write_files`. The targets of the issue are speed-ups: 10 times
    is a ratio of 0.1."""
    few = folder / "tab-few.parquet"
    emb, tab = folder / "emb.parquet", folder / "tab.parquet"
    if not few.exists():
        pq.write_table(pq.read_table(tab).slice(0, FEW_ROWS), few)
    yield from _make_hugging_face("emb", emb)
    yield from _make_hugging_face("tab", few)
    yield from _make_ray("emb", emb)
    yield from _make_ray("tab", tab)


def _make_pass(source: Any, name: str, *, writable: bool = True) -> Pass:
    loader = arrowdl.Loader(source, BATCH_ROWS[name], nulls="nan", writable=writable)
    return partial(_drain_loader, loader)


def _drain_loader(loader: Any) -> int:
    return drain(iter(loader))


def _make_hugging_face(name: str, path: Path) -> Iterator[Case]:
    import datasets
    from torch.utils.data import DataLoader

    cache = str(path.parent / "hugging-face")
    dataset = datasets.Dataset.from_parquet(str(path), cache_dir=cache)
    batches = DataLoader(dataset.with_format("torch"), batch_size=BATCH_ROWS[name])
    passes = {
        "parquet": _make_pass(path, name),
        "dataset": _make_pass(dataset, name),
        "dataset-lent": _make_pass(dataset, name, writable=False),
    }
    peer = 'datasets in format "torch", DataLoader'
    for kind, ours in passes.items():
        yield Case(f"hf-{name}-{kind}", ours, partial(_drain_loader, batches), peer, 1 / 12)
    tensors = dataset.with_format("torch")

    def iterate() -> int:
        return drain(tensors.iter(BATCH_ROWS[name]))

    # The quickest way that datasets has: whole batches, in order.
    peer = 'datasets in format "torch", Dataset.iter'
    yield Case(f"hf-{name}-iter", passes["dataset"], iterate, peer, 1.0)


def _make_ray(name: str, path: Path) -> Iterator[Case]:
    import ray
    from arrowdl.ray import ShardLoader

    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
    files = path.parent / f"ray-{path.stem}"  # Ray wants a folder
    files.mkdir(exist_ok=True)
    if not (files / path.name).exists():
        (files / path.name).hardlink_to(path)
    dataset = ray.data.read_parquet(str(files))
    kept = dataset.materialize()

    def iterate(dataset: Any) -> int:
        return drain(dataset.iter_torch_batches(batch_size=BATCH_ROWS[name]))

    def take_blocks(dataset: Any) -> int:
        return drain(dataset.iter_batches(batch_size=None, batch_format="pyarrow"))

    ours, peer = _make_pass(path, name), "Ray's iter_torch_batches"
    yield Case(f"ray-{name}", ours, partial(iterate, dataset), peer, 0.1)
    peer = f"{peer}, materialised"
    for suffix, writable in (("", True), ("-lent", False)):
        loader = ShardLoader(kept, BATCH_ROWS[name], nulls="nan", writable=writable)
        ours = partial(_drain_loader, loader)
        yield Case(f"ray-{name}-materialised{suffix}", ours, partial(iterate, kept), peer, 0.1)

    # The least that a batch of Ray's blocks can take: 1.5 is two thirds of it.
    blocks = "Ray's blocks alone: iter_batches(batch_size=None)"
    yield Case(f"ray-{name}-blocks", ours, partial(take_blocks, kept), blocks, 1.5)
    loader = ShardLoader(dataset, BATCH_ROWS[name], nulls="nan", writable=False)
    ours = partial(_drain_loader, loader)
    peer = "Ray's iter_torch_batches, executing"
    yield Case(f"ray-{name}-executing", ours, partial(iterate, dataset), peer, 0.1)
    yield Case(
        f"ray-{name}-executing-blocks",
        ours,
        partial(take_blocks, dataset),
        f"{blocks}, executing",
        1.5,
    )
