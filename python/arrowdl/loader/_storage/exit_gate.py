"""Requests end before the interpreter does.

pyarrow calls a file system in Python from its own threads. One that is in Python, or comes to it,
while the interpreter ends would wait for ever, or end the process with an error. So, when the
program ends, requests that begin fail at once, waits are cut short, and the others are awaited.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from arrowdl._lifecycle import first_at_exit, in_forked_child, never_at_exit

_QUIET_SECONDS = 0.05  # without a request: the scans that were left have ended
_MOST_SECONDS = 5.0  # a request that is answered later is given up


class ExitError(OSError):
    """The program ends."""


class ExitGate:
    """Counts the requests under way."""

    def __init__(self) -> None:
        self._is_registered = False
        self._reset()
        in_forked_child(self._reset)  # the threads of the parent hold the lock, and are gone

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._begun = 0
        self._ends = threading.Event()
        self._waits: set[threading.Event] = set()

    def _register(self) -> None:
        """Close at the end, before pyarrow ends its client of S3: what came last goes first."""
        if not self._is_registered:
            self._is_registered = True
            first_at_exit(self.close)

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        """``with`` this, a request is awaited at the end; once the program ends, none begins."""
        with self._changed:
            self._register()
            self._begun += 1
            if self._ends.is_set():
                raise ExitError("the program ends: nothing more is read")
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait for an event, which the end of the program sets."""
        with self._changed:
            self._waits.add(event)
            if self._ends.is_set():
                event.set()
        try:
            event.wait(min(max(0.0, seconds), threading.TIMEOUT_MAX))
        finally:
            with self._changed:
                self._waits.discard(event)

    def sleep(self, seconds: float) -> None:
        """Wait; the end of the program wakes it."""
        self._ends.wait(seconds)

    def close(self) -> None:
        """Refuse requests, and wait for those under way."""
        self._ends.set()
        end = time.monotonic() + _MOST_SECONDS
        with self._changed:
            for event in self._waits:
                event.set()
            while time.monotonic() < end:
                before = self._begun
                is_quiet = not self._changed.wait(_QUIET_SECONDS)
                if is_quiet and not self._running and before == self._begun:
                    break
            is_stuck = self._running > 0
        if is_stuck:
            _leave_s3_open()


def _leave_s3_open() -> None:
    """Keep pyarrow from ending its client of S3, which waits for requests: some have no end."""
    # Its memory must stay while a thread is in it: after Python has ended, the process exits.
    fs: Any = sys.modules.get("pyarrow.fs")
    finalize = getattr(fs, "ensure_s3_finalized", None)
    if finalize is None:
        return
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):  # not every C library has it
        library = ctypes.CDLL(None)
        library.fflush(None)
        if not library.on_exit(library._exit, None):  # before what was registered earlier
            never_at_exit(finalize)


GATE = ExitGate()
