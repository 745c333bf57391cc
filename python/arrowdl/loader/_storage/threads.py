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
# Requests of which each takes little of the line. The clients of stores bound their connections.
FOOTERS_AT_ONCE = 256
# Without a result for so long, as many more threads start.
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
        running: list[tuple[Future[Result], Result]] = []
        due = time.perf_counter() + _TOGETHER_SECONDS
        while waiting:
            try:
                future, item = waiting.popleft()
            except IndexError:  # another thread took it
                break
            try:
                running.append((future, function(item)))
            except BaseException as error:
                _hand_over(running)
                future.set_exception(error)
            if time.perf_counter() > due:
                _hand_over(running)
                due = time.perf_counter() + _TOGETHER_SECONDS
        _hand_over(running)

    results: list[Result] = []
    try:
        _start(work)
        started, most = 1, min(threads, len(items))
        for i in range(len(items)):
            while started < most and not _is_done(futures[i]):
                for _ in range(min(started, most - started)):
                    if not _start(work, is_needed=False):
                        most = 0
                        break
                    started += 1
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
