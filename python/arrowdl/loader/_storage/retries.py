"""`Retries`: how often, and how long, requests to a store are tried; and the layer that does it."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from arrowdl.loader._storage.attempts import TimeUpError, call_within
from arrowdl.loader._storage.exit_gate import GATE, ExitError
from arrowdl.loader._storage.transient import find_advice, is_transient

T = TypeVar("T")

_SECONDS_UNTOLD = 5.0
_log = logging.getLogger("arrowdl.loader")
_jitter = random.Random()


@dataclass(frozen=True)
class Retries:
    """How a `Loader` tries again what a store did not answer.

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
            raise ValueError(f"tries={self.tries!r}: give a number of tries, from 1")
        for name in ("deadline", "first_wait", "most_wait"):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or math.isnan(value) or value < 0:
                raise ValueError(f"{name}={value!r}: give a number of seconds, from 0")
        if not self.deadline:
            raise ValueError("deadline=0: a request takes some time, give more than 0 seconds")

    def choose_wait(self, tried: int) -> float:
        """Return how many seconds to wait after so many tries."""
        most = min(self.most_wait, self.first_wait * 2.0 ** min(tried - 1, 60))
        return _jitter.uniform(most / 2, most)


class RetriedError(OSError):
    """What a store did not answer, however often it was asked; it names the file."""


class UnneededError(OSError):
    """Nobody waits for the answer any more."""


class _Thread(threading.local):
    unneeded: threading.Event | None = None


_thread = _Thread()


@contextmanager
def end_waits_with(unneeded: threading.Event) -> Iterator[None]:
    """``with`` this, calls of this thread are not tried again once `unneeded` is set."""
    before, _thread.unneeded = _thread.unneeded, unneeded
    try:
        yield
    finally:
        _thread.unneeded = before


def _wait(seconds: float) -> None:
    """Wait, unless the program ends, or what this thread does is not needed."""
    if _thread.unneeded is None:
        GATE.sleep(seconds)
    elif _thread.unneeded.wait(seconds):
        raise UnneededError("reading was given up")


def call_with_retries(retries: Retries, what: str, function: Callable[[], T]) -> T:
    """Call `function` until it succeeds, its error is final, or the tries or the time are used up.

    Parameters
    ----------
    retries : Retries
    what : str
        What is done, for the error: "reading 100 bytes of 's3://b/a.parquet' from offset 0".
    function : callable

    Raises
    ------
    RetriedError
        After the last try, from its error, or when the deadline has come.
    UnneededError
        As `end_waits_with` says.
    """
    start = time.monotonic()
    tried = 0
    has_warned = False
    while True:
        tried += 1
        left = retries.deadline - (time.monotonic() - start)
        try:
            return call_within(left, function)
        except TimeUpError as error:
            raise RetriedError(_describe_late(what, retries, tried, left, str(error))) from error
        except Exception as error:
            if isinstance(error, ExitError):
                raise
            if not is_transient(error):
                if advice := find_advice(error):
                    error.add_note(advice)
                raise
            wait = retries.choose_wait(tried)
            seconds = time.monotonic() - start
            if tried >= retries.tries or seconds + wait > retries.deadline:
                raise RetriedError(
                    f"{what} failed {tried} {'times' if tried > 1 else 'time'} in {seconds:.1f} s, "
                    f"at last with {_describe(error)}"
                ) from error
            is_long = seconds + wait > _SECONDS_UNTOLD and not has_warned
            level = logging.WARNING if is_long else logging.INFO
            told = _describe(error)
            _log.log(level, "%s failed: %s; try %d follows in %.1f s", what, told, tried + 1, wait)
            has_warned |= is_long
        _wait(wait)


def _describe_late(what: str, retries: Retries, tried: int, left: float, progress: str) -> str:
    """Say what a request that was given up had done."""
    tries = "" if tried == 1 else f" in {tried} tries, the last of which took {left:.1f} s"
    return (
        f"{what} did not end within {retries.deadline:g} s{tries}"
        f"{f', when {progress}' if progress else ''}; Retries(deadline=) may be more"
    )


def _describe(error: Exception) -> str:
    """Return the type and the text of an error; of fsspec's on the web, those of its cause."""
    told = error.__cause__ if isinstance(error, FileNotFoundError) else None
    told = told or error
    return f"{type(told).__name__}: {told}"
