"""Calls `transform`: in the training's thread, or in several threads with the order kept."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from arrowdl._frameworks.threads import set_up_thread
from arrowdl.loader._batches.padding import Counts

Convert = Callable[[Any], Any]


class Transform:
    """Makes a batch, and calls `transform` with it.

    Attributes
    ----------
    seconds : float
        That the last call of `transform` took.
    """

    def __init__(self, convert: Convert, transform: Convert, finish: Convert | None) -> None:
        self._convert = convert
        self._transform = transform
        self._finish = finish
        self.seconds = 0.0

    def __call__(self, item: Any) -> Any:
        batch = self._convert(item)
        begin = time.perf_counter()
        batch = self._transform(batch)
        self.seconds = time.perf_counter() - begin
        return batch if self._finish is None else self._finish(batch)


@dataclass
class Pending:
    """A batch that a thread makes.

    Attributes
    ----------
    future : concurrent.futures.Future
    rows, nbytes : int
        Of what it is made of.
    padding : (int, int)
        Of `Padding.count`.
    """

    future: Future[Any]
    rows: int
    nbytes: int
    padding: Counts

    def __len__(self) -> int:
        return self.rows


def convert_in_threads(
    items: Any,
    convert: Convert,
    num_threads: int,
    ahead: int,
    count: Callable[[Any], Counts],
) -> Iterator[Pending]:
    """Call `convert` in threads, for several items at a time.

    Parameters
    ----------
    items : iterator
        With `close`. Read in the caller's thread.
    convert : callable
        Called in any of the threads, at the same time in several of them.
    num_threads : int
    ahead : int
        Batches that wait for the training beside those that threads make.
    count : callable
        Counts the padding of the batch of an item.

    Yields
    ------
    Pending
        In the order of the items. An item's error is raised by the future.
    """
    waiting: deque[Pending] = deque()
    tasks: SimpleQueue[Any] = SimpleQueue()  # of `_Task`, and at the end None
    threads: list[Thread] = []
    try:
        with closing(items):
            for item in items:
                future: Future[Any] = Future()
                waiting.append(Pending(future, len(item), item.nbytes, count(item)))
                tasks.put(_Task(convert, item, future))
                del item, future
                if len(threads) < num_threads and (started := _start(tasks)):
                    threads.append(started)
                if not threads:
                    tasks.get().run()
                if len(waiting) > num_threads + ahead:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
    finally:  # no call of `convert` goes on behind the training's back
        with suppress(Empty):
            while True:
                tasks.get_nowait()
        for _ in threads:
            tasks.put(None)
        while threads and not sys.is_finalizing():  # then they have stopped, wherever they were
            threads.pop().join()


@dataclass
class _Task:
    """An item whose batch a thread makes."""

    convert: Convert
    item: Any
    future: Future[Any]

    def run(self) -> None:
        try:
            self.future.set_result(self.convert(self.item))
        except BaseException as error:
            self.future.set_exception(error)
            del self  # which the error refers to


def _work(tasks: SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        set_up_thread()
        task.run()
        del task


def _start(tasks: SimpleQueue[Any]) -> Thread | None:
    """Start a thread, or return None if the system has no room for one, or the process ends.

    An executor would refuse work to a training in a thread that outlives the main one.
    """
    thread = Thread(target=_work, args=(tasks,), name="arrowdl-transform", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class Receive:
    """Returns the batch of a `Pending`, and calls `finish` with it.

    Attributes
    ----------
    seconds : float
        That the training waited for the last batch.
    """

    def __init__(self, finish: Convert | None) -> None:
        self._finish = finish
        self.seconds = 0.0

    def __call__(self, pending: Pending) -> Any:
        begin = time.perf_counter()
        batch = pending.future.result()
        self.seconds = time.perf_counter() - begin
        return batch if self._finish is None else self._finish(batch)
