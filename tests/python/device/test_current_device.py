"""A device's name without an index: the current device, as in torch."""

from __future__ import annotations

from collections.abc import Callable

import arrowdl
import pytest


def test_the_drivers_current_device_is_meant(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import pyarrow as pa

ids = arrowdl.from_arrow(pa.array([1, 2, 3]))
assert arrowdl.Device("cuda") == (2, 0), "nobody has set one"
with cuda.context(1):
    for name in ("cuda", "cuda_host", "cuda_managed"):
        assert arrowdl.Device(name) == arrowdl.Device((name, None)) == arrowdl.Device(name, 1)
        assert arrowdl.Device(name, 0).id == 0 == arrowdl.Device(f"{name}:0").id
    assert arrowdl.Device(2).id == 1 and arrowdl.Device("cpu").id == 0
    assert ids.to("cuda").device == (2, 1)
    (copied,) = arrowdl.from_arrow_stream(ids).to("cuda")
    assert copied.device == (2, 1)
assert ids.to("cuda").device == (2, 0)
refused(ValueError, "has an id already", lambda: arrowdl.Device("cuda:1", 0))

hip = ctypes.CDLL("libamdhip64.so.6")
assert hip.hipInit(0) == 0 and hip.hipSetDevice(1) == 0
assert arrowdl.Device("rocm").id == 1
assert ids.to("rocm").device == (10, 1)
""")


def test_torch_and_jax_name_theirs(on_fake_cuda: Callable[[str], None]) -> None:
    """By stand-ins: the installed ones have no GPU."""
    on_fake_cuda("""
import sys
from types import SimpleNamespace

used = {"is_initialized": lambda: True, "current_device": lambda: 3}
torch = SimpleNamespace(cuda=SimpleNamespace(**used), version=SimpleNamespace(hip=None))
sys.modules["torch"] = torch
with cuda.context(1):
    assert arrowdl.Device("cuda").id == 3
    assert arrowdl.Device("rocm").id == 0, "this torch is of CUDA"
    torch.version.hip = "6.0"
    assert arrowdl.Device("rocm").id == 3 and arrowdl.Device("cuda").id == 1
    torch.cuda.is_initialized = lambda: False
    assert arrowdl.Device("rocm").id == 0 and arrowdl.Device("cuda").id == 1

sys.modules["jax"] = SimpleNamespace(local_devices=None)
sys.modules["arrowdl._frameworks.jax"] = SimpleNamespace(
    find_current=lambda name: 2 if name == "cuda" else None)
from arrowdl import _core

assert arrowdl.Device("cuda").id == 2, "the driver has none"
with cuda.context(1):
    assert arrowdl.Device("cuda").id == 1
    assert _core.read_device("cuda", "jax").id == 2
""")


def test_a_loader_takes_the_device_of_the_thread_that_iterates(
    on_fake_cuda: Callable[[str], None],
) -> None:
    """As under torchrun: set_device(local_rank) may come after the Loader is made."""
    on_fake_cuda("""
import dataclasses
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

seen = []

def read(tensor):
    if tensor.__dlpack_device__() != (1, 0):  # lists are converted on the host first
        seen.append(tensor.__dlpack_device__())
    return read_as_host(tensor)

numpy = _frameworks.load("numpy")
replace_framework("numpy", dataclasses.replace(numpy, from_dlpack=read, from_offsets=read))
table = pa.table({"i": range(100)})
lists = table.append_column("list", pa.array([[1]] * 100))
for source in table, lists:
    for prefetch in 0, 2:
        loader = arrowdl.Loader(source, 30, framework="numpy", device="cuda", prefetch=prefetch)
        for device in 1, 0:
            seen.clear()
            with cuda.context(device):
                rows = [row for batch in loader for row in batch["i"].tolist()]
            assert rows == list(range(100)), rows
            assert set(seen) == {(2, device)}, seen
""")


def test_jax_has_no_gpu_here() -> None:
    import jax
    from arrowdl._frameworks import find_current
    from arrowdl._frameworks import jax as ours

    jax.numpy.zeros(1)
    assert ours.find_current("cuda") is None
    assert find_current("cuda", None) == 0
    assert find_current("cuda", 5, "jax") == 5


def test_torch_xpu_counts_otherwise_than_dlpack(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's at::torchDeviceToDLDevice: the id is the index among all SYCL devices."""
    import torch
    from arrowdl._frameworks import torch as ours

    class Empty:
        def __init__(self, device: torch.device) -> None:
            self.device = device

        def __dlpack_device__(self) -> tuple[int, int]:
            return 14, self.device.index + 4

    monkeypatch.setattr(torch, "empty", lambda *_, device: Empty(device))
    assert arrowdl.Device(torch.device("xpu", 1)) == (14, 5)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 2)
    put = []
    tensor = type("Tensor", (), {"to": lambda _, device: put.append(device)})()
    ours._put(tensor, "oneapi", 5)
    assert put == [torch.device("xpu", 1)]
    with pytest.raises(BufferError, match="torch has no device oneapi:1"):
        ours._put(tensor, "oneapi", 1)
