"""Calls in threads, for work that lets go of the interpreter lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Thread

from arrowdl._frameworks.threads import set_up_thread


def call_in_threads(
    function: Callable[[int], None],
    count: int,
    threads: int,  # with that of the caller
) -> None:
    """Call `function` with each number below `count`, the lower ones first.

    Raises the first error of a call, after which no other call begins.
    """
    numbers = deque(range(count))
    errors: list[BaseException] = []

    def work() -> None:
        while True:
            try:
                number = numbers.popleft()
            except IndexError:
                return
            try:
                function(number)
            except BaseException as error:
                numbers.clear()
                errors.append(error)

    helpers = _start(work, min(threads, count) - 1)
    try:
        work()
        for helper in helpers:
            helper.join()
    finally:  # the wait may be interrupted
        numbers.clear()
    if errors:
        raise errors[0]


def _start(work: Callable[[], None], count: int) -> list[Thread]:
    """Start threads, as many as the system has room for."""

    def run() -> None:
        set_up_thread()
        work()

    helpers: list[Thread] = []
    for _ in range(count):
        # A daemon: it ends with the calls, and an interpreter that ends does not wait for it.
        helper = Thread(target=run, name="arrowdl-decoding", daemon=True)
        try:
            helper.start()
        except RuntimeError:  # no room, or the interpreter ends
            break
        helpers.append(helper)
    return helpers
