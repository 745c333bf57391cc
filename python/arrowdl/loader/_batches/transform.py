"""Calls `transform`: in the training's thread, or in several threads with the order kept."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

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
    pool = ThreadPoolExecutor(num_threads, "arrowdl-transform")
    try:
        with closing(items):
            for item in items:
                future = pool.submit(convert, item)
                waiting.append(Pending(future, len(item), item.nbytes, count(item)))
                del item
                if len(waiting) > num_threads + ahead:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
    finally:  # no call of `convert` goes on behind the training's back
        pool.shutdown(wait=True, cancel_futures=True)


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
