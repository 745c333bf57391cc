"""A classifier on a column of embeddings, FixedSizeList<float, 64>, with PyTorch."""

import tempfile
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import torch
from torch import nn

CLASSES, WIDTH = 5, 64


def write_embeddings(path: Path, rows: int) -> None:
    """Points around a centre for each class, as an Arrow IPC file: the Loader maps it."""
    random = np.random.default_rng(7)
    centres = np.random.default_rng(0).normal(size=(CLASSES, WIDTH))
    labels = random.integers(0, CLASSES, rows)
    points = (centres[labels] + random.normal(scale=2.0, size=(rows, WIDTH))).astype("float32")
    table = pa.table(
        {
            "embedding": pa.FixedSizeListArray.from_arrays(points.ravel(), WIDTH),
            "label": labels,
        }
    )
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2_000)


def main(folder: Path) -> None:
    path = folder / "embeddings.arrow"
    torch.manual_seed(0)
    write_embeddings(path, 10_000)

    # Without a shuffle a batch is a slice of the mapped file: no decoding, no copy.
    batch = next(iter(arrowdl.Loader(path, 256)))
    print("batch:", {name: (tuple(x.shape), x.dtype) for name, x in batch.items()})

    head = nn.Linear(WIDTH, CLASSES)
    optimizer = torch.optim.Adam(head.parameters(), 0.01)
    loader = arrowdl.Loader(path, 256, shuffle=True, drop_last=True)
    for _ in range(2):
        correct = 0
        for batch in loader:
            scores = head(batch["embedding"])
            loss = nn.functional.cross_entropy(scores, batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (scores.argmax(1) == batch["label"]).sum().item()
        share = correct / (len(loader) * 256)
        print(f"epoch {loader.epoch}: {share:.1%} right")
    print("learned:", share > 0.9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
