"""A `Loader` for Grain."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import grain

if TYPE_CHECKING:
    from arrowdl.loader._loader import Loader


class GrainDataset(grain.IterDataset[Any]):  # type: ignore[misc]
    """Whole batches of the loader's epoch. Grain's ``batch`` is not for it.

    Parameters
    ----------
    loader : Loader
        Each iterator reads a copy of it, so that several do not meet.
    """

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader

    def __iter__(self) -> GrainIterator:
        return GrainIterator(copy.copy(self._loader))


class GrainIterator(grain.DatasetIterator[Any]):  # type: ignore[misc]
    """One pass, which can go on from a state of `Loader`."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader
        self._batches: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._batches is None:
            self._batches = iter(self._loader)
        return next(self._batches)

    def get_state(self) -> dict[str, Any]:
        """Where the pass stands: that of `Loader.state_dict`."""
        return self._loader.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where a pass stood: see `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)
        self._batches = None
