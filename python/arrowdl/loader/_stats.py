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
    waiting_on_source : float
        Seconds in which the training waited for the next batch to be read.
    converting : float
        Seconds of making tensors, `transform` included.
    consumer : float
        Seconds between batches: the training itself.
    """

    batches: int = 0
    rows: int = 0
    bytes: int = 0
    waiting_on_source: float = 0.0
    converting: float = 0.0
    consumer: float = 0.0

    @property
    def bottleneck(self) -> Literal["source", "conversion", "consumer"]:
        """What takes most of the time."""
        seconds: dict[Literal["source", "conversion", "consumer"], float] = {
            "source": self.waiting_on_source,
            "conversion": self.converting,
            "consumer": self.consumer,
        }
        return max(seconds, key=lambda name: seconds[name])
