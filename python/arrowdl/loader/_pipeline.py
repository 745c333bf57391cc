"""One share of an epoch as batches, read in this process or by worker processes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import attrgetter, sub
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.assemble import Assembly, RowStream, Share
from arrowdl.loader._batches.chain import Outcome
from arrowdl.loader._batches.finish import Finish
from arrowdl.loader._batches.pack import Message
from arrowdl.loader._batches.padding import Counts
from arrowdl.loader._batches.to_device import copy_ahead
from arrowdl.loader._batches.waits import Waits
from arrowdl.loader._clock import WORKS, Clock
from arrowdl.loader._epoch.epochs import Epochs, check_read
from arrowdl.loader._epoch.kinds import open_epochs
from arrowdl.loader._epoch.read import Reader, seed_steps
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._iterate import Received, iterate
from arrowdl.loader._options.options import Options
from arrowdl.loader._options.target import Target
from arrowdl.loader._progress import NoBar
from arrowdl.loader._skip.numbers import Place, read_numbers
from arrowdl.loader._skipped import NUMBER
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.filled import FilledSource
from arrowdl.loader._stats import Reporter, list_spent
from arrowdl.loader._workers.pool import WorkerPool


class Pipeline:
    """From the rows of a source to batches, in this process. Worker processes get it by pickle."""

    def __init__(self, epochs: Epochs[Any]) -> None:
        self.epochs = epochs
        self.source: Source = epochs.source
        options = epochs.options
        self.options: Options = options
        finishes = options.target.pin_memory or options.target.sharding is not None
        self.finisher: Finish | None = Finish(options.target.sharding) if finishes else None
        self.assembly: Assembly = Assembly(options, self.source, Clock(), self.finisher)

    def with_options(
        self,
        options: Options,  # which give each step the same rows
    ) -> Pipeline:
        """Return a pipeline of the same rows, whose lengths it does not read again."""
        return Pipeline(self.epochs.with_options(options))

    def for_workers(self) -> Pipeline:
        """Return the pipeline of a worker process: it reads, converts and calls `transform`.

        Copies to the device, pinning and global arrays are left to the training's process. The
        tensors are copied to shared memory, which may be written to.
        """
        options, target = self.options, self.options.target
        reduced = replace(
            options,
            target=Target(
                framework=target.framework if target.sharding is None else "numpy",
                device=None,
                sharding=None,
                pin_memory=False,
                writable=target.writable and bool(options.functions.steps),
            ),
            num_workers=0,
            prefetch=0,
            progress=False,
            report_every=None,
            report=None,
        )
        self.epochs.prepare()
        return self.with_options(reduced)

    def read_share(
        self,
        place: Mapping[str, Any],  # of `Position.to_state`
        rank: int,
        world_size: int,
        worker: int,
        num_workers: int,
    ) -> Iterator[tuple[int, Any, int, Counts, Outcome | None, tuple[float, ...]]]:
        """Read the batches of one worker process.

        Yields the rows of a batch that belong to the rank, the batch, all its rows, the counts of
        `Padding`, what became of its rows if they may have been skipped or filtered, and the
        seconds of each of `WORKS`.
        """
        sharding = self.epochs.make_sharding(world_size, num_workers)
        is_tokens = sharding.tokens is not None
        position = Position.at(place, sharding.splits, is_tokens=is_tokens)
        position.begin(sharding)
        reader = Reader(position, rank, sharding, worker, num_workers)
        received, before = Received(), (0, 0, 0)
        spent: tuple[float, ...] = (0.0,) * len(WORKS)
        stats = received.stats
        for batch in iterate(self, reader, received, NoBar, Reporter(stats, None, None)):
            counts = stats.padding_rows, stats.values, stats.padding_values
            others, *padding = map(sub, counts, before)
            before = counts
            valid, now = received.valid_rows, list_spent(stats)
            times, spent = tuple(map(sub, now, spent)), now
            yield valid, batch, valid + others, (padding[0], padding[1]), received.outcome, times
            del batch
        check_read(self.epochs)

    def open(self, reader: Reader) -> Share:
        """Open one worker's share; see `SharePipeline`."""
        options, epochs, sharding = self.options, self.epochs, reader.sharding
        source = epochs.open(reader.position)
        copies_rows = epochs.copies_rows(sharding)
        if options.exposes_writable_tensors and not copies_rows:
            source = source.for_writing()
        if source.is_decoded and options.fills(source.column_names or []):
            source = FilledSource(source, options.columns)
        is_new = options.shuffle or copies_rows or not source.is_shared
        rows = self._read(source, reader, is_new=is_new)
        if source.num_rows is not None:
            rows.read = partial(self._read_start, reader)
            begin = replace(reader, position=copy(reader.position), valid_rows={}, step_rows={})
            rows.locate = partial(self._locate, begin)
        return self.assembly.open(rows)

    def _read(self, source: Source, reader: Reader, *, is_new: bool) -> RowStream:
        """Read the rows of a share, with numbers if some may be skipped."""
        options, epochs, numbered = self.options, self.epochs, None
        if options.skips:
            source, numbered = epochs.number(source)
        is_sorted = options.sizes.bucket_by is not None
        is_gathered = options.shuffle or is_sorted or epochs.joins_rows
        reads_ahead = options.prefetch > 0 and not is_gathered
        stream, find_parts = epochs.read(source, reader, reads_ahead=reads_ahead)
        return RowStream(
            stream,
            _describe_batches(reader),
            reader.valid_rows,
            batch_size=reader.sharding.batch_size,
            is_new=is_new,
            find_seed=seed_steps(options.seed, reader),
            numbered=numbered,
            find_parts=find_parts,
            # pyarrow decodes files ahead by itself, and slices need no thread.
            is_ready=epochs.is_ready(is_gathered=is_gathered),
        )

    def _read_start(self, reader: Reader) -> _core.DeviceStream:
        """Read the rows of a reader's epoch from its start, whatever rank and worker it is."""
        place, share = reader.position, reader.sharding
        size = share.global_batch_size
        sharding = replace(share, world_size=1, num_workers=1, batch_size=size, drop_last=False)
        position = Position(place.epoch, phases=place.phases)
        position.begin(sharding)
        rows = self._read(
            self.epochs.open(position), Reader(position, 0, sharding, 0, 1), is_new=False
        )
        rows.find_parts = None
        stream = self.epochs.limit_pass(self.assembly.prepare(rows))
        return stream.rebatch(share.batch_size) if share.batch_size else stream

    def _locate(self, reader: Reader, index: int, row: int) -> Place:
        """Return where a row of a batch is, which is read again with its number."""
        source, numbered = self.epochs.number(self.epochs.open(reader.position))
        stream, _ = self.epochs.read(source, reader, reads_ahead=False)
        with closing(stream):
            array = next(islice(stream, index, None))
        return numbered.locate([read_numbers(array.field(NUMBER))[row]])[0]

    def finish(self, batch: Any) -> Any:
        """Do what only the training's process can do: global arrays, pinned memory."""
        return batch if self.finisher is None else self.finisher(batch)


