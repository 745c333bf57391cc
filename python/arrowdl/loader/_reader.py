"""`EpochReader`: batches epoch after epoch, with states."""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, Self
from weakref import WeakSet

from arrowdl.loader._buffer import log_buffer, settle_buffer
from arrowdl.loader._checks import require_int
from arrowdl.loader._empty import describe_empty
from arrowdl.loader._epoch.compare_ranks import Comparison, Meeting
from arrowdl.loader._epoch.compare_states import compare_states
from arrowdl.loader._epoch.kinds import open_epochs
from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._epoch.sharding import Sharding, count_rest
from arrowdl.loader._epoch.state import STATE_VERSION, UNREAD, Position, find_state
from arrowdl.loader._epoch.world import find_world
from arrowdl.loader._files.written_files import describe_files, warn_of_rewrites
from arrowdl.loader._iterate import Received, SharePipeline, iterate
from arrowdl.loader._options import Options, Step
from arrowdl.loader._pipeline import Pipeline, WorkerPipeline
from arrowdl.loader._progress import Bar, NoBar
from arrowdl.loader._skip.tally import (
    Tally,
    add_entry,
    check_lost,
    find_most,
    name_entry,
)
from arrowdl.loader._skipped import Skipped, advise_skipping
from arrowdl.loader._sources.base import ENDLESS, Source
from arrowdl.loader._stats import Reporter, Stats
from arrowdl.loader._workers.sending import check_sending

_log = logging.getLogger("arrowdl.loader")
_TORCH_ADVICE = "DataLoader(loader.torch_dataset(), batch_size=None)"


