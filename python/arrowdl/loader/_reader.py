"""`EpochReader`: batches epoch after epoch, with states."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Literal, NoReturn, Self
from weakref import WeakSet

from arrowdl.loader._buffer import log_buffer, settle_buffer
from arrowdl.loader._checks import require_choice, require_int
from arrowdl.loader._epoch.cursor import Cursor
from arrowdl.loader._epoch.state import Position, find_state
from arrowdl.loader._iterate import Received, SharePipeline
from arrowdl.loader._iteration import Iteration
from arrowdl.loader._options.options import Options
from arrowdl.loader._pipeline import Pipeline, WorkerPipeline, open_pipeline
from arrowdl.loader._schema.filters import show_filter
from arrowdl.loader._skips import Skips
from arrowdl.loader._sources.base import ENDLESS, Source
from arrowdl.loader._states import States
from arrowdl.loader._stats import Stats
from arrowdl.loader._workers.sending import check_sending

_TORCH_ADVICE = "DataLoader(loader.torch_dataset(), batch_size=None)"


class EpochReader:
    """Reads a source epoch after epoch: the part of `Loader` that adapters use.

    Parameters
    ----------
    source : Source
    options : Options
    filter : pyarrow.dataset.Expression or str, optional
        What the user gave as `filter`: `source` has the rows that it keeps.
    """

    def __init__(self, source: Source, options: Options, filter: Any = None) -> None:
        is_auto = options.buffer_size == "auto"
        self._states = States(source, is_auto=is_auto)
        self._filter = None if filter is None else " ".join(show_filter(filter).split())
        self._received = Received()
        pipeline = open_pipeline(source, settle_buffer(source, options))
        self._cursor = Cursor(pipeline.epochs)
        self._skips = Skips(self._cursor, self._received.stats)
        self._use(pipeline)
        log_buffer(self._source, self._options, is_auto=is_auto)
        self._iterators: WeakSet[Generator[Any]] = WeakSet()

    def _use(self, pipeline: Pipeline) -> None:
        self._source = pipeline.source
        self._options = pipeline.options
        self._pipeline = pipeline
        self._cursor.epochs = pipeline.epochs
        self._received.stats.in_use = pipeline.options.in_use
        self._workers = WorkerPipeline(pipeline) if self._options.num_workers else None

    @property
    def batch_size(self) -> int:
        """Rows of a batch on this rank.

        Raises
        ------
        ValueError
            The number of ranks is unknown, or does not divide `global_batch_size`; or a budget of
            tokens bounds batches.
        """
        if self._options.sizes.batch_size is not None:
            return self._options.sizes.batch_size
        if self._options.sizes.counts_tokens:
            raise ValueError(
                f"{self._options.sizes.name_plan()}: batches have different numbers of rows"
            )
        return self._options.sizes.find_batch_size(self._cursor.find_ranks()[1])

    def __iter__(self) -> Iterator[Any]:
        if self._workers is None:
            return self._read_share()
        return self._start(self._workers, 0, self._options.num_workers, step=1)

    def _read_share(
        self, worker: int = 0, num_workers: int = 1, *, may_go_on: bool = True
    ) -> Iterator[Any]:
        """Read this rank's share of the epoch, or one worker's part of it, in this process."""
        step = num_workers
        return self._start(self._pipeline, worker, num_workers, step=step, may_go_on=may_go_on)

    def _start(
        self,
        pipeline: SharePipeline,
        worker: int,
        num_workers: int,
        *,
        step: int,
        may_go_on: bool = True,
    ) -> Iterator[Any]:
        """Begin to read an epoch; the arguments are those of `Cursor.begin`."""
        received, cursor = self._received, self._cursor
        if received.is_closed:
            raise RuntimeError("this Loader was closed: make a new one")
        reader = cursor.begin(worker, num_workers, step=step, may_go_on=may_go_on)
        iteration = Iteration(cursor, received, self._states, self._skips, self._filter)
        iterator = iteration.run(pipeline, reader)
        self._iterators.add(iterator)
        return iterator

    @property
    def epoch(self) -> int:
        """The epoch that iterating reads, from 0."""
        return self._cursor.position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration read `epoch` from its start.

        Parameters
        ----------
        epoch : int
            From 0.
        """
        self._cursor.position = Position(require_int("epoch", epoch, 0))

    @property
    def valid_rows(self) -> int:
        """Rows of the last returned batch that belong to this rank; they come first in it.

        They are fewer than the rows of the batch if it was padded (`pad_last`). They are 0 if the
        batch only repeats a row, so that all ranks have the same number of batches: a row of
        another rank, or, if all rows of the batch were skipped or filtered, any row. A metric has
        to leave such a batch out.
        """
        return self._received.valid_rows

    def stats(self, epoch: Literal["all", "last"] = "all") -> Stats:
        """Return how much was read so far, and how long each part of the work took.

        Parameters
        ----------
        epoch : {"all", "last"}
            "all" counts all epochs since the Loader was made. "last" counts the epoch that is being
            read, or the last one, from where the iteration began.

        Returns
        -------
        Stats
            A copy of the counters.
        """
        require_choice("epoch", epoch, ("all", "last"))
        stats = self._received.copy_stats()
        return stats if epoch == "all" else stats - self._received.begin

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch on this rank; a resumed epoch has fewer.

        With a budget of tokens and `shuffle`, epochs differ: this is the number for `epoch`.

        Raises
        ------
        TypeError
            The source is a stream, whose rows are not known.
        """
        return self._cursor.count_epoch()

    def __repr__(self) -> str:
        options, source = self._options, self._source
        number, names = source.num_rows, [name for name, _ in source.list_members() if name]
        rows = "" if number is None or number >= ENDLESS else f"{number} rows, "
        rows += "".join(f"{name}, " for name in names)
        if options.pack is not None:
            rows += f"packed into blocks of {options.pack.length}, "
        order = f"shuffled with seed {options.seed}" if options.shuffle else "in order"
        closed = ", closed" if self._received.is_closed else ""
        return (
            f"<arrowdl.Loader of {rows}{options.sizes.describe()} for {options.target.framework}, "
            f"{order}, epoch {self.epoch}, {describe_rank(self._cursor)}{closed}>"
        )

    def __getitem__(self, index: Any) -> NoReturn:
        """Raise TypeError, for a ``DataLoader`` that was given the loader itself."""
        raise TypeError(
            f"a Loader has no batch number {index!r}: iterate over it. For PyTorch's DataLoader, "
            f"give {_TORCH_ADVICE}"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epoch, for `load_state_dict`.

        All ranks have the same state after the same number of batches: saving one is enough.
        Batches that were prefetched and not yet returned count as not read. With `Ranks.splits`,
        its ``"stages"`` are pairs: rows of a global batch, and how many of these were read.

        Returns
        -------
        dict
            The state, of JSON types and some hundred bytes. ``"buffer_size"`` is the number of
            rows; 0 if the first rows of a stream decide, or if nothing is buffered. ``"snapshot"``
            names the version of a table that has versions, or the commit of files of Hugging Face;
            ``"files"`` has digests of the files' sizes and ETags, and ``"sample"`` the numbers of
            files and rows and some names, for errors.
        """
        return self._states.save(self._cursor)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Make the next iteration go on where `state` was saved.

        No row is lost and none is read twice, also with another number of ranks, another number of
        workers or another batch size. With `Ranks.splits` the next steps have the same rows on any
        number of ranks that divides it.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned on any rank, or the state of torchdata's
            ``StatefulDataLoader`` over `torch_dataset`.

        Raises
        ------
        ValueError
            The state was saved with another source, shuffle or `Ranks.splits`, whose rows have
            another order; or it is not a state of a Loader.
        """
        state, before = find_state(state), self._pipeline
        pipeline = self._states.find_pipeline(state, before)
        if pipeline is not before:
            self._use(pipeline)
        try:
            self._states.load(state, self._cursor)
        except BaseException:
            if pipeline is not before:
                self._use(before)
            raise

    def close(self) -> None:
        """End the worker processes and the epochs that are being read.

        Their iterators end, as if their loops were left, and release their threads and files.
        Batches stay valid, and so do `state_dict` and `stats`. Closing again does nothing.
        A loader without references closes by itself. If a thread waits for a batch while another
        thread, or a signal handler, closes the loader, its iterator ends without that batch.
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
        state = {key: value for key, value in self.__dict__.items() if key != "_iterators"}
        cursor, opening = self._cursor.copy(), self._skips.opening
        stats = Stats(skipped=opening, in_use=self._options.in_use)
        is_closed = self._received.is_closed
        return {
            **state,
            "_workers": WorkerPipeline(self._pipeline) if self._options.num_workers else None,
            "_cursor": cursor,
            "_received": Received(stats, self.valid_rows, is_closed=is_closed),
            "_skips": Skips(cursor, stats, opening),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _iterators=WeakSet())


def describe_rank(cursor: Cursor) -> str:
    """Name a rank and the number of ranks, for people."""
    try:
        rank, world_size = cursor.find_ranks()
    except ValueError:  # iterating says what is wrong
        return "rank unknown"
    return f"rank {rank} of {world_size}"


def _close(iterator: Generator[Any]) -> None:
    try:
        iterator.close()
    except ValueError as error:
        # Python raises this if the iterator runs, which finds by itself that the loader was closed.
        if str(error) != "generator already executing":
            raise
