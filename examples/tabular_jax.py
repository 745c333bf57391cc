"""A regression on columns of Parquet files, with JAX: every batch has the same shape."""

import tempfile
from pathlib import Path

import arrowdl
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FEATURES = ["x0", "x1", "x2"]
WEIGHTS = np.array([1.5, -2.0, 0.5], "float32")


def write_rows(path: Path, rows: int) -> None:
    random = np.random.default_rng(7)
    x = random.normal(size=(rows, 3)).astype("float32")
    y = x @ WEIGHTS + 0.3 + 0.01 * random.normal(size=rows).astype("float32")
    columns = dict(zip(FEATURES, x.T, strict=True))
    pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=3_000)


def predict(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return x @ parameters["weights"] + parameters["bias"]


@jax.jit
def step(parameters: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
    def loss(parameters: dict[str, jax.Array]) -> jax.Array:
        return jnp.mean((predict(parameters, x) - y) ** 2)

    slopes = jax.grad(loss)(parameters)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, parameters, slopes)


def main(folder: Path) -> None:
    path = folder / "rows.parquet"
    write_rows(path, 10_100)
    # drop_last: JAX would compile again for a last batch of another shape.
    loader = arrowdl.Loader(
        path,
        batch_size=250,
        framework="jax",
        shuffle=True,
        drop_last=True,
        stack={"features": FEATURES},
    )
    parameters = {"weights": jnp.zeros(3), "bias": jnp.zeros(())}
    for _ in range(3):
        for batch in loader:
            parameters = step(parameters, batch["features"], batch["y"])
    print(f"{loader.stats().batches} batches of {batch['features'].shape}")
    print("weights:", np.round(parameters["weights"], 1).tolist())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
