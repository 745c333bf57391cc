"""Loader with what training is built of: torchdata 0.11, Lightning 2.6, accelerate 1.15, Ray 2.60,
Grain 0.2, over Hugging Face datasets 5.2 and Lance 14."""

from __future__ import annotations

import gc
import itertools
import json
import multiprocessing
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrowdl import debug
from torch.utils.data import DataLoader

ROWS = 100
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.FixedSizeListArray.from_arrays(pa.array(range(ROWS * 2), pa.float32()), 2),
    }
)
IDS = list(range(ROWS))


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    gc.collect()
    before = debug.live_objects()
    yield
    gc.collect()
    assert debug.live_objects() == before


def read_ids(batches: Any) -> list[int]:
    return [i for batch in batches for i in batch["id"].tolist()]


# ---- torchdata


def make_stateful(workers: int, **options: Any) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    dataset = arrowdl.Loader(TABLE, 7, shuffle=True).torch_dataset()
    return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, **options)


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("steps", [0, 1, 5, 14, 15])
def test_stateful_dataloader_goes_on_as_the_whole_epoch(workers: int, steps: int) -> None:
    whole = [batch["id"].tolist() for batch in make_stateful(workers)]
    first = make_stateful(workers)
    batches = iter(first)
    seen = [batch["id"].tolist() for batch in itertools.islice(batches, steps)]
    state = first.state_dict()
    del batches
    assert seen == whole[:steps]
    second = make_stateful(workers)
    second.load_state_dict(state)
    assert [batch["id"].tolist() for batch in second] == whole[steps:]


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize(("workers", "others"), [(2, 3), (3, 1), (3, 3), (2, 0)])
def test_state_of_stateful_dataloader_for_other_workers_and_ranks(
    workers: int, others: int, every: int
) -> None:
    first = make_stateful(workers, snapshot_every_n_steps=every)
    batches = iter(first)
    seen = read_ids(itertools.islice(batches, 6))
    state = first.state_dict()
    del batches
    for rank in range(2):
        loader = arrowdl.Loader(TABLE, 5, shuffle=True, ranks=arrowdl.Ranks(rank, 2))
        loader.load_state_dict(state)
        seen += read_ids(DataLoader(loader.torch_dataset(), batch_size=None, num_workers=others))
    assert sorted(set(seen)) == IDS
    assert len(seen) <= ROWS + 1


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_dataloader_goes_on_with_the_epochs(workers: int) -> None:
    def read(batches: Any) -> list[list[int]]:
        return sorted(batch["id"].tolist() for batch in batches)

    alone = arrowdl.Loader(TABLE, 7, shuffle=True)
    epochs = [read(alone) for _ in range(6)]
    first = make_stateful(workers)
    assert [read(first) for _ in range(3)] == epochs[:3]
    batches = iter(first)
    seen = [next(batches)["id"].tolist() for _ in range(5)]
    state = first.state_dict()
    del batches
    second = make_stateful(workers)
    second.load_state_dict(state)
    assert sorted(seen + read(second)) == epochs[3]
    assert [read(second) for _ in range(2)] == epochs[4:]


def test_state_of_a_worker_is_small() -> None:
    loader = make_stateful(2)
    batches = iter(loader)
    next(batches)
    snapshots = loader.state_dict()["_snapshot"]["_worker_snapshots"]
    assert all(len(json.dumps(each["dataset_state"])) < 1024 for each in snapshots.values())
    del batches


# ---- Lightning and accelerate


def make_model() -> Any:
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
            self.epochs: list[list[int]] = []

        def on_train_epoch_start(self) -> None:
            self.epochs.append([])

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            self.epochs[-1] += batch["id"].tolist()
            return self.layer(batch["x"]).square().mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 1e-9)

    return Model()


def make_trainer(folder: Path, max_epochs: int, **options: Any) -> Any:
    import lightning

    return lightning.Trainer(
        max_epochs=max_epochs,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **options,
    )


def test_lightning_trains_on_a_loader(tmp_path: Path) -> None:
    loader = arrowdl.Loader(TABLE, 7, shuffle=True)
    for batches in (loader, DataLoader(loader.torch_dataset(), batch_size=None, num_workers=2)):
        model = make_model()
        trainer = make_trainer(tmp_path, 2, enable_checkpointing=False)
        trainer.fit(model, batches)
        assert [sorted(ids) for ids in model.epochs] == [IDS, IDS]
        assert trainer.global_step == 2 * len(loader)
        if batches is loader:
            assert model.epochs[0] != model.epochs[1], "a Loader counts its epochs by itself"


