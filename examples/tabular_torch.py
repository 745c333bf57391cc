"""A regression on columns of Parquet files, with PyTorch: train, stop, resume, validate."""

import tempfile
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

FEATURES = ["distance", "hour", "delay"]


def write_flights(folder: Path, rows: int, seed: int) -> None:
    """Make flights whose time in the air depends on the distance and the hour."""
    random = np.random.default_rng(seed)
    distance = random.uniform(0.1, 2.5, rows).astype("float32")
    hour = random.uniform(0, 1, rows).astype("float32")
    delay = random.exponential(0.2, rows).astype("float32")
    minutes = 0.3 + 1.2 * distance + 0.4 * np.sin(6 * hour) + 0.05 * random.normal(size=rows)
    table = pa.table(
        {
            "distance": distance,
            "hour": hour,
            "delay": pa.array(delay, mask=random.uniform(size=rows) < 0.05),  # some are null
            "minutes": minutes.astype("float32"),
        }
    )
    pq.write_table(table, folder / f"part-{seed}.parquet", row_group_size=4_000)


def make_loader(folder: Path, **arguments: object) -> arrowdl.Loader:
    # One (rows, 3) matrix of the features. The policy replaces nulls by 0.
    return arrowdl.Loader(
        folder, batch_size=500, stack={"features": FEATURES}, nulls="fill", **arguments
    )


def train(model: nn.Module, optimizer: torch.optim.Optimizer, loader: arrowdl.Loader) -> float:
    losses = []
    for batch in loader:
        loss = nn.functional.mse_loss(model(batch["features"]).squeeze(1), batch["minutes"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main(folder: Path) -> None:
    torch.manual_seed(0)
    for name, seeds in (("train", [1, 2, 3]), ("test", [4])):
        (folder / name).mkdir()
        for seed in seeds:
            write_flights(folder / name, 10_000, seed)

    model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    loader = make_loader(folder / "train", shuffle=True, seed=7)
    print(loader)
    first = train(model, optimizer, loader)

    # A checkpoint in the middle of an epoch: some hundred bytes without data.
    batches = iter(loader)
    seen = sum(len(next(batches)["minutes"]) for _ in range(20))
    state = loader.state_dict()
    resumed = make_loader(folder / "train", shuffle=True, seed=7)
    resumed.load_state_dict(state)
    rest = sum(len(batch["minutes"]) for batch in resumed)
    print(f"epoch 1: {seen} rows, stopped, {rest} more after resuming")

    for _ in range(3):
        last = train(model, optimizer, loader)
    print(f"loss of the first epoch {first:.3f}, of the last {last:.3f}")
    with torch.no_grad():
        errors = [
            (model(batch["features"]).squeeze(1) - batch["minutes"]).abs()
            for batch in make_loader(folder / "test")
        ]
    error = torch.cat(errors).mean().item()
    print(f"mean error on {sum(map(len, errors))} other flights: {error:.3f}")
    print("learned:", error < 0.25 and last < first)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
