"""`Retries`: how often, and for how long, requests to a store are tried."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from numbers import Real

from arrowdl.loader._checks import require_int
from arrowdl.loader._settings.value_object import value_object

_jitter = random.Random()


@value_object
@dataclass(frozen=True, slots=True)
class Retries:
    """How often a `Loader` tries requests to a store again, for ``Storage(retries=Retries(5))``.

    Listing files, opening a file and reading a range are tried again after errors that may pass:
    broken connections, time-outs, throttling (HTTP 429, 503), errors of the server (500, 502, 504)
    and missing bytes. If a file is missing or has changed, or credentials are refused, the error
    is raised at once.

    Parameters
    ----------
    tries : int
        How often a request is tried in all; with 1, nothing is tried again.
    deadline : float
        The most seconds that a request takes, with all of its tries and the waits between them.
        A try that is under way then is given up, even if its client would wait longer.
    first_wait, most_wait : float
        The most seconds before the second try; they double with each try, up to `most_wait`. Each
        wait is drawn between half of that and all of it, so that many ranks do not ask at once.

    Raises
    ------
    ValueError
        A value is negative or is not a number, or the deadline is 0.
    """

    tries: int = 20
    deadline: float = 120.0
    first_wait: float = 0.2
    most_wait: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tries", require_int("Retries.tries", self.tries, 1))
        for name in ("deadline", "first_wait", "most_wait"):
            value = getattr(self, name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or math.isnan(value) or value < 0:
                raise ValueError(f"Retries.{name}={value!r}: give a number of seconds, from 0")
        if not self.deadline:
            raise ValueError(
                "Retries.deadline=0: a request takes some time, give more than 0 seconds"
            )

    def choose_wait(self, tried: int) -> float:
        """Return how many seconds to wait after `tried` tries."""
        most = min(self.most_wait, self.first_wait * 2.0 ** min(tried - 1, 60))
        return _jitter.uniform(most / 2, most)
