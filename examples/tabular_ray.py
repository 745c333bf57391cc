"""A regression with Ray Train: Ray reads and distributes the blocks, two workers train on them."""

import json
import tempfile
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import torch
from arrowdl.ray import get_dataset_loader
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn

FEATURES = ["x0", "x1", "x2"]
WEIGHTS = np.array([1.5, -2.0, 0.5], "float32")


def write_rows(path: Path, rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3)).astype("float32")
    y = x @ WEIGHTS + 0.3 + 0.01 * random.normal(size=rows).astype("float32")
    columns = dict(zip(FEATURES, x.T, strict=True))
    pq.write_table(pa.table({**columns, "y": y}), path)


def train(config: dict[str, Any]) -> None:
    """Train on one worker: its loader reads the Arrow blocks in the object store."""
    torch.manual_seed(0)
    model = prepare_model(nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    loader = get_dataset_loader(100, stack={"features": FEATURES}, shuffle=arrowdl.Shuffle(1_000))
    for _ in range(4):
        for batch in loader:
            loss = nn.functional.mse_loss(model(batch["features"]).squeeze(1), batch["y"])
            optimizer.zero_grad()
            loss.backward()  # the workers' slopes are averaged
            optimizer.step()
    weights = [round(weight, 1) for weight in model.module.weight[0].tolist()]
    result = {"rows": loader.stats().rows, "weights": weights, "loss": loss.item()}
    rank = ray.train.get_context().get_world_rank()
    Path(config["results"], f"{rank}.json").write_text(json.dumps(result))


def main(folder: Path) -> None:
    data = folder / "data"
    data.mkdir()
    for seed in range(4):
        write_rows(data / f"part-{seed}.parquet", 1_000, seed)
    # The blocks stay in the object store. Without materialize(), each epoch reads the files again.
    rows = ray.data.read_parquet(str(data)).materialize()
    TorchTrainer(
        train,
        train_loop_config={"results": str(folder)},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=str(folder / "runs")),
        datasets={"train": rows},
    ).fit()
    results = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    print("rows of each worker:", [result["rows"] for result in results])
    print(
        "weights:",
        results[0]["weights"],
        "the same:",
        results[0]["weights"] == results[1]["weights"],
    )
    print("learned:", results[0]["loss"] < 0.01)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
