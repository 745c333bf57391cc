"""`Target`: whose tensors batches are made of, and in whose memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from arrowdl import _core
from arrowdl.loader._checks import require_bool
from arrowdl.loader._types import Framework

FRAMEWORKS: tuple[str, ...] = get_args(Framework)


@dataclass(kw_only=True)
class Target:
    """Where batches go.

    Raises TypeError or ValueError if a value is not supported, or contradicts another one.
    """

    framework: Framework
    device: Any  # what the user gave; None for host memory, for a sharding and for pinned memory
    sharding: Any  # of JAX's global arrays; None without it
    pin_memory: bool  # whether batches are copied to pinned host memory
    writable: bool  # whether batches may be written to

    def __post_init__(self) -> None:
        self.writable = require_bool("writable", self.writable)
        if self.framework not in FRAMEWORKS:
            expected = ", ".join(FRAMEWORKS)
            raise ValueError(f"framework={self.framework!r}: expected one of {expected}")
        if self.sharding is not None and self.framework != "jax":
            raise ValueError(
                f'device={self.sharding!r} needs framework="jax", not {self.framework!r}'
            )
        self._check_device()

    def _check_device(self) -> None:
        if self.device is None:
            return
        try:
            _core.read_device(self.device, self.framework)  # opens no driver
        except (TypeError, ValueError) as error:
            raise type(error)(f"device={self.device!r}: {error}") from None

    def find_device(self) -> _core.Device | None:
        """Return the device of the batches.

        A name without an index is the current device of the calling thread, so the thread that
        iterates calls this, not one that copies ahead.
        """
        if self.device is None:
            return None
        return _core.read_device(self.device, self.framework)

    @property
    def tensor_framework(self) -> str:
        """The framework whose tensors the batches are made of, before `sharding` is applied."""
        return self.framework if self.sharding is None else "numpy"

    def exposes_writable_tensors(self, *, calls_functions: bool) -> bool:
        """Whether the user, or a function of the user, gets tensors that can be written to."""
        if not self.writable:
            return False
        if self.sharding is not None:
            return calls_functions
        return self.framework != "jax"  # whose arrays cannot be written to