class EpochReader:
    """Reads a source epoch after epoch: the part of `Loader` that adapters use.

    Parameters
    ----------
    source : Source
    options : Options
    filter : str, optional
        What the user gave as `filter`: `source` has the rows that it keeps.
    """

    def __init__(self, source: Source, options: Options, filter: str | None = None) -> None:
        self._identity = source.identify()
        self._snapshot = source.files.snapshot
        self._files = describe_files(source.files.list_stamps())
        self._is_auto = options.buffer_size == "auto"
        self._filter = filter
        self._left_out: tuple[Skipped, ...] = ()
        self._position = Position()
        self._received = Received()
        self._open(source, settle_buffer(source, options))
        log_buffer(self._source, self._options, is_auto=self._is_auto)
        self._reporter: Reporter | None = None
        self._iterators: WeakSet[Generator[Any]] = WeakSet()

    def _open(self, source: Source, options: Options) -> None:
        if options.shuffle:
            is_mixed = bool(source.schedule)  # whose sequences share each buffer
            rows = options.buffer_rows
            if not is_mixed:
                rows = options.count_shuffled_rows(source.num_rows or 0)
            source = source.cut_for_shuffle(rows)
        self._source = source
        self._use(Pipeline(open_epochs(source, options)))

    def _use(self, pipeline: Pipeline) -> None:
        self._options = pipeline.options
        self._pipeline = pipeline
        self._received.stats.in_use = pipeline.options.in_use
        self._workers = WorkerPipeline(pipeline) if self._options.num_workers else None

    def _note_skipped(self, entries: Iterable[Skipped]) -> None:
        """Log files that cannot be opened, and name them in `stats`, also in that of copies."""
        for entry in entries:
            name_entry(self._received.stats, entry)
        self._left_out = self._received.stats.skipped

    def _name_left_out(self, loaders: Iterable[EpochReader]) -> None:
        """Name the files that Loaders of a mixture have left out, and have logged."""
        for loader in loaders:
            for entry in loader._left_out:
                add_entry(self._received.stats, entry)
        self._left_out = self._received.stats.skipped

    def _with_step(self, step: Step) -> Self:
        """Return a Loader at the same position that calls one step more."""
        made = copy.copy(self)
        options = replace(self._options, chain=(*self._options.chain, step))
        made._use(self._pipeline.with_options(options))
        return made

    @property
    def batch_size(self) -> int:
        """Rows of a batch on this rank.

        Raises
        ------
        ValueError
            The number of ranks is unknown, or does not divide `global_batch_size`; or batches have
            a number of tokens.
        """
        if self._options.batch_size is not None:
            return self._options.batch_size
        if self._options.counts_tokens:
            raise ValueError(f"{self._options.name_plan()}: batches differ in their rows")
        return self._options.find_batch_size(self._find_world()[1])

    def __iter__(self) -> Iterator[Any]:
        if self._workers is None:
            return self._read_share()
        return self._start(self._workers, self._begin(0, self._options.num_workers, step=1))

    def _read_share(
        self, worker: int = 0, num_workers: int = 1, *, may_go_on: bool = True
    ) -> Iterator[Any]:
        """Read this rank's share of the epoch, or one worker's part of it, in this process.

        Parameters
        ----------
        worker, num_workers : int
        may_go_on : bool
            Whether a loaded state may belong to the same workers, which then go on where each of
            them was. Otherwise the remaining rows are divided anew.
        """
        reader = self._begin(worker, num_workers, step=num_workers, may_go_on=may_go_on)
        return self._start(self._pipeline, reader)

    def _start(self, pipeline: SharePipeline, reader: Reader) -> Iterator[Any]:
        iterator = self._iterate(pipeline, reader)
        self._iterators.add(iterator)
        return iterator

    def _begin(self, worker: int, num_workers: int, *, step: int, may_go_on: bool = True) -> Reader:
        """Start the epoch, or the rest of it.

        Iterators that began before no longer move the loader's position.
        """
        if self._is_closed:
            raise RuntimeError("this Loader was closed: make a new one")
        self._source.check_process()
        rank, world_size = self._find_world()
        self._position = self._find_next()
        epochs = self._pipeline.epochs
        sharding = epochs.make_sharding(world_size, num_workers)
        self._position.begin(sharding, may_go_on)
        is_shared = may_go_on and num_workers > 1 and step > 1
        epochs.begin(self._position, self._make_sharding, is_shared=is_shared)
        if self._options.sharding is not None:
            rows = epochs.open(self._position).num_rows
            left = rows and count_rest(rows, self._position.list_stages())
            self._options.check_even(left, world_size)
        return Reader(self._position, rank, sharding, worker, step)

    def _make_sharding(self) -> Sharding:
        """Return how rows are divided, whatever the number of workers."""
        return self._pipeline.epochs.make_sharding(self._find_world()[1], 1)

    def _find_next(self) -> Position:
        """Return where the next iterator begins."""
        before = self._position
        if self._is_complete(before):
            return Position(before.epoch + 1)
        return before.for_next_reader()

    def _is_complete(self, position: Position) -> bool:
        """Whether all batches were returned."""
        # A caller that knows the length, as Lightning does, asks for no more.
        count = self._pipeline.epochs.count_batches(position) if position.is_begun else None
        return count is not None and position.batches == count

    def _iterate(self, pipeline: SharePipeline, reader: Reader) -> Generator[Any]:
        if self._reporter is None:
            options = self._options
            self._reporter = Reporter(self._received.stats, options.report_every, options.report)
        self._reporter.name = _name_reader(reader)
        received = self._received
        before, is_first = self.stats(), not reader.position.list_stages()
        tally = check = None
        if self._options.skips:
            self._note_lost()
            meeting = check = None
            if self._position is reader.position:
                meeting, check = self._meet(reader)
            tally = self._make_tally(reader.position, meeting)
        bar, reporter = partial(self._make_bar, reader), self._reporter
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
                    if self._is_complete(reader.position):
                        self._warn_if_empty(before, reader)
            raise
        if not is_whole:
            return
        if is_first:
            self._warn_if_empty(before, reader)
        self._pipeline.check_read()
        if self._position is reader.position:
            self._position = Position(reader.position.epoch + 1)

    def _warn_if_empty(self, before: Stats, reader: Reader) -> None:
        read = self.stats() - before
        if text := describe_empty(read, reader, self._options, self._source, self._filter):
            _log.warning("%s", text)

    def _note_lost(self) -> None:
        """Log the documents that are in no block, unless there are too many."""
        entries = [one for one in self._pipeline.epochs.list_lost() if one not in self._left_out]
        if entries:
            check_lost(entries, self._source, self._options.max_skipped_rows)
            self._note_skipped(entries)

    def _meet(self, reader: Reader) -> tuple[Meeting, Callable[[], None] | None]:
        """Meet the other ranks; return also what compares what they could read."""
        state, unread = self.state_dict(), []
        for known, key, what in (
            (state.get("steps"), "unread", "lengths"),
            (state.get("pack"), "unread", "lengths"),
            (state, UNREAD, "dictionaries"),
        ):
            if known and (rows := known.pop(key, None)):
                unread.append(f"the {what} of {rows}")
        meeting = Meeting(state, reader.rank, reader.sharding.world_size)
        if self._source.num_rows is None:
            return meeting, None
        return meeting, Comparison(meeting, " and ".join(unread)).check

    def _make_tally(self, position: Position, meeting: Meeting | None) -> Tally:
        return Tally(
            self._received.stats,
            partial(self._find_most, position),
            partial(self._find_pass, position),
            1 if position.sharding is None else position.sharding.world_size,
            None if meeting is None else meeting.count_skipped,
        )

    def _find_most(self, position: Position) -> int:
        """Return how many rows, or blocks, may be skipped in an epoch, or in a pass."""
        most = self._options.max_skipped_rows
        return find_most(self._pipeline.epochs.count_pass(position)) if most is None else most

    def _find_pass(self, position: Position) -> int:
        """Return how often a mixture without end has read as many rows as its sources have."""
        return self._pipeline.epochs.count_passes(position, self._make_sharding())

    def _find_world(self) -> tuple[int, int]:
        options = self._options
        if options.rank is not None and options.world_size is not None:
            return options.rank, options.world_size
        return find_world(options.framework)

    def _make_bar(self, reader: Reader) -> Bar | NoBar:
        """Return the bar of the first worker of the first rank."""
        if not self._options.progress or reader.rank or reader.worker:
            return NoBar()
        source, position = self._source, reader.position
        done = sum(stage.batches for stage in position.stages) + position.batches
        if source.num_rows is None or source.is_endless:
            return Bar(None, self.epoch, reader.count_own(done))
        left = (self._pipeline.epochs.count_batches(position) or 0) - position.batches
        # Another number of ranks, or of rows of a batch, may have read the part before.
        total = max(len(self), left)
        total, left = reader.count_own(total), reader.count_own(left)
        return Bar(total, self.epoch, total - left)

    @property
    def _is_closed(self) -> bool:
        return self._received.is_closed

    @property
    def epoch(self) -> int:
        """The epoch that iterating reads, from 0."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration read `epoch` from its start.

        Parameters
        ----------
        epoch : int
            From 0.
        """
        self._position = Position(require_int("epoch", epoch, 0))

    @property
    def valid_rows(self) -> int:
        """Rows of the last returned batch that belong to this rank; they come first in it.

        Fewer than the batch has if it was padded (`pad_last`). 0 if the batch repeats a row, so
        that all ranks have as many batches: a row of another rank, or, if all rows of the batch
        were skipped or filtered, any row. A metric has to leave it out.
        """
        return self._received.valid_rows

    def stats(self) -> Stats:
        """Return what was read so far, and how long each part took.

        Returns
        -------
        Stats
            A copy of the counters.
        """
        return copy.copy(self._received.stats)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch on this rank; a resumed one has fewer.

        With a budget of tokens and `shuffle`, epochs differ: this is the number of `epoch`.

        Raises
        ------
        TypeError
            The source is a stream, whose rows are not known.
        """
        return self._pipeline.epochs.count_epoch(self.epoch, self._make_sharding)

    def __repr__(self) -> str:
        options, source = self._options, self._source
        number, names = source.num_rows, [name for name, _ in source.list_members() if name]
        rows = "" if number is None or number >= ENDLESS else f"{number} rows, "
        rows += "".join(f"{name}, " for name in names)
        if options.pack is not None:
            rows += f"packed into blocks of {options.pack.length}, "
        order = f"shuffled with seed {options.seed}" if options.shuffle else "in order"
        closed = ", closed" if self._is_closed else ""
        return (
            f"<arrowdl.Loader of {rows}{options.describe_batches()} for {options.framework}, "
            f"{order}, epoch {self.epoch}, {self._describe_rank()}{closed}>"
        )

    def _describe_rank(self) -> str:
        try:
            rank, world_size = self._find_world()
        except ValueError:  # iterating says what is wrong
            return "rank unknown"
        return f"rank {rank} of {world_size}"

    def __getitem__(self, index: Any) -> NoReturn:
        """Raise TypeError, for a ``DataLoader`` that was given the loader itself."""
        raise TypeError(
            "a Loader is iterated, and has no batch number "
            f"{index!r}. For PyTorch's DataLoader: {_TORCH_ADVICE}"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epoch, for `load_state_dict`.

        All ranks have the same state after the same number of batches: saving one is enough.
        Batches that were prefetched and not yet returned count as not read. With `Ranks.splits`,
        its ``"stages"`` are pairs: rows of a global batch, and how many of these were read.

        Returns
        -------
        dict
            Of JSON types, some hundred bytes. ``"buffer_size"`` is the number of rows; 0 if the
            first rows of a stream decide, or if nothing is buffered. Of a table with versions, and
            of files of Hugging Face, ``"snapshot"`` names the version or the commit; ``"files"``
            has digests of the files' sizes and ETags.
        """
        epochs = self._pipeline.epochs
        unread = self._source.describe_unread()
        return {
            "version": STATE_VERSION,
            "source": self._identity,
            **({UNREAD: unread} if unread else {}),
            **({"snapshot": self._snapshot} if self._snapshot else {}),
            **({"files": self._files} if any(self._files) else {}),
            "seed": self._options.seed,
            "shuffle": self._options.shuffle,
            "buffer_size": self._options.buffer_rows,
            **epochs.describe_steps(self._make_sharding),
            **epochs.describe_position(self._position, self._make_sharding),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Make the next iteration go on where `state` was saved.

        No row is lost and none is read twice, also with another number of ranks, another number of
        workers or another batch size. With `Ranks.splits` the next steps have the same rows on any
        number of ranks that divides it.

        Parameters
        ----------
        state : mapping
            Of `state_dict` on any rank, or of torchdata's ``StatefulDataLoader`` over
            `torch_dataset`.

        Raises
        ------
        ValueError
            The state belongs to another source, shuffle or `Ranks.splits`, whose rows have another
            order, or no Loader can have returned it.
        """
        state = find_state(state)
        before = self._source, self._pipeline
        try:
            self._take_buffer(state)
            self._load(state)
        except BaseException:
            if self._pipeline is not before[1]:
                self._source = before[0]
                self._use(before[1])
            raise

    def _take_buffer(self, state: Mapping[str, Any]) -> None:
        """Shuffle and sort by the buffer of a state, if the user gave no number of rows."""
        options, rows = self._options, state["buffer_size"]
        buffers = options.shuffle or options.bucket_by is not None
        if not (self._is_auto and buffers and rows) or state["shuffle"] != options.shuffle:
            return
        if rows != options.buffer_rows or not self._has_steps(state):
            self._open(self._source, options.with_buffer(rows))
        if options.bucket_by is not None and not self._has_steps(state):
            # A number of rows that a user gave is that of the windows, too.
            self._open(self._source, replace(self._options, bucket_rows=None))

    def _has_steps(self, state: Mapping[str, Any]) -> bool:
        return bool(
            state.get("steps")
            == self._pipeline.epochs.describe_steps(self._make_sharding).get("steps")
        )

    def _load(self, state: Mapping[str, Any]) -> None:
        compare_states(state, self.state_dict(), is_mixed=bool(self._source.schedule))
        position = Position.from_state(state)
        self._pipeline.epochs.check_position(position, self._make_sharding)
        self._position = position
        warn_of_rewrites(state.get("files"), self._files)

    def close(self) -> None:
        """End the worker processes and the epochs that are being read.

        Their iterators end, as a loop that is left does, and release their threads and files.
        Batches stay valid, and so do `state_dict` and `stats`. Closing again does nothing.
        A loader that is dropped closes by itself. If another thread waits for a batch, or this one
        does and a signal handler closes, the iterator ends in place of returning it.
        """
        self._received.is_closed = True
        with ExitStack() as stack:
            if self._workers is not None:
                stack.callback(self._workers.close)
            for iterator in list(self._iterators):
                stack.callback(_close, iterator)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and pickles are made of: same position, new stats, no workers yet."""
        check_sending(self._source, self._options)
        kept = {key: value for key, value in self.__dict__.items() if key != "_iterators"}
        return {
            **kept,
            "_workers": WorkerPipeline(self._pipeline) if self._options.num_workers else None,
            "_position": copy.deepcopy(self._position),
            "_received": Received(
                Stats(skipped=self._left_out, in_use=self._options.in_use),
                self.valid_rows,
                is_closed=self._is_closed,
            ),
            "_reporter": None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _iterators=WeakSet())


def _name_reader(reader: Reader) -> str:
    """Name a rank of several, and a worker of a DataLoader, for lines of a log."""
    names = []
    if reader.sharding.world_size > 1:
        names.append(f"rank {reader.rank} of {reader.sharding.world_size}")
    if reader.step > 1:
        names.append(f"worker {reader.worker} of {reader.step}")
    return f"{', '.join(names)}: " if names else ""


def _close(iterator: Generator[Any]) -> None:
    try:
        iterator.close()
    except ValueError as error:
        # Of Python, if the iterator runs: it looks by itself whether the loader was closed.
        if str(error) != "generator already executing":
            raise
