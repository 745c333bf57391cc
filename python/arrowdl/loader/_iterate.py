"""`iterate`: the batches of a share of an epoch, counted and timed as they are given out."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from arrowdl.loader._batches.chain import Chain, Outcome
from arrowdl.loader._batches.padding import Counts
from arrowdl.loader._batches.transform import Receive, Transform
from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._stats import Reporter, Stats
from arrowdl.loader._tally import Tally

Convert = Callable[[Any], Any]
MakeBar = Callable[[], AbstractContextManager[Callable[[int], None]]]


@dataclass
class Received:
    """What the training has received so far.

    Attributes
    ----------
    stats : Stats
    valid_rows : int
        Rows of the last batch that belong to this rank.
    outcome : Outcome, optional
        What became of the rows of the last batch, without the batch.
    """

    stats: Stats = field(default_factory=Stats)
    valid_rows: int = 0
    outcome: Outcome | None = None


class SharePipeline(Protocol):
    """Opens a share of an epoch."""

    def open(self, reader: Reader) -> tuple[Any, Convert]:
        """Return a stream with an item for each batch, and what makes the batch of an item.

        An item has `len`, its rows, and `nbytes`. The stream has `close`.
        """

    def count_padding(self, item: Any) -> Counts:
        """Count the values of padded columns in an item, and the padding."""


def iterate(
    pipeline: SharePipeline,
    reader: Reader,
    received: Received,
    make_bar: MakeBar,
    reporter: Reporter,
    tally: Tally | None = None,
    is_over: Callable[[], bool] = bool,
) -> Generator[Any, None, bool]:
    """Yield the batches of a share, and note each in `reader`'s position and in `received`.

    Returns whether all were read.

    Parameters
    ----------
    pipeline : SharePipeline
    reader : Reader
    received : Received
    make_bar : callable
        Makes a context manager that returns a function, which is called with the rows of each
        batch.
    reporter : Reporter
    tally : Tally, optional
        Counts the rows that are skipped.
    is_over : callable
        Whether the batch that was waited for is not wanted any more; it may raise.

    Raises
    ------
    RuntimeError
        This process was forked from the one that began to read.
    """
    process = os.getpid()
    own = reader.count_own(reader.position.batches)
    stats, now = received.stats, time.perf_counter
    stream, convert = pipeline.open(reader)
    transform = convert if isinstance(convert, (Transform, Receive, Chain)) else None
    with closing(stream), make_bar() as show:
        begin, number = now(), -1
        while True:
            number += 1
            _check_process(process)
            item = next(stream, None)
            read = now()
            stats.source_seconds += read - begin
            if item is None:
                _stay_at_exit()
                return True
            batch = convert(item)
            if is_over():
                return False
            length = len(item)
            rows = reader.valid_rows.pop(number, length)
            if isinstance(batch, Outcome):
                received.outcome = outcome = batch
                batch, length, rows = outcome.batch, outcome.rows, outcome.valid
                outcome.batch = None
                stats.filtered_rows += outcome.filtered
                if tally is not None and outcome.report is not None:
                    tally.add(outcome.report)
                del outcome
            stats.padding_rows += length - rows
            stats.bytes += item.nbytes
            values, padding = pipeline.count_padding(item)
            stats.values += values
            stats.padding_values += padding
            del item
            done = now()
            spent = 0.0 if transform is None else transform.seconds
            stats.transform_seconds += spent
            stats.conversion_seconds += done - read - spent
            stats.batches += 1
            stats.rows += rows
            received.valid_rows = rows
            own += 1
            show(rows)  # which may be interrupted: the batch is not given yet
            reader.position.give(reader.count_all(own))
            yield batch
            del batch  # releases its memory before the next batch is made
            begin = now()
            stats.consumer_seconds += begin - done
            reporter.check(begin)


_MOST_SECONDS = 10.0
_is_ending = threading.Event()
atexit.register(_is_ending.set)  # called before the core ends the threads that read ahead


def _stay_at_exit() -> None:
    """Stay in a daemon thread of a process that ends: its streams end before their rows.

    A training there would take that for the end of the epoch. Python, too, just stops such threads.

    Raises
    ------
    RuntimeError
        The process does not end: it may wait for this thread.
    """
    if _is_ending.is_set() and threading.current_thread() is not threading.main_thread():
        threading.Event().wait(_MOST_SECONDS)
        raise RuntimeError("the process ends, and with it this epoch, before its last row")


def _check_process(process: int) -> None:
    if os.getpid() != process:
        raise RuntimeError(
            "this epoch is read by threads or workers of the process that this one was forked "
            "from: iterate the Loader in the process that reads it"
        )
