"""`iterate`: the batches of a share of an epoch, counted and timed as they are given out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing
from copy import copy
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, Protocol

from arrowdl._lifecycle import at_exit, in_forked_child
from arrowdl.loader._batches.assemble import Share
from arrowdl.loader._batches.chain import Chain, Outcome
from arrowdl.loader._batches.transform import Receive, Transform
from arrowdl.loader._clock import NOTICED_SECONDS
from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._options.options import Options
from arrowdl.loader._skip.tally import Tally
from arrowdl.loader._stats import Reporter, Stats, add_wait

MakeBar = Callable[[], AbstractContextManager[Callable[[int], None] | None]]


@dataclass
class Received:
    """What the training has received so far."""

    stats: Stats = field(default_factory=Stats)
    valid_rows: int = 0
    outcome: Outcome | None = None
    is_closed: bool = False
    begin: Stats = field(default_factory=Stats)  # the counters when the last iteration began
    _reporter: Reporter | None = None

    def copy_stats(self) -> Stats:
        """Return the counters as they are now."""
        return copy(self.stats)

    def find_reporter(self, options: Options) -> Reporter:
        """Return what reports the counters, from the first call on."""
        if self._reporter is None:
            self._reporter = Reporter(self.stats, options.report_every, options.report)
        return self._reporter

    def take(self, outcome: Outcome, tally: Tally | None) -> tuple[Any, int, int]:
        """Note what became of a batch; return it, its rows and those of this rank."""
        self.outcome = outcome
        batch, outcome.batch = outcome.batch, None
        self.stats.filtered_rows += outcome.filtered
        if tally is not None and outcome.report is not None:
            tally.add(outcome.report)
        return batch, outcome.rows, outcome.valid


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

    Returns whether all were read.

    Raises RuntimeError if this process was forked from the one that began to read.
    """
    watch = _Watch(make_bar, reporter, tally, check)
    return _give(pipeline.open(reader), reader, received, watch)


class _Watch(NamedTuple):
    """Who is told of each batch."""

    make_bar: MakeBar  # what it returns is called with the rows of each batch
    reporter: Reporter
    tally: Tally | None  # counts the rows that are skipped
    check: Callable[[], object] | None  # called before a batch is given; it may raise


def _give(
    share: Share, reader: Reader, received: Received, watch: _Watch
) -> Generator[Any, None, bool]:
    """Yield the batches, each at the price of all lines of the loop."""
    position, step, stats, now = reader.position, reader.step, received.stats, time.perf_counter
    process, returned = _process.number, reader.count_all(reader.count_read(position.batches))
    make_bar, reporter, tally, check = watch
    stream, convert, valid_rows = share.items, share.convert, reader.valid_rows
    count_padding, finish, transform = share.count_padding, share.finish, _find_timed(convert)
    with closing(stream), make_bar() as show:
        begin = now()
        for number in count():
            if process != _process.number:
                raise _refuse_fork()
            item = next(stream, None)
            read = now()
            if read - begin < NOTICED_SECONDS:
                stats.source_seconds += read - begin
            else:
                add_wait(stats, read - begin, share.divide(begin, read, item))
            if item is None:
                break
            batch = convert(item)
            if check is not None:
                check()
            if received.is_closed:
                return False
            length = len(item)
            rows = valid_rows.pop(number, length) if valid_rows else length
            if type(batch) is Outcome:
                batch, length, rows = received.take(batch, tally)
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
            if transform is not None:
                stats.transform_seconds += transform.seconds
                read += transform.seconds
            stats.conversion_seconds += done - read
            stats.batches += 1
            stats.rows += rows
            received.valid_rows = rows
            if show is not None:
                show(rows)  # which may be interrupted: the batch is not given yet
            position.give(returned := returned + step)
            yield batch
            del batch  # releases its memory before the next batch is made
            begin = now()
            stats.consumer_seconds += begin - done
            if begin >= reporter.due:
                reporter.report(begin)
        _stay_at_exit()
    return True


def _find_timed(convert: Callable[[Any], Any]) -> Transform | Receive | Chain | None:
    """Return what converts batches, if it counts the seconds of transforms apart."""
    return convert if isinstance(convert, (Transform, Receive, Chain)) else None


def _refuse_fork() -> RuntimeError:
    return RuntimeError(
        "this epoch is read by threads or workers of the process that this one was forked from: "
        "iterate the Loader in the process that reads it"
    )


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
    """Stay in a daemon thread of a process that ends: its streams end before their rows."""
    # A training there would take that for the end of the epoch. Python, too, stops such threads. If
    # the process does not end, it may wait for this thread.
    if _is_ending.is_set() and threading.current_thread() is not threading.main_thread():
        threading.Event().wait(_MOST_SECONDS)
        raise RuntimeError("the process ends, and with it this epoch, before its last row")