def open_pipeline(source: Source, options: Options) -> Pipeline:
    """Return what reads a source in this process, in the units that a shuffle permutes."""
    if options.shuffle:
        is_mixed = bool(source.schedule)  # whose sequences share each buffer
        rows = options.buffer_rows
        if not is_mixed:
            rows = options.count_shuffled_rows(source.num_rows or 0)
        source = source.cut_for_shuffle(rows)
    return Pipeline(open_epochs(source, options))


def _describe_batches(reader: Reader) -> Callable[[int], str]:
    """Return what describes a batch by its index among those that `reader` has left to read."""
    done = reader.count_read(reader.position.batches)
    epoch = reader.position.epoch

    def describe(index: int) -> str:
        number = reader.count_all(done + index + 1) - 1
        return f"batch {number} of epoch {epoch} (rank {reader.rank})"

    return describe


class WorkerPipeline:
    """The same batches, read by worker processes, which stay for the next epoch."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._pool: WorkerPool | None = None
        self._clock = Clock()
        self._is_closed = False

    def open(self, reader: Reader) -> Share:
        """Open the share of a whole rank; see `SharePipeline`."""
        divide, count = Waits([self._clock], None).divide, attrgetter("padding")
        items, finish = self._read(reader), self._pipeline.finisher
        return Share(items, self._convert, divide, count, finish)

    def close(self) -> None:
        """End the idle worker processes; those of an epoch end with its stream."""
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _convert(self, message: Message) -> Outcome:
        batch = self._pipeline.finish(message.read())
        if message.outcome is None:
            return Outcome(batch, message.rows, message.valid)
        outcome: Outcome = pickle.loads(message.outcome)
        outcome.batch = batch
        return outcome

    def _read(self, reader: Reader) -> Iterator[Message]:
        options, position = self._pipeline.options, reader.position
        device = options.target.find_device()
        pool, self._pool = self._pool, None
        if pool is None or not pool.is_of_this_process():
            pool = WorkerPool(self._pipeline.for_workers(), options.num_workers)
        messages = pool.read(
            position.to_state(),
            reader.rank,
            reader.sharding.world_size,
            range(position.batches, self._pipeline.epochs.count_batches(position) or sys.maxsize),
            max(1, options.prefetch),
        )
        try:
            with closing(messages):
                if device is None:
                    yield from messages
                else:
                    depth, clock = options.prefetch, self._clock
                    yield from copy_ahead(messages, pool.is_ready, device, depth, clock)
        finally:
            if self._is_closed:
                pool.close()
            elif pool.is_idle:
                self._pool = pool  # for the next epoch
