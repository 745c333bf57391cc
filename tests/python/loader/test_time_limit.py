"""Requests that are given up when their time is over."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref
from typing import Any

import pytest
from arrowdl.loader import Retries
from arrowdl.loader._storage.retry_calls import call_with_retries
from arrowdl.loader._storage.time_limit import TimeUpError, call_within, note_progress
from helpers.processes import run_python


def test_results_and_errors_are_those_of_the_function() -> None:
    assert call_within(60, lambda: 5) == 5
    with pytest.raises(KeyError, match="odd"):
        call_within(60, lambda: {}["odd"])
    assert call_within(float("inf"), lambda: call_within(1e9, lambda: 6)) == 6


def test_context_variables_are_those_of_the_caller() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    assert call_within(60, variable.get) == 7


def test_the_error_says_how_far_it_came() -> None:
    go = threading.Event()

    def hang() -> None:
        note_progress(lambda: "3 of 5 bytes had arrived")
        go.wait()

    try:
        with pytest.raises(TimeUpError, match="3 of 5 bytes had arrived"):
            call_within(0.2, hang)
        with pytest.raises(
            OSError,
            match=r"reading 'a' did not end within 0\.2 s, when 3 of 5 bytes had arrived; Retries",
        ):
            call_with_retries(Retries(deadline=0.2), "reading 'a'", hang)
    finally:
        go.set()


def test_the_deadline_is_of_all_tries_together() -> None:
    go, tried = threading.Event(), []

    def fail_and_hang() -> None:
        tried.append(1)
        if len(tried) < 3:
            raise TimeoutError("late")
        go.wait()

    retries = Retries(deadline=0.5, first_wait=0.0)
    try:
        with pytest.raises(OSError, match=r"did not end within 0\.5 s in 3 tries, the last of wh"):
            call_with_retries(retries, "reading 'a'", fail_and_hang)
    finally:
        go.set()


def test_without_room_for_a_thread_the_caller_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)  # first: others may start one meanwhile
    for thread in threading.enumerate():
        if thread.name == "arrowdl-request":
            thread.join()
    assert call_within(60, threading.current_thread) is threading.current_thread()


def test_nothing_is_held_afterwards() -> None:
    class Held:
        """Has a weak reference."""

    held = Held()
    seen = weakref.ref(held)
    assert call_within(60, lambda held=held: held) is held  # type: ignore[misc]

    def fail(held: Held = held) -> None:
        raise KeyError(held)

    with pytest.raises(KeyError):
        call_within(60, fail)
    del held, fail
    gc.collect()
    assert seen() is None


FORKED = """
import os, threading
from arrowdl.loader._storage.time_limit import call_within
go = threading.Event()
assert call_within(60, lambda: 1) == 1
thread = threading.Thread(target=call_within, args=(60, go.wait))
thread.start()
child = os.fork()
if not child:
    assert call_within(60, lambda: 2) == 2
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
go.set()
thread.join()
print("done")
"""


def test_a_forked_process_has_threads_of_its_own() -> None:
    assert run_python(FORKED) == "done\n"
