"""`Draws`: what the functions of a batch draw at random, by its seed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.seeded import name_generator_device, seeded

FindSeed = Callable[[str, int | None], int]
Drawing = Callable[[Any, int], Any]  # of a batch and its seed


class Draws:
    """Gives functions of the user the random numbers of a batch."""

    def __init__(
        self,
        # returns a seed of 64 bits by a purpose and the index of a batch; None is for rows that
        # stand in for a batch without rows
        find_seed: FindSeed,
        purpose: str,
        framework: str,  # whose generators functions get that ask for one
        device: _core.Device | None,  # where the batches are
        *,
        sets_seeds: bool,  # whether to set the generators of the process
    ) -> None:
        self._find_seed = find_seed
        self._purpose = purpose
        self._framework = framework
        self._device = device
        self._sets_seeds = sets_seeds

    def find_seed(self, index: int | None) -> int:
        """Return the seed of a batch by its index, or of rows that stand in for one."""
        return self._find_seed(self._purpose, index)

    def seeded(self, seed: int) -> AbstractContextManager[None]:
        """Set the generators of the process for a block, where that is possible."""
        return seeded(seed, self._device) if self._sets_seeds else nullcontext()

    def bind(
        self,
        # takes a batch, and a generator if its second parameter is named so
        function: Callable[..., Any],
        number: int,  # of the function among those that are called with the batch
    ) -> Drawing:
        """Return a function of a batch and its seed, which gives `function` a generator."""
        if not _takes_generator(function):
            return lambda batch, seed: function(batch)

        def draw(batch: Any, seed: int) -> Any:
            return function(batch, self._make_generator((seed + number) % 2**64))

        return draw

    def _make_generator(self, seed: int) -> Any:
        if self._framework == "torch":
            import torch

            return torch.Generator(name_generator_device(self._device)).manual_seed(seed)
        if self._framework == "jax":
            import jax

            # A key of one number has 32 bits of it.
            return jax.random.fold_in(jax.random.key(seed >> 32), seed & 0xFFFFFFFF)
        import numpy as np

        return np.random.default_rng(seed)


def _takes_generator(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of some builtins
        return False
    if len(parameters) < 2 or parameters[1].name != "generator":
        return False
    return parameters[1].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