def test_lightning_goes_on_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    from lightning.pytorch.callbacks import ModelCheckpoint

    callback = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=4, save_top_k=-1)
    model = make_model()
    trainer = make_trainer(tmp_path, 1, callbacks=[callback])
    trainer.fit(model, arrowdl.Loader(TABLE, 7, shuffle=True))
    resumed = make_model()
    resumed.on_train_epoch_start()  # Lightning does not call it in the middle
    trainer = make_trainer(tmp_path, 1, enable_checkpointing=False)
    loader = arrowdl.Loader(TABLE, 7, shuffle=True)
    trainer.fit(resumed, loader, ckpt_path=tmp_path / "step=4.ckpt")
    assert resumed.epochs[-1] == model.epochs[0][28:]


def gather(rank: int, port: int, results: Any) -> None:
    import os

    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        ACCELERATE_USE_CPU="true",
    )
    from accelerate import Accelerator
    from accelerate.data_loader import DataLoaderDispatcher

    accelerator = Accelerator(cpu=True)
    try:
        loader = arrowdl.Loader(TABLE, 10)
        own = read_ids(loader)
        prepared = accelerator.prepare(DataLoader(loader.torch_dataset(), batch_size=None))
        results.put((rank, own, isinstance(prepared, DataLoaderDispatcher)))
    finally:
        accelerator.end_training()


def test_accelerate_needs_no_preparation_and_would_dispatch() -> None:
    """`Accelerator.prepare` lets rank 0 read for all: it would deal its half of the rows."""
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    processes = [context.Process(target=gather, args=(rank, port, results)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    found = sorted(results.get() for _ in processes)
    assert [own for _, own, _ in found] == [IDS[:50], IDS[50:]]
    assert all(dispatches for _, _, dispatches in found)


# ---- Hugging Face datasets and Lance


def make_dataset() -> Any:
    import datasets

    return datasets.Dataset.from_dict({"id": IDS, "text": [str(i) for i in IDS]})


HUGGING_FACE = {
    "dataset": make_dataset,
    "shuffled": lambda: make_dataset().shuffle(seed=1),
    "selected": lambda: make_dataset().select([5, 3, 99, 0]),
    "iterable": lambda: make_dataset().to_iterable_dataset(num_shards=3),
    "mapped": lambda: make_dataset().to_iterable_dataset().map(lambda row: row),
}


@pytest.mark.parametrize("name", HUGGING_FACE)
@pytest.mark.parametrize("shuffle", [False, True])
def test_hugging_face(name: str, shuffle: bool) -> None:
    source = HUGGING_FACE[name]()
    expected = [row["id"] for row in source]
    loader = arrowdl.Loader(source, 3, columns=["id"], shuffle=shuffle)
    for _ in range(2):
        ids = read_ids(loader)
        assert sorted(ids) == sorted(expected)
        assert shuffle or ids == expected
    batches: Any = iter(loader)
    first = read_ids(itertools.islice(batches, 1))
    state = loader.state_dict()
    batches.close()
    loader.load_state_dict(state)
    assert sorted(first + read_ids(loader)) == sorted(expected)


def test_hugging_face_reshuffles_as_it_does() -> None:
    source = make_dataset().to_iterable_dataset(num_shards=3).shuffle(seed=2, buffer_size=9)
    loader = arrowdl.Loader(source, 8, columns=["id"])
    epochs = [read_ids(loader) for _ in range(3)]
    assert epochs[0] == [row["id"] for row in source], "the user's own is where it was"
    for epoch in (1, 2):
        source.set_epoch(epoch)
        assert epochs[epoch] == [row["id"] for row in source]


@pytest.mark.parametrize("name", ["dataset", "shuffled", "selected"])
def test_columns_of_a_hugging_face_format(name: str) -> None:
    source = HUGGING_FACE[name]().with_format("torch", columns=["text"])
    assert set(next(iter(arrowdl.Loader(source, 3)))) == {"text"}


@pytest.mark.parametrize("name", ["dataset", "shuffled"])
def test_transforms_of_hugging_face_are_refused(name: str) -> None:
    source = HUGGING_FACE[name]().with_transform(lambda batch: batch)
    with pytest.raises(ValueError, match="has a transform"):
        arrowdl.Loader(source, 3)


def test_hugging_face_ranks() -> None:
    source = make_dataset().shuffle(seed=1)
    loaders = [
        arrowdl.Loader(source, 8, columns=["id"], ranks=arrowdl.Ranks(r, 3)) for r in range(3)
    ]
    assert sorted(set(itertools.chain(*map(read_ids, loaders)))) == IDS


@pytest.mark.parametrize("shuffle", [False, True])
def test_lance(shuffle: bool, tmp_path: Path) -> None:
    import lance

    dataset = lance.write_dataset(TABLE, str(tmp_path / "rows.lance"), max_rows_per_file=30)
    loader = arrowdl.Loader(dataset, 8, shuffle=shuffle)
    for _ in range(2):
        batches = list(loader)
        assert batches[0]["x"].shape == (8, 2)
        ids = read_ids(batches)
        assert sorted(ids) == IDS
        assert shuffle or ids == IDS


# ---- Grain


def test_grain_iterates_and_resumes() -> None:
    import grain

    loader = arrowdl.Loader(TABLE.select(["x"]), 7, framework="numpy", shuffle=True)
    dataset = loader.grain_dataset()
    assert isinstance(dataset, grain.IterDataset)
    mapped = dataset.map(lambda batch: batch["x"][:, 0].astype(int) // 2)
    whole = [batch.tolist() for batch in mapped]
    assert sorted(itertools.chain(*whole)) == IDS
    batches = iter(mapped)
    assert [next(batches).tolist() for _ in range(4)] == whole[:4]
    state = json.loads(json.dumps(batches.get_state()))
    assert next(batches).tolist() == whole[4]
    batches.set_state(state)
    assert [batch.tolist() for batch in batches] == whole[4:]
    other = iter(mapped)
    other.set_state(state)
    assert [batch.tolist() for batch in other] == whole[4:]


# ---- Ray


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "object_store_memory": 150_000_000}
    # Ray's workers are nicer than the driver by 15: beside other work they take minutes to start.
    head = {**node, "include_dashboard": False, "_system_config": {"worker_niceness": 0}}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False)
    yield
    ray.shutdown()
    cluster.shutdown()


def make_blocks() -> Any:
    import ray

    return ray.data.from_arrow([TABLE.slice(start, 20) for start in range(0, ROWS, 20)])


def test_ray_dataset(cluster: None) -> None:
    from arrowdl.ray import ShardLoader

    loader = ShardLoader(make_blocks(), 16, shuffle=True)
    for _ in range(2):
        assert sorted(read_ids(loader)) == IDS
    with pytest.raises(NotImplementedError, match="assigns the blocks"):
        loader.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="belongs to one rank"):
        ShardLoader(make_blocks(), 16, ranks=arrowdl.Ranks(0, 2))
    with pytest.raises(TypeError, match="int has no iter_batches"):
        ShardLoader(3, 16)


