"""`DeviceStream.map` with torch: modules, gradients, nested tensors, bfloat16."""

from __future__ import annotations

import ctypes
import re
import threading
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
import torch
from torch import nn

TABLE = pa.table(
    {
        "x": pa.array([[i, -i] for i in range(6)], pa.list_(pa.float32(), 2)),
        "ids": pa.array([[i] * (i % 3) for i in range(6)]),
    }
)


def run(model: Any, **options: Any) -> pa.Table:
    return pa.table(arrowdl.from_arrow_stream(TABLE).map(model, batch_size=4, **options))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_module_is_a_model(prefetch: int) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    made = run(module, columns="x", prefetch=prefetch)
    assert made.column_names == ["x", "ids", "output"]
    expected = module(arrowdl.to_torch(TABLE)["x"]).detach()
    assert torch.equal(arrowdl.to_torch(made)["output"], expected)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_no_gradients_but_those_that_the_model_takes(prefetch: int) -> None:
    """torch's grad mode is of a thread: that of the caller has no effect on the stream's."""
    parameter = nn.Parameter(torch.ones(2))
    seen = []

    def model(x: Any) -> Any:
        seen.append((torch.is_grad_enabled(), (x * parameter).requires_grad))
        with torch.enable_grad():
            x.requires_grad_()
            (gradient,) = torch.autograd.grad((x**2).sum(), x)
            graph = x * parameter
        assert graph.requires_grad
        return {"gradient": gradient, "graph": graph, "parameter": parameter.expand(len(x), 2)}

    made = run(model, columns="x", keep=(), prefetch=prefetch, layout="list")
    assert seen == [(False, False)] * 2
    assert made["gradient"].to_pylist() == [[2 * i, -2 * i] for i in range(6)]
    assert made["parameter"].to_pylist() == [[1, 1]] * 6
    with torch.no_grad():
        parameter *= 5  # the results are not the parameter's memory
    assert made["parameter"].to_pylist() == [[1, 1]] * 6


@pytest.mark.parametrize("prefetch", [0, 2])
def test_gradients_that_a_model_turns_on_are_off_in_its_next_call(prefetch: int) -> None:
    seen = []

    def model(x: Any) -> Any:
        seen.append(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        return x

    run(model, columns="x", prefetch=prefetch)
    assert seen == [False, False]
    assert torch.is_grad_enabled()


def test_nested_tensors_bfloat16_and_lists_of_tensors() -> None:
    def model(batch: Any) -> Any:
        rows = batch["ids"].unbind()
        return {
            "nested": torch.nested.nested_tensor([2 * row for row in rows], layout=torch.jagged),
            "half": batch["x"].bfloat16(),
            "list": [row + 1 for row in rows],
        }

    stream = arrowdl.from_arrow_stream(TABLE).map(model, columns=["x", "ids"], keep=())
    assert [field.name for field in stream.schema.children] == ["nested", "half", "list"]
    array = next(stream)
    assert array["half"].dtype == "bfloat16"
    assert torch.equal(arrowdl.to_torch(array["half"]), arrowdl.to_torch(TABLE)["x"].bfloat16())
    table = pa.table(array)
    assert table["nested"].to_pylist() == [[2 * i] * (i % 3) for i in range(6)]
    assert table["list"].to_pylist() == [[i + 1] * (i % 3) for i in range(6)]


def test_an_output_of_transformers_is_a_dict() -> None:
    from collections import OrderedDict

    class ModelOutput(OrderedDict):  # as transformers.utils.ModelOutput: entries are attributes
        pass

    made = run(lambda x: ModelOutput(logits=x, last=x[:, :1]), columns="x", keep=())
    assert made.column_names == ["logits", "last"]


def test_the_number_of_threads_is_the_callers() -> None:
    """OpenMP's is of a thread, and torch's matrix products in a new one ignored set_num_threads."""
    maps = Path("/proc/self/maps")
    found = re.search(r"/\S*/libgomp\S*", maps.read_text()) if maps.exists() else None
    if found is None:
        pytest.skip("torch does not use libgomp here")
    library = ctypes.CDLL(found[0])
    seen = []

    def model(x: Any) -> Any:
        seen.append(library.omp_get_max_threads())
        return x

    before = torch.get_num_threads()
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            run(model, columns="x", keep=())
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 1, 3, 3]


def test_consumers_call_from_threads_of_their_own() -> None:
    """pyarrow calls get_next without the GIL, in any thread."""
    caught = []

    def read() -> None:
        caught.append(run(lambda x: x.sum(1), columns="x", keep=())["output"].to_pylist())

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert caught == [[0] * 6] * 3
