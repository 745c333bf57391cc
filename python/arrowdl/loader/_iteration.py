"""`Iteration`: one pass of a ``for`` loop over an epoch, and what goes with its batches."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from arrowdl.loader._epoch.cursor import Cursor
from arrowdl.loader._epoch.epochs import check_read
from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._iterate import Received, SharePipeline, iterate
from arrowdl.loader._options.options import Options
from arrowdl.loader._progress import Bar, NoBar
from arrowdl.loader._skipped import advise_skipping
from arrowdl.loader._skips import Skips
from arrowdl.loader._sources.base import Source
from arrowdl.loader._states import States
from arrowdl.loader._stats import Reporter, Stats

_log = logging.getLogger("arrowdl.loader")


@dataclass(frozen=True)
class Iteration:
    """Reads what remains of an epoch, with a progress bar, reports, and warnings at its end."""

    cursor: Cursor
    received: Received
    states: States
    skips: Skips
    filter: str | None  # what the user gave as `filter`

    def run(self, pipeline: SharePipeline, reader: Reader) -> Generator[Any]:
        """Yield the batches of `reader`, and move the cursor if all were read."""
        received, cursor = self.received, self.cursor
        reporter = self._name_reporter(reader)
        before = received.begin = received.copy_stats()
        is_first = not reader.position.list_stages()
        tally = check = None
        if cursor.epochs.options.skips:
            tally, check = self.skips.begin(reader, self.states.save(cursor))
        bar = partial(self._make_bar, reader)
        is_finalizing = sys.is_finalizing  # modules may be empty when a free-threaded Python ends
        try:
            is_whole = yield from iterate(pipeline, reader, received, bar, reporter, tally, check)
        except Exception as error:
            if tally is None:
                advise_skipping(error)
            raise
        except GeneratorExit:
            # At the end of the process nothing can be counted, and no error of that may escape.
            if is_first and not is_finalizing():
                with suppress(Exception):
                    if cursor.is_complete(reader.position):
                        self._warn_if_empty(before, reader)
            raise
        if not is_whole:
            return
        if is_first:
            self._warn_if_empty(before, reader)
        elif not reader.worker and received.stats.batches == before.batches:
            epoch = reader.position.epoch
            _log.warning(
                "the state was saved after the last batch of epoch %d: this iteration gives no "
                "batch, and the next one reads epoch %d. To begin with that, save a state after "
                "the loop over the batches, or call set_epoch(%d)",
                epoch,
                epoch + 1,
                epoch + 1,
            )
        check_read(cursor.epochs)
        cursor.finish(reader)

    def _name_reporter(self, reader: Reader) -> Reporter:
        """Return what reports the counters, also those of earlier epochs."""
        reporter = self.received.find_reporter(self.cursor.epochs.options)
        reporter.name = _name_reader(reader)
        return reporter

    def _warn_if_empty(self, before: Stats, reader: Reader) -> None:
        epochs, read = self.cursor.epochs, self.received.copy_stats() - before
        if text := describe_empty(read, reader, epochs.options, epochs.source, self.filter):
            _log.warning("%s", text)

    def _make_bar(self, reader: Reader) -> Bar | NoBar:
        """Return the bar of the first worker of the first rank."""
        epochs, position = self.cursor.epochs, reader.position
        if not epochs.options.progress or reader.rank or reader.worker:
            return NoBar()
        done = sum(stage.batches for stage in position.stages) + position.batches
        epoch = self.cursor.position.epoch
        if epochs.source.num_rows is None or epochs.source.is_endless:
            return Bar(None, epoch, reader.count_read(done))
        left = (epochs.count_batches(position) or 0) - position.batches
        # Another number of ranks, or of rows of a batch, may have read the part before.
        total = max(self.cursor.count_epoch(), left)
        total, left = reader.count_read(total), reader.count_read(left)
        return Bar(total, epoch, total - left)


def _name_reader(reader: Reader) -> str:
    """Name a rank of several, and a worker of a DataLoader, for lines of a log."""
    names = []
    if reader.sharding.world_size > 1:
        names.append(f"rank {reader.rank} of {reader.sharding.world_size}")
    if reader.step > 1:
        names.append(f"worker {reader.worker} of {reader.step}")
    return f"{', '.join(names)}: " if names else ""


_LONGEST = 200  # characters of a filter


def describe_empty(
    read: Stats,  # what the epoch has counted
    reader: Reader,
    options: Options,
    source: Source,  # the rows that `filter` keeps. Without any, it is empty
    filter: str | None,  # what the user gave as `filter`
) -> str:
    """Say that filters keep no row of an epoch that was read from its start to its end.

    The text is empty if they keep a row, or the epoch has no row to drop.
    """
    if read.filtered_rows and not read.rows:
        return (
            f"filter({_list_functions(options)}) dropped all {read.filtered_rows:,} rows of this "
            f"epoch{_name(reader)}: valid_rows is 0 for each batch. Look at what the function "
            "returns for a batch: True for the rows that stay"
        )
    if filter is not None and not read.batches and (reason := source.explain_empty()):
        return (
            f"filter={_shorten(filter)} keeps {reason}: this epoch has no batch. Look at some "
            "rows of a Loader without it: nulls and NaN are equal to nothing, and values may "
            "have another spelling, unit or time zone"
        )
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _name(reader: Reader) -> str:
    """Name the rank and the worker whose rows these are, if there are several."""
    ranks, workers = reader.sharding.world_size, reader.step
    names = [f"worker {reader.worker} of {workers}"] if workers > 1 else []
    names += [f"rank {reader.rank} of {ranks}"] if ranks > 1 else []
    return f" on {' of '.join(names)}" if names else ""


def _list_functions(options: Options) -> str:
    functions = [step.function for step in options.functions.steps if step.is_filter]
    return ", ".join(getattr(one, "__qualname__", type(one).__qualname__) for one in functions)
