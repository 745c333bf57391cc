"""A classifier on a column of embeddings in Parquet, with JAX: one compiled step for all."""

import tempfile
from pathlib import Path

import arrowdl
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLASSES, WIDTH = 5, 64


def write_embeddings(path: Path, rows: int) -> None:
    """Points around a centre for each class."""
    random = np.random.default_rng(7)
    centres = random.normal(size=(CLASSES, WIDTH))
    labels = random.integers(0, CLASSES, rows, dtype="int32")  # JAX has 32 bits by default
    points = (centres[labels] + random.normal(scale=2.0, size=(rows, WIDTH))).astype("float32")
    table = pa.table(
        {
            "embedding": pa.FixedSizeListArray.from_arrays(points.ravel(), WIDTH),
            "label": labels,
        }
    )
    pq.write_table(table, path, row_group_size=3_000)


@jax.jit
def step(weights: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return the weights after a step, and how many predictions were right before it."""

    def loss(weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        scores = batch["embedding"] @ weights
        chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), batch["label"][:, None], axis=1)
        right = (scores.argmax(axis=1) == batch["label"]) & batch["valid"]
        # Ignore the padding rows of the last batch.
        return -jnp.mean(chosen[:, 0], where=batch["valid"]), right.sum()

    slope, right = jax.grad(loss, has_aux=True)(weights)
    return weights - 0.05 * slope, right


def main(folder: Path) -> None:
    path = folder / "embeddings.parquet"
    write_embeddings(path, 10_000)
    # pad_last: the last batch has the shape of the others, so JAX compiles once.
    loader = arrowdl.Loader(path, 256, framework="jax", shuffle=True, pad_last=True)
    # On a named device, like the batches: uncommitted arrays would compile a second time.
    weights = jax.device_put(jnp.zeros((WIDTH, CLASSES)), jax.devices()[0])
    for _ in range(2):
        rows = right = 0
        for batch in loader:
            weights, more = step(weights, batch)
            right += int(more)
            rows += int(batch["valid"].sum())
        print(f"epoch {loader.epoch}: {right / rows:.1%} of {rows} right")
    print("batches:", batch["embedding"].shape, "compiled:", step._cache_size())
    print("learned:", right / rows > 0.9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
