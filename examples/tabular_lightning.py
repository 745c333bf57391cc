"""A regression on columns of Parquet files, with Lightning: the Loader is the dataloader."""

import tempfile
from pathlib import Path

import arrowdl
import lightning
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

FEATURES = ["x0", "x1", "x2"]
WEIGHTS = np.array([1.5, -2.0, 0.5], "float32")


def write_rows(path: Path, rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3)).astype("float32")
    y = x @ WEIGHTS + 0.3 + 0.01 * random.normal(size=rows).astype("float32")
    columns = dict(zip(FEATURES, x.T, strict=True))
    pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=3_000)


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        return nn.functional.mse_loss(self.layer(batch["features"]).squeeze(1), batch["y"])

    def validation_step(self, batch: dict[str, torch.Tensor], index: int) -> None:
        self.log("error", self.training_step(batch, index), batch_size=len(batch["y"]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 0.05)


def main(folder: Path) -> None:
    lightning.seed_everything(0, verbose=False)
    write_rows(folder / "train.parquet", 10_000, 1)
    write_rows(folder / "test.parquet", 1_000, 2)
    options = {"stack": {"features": FEATURES}}
    # Each Loader finds its rank, and each epoch has another order: no sampler, no set_epoch, no
    # num_workers.
    train = arrowdl.Loader(folder / "train.parquet", 250, shuffle=True, **options)
    test = arrowdl.Loader(folder / "test.parquet", 250, **options)

    model = Regression()
    trainer = lightning.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    trainer.fit(model, train, test)
    print(f"{trainer.global_step} steps, {train.stats().rows} rows")
    print("weights:", [round(weight, 1) for weight in model.layer.weight[0].tolist()])
    print("learned:", trainer.callback_metrics["error"].item() < 0.01)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
