"""`Member`: a source of a mixture, in an order of its own."""

from __future__ import annotations

from dataclasses import dataclass

from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.row_bytes import LANES


@dataclass(frozen=True)
class Member:
    """A source of a mixture.

    Attributes
    ----------
    name : str
    source : IndexedSource
    seed : int
    buffer_size : int, optional
        Of its shuffle; None for its own order, and until the mixture is cut for a shuffle.
    is_loader : bool
        Whether seed and buffer are its own, and not of the mixture.
    lanes : int
        Of its shuffle, at most.
    """

    name: str
    source: IndexedSource
    seed: int
    buffer_size: int | None
    is_loader: bool
    lanes: int = LANES
