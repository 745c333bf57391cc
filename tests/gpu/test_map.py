"""`DeviceStream.map` with a model on the GPU: copies both ways, on the model's streams."""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.gpu import Spin, torch

pytestmark = pytest.mark.cuda

ROWS = 20_000
BATCH = 512
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 8) % 97, "f4"), 8),
        "words": pa.array([list(range(i % 5)) for i in range(ROWS)], pa.list_(pa.int32())),
    }
)
SUMS = np.asarray(TABLE["x"].combine_chunks().flatten()).reshape(-1, 8).sum(1).tolist()


def predict(model: Any, **options: Any) -> pa.Table:
    options = {"columns": "x", "batch_size": BATCH, "device": "cuda", "keep": ["id"], **options}
    made = pa.table(arrowdl.from_arrow_stream(TABLE).map(model, **options))
    assert made["id"].to_pylist() == TABLE["id"].to_pylist()
    return made


@pytest.mark.parametrize("prefetch", [0, 2])
def test_results_come_back_to_the_host(prefetch: int) -> None:
    def model(x: Any) -> dict[str, Any]:
        assert x.is_cuda
        Spin(torch.cuda.current_stream(), 2e-4)  # the results come late
        return {"sum": x.sum(1), "half": x.bfloat16(), "big": x.sum(1) > 300}

    made = predict(model, prefetch=prefetch)
    assert made["sum"].to_pylist() == SUMS
    assert made["big"].to_pylist() == [total > 300 for total in SUMS]
    assert arrowdl.to_torch(made.select(["half"]))["half"].float().sum(1).tolist() == SUMS


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_model_with_a_graph_uses_its_memory_again(prefetch: int) -> None:
    given = torch.zeros(BATCH, 8, device="cuda")
    taken = torch.zeros(BATCH, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        taken.copy_(given.sum(1))
    torch.cuda.synchronize()

    def model(x: Any) -> Any:
        given[: len(x)] = x
        graph.replay()
        return taken[: len(x)]

    assert predict(model, prefetch=prefetch, names="sum")["sum"].to_pylist() == SUMS


def test_a_model_on_its_own_stream() -> None:
    own = torch.cuda.Stream()

    def model(x: Any) -> Any:
        own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(own):
            Spin(own, 2e-4)
            x.mul_(2)
            made = x.sum(1)
        torch.cuda.current_stream().wait_stream(own)
        return made

    assert predict(model, names="sum")["sum"].to_pylist() == [2 * total for total in SUMS]


def test_results_that_stay_on_the_gpu() -> None:
    stream = arrowdl.from_arrow_stream(TABLE).map(
        lambda x: x.sum(1),
        columns="x",
        batch_size=BATCH,
        device="cuda",
        output_device="cuda",
        names="sum",
        keep=["id"],
    )
    sums = []
    for array in stream:
        assert array.device == arrowdl.Device("cuda", 0)
        sums.append(torch.from_dlpack(array["sum"]))
    assert torch.cat(sums).tolist() == SUMS


def test_ragged_rows_there_and_back() -> None:
    made = predict(lambda words: words + 1, columns="words", names="next")
    assert made["next"].to_pylist() == [[1 + k for k in range(i % 5)] for i in range(ROWS)]


def test_a_model_of_jax(jax: Any) -> None:
    work = jax.jit(lambda x: x.sum(1))
    assert predict(work, framework="jax", names="sum")["sum"].to_pylist() == SUMS
