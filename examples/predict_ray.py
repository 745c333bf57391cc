"""A PyTorch model in Ray Data: each actor maps Arrow blocks, and Lance stores the embeddings."""

import tempfile
from pathlib import Path

import arrowdl
import lance
import numpy as np
import pyarrow as pa
import ray
import torch
from torch import nn

ROWS, WIDTH = 4_000, 8


class Embed:
    """An actor, which makes its model once."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(2, WIDTH), nn.ReLU()).eval()

    def __call__(self, block: pa.Table) -> pa.Table:
        """Map a block. On a GPU, device="cuda" copies batches there while the model works."""
        stream = arrowdl.from_arrow_stream(block)
        return pa.table(
            stream.map(self.model, columns="x", keep=["id"], batch_size=512, layout="list")
        )


def main(folder: Path) -> None:
    x = np.random.default_rng(0).normal(size=2 * ROWS).astype("float32")
    table = pa.table({"id": range(ROWS), "x": pa.FixedSizeListArray.from_arrays(x, 2)})
    blocks = [table.slice(start, 1_000) for start in range(0, ROWS, 1_000)]
    embedded = ray.data.from_arrow(blocks).map_batches(
        Embed,
        batch_format="pyarrow",
        batch_size=None,
        compute=ray.data.ActorPoolStrategy(size=1),
        zero_copy_batch=True,
    )
    made = pa.concat_tables(ray.get(embedded.to_arrow_refs())).sort_by("id")
    print("Ray:", made.num_rows, "rows,", made.schema.field("output").type)

    # Lance writes a stream as it is read. Without Ray it is the stream of map itself.
    stream = arrowdl.from_arrow_stream(table).map(
        Embed().model, columns="x", keep=["id"], batch_size=512, layout="list"
    )
    reader = pa.RecordBatchReader.from_stream(stream)
    stored = lance.write_dataset(reader, folder / "embeddings.lance")
    print("Lance:", stored.count_rows(), "rows, the same:", stored.to_table().equals(made))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
