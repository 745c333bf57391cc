"""One share of an epoch as batches, read in this process or by worker processes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from copy import copy
from dataclasses import replace
from functools import partial
from operator import attrgetter, methodcaller, sub
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.chain import Chain, Item, Items, Outcome, Retry
from arrowdl.loader._batches.convert import can_convert_on_device, choose_converter
from arrowdl.loader._batches.draws import Draws, FindSeed
from arrowdl.loader._batches.explain import explain_errors
from arrowdl.loader._batches.finish import Finish
from arrowdl.loader._batches.missing import FindParts, Note, drop_missing, sample_rows
from arrowdl.loader._batches.pack import Message
from arrowdl.loader._batches.pad import pad_batches
from arrowdl.loader._batches.padding import Counts, Padding
from arrowdl.loader._batches.skip_arrow import SkipArrow
from arrowdl.loader._batches.to_device import Packer, copy_ahead, pack_ahead
from arrowdl.loader._batches.transform import Pending, Receive, Transform, convert_in_threads
from arrowdl.loader._batches.transform_arrow import transform_stream
from arrowdl.loader._batches.waits import HostCopies, Waits
from arrowdl.loader._clock import WORKS, Clock
from arrowdl.loader._epoch.packed import PackedMixture, Packing
from arrowdl.loader._epoch.plan import Plan
from arrowdl.loader._epoch.read import Order, Reader, find_stream_parts, read_batches
from arrowdl.loader._epoch.read_splits import copies_rows, read_splits
from arrowdl.loader._epoch.seed_steps import seed_steps
from arrowdl.loader._epoch.sharding import Sharding, count_batches, count_rest
from arrowdl.loader._epoch.state import Position
from arrowdl.loader._iterate import Convert, Divide, Received, iterate
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._options import Options
from arrowdl.loader._progress import NoBar
from arrowdl.loader._skip.numbered import Numbered, number_source
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._sources.base import IndexedSource, Source, StreamSource
from arrowdl.loader._sources.filled import FilledSource
from arrowdl.loader._sources.row_bytes import count_lanes
from arrowdl.loader._stats import Reporter, list_spent
from arrowdl.loader._workers.pool import WorkerPool


class Pipeline:
    """From the rows of a source to batches, in this process. Worker processes get it by pickle.

    Attributes
    ----------
    source : Source
    options : Options
    plan : Plan, optional
        If the steps depend on the lengths of the rows; by default a new one.
    packing : Packing, optional
        Of `options.pack`; by default a new one.
    """

    def __init__(
        self,
        source: Source,
        options: Options,
        plan: Plan | None = None,
        packing: Packing | None = None,
    ) -> None:
        self.source = source
        self.options = options
        self._order = Order(options.seed, None)
        if options.shuffle:
            rows = options.buffer_rows
            self._order = Order(options.seed, rows)
            if isinstance(source, IndexedSource):
                lanes = count_lanes(source.measure_held(), rows)
                self._order = Order(options.seed, rows, lanes)
        if plan is None and options.is_planned:
            plan = Plan(source, self._order, options)
        self.plan = plan
        self._packing = packing
        if options.pack is not None:
            if packing is None:
                self._packing = Packing(
                    source, self._order, options.splits, options.pack, skips=options.skips
                )
            self._order = Order(options.seed, None)  # blocks are in order, and their rows shuffled
        finishes = options.pin_memory or options.sharding is not None
        self._finish = Finish(options.sharding) if finishes else None
        self._clock = Clock()
        # Of the stream that was opened last.
        self._padding: Padding | None = None
        self._copies: HostCopies | None = None

    def prepare(self) -> None:
        """Find what each worker process would find again; called before they are made."""
        self.source.prepare()
        if self.plan is not None:
            self.plan.prepare()
        if self._packing is not None:
            self._packing.prepare()

    def with_options(self, options: Options) -> Pipeline:
        """Return a pipeline of the same rows, whose lengths it does not read again.

        Parameters
        ----------
        options : Options
            Which give each step the same rows.
        """
        # Copies, without the steps that were planned: they share the lengths of the rows.
        return Pipeline(self.source, options, copy(self.plan), copy(self._packing))

    def for_workers(self) -> Pipeline:
        """Return the pipeline of a worker process: it reads, converts and calls `transform`.

        Copies to the device, pinning and global arrays are left to the training's process. The
        tensors are copied to shared memory, which may be written to.
        """
        options = self.options
        is_writable = options.writable and bool(options.steps)
        reduced = replace(
            options,
            num_workers=0,
            prefetch=0,
            device=None,
            sharding=None,
            framework="numpy" if options.sharding is not None else options.framework,
            writable=is_writable,
            pin_memory=False,
            progress=False,
            report_every=None,
            report=None,
        )
        if self._packing is not None:
            self._packing.prepare()
        return self.with_options(reduced)

    def describe_pack(self) -> dict[str, Any] | None:
        """Return what decides on the tokens of blocks, for states; None without `pack`."""
        return None if self._packing is None else self._packing.describe()

    def list_lost(self) -> list[Skipped]:
        """Name the documents that are in no block, since their lengths cannot be read."""
        packing = self._packing
        return [] if packing is None or not self.options.skips else packing.list_lost()

    def find_source(self, position: Position) -> Source:
        """Return the source whose rows the ranks share: of `pack`, the blocks of the epoch.

        Of a mixture, by the weights of the epoch.
        """
        if self._packing is not None:
            return self._packing.open(position.epoch)
        source = self.source
        if isinstance(source, MixedSource) and position.phases:
            return source.with_phases(position.phases)
        return source

    def count_rows(self, position: Position, sharding: Sharding) -> int:
        """Count the rows of each sequence of a mixture that were read."""
        source = self.find_source(position)
        if isinstance(source, PackedMixture):
            return source.find_row(position.count_rows())
        if self.plan is None or sharding.tokens is None:
            return position.count_rows()
        assert isinstance(source, IndexedSource)
        stages = position.list_stages()
        return self.plan.find_steps(source, position.epoch, stages, sharding).find_row(0)

    def make_sharding(self, world_size: int, num_workers: int) -> Sharding:
        """Return how the rows are divided among ranks and workers."""
        options = self.options
        size = options.find_batch_size(world_size)
        splits, tokens = options.find_splits(world_size), options.find_tokens(world_size)
        return Sharding(world_size, num_workers, size, options.drop_last, splits, tokens)

    def count_batches(self, position: Position) -> int | None:
        """Count the batches of each rank in the present stage; None if unknown or not begun."""
        source = self.find_source(position)
        sharding = position.sharding
        if sharding is None or isinstance(source, StreamSource):
            return None
        if self.plan is not None:
            stages = position.stages
            return self.plan.find_steps(source, position.epoch, stages, sharding).count
        rows = count_rest(source.num_rows, position.stages)
        return count_batches(rows, sharding) or None

    def read_share(
        self, place: Mapping[str, Any], rank: int, world_size: int, worker: int, num_workers: int
    ) -> Iterator[tuple[int, Any, int, Counts, Outcome | None, tuple[float, ...]]]:
        """Read the batches of one worker process.

        Parameters
        ----------
        place : mapping
            Of `Position.to_state`.
        rank, world_size : int
        worker, num_workers : int

        Yields
        ------
        valid : int
            Rows of the batch that belong to the rank.
        batch : object
        rows : int
            All rows of the batch.
        padding : (int, int)
            Of `Padding.count`.
        outcome : Outcome or None
            What became of its rows, if they may have been skipped or filtered.
        spent : tuple of float
            Seconds of each of `WORKS`.
        """
        sharding = self.make_sharding(world_size, num_workers)
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
            own, spent = tuple(map(sub, now, spent)), now
            yield valid, batch, valid + others, (padding[0], padding[1]), received.outcome, own
            del batch
        self.check_read()

    def check_read(self) -> None:
        """Raise OSError if a file has changed while the epoch was read."""
        for own in self._list_sources():
            # With skipping, what decodes units is checked where it is read.
            if not (self.options.skips and own.decodes_units):
                own.check_read()

    def _list_sources(self) -> list[IndexedSource]:
        """List the sources of a mixture, or the one that there is; none if it is a stream."""
        if isinstance(self.source, MixedSource):
            return [member.source for member in self.source.members]
        return [self.source] if isinstance(self.source, IndexedSource) else []

    def open(self, reader: Reader) -> tuple[Any, Convert]:
        """Open one worker's share; see `SharePipeline`."""
        options, source = self.options, self.find_source(reader.position)
        is_split = reader.sharding.splits is not None and isinstance(source, IndexedSource)
        is_joined = is_split and (isinstance(source, MixedSource) or copies_rows(reader.sharding))
        if reader.sharding.tokens is not None:  # batches of a single sequence are slices
            is_joined = False
        is_sorted = options.bucket_by is not None
        if (
            options.exposes_writable_tensors
            and isinstance(source, IndexedSource)
            and not (is_joined or is_sorted)
        ):
            source = source.for_writing()
        if isinstance(source, IndexedSource) and source.is_decoded:
            zeros, nans = options.find_filled(source.column_names or [])
            if zeros or nans:
                source = FilledSource(source, zeros, nans)
        numbered = None
        if options.skips:
            source, numbered = self._number(source)
        stream, find_parts = self._read(source, reader)
        return self.open_arrays(
            stream,
            _describe_batches(reader),
            reader.valid_rows,
            batch_size=reader.sharding.batch_size,
            is_new=options.shuffle or is_joined or is_sorted or not source.is_shared,
            numbered=numbered,
            find_parts=find_parts,
            read=None if isinstance(source, StreamSource) else partial(self._read_start, reader),
            find_seed=seed_steps(options.seed, reader),
        )

    def _read_start(self, reader: Reader) -> _core.DeviceStream:
        """Read the rows of a reader's epoch from its start, whatever rank and worker it is."""
        place, own = reader.position, reader.sharding
        rows = own.global_batch_size
        sharding = replace(own, world_size=1, num_workers=1, batch_size=rows, drop_last=False)
        position = Position(place.epoch, phases=place.phases)
        position.begin(sharding)
        whole = Reader(position, 0, sharding, 0, 1)
        source, numbered = self.find_source(position), None
        if self.options.skips:
            source, numbered = self._number(source)
        stream, _ = self._read(source, whole)
        describe, notes = _describe_batches(whole), dict[int, Note]()
        find_seed = seed_steps(self.options.seed, whole)
        stream = self._prepare(stream, describe, whole.valid_rows, notes, numbered, None, find_seed)
        if isinstance(self.source, MixedSource):  # it may have no end
            stream = stream.slice(0, self.source.count_member_rows())
        return stream.rebatch(own.batch_size) if own.batch_size else stream

    def _number(self, source: Source) -> tuple[Source, Numbered]:
        """Return the rows of an epoch with numbers, and what these mean."""
        if self._packing is not None:
            return self._packing.number(source)
        return number_source(source, () if self.plan is None else self.plan.list_faults())

    def open_arrays(
        self,
        stream: _core.DeviceStream,
        describe: Callable[[int], str],
        valid_rows: dict[int, int],
        *,
        batch_size: int,
        is_new: bool,
        numbered: Numbered | None = None,
        find_parts: FindParts | None = None,
        read: Callable[[], _core.DeviceStream] | None = None,
        find_seed: FindSeed,
    ) -> tuple[Any, Convert]:
        """Open a stream of rows, an array for each batch.

        Parameters
        ----------
        stream : DeviceStream
        describe : callable
            Describes a batch by its index, for errors.
        valid_rows : dict of int to int
            As of `Reader`.
        batch_size : int
            To which `pad_last` pads.
        is_new : bool
            Whether the memory of the rows has no other user.
        numbered : Numbered, optional
            Of rows with numbers: rows that fail are skipped.
        find_parts : callable, optional
            Finds the parts of an array that are skipped as a whole, if there are several.
        read : callable, optional
            Reads the rows of the epoch again.
        find_seed : callable
            As of `Draws`.

        Returns
        -------
        As of `SharePipeline.open`.
        """
        options, source = self.options, self.source
        notes: dict[int, Note] = {}
        stream = self._prepare(stream, describe, valid_rows, notes, numbered, find_parts, find_seed)
        is_new = is_new or options.transform_arrow is not None  # copied when it is called
        if options.transform_arrow is not None or source.column_names is None:
            names = [field.name for field in stream.schema.children]
            options.check_columns(names)
            if options.transform_arrow is None:
                source.vocabulary.check_names(names)
        if options.pad_last:
            stream = pad_batches(stream, batch_size, valid_rows)
        read_type = stream.device_type
        is_readable = _core.is_host_readable((read_type, 0))
        padding = Padding(stream.schema, options.columns) if is_readable else None
        self._padding = padding or None
        depth = options.prefetch
        device = options.find_device()
        self._copies = None if device is None else HostCopies(is_ahead=depth > 0)
        draws = self._make_draws(find_seed, device)
        if device is None:
            # pyarrow decodes files ahead by itself, and slices need no thread.
            is_gathered = self._is_gathered()
            is_ready = isinstance(source, IndexedSource) and (not is_gathered or source.is_small)
            depth = 0 if is_ready and options.transform_arrow is None else depth
        elif self._can_convert_on_device(stream, device):
            stream = stream.to(device)
        else:
            to_tensors = self._choose_converter({})  # copied into a block anyway
            is_kept = options.maps_kept or (numbered is not None and bool(options.steps))
            count, clock = self.count_padding, self._clock
            packer = Packer(to_tensors, device, count, clock, keeps_rows=is_kept)
            messages = pack_ahead(stream, packer, depth)
            if not self._has_outcomes(numbered):
                return messages, self._then_finish(Message.read, draws, self._finish)
            items = Items(messages, valid_rows, notes)
            retry = self._make_retry(numbered, None, keeps_rows=True)
            finish = self._finish
            made = Chain(Message.read, options, draws, batch_size, packer, retry, finish, read)
            return items, made
        keeps_rows = find_parts is not None and bool(options.steps)
        is_own = not keeps_rows and (is_new or stream.device_type != read_type)
        convert = self._choose_converter(self._choose_access(is_new=is_own))
        stream = stream.prefetch(depth) if depth else stream
        finish = None if options.num_threads else self._finish
        if not self._has_outcomes(numbered):
            return self._open_steps(stream, self._then_finish(convert, draws, finish))
        retry = self._make_retry(numbered, device, keeps_rows=keeps_rows)
        move = _keep if device is None else methodcaller("to", device)
        made = Chain(convert, options, draws, batch_size, move, retry, finish, read)
        return self._open_steps(Items(stream, valid_rows, notes), made)

    def _prepare(
        self,
        stream: _core.DeviceStream,
        describe: Callable[[int], str],
        valid_rows: dict[int, int],
        notes: dict[int, Note],
        numbered: Numbered | None,
        find_parts: FindParts | None,
        find_seed: FindSeed,
    ) -> _core.DeviceStream:
        """Drop rows that could not be read, and call `transform_arrow`; see `open_arrays`."""
        if numbered is not None:
            stream = drop_missing(stream, numbered, valid_rows, notes, find_parts)
        if self.options.transform_arrow is not None:
            skip = None if numbered is None else SkipArrow(numbered, valid_rows, notes)
            stream = self._transform_arrow(stream, describe, skip, find_seed)
        return stream

    def _open_steps(self, items: Any, convert: Convert) -> tuple[Any, Convert]:
        """Return what `open_arrays` does: the batches' steps, in threads if there are some."""
        threads, ahead = self.options.num_threads, self.options.prefetch
        if not threads:
            return items, convert
        call = convert if isinstance(convert, (Transform, Chain)) else _drop_index(convert)
        made = convert_in_threads(items, call, threads, ahead, self.count_padding)
        return made, Receive(self._finish)

    def _has_outcomes(self, numbered: Numbered | None) -> bool:
        return numbered is not None or self.options.filters

    def _make_retry(
        self, numbered: Numbered | None, device: _core.Device | None, *, keeps_rows: bool
    ) -> Retry | None:
        """Return how steps are called again, with rows on `device`."""
        if numbered is None:
            return None
        sample: Callable[[], Iterable[_core.DeviceArray]] = partial(sample_rows, numbered, device)
        if self.options.transform_arrow is not None:  # it would have to be called for them, too
            sample = tuple
        return Retry(numbered, sample, keeps_rows=keeps_rows)

    def _make_draws(self, find_seed: FindSeed, device: _core.Device | None) -> Draws:
        """Return the draws of the steps, whose batches are on `device`."""
        options = self.options
        return Draws(
            find_seed,
            "transform",
            options.tensor_framework,
            device,
            sets_seeds=options.seed_transforms,
        )

    def choose_divider(self) -> Divide:
        """Return what says what a wait was spent on; see `SharePipeline`."""
        clocks = [source.clock for source in self._list_sources() if source.clock is not None]
        return Waits([self._clock, *clocks], self._copies).divide

    def find_finish(self) -> Finish | None:
        """Return what finishes each batch; see `SharePipeline`."""
        return self._finish

    def choose_counter(self) -> Callable[[Any], Counts] | None:
        """Return what counts the padding of an item; see `SharePipeline`."""
        return None if self._padding is None else self.count_padding

    def count_padding(self, item: Any) -> Counts:
        """Count the values of padded columns in an item, and the padding."""
        if isinstance(item, Item):
            item = item.content
        if isinstance(item, (Message, Pending)):
            return item.padding
        return (0, 0) if self._padding is None else self._padding.count(item)

    def make_converter(self, *, is_new: bool, find_seed: FindSeed) -> Convert:
        """Return what makes the batch of an array of rows.

        Parameters
        ----------
        is_new : bool
            Whether the memory of the rows has no other user. Other rows are copied if batches may
            be written to.
        find_seed : callable
            As of `Draws`.
        """
        convert = self._choose_converter(self._choose_access(is_new=is_new))
        return self._then_finish(convert, self._make_draws(find_seed, None), self._finish)

    def _choose_access(self, *, is_new: bool) -> dict[str, Any]:
        if not self.options.exposes_writable_tensors:
            return {}
        return {"_own": True} if is_new else {"copy": True}

    def _read(self, source: Source, reader: Reader) -> tuple[_core.DeviceStream, FindParts | None]:
        """Read one worker's share; return what finds the parts of a batch, if it has several."""
        splits = reader.sharding.splits
        if splits is None or isinstance(source, StreamSource):
            parts = None if splits in (None, 1) else partial(find_stream_parts, reader)
            return read_batches(source, self._order, reader), parts
        reads_ahead = self.options.prefetch > 0 and not self._is_gathered()
        return read_splits(source, self._order, reader, self.plan, reads_ahead=reads_ahead)

    def _is_gathered(self) -> bool:
        """Whether a native thread copies rows into new memory ahead."""
        options = self.options
        return (
            options.shuffle
            or options.pack is not None
            or options.bucket_by is not None
            or isinstance(self.source, MixedSource)
        )

    def finish(self, batch: Any) -> Any:
        """Do what only the training's process can do: global arrays, pinned memory."""
        return batch if self._finish is None else self._finish(batch)

    def _choose_converter(self, access: Mapping[str, Any]) -> Convert:
        options = self.options
        convert = choose_converter(options.tensor_framework, options.stack, options.columns, access)
        # Columns of transform_arrow need not be those of the files.
        is_read = options.transform_arrow is None
        return explain_errors(convert, self.source.find_nulls if is_read else _find_none)

    def _transform_arrow(
        self,
        stream: _core.DeviceStream,
        describe: Callable[[int], str],
        skip: SkipArrow | None,
        find_seed: FindSeed,
    ) -> _core.DeviceStream:
        function, sets_seeds = self.options.transform_arrow, self.options.seed_transforms
        assert function is not None
        return transform_stream(
            stream,
            function,
            Draws(find_seed, "transform_arrow", "numpy", None, sets_seeds=sets_seeds),
            self.source.vocabulary,
            describe,
            self._clock,
            copy=self._copies_transformed(),
            skip=skip,
        )

    def _copies_transformed(self) -> bool:
        """Whether to copy what `transform_arrow` returns.

        It may keep and reuse the memory. A worker process copies each batch before the next one.
        """
        return self.options.writable

    def _can_convert_on_device(self, stream: _core.DeviceStream, device: _core.Device) -> bool:
        is_on_device = not _core.is_host_readable((stream.device_type, 0))
        if is_on_device or _core.is_host_readable(device):
            return True
        reads_on_host = self.options.stack or self.options.dtype is not None
        return not reads_on_host and can_convert_on_device(stream.schema)

    def _then_finish(self, convert: Convert, draws: Draws, finish: Convert | None) -> Convert:
        """Return `convert`, followed by the steps and `finish`."""
        if self.options.steps:
            functions = [step.function for step in self.options.steps]
            return Transform(convert, functions, draws, finish)
        if finish is None:
            return convert
        return lambda item: finish(convert(item))


