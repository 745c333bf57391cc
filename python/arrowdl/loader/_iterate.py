"""`iterate`: the batches of a share of an epoch, counted and timed as they are given out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from arrowdl._lifecycle import at_exit, in_forked_child
from arrowdl.loader._batches.assemble import Share
from arrowdl.loader._batches.chain import Chain, Outcome
from arrowdl.loader._batches.transform import Receive, Transform
from arrowdl.loader._clock import NOTICED_SECONDS
from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._skip.tally import Tally
from arrowdl.loader._stats import Reporter, Stats, add_wait

MakeBar = Callable[[], AbstractContextManager[Callable[[int], None] | None]]


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
    is_closed : bool
        Whether it wants no more, not even the batch that is waited for.
    """

    stats: Stats = field(default_factory=Stats)
    valid_rows: int = 0
    outcome: Outcome | None = None
    is_closed: bool = False


class SharePipeline(Protocol):
    """Opens a share of an epoch."""

    def open(self, reader: Reader) -> Share:
        """Return the batches of a reader."""


def iterate(
    pipeline: SharePipeline,
    reader: Reader,
    received: Received,
    make_bar: MakeBar,
    reporter: Reporter,
    tally: Tally | None = None,
    check: Callable[[], object] | None = None,
) -> Generator[Any, None, bool]:
    """Yield the batches of a share, and note each in `reader`'s position and in `received`.

    Returns whether all were read. Each line of the loop is part of the price of every batch.

    Parameters
    ----------
    pipeline : SharePipeline
    reader : Reader
    received : Received
    make_bar : callable
        Makes a context manager that returns a function, which is called with the rows of each
        batch, or None.
    reporter : Reporter
    tally : Tally, optional
        Counts the rows that are skipped.
    check : callable, optional
        Called before a batch is given; it may raise.

    Raises
    ------
    RuntimeError
        This process was forked from the one that began to read.
    """
    process = _process.number
    position, step, valid_rows = reader.position, reader.step, reader.valid_rows
    given = reader.count_all(reader.count_own(position.batches))
    stats, now = received.stats, time.perf_counter
    share = pipeline.open(reader)
    stream, convert, divide = share.items, share.convert, share.divide
    count_padding, finish = share.count_padding, share.finish
    transform = convert if isinstance(convert, (Transform, Receive, Chain)) else None
    with closing(stream), make_bar() as show:
        begin, number = now(), -1
        while True:
            number += 1
            if process != _process.number:
                raise RuntimeError(
                    "this epoch is read by threads or workers of the process that this one was "
                    "forked from: iterate the Loader in the process that reads it"
                )
            item = next(stream, None)
            read = now()
            if read - begin < NOTICED_SECONDS:
                stats.source_seconds += read - begin
            else:
                add_wait(stats, read - begin, divide(begin, read, item))
            if item is None:
                _stay_at_exit()
                return True
            batch = convert(item)
            if check is not None:
                check()
            if received.is_closed:
                return False
            length = rows = len(item)
            if valid_rows:
                rows = valid_rows.pop(number, length)
            if type(batch) is Outcome:
                received.outcome = outcome = batch
                batch, length, rows = outcome.batch, outcome.rows, outcome.valid
                outcome.batch = None
                stats.filtered_rows += outcome.filtered
                if tally is not None and outcome.report is not None:
                    tally.add(outcome.report)
                del outcome
            if length != rows:
                stats.padding_rows += length - rows
            stats.bytes += item.nbytes
            if count_padding is not None:
                values, padding = count_padding(item)
                stats.values += values
                stats.padding_values += padding
            del item
            done = now()
            if finish is not None:
                stats.copy_seconds += finish.seconds
                read += finish.seconds
            if transform is None:
                stats.conversion_seconds += done - read
            else:
                spent = transform.seconds
                stats.transform_seconds += spent
                stats.conversion_seconds += done - read - spent
            stats.batches += 1
            stats.rows += rows
            received.valid_rows = rows
            given += step
            if show is not None:
                show(rows)  # which may be interrupted: the batch is not given yet
            position.give(given)
            yield batch
            del batch  # releases its memory before the next batch is made
            begin = now()
            stats.consumer_seconds += begin - done
            if begin >= reporter.due:
                reporter.report(begin)


class _Process:
    """Numbers this process among the forks that led to it: cheaper to ask for than its id."""

    number = 0

    def count_fork(self) -> None:
        self.number += 1


_process = _Process()
in_forked_child(_process.count_fork)

_MOST_SECONDS = 10.0
_is_ending = threading.Event()
at_exit(_is_ending.set)  # called before the core ends the threads that read ahead


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
