"""Map datasets in PyTorch's DataLoader: samplers, collate functions, worker processes."""

from __future__ import annotations

import os
from pathlib import Path

import arrowdl
import pytest
from arrowdl.loader import MapDataset
from helpers.map_datasets import (
    NULLS,
    ROWS,
    TABLE,
    make_loaders,
    run_script,
)

# ---------------------------------------------------------------------------
# PyTorch's DataLoader


def test_samplers_of_torch() -> None:
    import torch
    import torch.utils.data as torch_data

    dataset = arrowdl.Loader(TABLE, 8, nulls=NULLS).map_dataset()
    ids = {}
    for name, batches in make_loaders(dataset).items():
        ids[name] = []
        for batch in batches:
            rows = batch["id"].tolist()
            expected = arrowdl.to_torch(TABLE.take(rows), nulls=NULLS)
            assert list(batch) == list(expected)
            assert batch["tokens"].is_nested  # what the Loader makes, and no collate could stack
            for column in ("id", "v", "flag", "k"):
                assert torch.equal(batch[column], expected[column])
            ids[name] += rows
    assert sorted(ids["subset"]) == list(range(10, 40))
    assert len(ids["weighted"]) == 50
    assert all(i % 2 == 0 for i in ids["weighted"])
    others = [torch_data.DistributedSampler(dataset, 4, rank, seed=2) for rank in (0, 2, 3)]
    assert sorted([*ids["distributed"], *(i for other in others for i in other)]) == list(
        range(ROWS)
    )


def test_a_subset_and_a_split_pass_whole_batches_on() -> None:
    import torch.utils.data as torch_data
    from torch.utils.data import DataLoader

    dataset = arrowdl.Loader(TABLE, 8, nulls=NULLS).map_dataset()
    subset = torch_data.Subset(torch_data.Subset(dataset, range(5, 25)), range(10))
    batch = next(iter(DataLoader(subset, batch_size=4)))
    assert batch["id"].tolist() == [5, 6, 7, 8]
    assert batch["tokens"].is_nested


def test_other_collate_functions_get_items() -> None:
    import torch.utils.data as torch_data
    from torch.utils.data import DataLoader

    dataset = arrowdl.Loader(TABLE, 8, nulls=NULLS).map_dataset()
    for given in (dataset, torch_data.Subset(dataset, range(ROWS))):
        items = next(iter(DataLoader(given, batch_size=3, collate_fn=list)))
        assert [int(item["id"]) for item in items] == [0, 1, 2]
        assert items[2]["tokens"].tolist() == [0, 1]


class Wrapped:
    """Somebody's dataset around a map dataset, which looks at the items."""

    def __init__(self, dataset: MapDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [int(item["id"]) for item in self.dataset.__getitems__(indices)]


def test_datasets_of_datasets() -> None:
    import torch.utils.data as torch_data
    from torch.utils.data import DataLoader

    plain = arrowdl.Loader(TABLE.select(["id", "v"]), 8).map_dataset()
    assert next(iter(DataLoader(Wrapped(plain), batch_size=3))).tolist() == [0, 1, 2]
    joined = torch_data.ConcatDataset([plain, plain])
    batch = next(iter(DataLoader(torch_data.Subset(joined, [59, 60]), batch_size=2)))
    assert batch["id"].tolist() == [59, 0]
    stacked = torch_data.StackDataset(a=plain, b=plain)
    assert next(iter(DataLoader(stacked, batch_size=2)))["b"]["v"].tolist() == [[0, 1], [2, 3]]


def test_whole_batches_by_a_batch_sampler() -> None:
    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

    loader = arrowdl.Loader(TABLE, 8, nulls=NULLS, transform=lambda b: (b["id"], b["tokens"]))
    sampler = BatchSampler(SequentialSampler(range(ROWS)), 32, drop_last=False)
    batches = list(DataLoader(loader.map_dataset(), batch_size=None, sampler=sampler))
    assert [len(ids) for ids, _ in batches] == [32, 28]
    assert batches[1][1].is_nested
    by_default = list(DataLoader(loader.map_dataset(), batch_size=32))
    assert [len(ids) for ids, _ in by_default] == [32, 28]


WORKERS = """
import os, sys, threading
import numpy as np, pyarrow as pa, torch
import arrowdl
from pathlib import Path
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler
from helpers.map_datasets import ROWS, TABLE, make_chunks, make_loaders, write_ipc, write_parquet

def twice(batch):
    batch["id"] *= 2
    return batch

def main(method, folder):
    folder = Path(folder)
    sources = [write_parquet(folder)]
    if method == "fork":
        sources += [make_chunks(TABLE), write_ipc(folder, TABLE)]
    for i, source in enumerate(sources):
        loader = arrowdl.Loader(source, 8, nulls="fill", columns=["id", "v", "x"], transform=twice)
        dataset = loader.map_dataset()
        dataset[[0, 40]]  # the parent has read, and has a cache
        stop = threading.Event()
        def read():
            while not stop.is_set():
                dataset[np.random.permutation(ROWS)[:20]]
        busy = [threading.Thread(target=read) for _ in range(2)]
        for thread in busy:
            thread.start()  # at the fork they may hold any lock
        try:
            arguments = {"num_workers": 2, "multiprocessing_context": method}
            name, batches = list(make_loaders(dataset, **arguments).items())[i]
            count = 0
            for batch in batches:
                rows = batch["id"] // 2
                assert torch.equal(batch["v"][:, 0], rows.double() * 2), name
                count += len(rows)
            assert count == {"subset": 30, "weighted": 50, "distributed": 15}[name], count
        finally:
            stop.set()
            for thread in busy:
                thread.join()
    if method == "spawn":
        return
    pinned = arrowdl.Loader(TABLE.select(["id"]), 8, device="cpu").map_dataset()
    try:
        next(iter(DataLoader(pinned, batch_size=4, num_workers=1, multiprocessing_context=method)))
    except RuntimeError as error:
        assert "device= of the Loader is for the training's process" in str(error), error
    else:
        raise AssertionError("device= in a worker")

if __name__ == "__main__":
    main(*sys.argv[1:])
    print("done")
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_of_a_data_loader(method: str, tmp_path: Path) -> None:
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    run_script(WORKERS, tmp_path, method, tmp_path)
