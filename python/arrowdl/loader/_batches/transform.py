"""Calls `transform`: in the training's thread, or in several threads with the order kept."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from weakref import WeakSet

from arrowdl._frameworks.threads import set_up_thread
from arrowdl._lifecycle import first_at_exit
from arrowdl.loader._batches.draws import Draws
from arrowdl.loader._batches.padding import Counts

Convert = Callable[[Any], Any]


class Transform:
    """Makes a batch, and calls functions with it."""

    def __init__(
        self,
        convert: Convert,  # makes a batch of an item
        functions: Sequence[Callable[..., Any]],  # each takes what the one before returned
        draws: Draws,
        finish: Convert | None,  # called with each batch
    ) -> None:
        self._convert = convert
        self._functions = [draws.bind(function, i) for i, function in enumerate(functions)]
        self._draws = draws
        self._finish = finish
        self._count = 0
        self.seconds = 0.0  # that the last calls of the functions took

    def __call__(self, item: Any, index: int | None = None) -> Any:
        """Return the batch of an item; without `index`, of the next item."""
        if index is None:
            index, self._count = self._count, self._count + 1
        batch = self._convert(item)
        begin = time.perf_counter()
        seed = self._draws.find_seed(index)
        with self._draws.seeded(seed):
            for function in self._functions:
                batch = function(batch, seed)
        self.seconds = time.perf_counter() - begin
        return batch if self._finish is None else self._finish(batch)


@dataclass
class Pending:
    """A batch that a thread makes."""

    future: Future[Any]
    rows: int  # of what it is made of
    nbytes: int
    padding: Counts  # of `Padding.count`

    def __len__(self) -> int:
        return self.rows


def convert_in_threads(
    items: Any,  # with `close`. Read in the caller's thread
    # takes an item and its index. Called in any of the threads, at the same time in several of them
    convert: Callable[[Any, int], Any],
    num_threads: int,
    ahead: int,  # batches that wait for the training beside those that threads make
    count: Callable[[Any], Counts],  # counts the padding of the batch of an item
) -> Iterator[Pending]:
    """Call `convert` in threads, for several items at a time, and yield results in their order.

    The future of a `Pending` raises the error of its item.
    """
    waiting: deque[Pending] = deque()
    threads = _Threads(num_threads)
    try:
        with closing(items):
            for index, item in enumerate(items):
                future: Future[Any] = Future()
                waiting.append(Pending(future, len(item), item.nbytes, count(item)))
                threads.run(_Task(convert, item, index, future))
                del item, future
                if len(waiting) > num_threads + ahead:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
    finally:  # no call of `convert` goes on behind the training's back
        threads.close()


@dataclass
class _Task:
    """An item whose batch a thread makes."""

    convert: Callable[[Any, int], Any]
    item: Any
    index: int
    future: Future[Any]

    def run(self) -> None:
        try:
            self.future.set_result(self.convert(self.item, self.index))
        except BaseException as error:
            self.future.set_exception(error)
            del self  # which the error refers to


class _Threads:
    """Threads that run tasks, one more for each task until there are `most`.

    They end with `close`, or before the program: a free-threaded Python stops its threads wherever
    they are, and waits for ever for one that has a lock, as that of `sys.modules`; and it empties
    this module before it ends the generators that would call `close`.
    """

    has_ended = False  # the program: no thread starts any more

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: SimpleQueue[Any] = SimpleQueue()  # of `_Task`, and at the end None
        self._threads: list[Thread] = []
        self._is_closed = False
        if not _OPEN:
            first_at_exit(_close_all)
        _OPEN.add(self)

    def run(self, task: _Task) -> None:
        """Have a thread run `task`, or run it if the system has no room for one."""
        has_room = len(self._threads) < self._most and not (self._is_closed or _Threads.has_ended)
        if has_room and (thread := _start(self._tasks)):
            self._threads.append(thread)
        if self._threads and not self._is_closed:
            self._tasks.put(task)
        else:
            task.run()

    def close(self) -> None:
        """Drop the tasks that have not begun, and wait for the others."""
        if not self._is_closed:
            with suppress(Empty):
                while True:
                    self._tasks.get_nowait()
            self.finish()

    def finish(self, end: float | None = None) -> None:
        """Wait for all tasks, at most until a time: a caller that still reads gets their
        batches."""
        if not self._is_closed:
            self._is_closed = True
            for _ in self._threads:
                self._tasks.put(None)
            for thread in self._threads:
                thread.join(None if end is None else max(0.0, end - time.monotonic()))


_OPEN: WeakSet[_Threads] = WeakSet()
_MOST_SECONDS = 5.0  # for which the end of the program waits for calls of `transform`


def _close_all() -> None:
    _Threads.has_ended = True
    end = time.monotonic() + _MOST_SECONDS
    for threads in list(_OPEN):
        threads.finish(end)


def _work(tasks: SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        set_up_thread()
        task.run()
        del task


def _start(tasks: SimpleQueue[Any]) -> Thread | None:
    """Start a thread, or return None if the system has no room for one, or the process ends."""
    # An executor would refuse work to a training in a thread that outlives the main one.
    thread = Thread(target=_work, args=(tasks,), name="arrowdl-transform", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class Receive:
    """Returns the batch of a `Pending`, and calls `finish` with it."""

    def __init__(self, finish: Convert | None) -> None:
        self._finish = finish
        self.seconds = 0.0  # that the training waited for the last batch

    def __call__(self, pending: Pending) -> Any:
        begin = time.perf_counter()
        batch = pending.future.result()
        self.seconds = time.perf_counter() - begin
        return batch if self._finish is None else self._finish(batch)
