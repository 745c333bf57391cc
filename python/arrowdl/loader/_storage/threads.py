"""Calls in several threads, for what waits for a file system."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

# Requests to a file system: the time of each is mostly waiting.
FILES_AT_ONCE = 16
# Without a result for so long, another thread starts.
_PATIENCE_SECONDS = 0.005
# Results of so long are handed over together: each wakes the thread that waits for it.
_TOGETHER_SECONDS = 0.002

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    # calls at a time, at most. Calls that return at once get one thread, which is faster
    threads: int,
    show: Callable[[int], None] = lambda done: None,  # called with the number of results so far
) -> list[Result]:
    """Call `function` with each of `items`; the wait can be interrupted.

    If a call fails, or the wait is interrupted, no further calls begin. Nothing waits for running
    calls, and their threads do not keep the process alive. If several calls fail, the error of the
    first item is raised.
    """
    futures: list[Future[Result]] = [Future() for _ in items]
    waiting = deque(zip(futures, items, strict=True))

    def work() -> None:
        made: list[tuple[Future[Result], Result]] = []
        due = time.perf_counter() + _TOGETHER_SECONDS
        while waiting:
            try:
                future, item = waiting.popleft()
            except IndexError:  # another thread took it
                break
            try:
                made.append((future, function(item)))
            except BaseException as error:
                _hand_over(made)
                future.set_exception(error)
            if time.perf_counter() > due:
                _hand_over(made)
                due = time.perf_counter() + _TOGETHER_SECONDS
        _hand_over(made)

    results: list[Result] = []
    try:
        _start(work)
        room = min(threads, len(items)) - 1  # for more threads
        for i in range(len(items)):
            while room and not _is_done(futures[i]):
                room = room - 1 if _start(work, is_needed=False) else 0
            results.append(futures[i].result())
            show(len(results))
    finally:
        waiting.clear()
        futures.clear()  # an error refers to this frame: no cycle
    return results


def _hand_over(results: list[tuple[Future[Result], Result]]) -> None:
    """Set the results, the last one first: a thread that waits for the first finds all."""
    while results:
        future, result = results.pop()
        future.set_result(result)


def _is_done(future: Future[Any]) -> bool:
    """Wait a moment for `future`; return whether it is done."""
    try:
        future.exception(_PATIENCE_SECONDS)  # returns the error of the call
    except TimeoutError:
        return False
    return True


def _start(work: Callable[[], None], *, is_needed: bool = True) -> bool:
    """Start a thread; return whether the system has room for it."""
    try:
        threading.Thread(target=work, name="arrowdl-open", daemon=True).start()
    except RuntimeError:
        if is_needed:
            raise
        return False
    return True
