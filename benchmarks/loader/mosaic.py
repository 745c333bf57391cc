"""MosaicML's streaming as a pass over the network, where its package is installed.

It reads shards of its own format through boto3, into a local folder, and makes each sample in
Python. Its package (0.13) needs numpy before 2.2 and transformers before 5, which none of our
environments has, so it has one of its own: ``pip install mosaicml-streaming pyarrow`` and the
wheel of arrowdl.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

_SHARDS = "network/mds"
_SHARD_BYTES = 2**23  # as the row groups of the Parquet files
_WORKERS = 2


def is_installed() -> bool:
    """Whether MosaicML's streaming is in this environment; importing it takes seconds."""
    return importlib.util.find_spec("streaming") is not None


def write_shards(folder: Path, file: Path) -> None:
    """Write the rows of a Parquet file as shards below `folder`, once."""
    import streaming

    if (folder / _SHARDS / "index.json").exists():
        return
    rows = pq.ParquetFile(file)
    width = rows.schema_arrow.field("vector").type.list_size
    columns = {"vector": f"ndarray:float32:{width}", "label": "int64"}
    out = str(folder / _SHARDS)
    with streaming.MDSWriter(out=out, columns=columns, size_limit=_SHARD_BYTES) as writer:
        for batch in rows.iter_batches():
            vectors = batch["vector"].values.to_numpy()[batch["vector"].offset * width :]
            for i, label in enumerate(batch["label"].to_pylist()):
                writer.write({"vector": vectors[i * width : (i + 1) * width], "label": label})


def read_shards(address: str, batch_rows: int) -> int:
    """Read all shards from the server at `address` as batches of tensors; return their number."""
    import streaming

    os.environ.update(
        S3_ENDPOINT_URL=f"http://{address}",
        AWS_ACCESS_KEY_ID="nobody",
        AWS_SECRET_ACCESS_KEY="nobody",
        AWS_DEFAULT_REGION="us-east-1",
    )
    streaming.base.util.clean_stale_shared_memory()
    with tempfile.TemporaryDirectory() as local:
        remote = f"s3://{_SHARDS}"
        dataset = streaming.StreamingDataset(remote=remote, local=local, batch_size=batch_rows)
        batches = streaming.StreamingDataLoader(
            dataset, batch_size=batch_rows, num_workers=_WORKERS
        )
        return sum(1 for _ in batches)
