"""`Member`: a source of a mixture, in an order of its own."""

from __future__ import annotations

from dataclasses import dataclass

from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.row_bytes import LANES


@dataclass(frozen=True)
class Member:
    """A source of a mixture."""

    name: str
    source: IndexedSource
    seed: int
    # The rows of its shuffle buffer. None: its rows keep their order, or the mixture has not yet
    # divided its own buffer.
    buffer_size: int | None
    is_loader: bool  # it was given as a Loader: seed and buffer are its own, not the mixture's
    lanes: int = LANES  # of its shuffle, at most
