"""A regression on Parquet files in an object store: one plan for all runs, a stop and a resume.

`python examples/object_store.py s3://bucket/folder` writes 4 small files there and trains on them.
Keys, region and endpoint come from where AWS keeps them, such as AWS_ACCESS_KEY_ID.
"""

import os
import sys
import tempfile
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from arrowdl import Retries

FEATURES = ["x0", "x1", "x2"]
WEIGHTS = np.array([1.5, -2.0, 0.5], "float32")
STEPS = 40  # of an epoch


def write_files(url: str) -> None:
    endpoint = os.environ.get("AWS_ENDPOINT_URL")  # of a store that is not Amazon's
    store = fs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True)
    folder = url.removeprefix("s3://")
    store.create_dir(folder)
    for seed in range(4):
        random = np.random.default_rng(seed)
        x = random.normal(size=(1_000, 3)).astype("float32")
        y = x @ WEIGHTS + 0.01 * random.normal(size=1_000).astype("float32")
        table = pa.table({**dict(zip(FEATURES, x.T, strict=True)), "y": y})
        pq.write_table(table, f"{folder}/part-{seed}.parquet", filesystem=store)


def make_loader(url: str, plan: Path | None) -> arrowdl.Loader:
    return arrowdl.Loader(
        f"{url}/*.parquet",
        batch_size=4_000 // STEPS,
        stack={"features": FEATURES},
        framework="numpy",
        shuffle=True,
        storage=arrowdl.Storage(retries=Retries(deadline=60), plan=plan),
    )


def train(loader: arrowdl.Loader, weights: np.ndarray, steps: int) -> int:
    """Train for at most `steps` steps of an epoch; return how many there were."""
    done = 0
    for batch in loader:
        x, y = batch["features"], batch["y"]
        weights -= 0.1 * 2 / len(y) * x.T @ (x @ weights - y)
        done += 1
        if done == steps:
            break
    return done


def main(url: str) -> None:
    write_files(url)
    weights = np.zeros(3, "float32")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"  # of a disk that all ranks have
        loader = make_loader(url, None)
        plan = loader.plan()
        plan.save(path)  # other ranks, and later runs, list nothing and read no footer to start
        stopped = train(loader, weights, 5)
        state = loader.state_dict()

        loader = make_loader(url, path)
        print(len(plan.files), "files, planned once:", loader.plan() == plan)
        loader.load_state_dict(state)
        rest = train(loader, weights, STEPS)
        print(f"stopped after {stopped} steps, {rest} more:", stopped + rest == STEPS)
        train(loader, weights, STEPS)
    print("weights:", weights.round(2), "learned:", bool(np.abs(weights - WEIGHTS).max() < 0.05))


if __name__ == "__main__":
    main(sys.argv[1])