def test_ray_tensors_keep_their_shape(cluster: None) -> None:
    import ray
    from arrowdl.ray import ShardLoader

    values = np.arange(60, dtype="float32").reshape(10, 2, 3)
    (batch,) = ShardLoader(ray.data.from_numpy(values), 10)
    assert batch["data"].shape == (10, 2, 3)
    assert np.array_equal(batch["data"].numpy(), values)


def test_ray_streaming_split_on_several_nodes(cluster: None) -> None:
    import ray

    @ray.remote(num_cpus=0)
    def read(shard: Any) -> list[list[int]]:
        from arrowdl.ray import ShardLoader

        loader = ShardLoader(shard, 16)
        return [[i for batch in loader for i in batch["id"].tolist()] for _ in range(2)]

    shards = make_blocks().streaming_split(2, equal=True)
    first, second = ray.get([read.remote(shard) for shard in shards])
    for epoch in range(2):
        assert len(first[epoch]) == len(second[epoch]) == ROWS // 2
        assert sorted(first[epoch] + second[epoch]) == IDS


def train_on_ray(config: dict[str, Any]) -> None:
    from arrowdl.ray import get_dataset_loader
    from ray.train.torch import prepare_model

    model = prepare_model(torch.nn.Linear(2, 1))
    loader = get_dataset_loader(16)
    ids: list[int] = []
    for batch in loader:
        model(batch["x"]).square().mean().backward()  # waits for the other worker's
        ids += batch["id"].tolist()
    assert torch.distributed.get_world_size() == 2
    rank = torch.distributed.get_rank()
    Path(config["results"], f"{rank}.json").write_text(json.dumps(ids))


def test_ray_train_on_two_workers(cluster: None, tmp_path: Path) -> None:
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    TorchTrainer(
        train_on_ray,
        train_loop_config={"results": str(tmp_path)},
        scaling_config=ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD"),
        run_config=RunConfig(storage_path=str(tmp_path)),
        datasets={"train": make_blocks()},
    ).fit()
    read = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("?.json"))]
    assert [len(ids) for ids in read] == [ROWS // 2] * 2
    assert sorted(read[0] + read[1]) == IDS


# ---- examples

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](folder)
    return capsys.readouterr().out


def test_example_with_lightning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_example("tabular_lightning", tmp_path, capsys)
    assert "160 steps, 40000 rows" in output
    assert "weights: [1.5, -2.0, 0.5]" in output
    assert "learned: True" in output


def test_example_with_ray(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run_example("tabular_ray", tmp_path, capsys)
    assert "rows of each worker: [8000, 8000]" in output
    assert "weights: [1.5, -2.0, 0.5] the same: True" in output
    assert "learned: True" in output


def test_example_with_ray_and_lance(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run_example("predict_ray", tmp_path, capsys)
    assert "Ray: 4000 rows, fixed_size_list<item: float>[8]" in output
    assert "Lance: 4000 rows, the same: True" in output
