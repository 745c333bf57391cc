"""A `Loader` as a dataset of Grain."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import grain

from arrowdl.loader._reader import EpochReader


class GrainDataset(grain.IterDataset[Any]):  # type: ignore[misc]
    """Whole batches of the loader's epoch: Grain's ``batch`` is not needed."""

    def __init__(
        self,
        loader: EpochReader,  # each iterator reads a copy of it, so that iterators are independent
    ) -> None:
        super().__init__()
        self._loader = loader

    def __iter__(self) -> GrainIterator:
        return GrainIterator(copy.copy(self._loader))


class GrainIterator(grain.DatasetIterator[Any]):  # type: ignore[misc]
    """One epoch, which can go on from a state of `Loader`."""

    def __init__(self, loader: EpochReader) -> None:
        super().__init__()
        self._loader = loader
        self._batches: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._batches is None:
            self._batches = iter(self._loader)
        return next(self._batches)

    def get_state(self) -> dict[str, Any]:
        """Return the position: see `Loader.state_dict`."""
        return self._loader.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on where `state` was saved: see `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)
        self._batches = None
