"""`call_within`: a request that is given up when its time is over, whatever its client waits for.

No client ends a request whose answer drips, or a listing whose pages have no end. So a request runs
in its own thread, which is not waited for once the time is over, or the program ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from arrowdl._lifecycle import first_at_exit, in_forked_child
from arrowdl.loader._storage.exit_gate import GATE, ExitError

T = TypeVar("T")

_IDLE_SECONDS = 1.0
_IDLE_NAME = "arrowdl-request"


class TimeUpError(TimeoutError):
    """A request has taken all of its time; its text says how far it came."""


def _name_thread() -> str:
    """Name this thread; current_thread() would keep a dummy for each thread of another library."""
    number = threading.get_ident()
    return next((thread.name for thread in threading.enumerate() if thread.ident == number), "")


class _Attempt:
    """A request in a thread."""

    def __init__(self, function: Callable[[], Any], seconds: float) -> None:
        self._call: Callable[[], Any] | None = partial(copy_context().run, function)
        self._caller = _name_thread()
        self.end = time.monotonic() + seconds
        self.describe: Callable[[], str] = lambda: ""
        self.done = threading.Event()
        self.is_answered = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        assert self._call is not None
        _thread.attempt = self
        thread = threading.current_thread()
        name, thread.name = thread.name, self._caller or thread.name
        try:
            with GATE.enter():
                self.result = self._call()
        except BaseException as error:
            self.error = error
        finally:
            _thread.attempt = None
            thread.name = name
            self._call = None
            self.describe = lambda: ""
            self.is_answered = True
            self.done.set()


class _Thread(threading.local):
    attempt: _Attempt | None = None


_thread = _Thread()


def find_time_left() -> float | None:
    """Return the seconds that are left to the request of this thread; None of no request."""
    attempt = _thread.attempt
    return None if attempt is None else max(0.001, attempt.end - time.monotonic())


def note_progress(describe: Callable[[], str]) -> None:
    """Say how the request of this thread is asked for how far it has come, in another thread."""
    if _thread.attempt is not None:
        _thread.attempt.describe = describe


class _Threads:
    """Threads that run one request after the other, and end when there is none for a while."""

    def __init__(self) -> None:
        self._is_registered = False
        self._reset()
        in_forked_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Attempt | None]] = []
        self._is_closed = False
        self._late: list[_Attempt] = []

    def note_late(self, attempt: _Attempt) -> None:
        """Note a request that goes on after its deadline."""
        with self._lock:
            self._late = [*filter(_is_running, self._late), attempt]

    def count_late(self) -> int:
        """Count the requests that go on after their deadline."""
        return sum(map(_is_running, self._late))

    def start(self, attempt: _Attempt) -> None:
        """Run a request; in this thread if the system has no room for another one."""
        with self._lock:
            if not self._is_registered:
                self._is_registered = True
                first_at_exit(self._close)
            queue = self._idle.pop() if self._idle else None
        if queue is None:
            queue = SimpleQueue()
            thread = threading.Thread(
                target=self._work, args=(queue,), name=_IDLE_NAME, daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                attempt.run()
                return
        queue.put(attempt)

    def _work(self, queue: SimpleQueue[_Attempt | None]) -> None:
        while (attempt := self._take(queue)) is not None:
            attempt.run()
            del attempt
            with self._lock:
                if self._is_closed:
                    return
                self._idle.append(queue)

    def _take(self, queue: SimpleQueue[_Attempt | None]) -> _Attempt | None:
        try:
            return queue.get(timeout=_IDLE_SECONDS)
        except Empty:
            with self._lock:
                if queue in self._idle:
                    self._idle.remove(queue)
                    return None
            return queue.get()

    def _close(self) -> None:
        """End the threads that wait, before the interpreter ends."""
        with self._lock:
            self._is_closed = True
            for queue in self._idle:
                queue.put(None)
            self._idle.clear()


def _is_running(attempt: _Attempt) -> bool:
    return not attempt.is_answered


_THREADS = _Threads()


def count_late() -> int:
    """Count the requests of this process that go on after their deadline."""
    return _THREADS.count_late()


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Call `function`, which may go on when this has returned.

    Raises TimeUpError if it has not returned in time. Raises ExitError if the program ends.
    """
    with GATE.enter():
        attempt = _Attempt(function, seconds)
        _THREADS.start(attempt)
        GATE.wait(attempt.done, seconds)
    if attempt.is_answered:
        try:
            if attempt.error is not None:
                raise attempt.error
            result: T = attempt.result
            return result
        finally:
            attempt.error = None  # no cycle
    if attempt.done.is_set():
        raise ExitError("the program ends: nothing more is read")
    _THREADS.note_late(attempt)
    raise TimeUpError(attempt.describe())
