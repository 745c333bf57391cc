"""What a `Loader` counts while it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass
class Stats:
    """What a `Loader` has done since it was made.

    Attributes
    ----------
    batches : int
    rows : int
        Without those that fill a batch up or that another rank has as well.
    bytes : int
        Of their Arrow arrays; of what they handed over, with workers.
    source_seconds : float
        Seconds in which the training waited for the next batch to be read.
    conversion_seconds : float
        Seconds of making tensors, `transform` included.
    consumer_seconds : float
        Seconds between batches: the training itself.
    """

    batches: int = 0
    rows: int = 0
    bytes: int = 0
    source_seconds: float = 0.0
    conversion_seconds: float = 0.0
    consumer_seconds: float = 0.0

    @property
    def bottleneck(self) -> Literal["source", "conversion", "consumer"]:
        """What takes most of the time."""
        seconds: dict[Literal["source", "conversion", "consumer"], float] = {
            "source": self.source_seconds,
            "conversion": self.conversion_seconds,
            "consumer": self.consumer_seconds,
        }
        return max(seconds, key=lambda name: seconds[name])
