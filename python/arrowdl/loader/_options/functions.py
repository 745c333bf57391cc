"""`Functions`: what a Loader calls with each batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """A function of `Loader.map` or `Loader.filter`."""

    function: Callable[[Any], Any]
    is_filter: bool


@dataclass(kw_only=True)
class Functions:
    """The functions that a user gave, in the order of their calls.

    Raises TypeError if one of them cannot be called.
    """

    transform_arrow: Callable[[Any], Any] | None = None  # takes a record batch
    transform: Callable[[Any], Any] | None = None  # takes a batch of tensors
    chain: tuple[Step, ...] = ()  # from `Loader.map` and `Loader.filter`
    sets_seeds: bool = True  # whether draws of the functions are repeatable

    def __post_init__(self) -> None:
        if self.transform_arrow is not None and not callable(self.transform_arrow):
            raise TypeError(
                f"transform_arrow={self.transform_arrow!r}: give a function of one record batch"
            )
        if self.transform is not None and not callable(self.transform):
            raise TypeError(f"transform={self.transform!r}: give a function of one batch")

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is called with each batch of tensors."""
        first = () if self.transform is None else (Step(self.transform, False),)
        return (*first, *self.chain)

    @property
    def filters(self) -> bool:
        """Whether a step drops rows."""
        return any(step.is_filter for step in self.chain)

    @property
    def maps_kept(self) -> bool:
        """Whether a `map` follows a `filter`."""
        kinds = [step.is_filter for step in self.chain]
        return True in kinds and False in kinds[kinds.index(True) :]
