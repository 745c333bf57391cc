"""Random cases by number: each is made from its number alone.

``ARROWDL_RANDOM_CASES`` is how many there are of each kind, for the long run, and
``ARROWDL_RANDOM_SEED`` the first number. Nothing here knows arrowdl: what is expected comes from
plain Python.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

_LONG_RUN = 3000  # cases of `make test-python SUITE=random`
_FIRST = int(os.environ.get("ARROWDL_RANDOM_SEED", "0"))


def choose_examples(few: int, many: int) -> int:
    """Return how many examples a test with hypothesis has: `many` in the long run.

    With fewer random cases than those of the long run it is a share of them, at least `few`.
    """
    cases = int(os.environ.get("ARROWDL_RANDOM_CASES", 0))
    return max(few, min(many, many * cases // _LONG_RUN))


def check_cases(check: Callable[[random.Random], None], default: int) -> None:
    """Run `check` with the generator of each case; a failure says the number of its case."""
    for number in range(_FIRST, _FIRST + int(os.environ.get("ARROWDL_RANDOM_CASES", default))):
        try:
            check(random.Random(number))
        except BaseException as error:
            error.add_note(
                f"random case {number}: run it alone with ARROWDL_RANDOM_SEED={number} "
                "ARROWDL_RANDOM_CASES=1"
            )
            raise
