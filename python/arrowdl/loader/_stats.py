"""`Stats`: what a `Loader` counts while it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass
class Stats:
    """What a `Loader` has read since it was made, and how long each part took.

    Attributes
    ----------
    batches : int
    rows : int
        Rows of this rank. Padding, and rows that another rank also reads, are not counted.
    bytes : int
        Bytes of the Arrow arrays; with worker processes, bytes of the tensors that they sent.
    source_seconds : float
        Time in which the training waited for the next batch: to be read, and for `transform_arrow`.
    conversion_seconds : float
        Time to make tensors, `transform` included.
    consumer_seconds : float
        Time between batches: the training itself.
    """

    batches: int = 0
    rows: int = 0
    bytes: int = 0
    source_seconds: float = 0.0
    conversion_seconds: float = 0.0
    consumer_seconds: float = 0.0

    @property
    def bottleneck(self) -> Literal["source", "conversion", "consumer"]:
        """The part that takes most of the time."""
        seconds: dict[Literal["source", "conversion", "consumer"], float] = {
            "source": self.source_seconds,
            "conversion": self.conversion_seconds,
            "consumer": self.consumer_seconds,
        }
        return max(seconds, key=lambda name: seconds[name])
