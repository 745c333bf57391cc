"""The cases on a GPU: calls and torch's calls, copies and torch's copy of pinned memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import arrowdl
import torch

Names = dict[str, Any]

ROWS = 1000
MEGABYTE = 1 << 20
SIZES = [MEGABYTE << shift for shift in (0, 2, 4, 6, 8, 10)]


@dataclass(frozen=True)
class Call:
    """A statement of ours, and a peer's statement that does the same necessary work: ours takes at
    most `target` times as long."""

    name: str
    ours: str
    peer: str
    target: float | None = None
    may_wait: bool = False  # as an epoch does at its end

    @property
    def needs_streams(self) -> bool:
        return any(name in self.ours + self.peer for name in ("stream", "other"))


CALLS = [
    Call("to-arrow", "to_arrow_device(tensor)", "torch.from_dlpack(tensor)"),
    Call("to-arrow-event", "to_arrow_device(tensor)", "stream.record_event()"),
    Call("to-arrow-cpu", "to_arrow_device(tensor)", "to_arrow_device(cpu_tensor)"),
    Call("from-dlpack", "torch.from_dlpack(array)", "torch.from_dlpack(tensor)"),
    Call("to-torch", "to_torch(array)", "torch.from_dlpack(tensor)"),
    Call(
        "other-stream",
        "array.__dlpack__(stream=other_handle, max_version=(1, 0))",
        "tensor.__dlpack__(stream=other_handle, max_version=(1, 0))",
    ),
    Call("wait", "array.wait(other)", "other.wait_event(event)"),
    Call(
        "round-trip",
        "torch.from_dlpack(to_arrow_device(tensor))",
        "torch.from_dlpack(tensor)",
    ),
]


def make_call_names(device: str = "cuda") -> Names:
    tensor = torch.zeros(ROWS, device=device)
    names = {
        "tensor": tensor,
        "cpu_tensor": tensor.cpu(),
        "array": arrowdl.to_arrow_device(tensor),
        "torch": torch,
        "to_arrow_device": arrowdl.to_arrow_device,
        "to_torch": arrowdl.to_torch,
    }
    if device == "cpu":
        return names
    stream, other = torch.cuda.current_stream(), torch.cuda.Stream()
    return {
        **names,
        "stream": stream,
        "other": other,
        "other_handle": other.cuda_stream,
        "event": stream.record_event(),
    }


BUSY_CYCLES = 200_000_000
"""Cycles of the GPU's clock: a tenth of a second, many thousand times what a call takes."""


def has_waited(statement: str, names: Names) -> bool:
    """Whether a call of `statement` waits on the host for work on the current stream.

    A profiler does not say: CUPTI counts each query of an event as a synchronisation.
    """
    code = compile(statement, "<statement>", "exec")
    exec(code, names)  # what is made once, is made here
    torch.cuda.synchronize()
    torch.cuda._sleep(BUSY_CYCLES)
    end = torch.cuda.current_stream().record_event()
    exec(code, names)
    is_over = bool(end.query())
    torch.cuda.synchronize()
    return is_over


@dataclass(frozen=True)
class Direction:
    """Copies in one direction: `others` reach a fraction of `pinned`, at least `targets` of it."""

    name: str
    pinned: str
    others: list[str]
    targets: Mapping[str, float] = field(default_factory=dict)


DIRECTIONS = [
    Direction(
        "CPU to GPU",
        "gpu_tensor.copy_(pinned_tensor, non_blocking=True); finish()",
        [
            "pinned_array.to('cuda').synchronize()",
            "pageable_array.to('cuda').synchronize()",
            "pageable_array.to('cuda', pin_memory=False).synchronize()",
            "pageable_tensor.to('cuda'); finish()",
        ],
    ),
    Direction(
        "GPU to CPU",
        "pinned_tensor.copy_(gpu_tensor, non_blocking=True); finish()",
        [
            "gpu_array.to('cuda_host').synchronize()",
            "gpu_array.to('cpu')",
            "gpu_tensor.cpu()",
        ],
    ),
]
