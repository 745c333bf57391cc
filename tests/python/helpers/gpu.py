"""What the tests on a GPU share. A spin keeps a stream at work: what returns has not waited."""

from __future__ import annotations

import functools
import time
from typing import Any

import arrowdl
import pytest
from arrowdl import debug

torch: Any = pytest.importorskip("torch", reason="the GPU suite makes its streams with torch")

ROWS = 1024
SPIN_SECONDS = 0.2
"""How long a call may take that must not wait: many thousand times what it needs."""


@functools.cache
def cycles_per_second() -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(200_000_000)  # until the clock is at its speed
    start.record()
    torch.cuda._sleep(20_000_000)
    end.record()
    torch.cuda.synchronize()
    return 20_000_000 / (start.elapsed_time(end) * 1e-3)


class Spin:
    """A kernel of `stream` that does nothing for a while."""

    def __init__(self, stream: Any, seconds: float = SPIN_SECONDS) -> None:
        cycles = int(seconds * cycles_per_second())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(cycles)
        self.end = stream.record_event()

    def is_running(self) -> bool:
        return not self.end.query()


def fill_late(tensor: Any, value: float, stream: Any, seconds: float = SPIN_SECONDS) -> Spin:
    """`tensor` gets `value` on `stream`, after a spin there: whoever does not wait reads the old
    values."""
    spin = Spin(stream, seconds)
    with torch.cuda.stream(stream):
        tensor.fill_(value)
    return spin


def read_on(stream: Any, tensor: Any) -> Any:
    """The values that work on `stream` sees, in host memory, without a wait of the host."""
    with torch.cuda.stream(stream):
        seen = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return seen.copy_(tensor, non_blocking=True)


def finish(stream: Any, seen: Any) -> list[Any]:
    """What `read_on` gave, once it is there."""
    stream.synchronize()
    return seen.tolist()  # type: ignore[no-any-return]


def settle(live_objects: int, seconds: float = 10.0) -> None:
    """Waits until releases are done, of arrowdl and of libraries that release on other threads."""
    deadline = time.monotonic() + seconds
    while debug.pending_releases() > 0 or debug.live_objects() > live_objects:
        if time.monotonic() > deadline:
            return
        time.sleep(0.001)


def synchronize_all() -> None:
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)


def warm_up() -> None:
    """Runs once what the tests use, so that no kernel is loaded while a spin runs."""
    cycles_per_second()
    tensor = torch.zeros(ROWS, device="cuda")
    for stream in torch.cuda.default_stream(), torch.cuda.Stream():
        stream.wait_stream(torch.cuda.default_stream())
        fill_late(tensor, 1.0, stream, seconds=0.001)
        finish(stream, read_on(stream, tensor))
    tensor.add_(1).clone().copy_(tensor).tolist()
    torch.full((ROWS,), 2.0, device="cuda").eq(tensor).all().item()
    array = arrowdl.to_arrow_device(tensor)
    array.wait(torch.cuda.Stream())
    arrowdl.to_torch(array.to("cuda_host").to("cuda")).max().item()
    torch.from_dlpack(array).min().item()
    synchronize_all()
