"""Calls in several threads, for what waits for a file system."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

# Requests to a file system: the time of each is mostly waiting.
FILES_AT_ONCE = 16
# Without a result for so long, another thread starts.
_PATIENCE_SECONDS = 0.005

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int,
    show: Callable[[int], None] = lambda done: None,
) -> list[Result]:
    """Call `function` with each of `items`; the wait can be interrupted.

    If a call fails, or the wait is interrupted, no further calls begin. Nothing waits for running
    calls, and their threads do not keep the process alive.

    Parameters
    ----------
    function : callable
    items : sequence
    threads : int
        Calls at a time, at most. Calls that return at once get one thread, which is faster.
    show : callable
        Called with the number of results so far.

    Returns
    -------
    list
        The results, in the order of `items`. Of several errors, that of the first item is raised.
    """
    futures: list[Future[Result]] = [Future() for _ in items]
    waiting = deque(zip(futures, items, strict=True))

    def work() -> None:
        while waiting:
            try:
                future, item = waiting.popleft()
            except IndexError:  # another thread took it
                return
            try:
                future.set_result(function(item))
            except BaseException as error:
                future.set_exception(error)

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
