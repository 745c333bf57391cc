"""`seeded`: the generators of `random`, NumPy and torch with a seed, for a call, and as before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from arrowdl import _core

PutBack = Callable[[], object]

_CUDA = (2, 10)  # of DLDeviceType: ROCm is "cuda" to torch, too


@contextmanager
def seeded(
    seed: int,  # of 64 bits
    device: _core.Device | None,  # whose generator of torch is also set
) -> Iterator[None]:
    """Set the generators of the whole process for the block, and put their states back after it.

    Outside of the main thread they are left alone: the training's own thread may draw meanwhile,
    and would draw numbers of the block, or the same ones twice. Libraries that are not imported are
    left alone, too.
    """
    if threading.get_ident() != threading.main_thread().ident:
        yield
        return
    undo: list[PutBack] = []
    try:
        if random := sys.modules.get("random"):
            undo.append(partial(random.setstate, random.getstate()))
            random.seed(seed)
        if "numpy" in sys.modules:
            undo.append(_NUMPY.seed(seed & 0xFFFFFFFF))
        for generator in _list_generators(device):
            undo.append(partial(generator.set_state, generator.get_state()))
            generator.manual_seed(seed)
        yield
    finally:
        for put_back in reversed(undo):
            put_back()


def _list_generators(device: _core.Device | None) -> list[Any]:
    """List the default generators of torch, without opening a driver."""
    torch: Any = sys.modules.get("torch")
    host = getattr(torch, "default_generator", None)
    if host is None:  # not imported, or not yet to its end
        return []
    if device is None or device.type not in _CUDA or not torch.cuda.is_initialized():
        return [host]
    return [host, torch.cuda.default_generators[device.id]]


def name_generator_device(device: _core.Device | None) -> str:
    """Name the device of a torch generator for tensors on `device`; the CPU's serves others."""
    return "cpu" if device is None or device.type not in _CUDA else f"cuda:{device.id}"


class _LegacyNumpy:
    """The generator behind ``numpy.random.rand``.

    Another bit generator takes its place for the call: to set a state would take twice the time.
    """

    def __init__(self) -> None:
        self._spares: list[Any] = []

    def seed(self, seed: int) -> PutBack:
        """Set the seed, and return what puts the state back."""
        import numpy

        legacy: Any = numpy.random  # imported when it is first used
        state = legacy.get_state(legacy=False)
        if not hasattr(legacy, "get_bit_generator"):  # NumPy before 1.24
            legacy.seed(seed)
            return partial(legacy.set_state, state)
        before = legacy.get_bit_generator()
        spare = self._spares.pop() if self._spares else legacy.MT19937(0)
        legacy.set_bit_generator(spare)
        legacy.seed(seed)
        return partial(self._put_back, legacy, before, state, spare)

    def _put_back(self, legacy: Any, before: Any, state: dict[str, Any], spare: Any) -> None:
        legacy.set_bit_generator(before)
        self._spares.append(spare)
        if state.get("has_gauss"):  # a normal number that was drawn ahead, and goes with a change
            legacy.set_state(state)


_NUMPY = _LegacyNumpy()
