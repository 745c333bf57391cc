"""`Retries`: how often, and how long, requests to a store are tried."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from arrowdl.loader._settings.value_object import value_object

_jitter = random.Random()


@value_object
@dataclass(frozen=True, slots=True)
class Retries:
    """How a `Loader` tries again what a store did not answer, for ``Storage(retries=Retries(5))``.

    A listing, the opening of a file and the reading of a range are tried again after errors that
    may pass: connections that break, time-outs, throttling (HTTP 429, 503), errors of the server
    (500, 502, 504), bytes that are missing. Missing files, refused credentials and files that have
    changed are raised at once.

    Parameters
    ----------
    tries : int
        Of each request, the first one included; 1 tries nothing again.
    deadline : float
        Seconds that a request takes at most, with all of its tries and the waits between them. One
        that is under way then is given up, whatever its client waits for.
    first_wait, most_wait : float
        Seconds before the second try, at most; they double with each try up to `most_wait`. The
        wait is drawn between half of that and all of it, so that many ranks do not ask at once.

    Raises
    ------
    ValueError
        A number is negative, or no number; the deadline is 0.
    """

    tries: int = 20
    deadline: float = 120.0
    first_wait: float = 0.2
    most_wait: float = 10.0

    def __post_init__(self) -> None:
        if isinstance(self.tries, bool) or not isinstance(self.tries, int) or self.tries < 1:
            raise ValueError(f"Retries.tries={self.tries!r}: give a number of tries, from 1")
        for name in ("deadline", "first_wait", "most_wait"):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or math.isnan(value) or value < 0:
                raise ValueError(f"Retries.{name}={value!r}: give a number of seconds, from 0")
        if not self.deadline:
            raise ValueError(
                "Retries.deadline=0: a request takes some time, give more than 0 seconds"
            )

    def choose_wait(self, tried: int) -> float:
        """Return how many seconds to wait after so many tries."""
        most = min(self.most_wait, self.first_wait * 2.0 ** min(tried - 1, 60))
        return _jitter.uniform(most / 2, most)