def _keep(rows: _core.DeviceArray) -> _core.DeviceArray:
    return rows


def _find_none(column: str) -> str:
    return ""


def _drop_index(convert: Convert) -> Callable[[Any, int], Any]:
    return lambda item, index: convert(item)


def _describe_batches(reader: Reader) -> Callable[[int], str]:
    """Return what describes a batch by its index among those that `reader` has left to read."""
    done = reader.count_own(reader.position.batches)
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

    def open(self, reader: Reader) -> tuple[Any, Convert]:
        """Open the share of a whole rank; see `SharePipeline`."""
        return self._read(reader), self._convert

    def choose_divider(self) -> Divide:
        """Return what says what a wait was spent on; see `SharePipeline`."""
        return Waits([self._clock], None).divide

    def find_finish(self) -> Finish | None:
        """Return what finishes each batch; see `SharePipeline`."""
        return self._pipeline.find_finish()

    def choose_counter(self) -> Callable[[Message], Counts]:
        """Return what gives the worker's counts; see `SharePipeline`."""
        return attrgetter("padding")

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
        device = options.find_device()
        pool, self._pool = self._pool, None
        if pool is None or not pool.is_of_this_process():
            pool = WorkerPool(self._pipeline.for_workers(), options.num_workers)
        messages = pool.read(
            position.to_state(),
            reader.rank,
            reader.sharding.world_size,
            range(position.batches, self._pipeline.count_batches(position) or sys.maxsize),
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
