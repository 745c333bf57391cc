"""Where the statements run: on the GPU, or all of them on the CPU, to see that they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from benchmarks.gpu.cases import Call, Direction


@dataclass(frozen=True)
class Place:
    """A device by its name, "cuda" or "cpu"."""

    device: str = "cuda"

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"

    def shrink(self, rows: int) -> int:
        """Return fewer rows for the CPU, where the times do not count."""
        return rows if self.is_gpu else rows // 128

    def adapt(self, statement: str) -> str:
        """Return the statement for this device."""
        if self.is_gpu:
            return statement
        return statement.replace("cuda_host", self.device).replace("cuda", self.device)

    def adapt_call(self, call: Call) -> Call:
        return replace(call, ours=self.adapt(call.ours), peer=self.adapt(call.peer))

    def adapt_direction(self, direction: Direction) -> Direction:
        return replace(
            direction,
            pinned=self.adapt(direction.pinned),
            others=[self.adapt(other) for other in direction.others],
            targets={self.adapt(one): target for one, target in direction.targets.items()},
        )

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.pin_memory() if self.is_gpu else tensor

    def synchronize(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def make_finish(self) -> Callable[[], None]:
        """Return what waits for the current stream."""
        return torch.cuda.current_stream().synchronize if self.is_gpu else self.synchronize
