"""Loader.map_dataset() beside what reads rows by their numbers: Hugging Face datasets 5.2,
Grain 0.2, torchdata 0.11, accelerate 1.15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler

ROWS = 100
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.FixedSizeListArray.from_arrays(pa.array(range(ROWS * 2), pa.float32()), 2),
        "tokens": pa.array([list(range(i % 4)) for i in range(ROWS)], pa.list_(pa.int64())),
    }
)


def make_hugging_face() -> Any:
    import datasets

    return datasets.Dataset(TABLE)


def test_rows_of_hugging_face_are_its_own() -> None:
    source = make_hugging_face()
    dataset = arrowdl.Loader(source, 8).map_dataset()
    rows = [7, 0, 99, 7]
    own = source.with_format("torch").__getitems__(rows)
    for item, expected in zip(dataset.__getitems__(rows), own, strict=True):
        assert list(item) == list(expected)
        for name in item:
            assert torch.equal(item[name], expected[name].to(item[name].dtype)), name


def test_an_indices_mapping_selects_the_rows() -> None:
    source = make_hugging_face().shuffle(seed=1)
    for same in (source, source.flatten_indices()):
        dataset = arrowdl.Loader(same, 8).map_dataset()
        assert dataset[[0, 50]]["id"].tolist() == [source[0]["id"], source[50]["id"]]


def test_grain_reads_rows() -> None:
    import grain

    loader = arrowdl.Loader(TABLE.select(["id", "x"]), 8, framework="numpy")
    batches = grain.MapDataset.source(loader.map_dataset()).shuffle(seed=3).batch(8)
    ids = [i for batch in batches for i in batch["id"].tolist()]
    assert sorted(ids) == list(range(ROWS))
    assert batches[0]["x"][:, 0].tolist() == [2.0 * i for i in batches[0]["id"]]


@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_of_a_stateful_dataloader_go_on(workers: int, tmp_path: Path) -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader

    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, row_group_size=9)
    dataset = arrowdl.Loader(path, 8).map_dataset()

    def make() -> Any:
        sampler = RandomSampler(dataset, generator=torch.Generator().manual_seed(5))
        return StatefulDataLoader(dataset, batch_size=8, sampler=sampler, num_workers=workers)

    whole = [batch["id"].tolist() for batch in make()]
    first = make()
    batches = iter(first)
    begun = [next(batches)["id"].tolist() for _ in range(5)]
    state = first.state_dict()
    del batches
    again = make()
    again.load_state_dict(state)
    assert begun + [batch["id"].tolist() for batch in again] == whole


def test_accelerate_prepares_it() -> None:
    from accelerate import Accelerator

    dataset = arrowdl.Loader(TABLE, 8).map_dataset()
    sampler = WeightedRandomSampler([float(i % 2) for i in range(ROWS)], 40)
    batches = list(
        Accelerator(cpu=True).prepare(DataLoader(dataset, batch_size=8, sampler=sampler))
    )
    assert [len(batch["id"]) for batch in batches] == [8] * 5
    assert all(i % 2 for batch in batches for i in batch["id"].tolist())
    assert batches[0]["tokens"].is_nested
