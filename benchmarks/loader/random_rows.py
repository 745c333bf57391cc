"""Gathers of rows by their numbers: `Loader.map_dataset` and what does the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import torch

from benchmarks.loader.cases import Case, read_tensors
from benchmarks.loader.other_loaders import map_table, open_permutation

GATHERS = 50  # of a pass
ROWS = (32, 256, 4096)  # of a gather
NAMES = ("emb", "tab")


def make_random_cases(folder: Path) -> Iterator[Case]:
    """Take random rows of the tables of `data.write_files`, in memory.

    The row numbers are lists, as samplers give them, and tensors, as torch's function takes them.
    """
    for name in NAMES:
        with pa.memory_map(str(folder / f"{name}.arrow")) as file:
            table = pa.ipc.open_file(file).read_all().combine_chunks()
        tensors = read_tensors(table)
        gather = make_dataset(table).__getitem__
        for rows in ROWS:
            numbers = [torch.from_numpy(row) for row in draw(table.num_rows, rows)]
            lists = [row.tolist() for row in numbers]
            for suffix, given in (("", lists), ("-tensor", numbers)):
                yield Case(
                    f"random-{name}-{rows}{suffix}",
                    partial(repeat, gather, given),
                    partial(repeat, partial(_select, tensors), given),
                    "torch.index_select of each column",
                    1.2,
                )


def make_random_peers(folder: Path) -> Iterator[Case]:
    """Rows of peers by the list of numbers that a sampler gives, in one run.

    `__getitems__` returns a list of rows, as `torch.utils.data` wants it; the others a batch.
    """
    import datasets
    import lance
    from lance.torch.data import SafeLanceDataset

    for name in NAMES:
        path = folder / f"{name}.parquet"
        cache = str(folder / "hugging-face")
        hugging_face = datasets.Dataset.from_parquet(str(path), cache_dir=cache)
        target = str(folder / f"{name}.lance")
        if not Path(target).exists():
            lance.write_dataset(hugging_face.data.table, target)
        rows_of_hugging_face = hugging_face.with_format("torch").__getitems__
        tensors = read_tensors(map_table(name, folder).combine_chunks())
        permutation = open_permutation(path, folder)
        # Its format "torch" takes neither vectors nor nulls.
        arrow, rows = (permutation.with_format(form) for form in ("arrow", "python"))
        peers: dict[str, tuple[str, Callable[[Any], Any]]] = {
            "hf": ("datasets' __getitems__, torch", rows_of_hugging_face),
            "hf-items": ("datasets' __getitems__, torch", rows_of_hugging_face),
            "lance": ("Lance's take, no tensors", lance.dataset(target).take),
            "lance-items": ("Lance's __getitems__", SafeLanceDataset(target).__getitems__),
            "lancedb": ("LanceDB's Permutation, no tensors", arrow.take_offsets),
            "lancedb-items": ("LanceDB's __getitems__, no tensors", rows.__getitems__),
            "torch": ("torch.index_select of each column", partial(_select, tensors)),
        }
        mapped = make_dataset(folder / f"{name}.arrow")
        decoded = make_dataset(path)
        for key, (peer_name, peer) in peers.items():
            # Hugging Face's files are Arrow's, Lance's are encoded.
            dataset = mapped if key.partition("-")[0] in ("hf", "torch") else decoded
            numbers = [row.tolist() for row in draw(len(dataset), 256)[:5]]
            by_rows = key.endswith("-items")
            gather = dataset.__getitems__ if by_rows else dataset.__getitem__
            ours = partial(repeat, gather, numbers)
            yield Case(f"random-{name}-{key}", ours, partial(repeat, peer, numbers), peer_name, 1.0)


def make_dataset(source: Any) -> arrowdl.loader.MapDataset:
    return arrowdl.Loader(source, 1, nulls="nan").map_dataset(cache_bytes=2**31)


def draw(total: int, rows: int) -> list[Any]:
    random = np.random.default_rng(11)
    return [random.integers(0, total, rows) for _ in range(GATHERS)]


def repeat(gather: Callable[[Any], Any], numbers: list[Any]) -> int:
    return sum(len(gather(rows)) for rows in numbers)


def _select(tensors: dict[str, Any], given: Any) -> dict[str, Any]:
    rows = torch.as_tensor(given)
    return {name: tensor.index_select(0, rows) for name, tensor in tensors.items()}
