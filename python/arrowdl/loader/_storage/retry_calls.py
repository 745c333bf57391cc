"""`call_with_retries`: calls a function as often, and as long, as `Retries` says."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from arrowdl.loader._settings.retries import Retries
from arrowdl.loader._storage.exit_gate import GATE, ExitError
from arrowdl.loader._storage.time_limit import TimeUpError, call_within
from arrowdl.loader._storage.transient import find_advice, is_transient

T = TypeVar("T")

_SECONDS_UNTOLD = 5.0
_log = logging.getLogger("arrowdl.loader")


class RetriedError(OSError):
    """What a store did not answer, however often it was asked; it names the file."""


class UnneededError(OSError):
    """No thread waits for the answer any more."""


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


def call_with_retries(
    retries: Retries,
    # what is done, for the error: "reading 100 bytes of 's3://b/a.parquet' from offset 0"
    what: str,
    function: Callable[[], T],
) -> T:
    """Call `function` until it succeeds, its error is final, or the tries or the time are used up.

    Raises RetriedError: after the last try, from its error, or when the deadline has come. Raises
    UnneededError: as `end_waits_with` says.
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
