"""`Loader`: an Arrow source as batches of tensors, epoch after epoch."""

from __future__ import annotations

import copy
import operator
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from arrowdl import _core
from arrowdl.loader._batches.convert import can_convert_there, choose_converter, pin
from arrowdl.loader._batches.pad import pad_batches
from arrowdl.loader._batches.to_device import copy_ahead, pack_ahead
from arrowdl.loader._epoch.read import Order, Reader, read_batches
from arrowdl.loader._epoch.sharding import Rest, Sharding, count_batches
from arrowdl.loader._epoch.state import STATE_VERSION, Position, find_state
from arrowdl.loader._epoch.world import find_world
from arrowdl.loader._integrations.jax import make_global
from arrowdl.loader._progress import Bar, NoBar
from arrowdl.loader._sources.base import IndexedSource, StreamSource, fingerprint
from arrowdl.loader._sources.open import open_source
from arrowdl.loader._stats import Stats
from arrowdl.loader._workers.wire import CONVERTERS, Message

if TYPE_CHECKING:
    from arrowdl.loader._integrations.grain import GrainDataset
    from arrowdl.loader._integrations.torch import TorchDataset
    from arrowdl.loader._workers.pool import WorkerPool


_TORCH_ADVICE = "DataLoader(loader.torch_dataset(), batch_size=None)"


class Loader:
    """Batches of tensors from any Arrow source, for training.

    Parameters
    ----------
    source : object
        For many epochs: paths and globs of Parquet or Arrow IPC files or directories of them, a
        ``pyarrow.dataset.Dataset``, a pyarrow table, a polars frame or lazy frame (collected once),
        a pandas frame, a DuckDB relation, a Lance or Hugging Face dataset, a list of record
        batches, a function that makes an Arrow stream. For one pass: an Arrow stream.
    batch_size : int
        Rows of a batch on this rank.
    columns : sequence of str, optional
        What to read. All columns by default.
    filter : pyarrow.dataset.Expression, optional
        Rows to read, of files and datasets: row groups that have none are not.
    framework : {'torch', 'jax', 'numpy'}
    device : device, optional
        Where the batches are copied to (see `DeviceArray.to`), ahead of the training and by way of
        pinned memory.
    shuffle : bool
        Row groups (or pieces of tables) in another order each epoch, then windows of `buffer_size`
        consecutive rows of that, each permuted. Streams have their windows permuted only.
    seed : int
        Of the shuffles. The same seed, epoch and source give the same batches on every machine.
    drop_last : bool
        Leave incomplete batches out. Otherwise the last batch of a rank may be shorter than
        `batch_size`, and may be one row that another rank has as well, where this one would have
        one batch less than the others: see `valid_rows`.
    rank, world_size : int, optional
        This process among those that share the rows. By default what ``torch.distributed`` says
        where it is initialised, then the variables ``RANK`` and ``WORLD_SIZE``, then JAX's
        process index; 0 of 1 otherwise.
    prefetch : int
        Batches that a native thread reads, shuffles or copies to `device` ahead; 0 for none. Files
        and tables in their order on the CPU need no thread: pyarrow decodes files ahead by itself.
        With `num_workers`, how far each of them is ahead (at least 1), and how many copies to
        `device` are.
    num_workers : int
        Processes that read and run `transform`, for one in Python that takes long; 0 for none:
        threads are enough for all else. Each reads a share of the rank's batches, and they take
        turns: the batches are those without workers, in another order. They start with the first
        epoch, import the main module, get a copy of the source (of its paths, where it has some),
        and end with the loader, or when an epoch is left in the middle. Batches come through shared
        memory, which is used again when nothing made of it is alive.
    pad_last : bool
        Every batch has `batch_size` rows, and a column ``"valid"`` of bool: a last batch that is
        shorter is filled up with rows of its own, where that is False, as it is for a row that
        another rank has as well. For compilers of stable shapes, JAX's above all, and for metrics.
    sharding : jax.sharding.Sharding, optional
        Batches are JAX's global arrays: this process has `batch_size` rows of each, and
        ``jax.make_array_from_process_local_data`` puts them on its devices. `transform` gets NumPy
        arrays then.
    memory_map : bool
        Map Arrow IPC files of the local file system into memory, for their pages to be read when
        they are touched. A mapped file that another process cuts short ends this one (SIGBUS);
        False reads the files instead, in the order of whole files.
    nulls, ragged : str
        As of `to_torch`.
    writable : bool
        Whether batches may be written to, ``batch["x"] /= 2`` say, without a change of the source
        or of another batch. Files are mapped privately for that, and what is somebody else's, rows
        of a table or a stream in their order, is copied, once. With False what lies in memory
        already is given out as it is, at its address: it must not be written to then.
    stack : bool or mapping of str to sequence of str, optional
        Columns side by side as one matrix: all of them (the batch is the matrix), or under each
        name those listed; the others stay.
    transform : callable, optional
        Called on each batch; what it returns is given out.
    pin_memory : bool, optional
        Batches in pinned memory, for copies of your own to a GPU (torch). `device` needs none.
    buffer_size : int
        Rows of a window of the shuffle, which are held in memory.
    progress : bool
        Show a bar of tqdm.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        A source that cannot be read, or an argument that means nothing.
    OSError
        On reading: a file has changed since the Loader was made.

    Notes
    -----
    Iterating reads the present epoch from its start, or from where a loaded state stands, and the
    next one follows when it is through. An epoch that was left in the middle starts again.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int,
        *,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        framework: Literal["torch", "jax", "numpy"] = "torch",
        device: Any = None,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        prefetch: int = 2,
        num_workers: int = 0,
        pad_last: bool = False,
        sharding: Any = None,
        memory_map: bool = True,
        nulls: Literal["raise", "fill", "nan", "mask"] = "raise",
        ragged: Literal["jagged", "padded", "offsets"] = "jagged",
        writable: bool = True,
        stack: bool | Mapping[str, Sequence[str]] | None = None,
        transform: Callable[[Any], Any] | None = None,
        pin_memory: bool | None = None,
        buffer_size: int = 65_536,
        progress: bool = False,
    ) -> None:
        batch_size = _require_int("batch_size", batch_size, 1, 2**40)
        prefetch = _require_int("prefetch", prefetch, 0, 2**40)
        num_workers = _require_int("num_workers", num_workers, 0)
        buffer_size = _require_int("buffer_size", buffer_size, 1, 2**32 - 1)
        if framework not in CONVERTERS:
            raise ValueError(f"framework={framework!r}: expected one of {', '.join(CONVERTERS)}")
        if sharding is not None and (framework != "jax" or device is not None):
            raise ValueError('sharding= is for framework="jax", and in place of device=')
        if pad_last and (drop_last or stack is True):
            raise ValueError(
                "pad_last=True keeps the last batch, which drop_last=True leaves out, and adds a "
                "column, which one matrix of all columns has no place for: give up one of them"
            )
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size belong together: give both or none")
        if rank is not None and world_size is not None:
            world_size = _require_int("world_size", world_size, 1)
            rank = _require_int("rank", rank, 0)
            if rank >= world_size:
                raise ValueError(f"rank {rank} of world_size {world_size}: count ranks from 0")
        if transform is not None and not callable(transform):
            raise TypeError(f"transform={transform!r}: give a function of one batch")
        if pin_memory and framework != "torch":
            raise ValueError(f'pin_memory=True is for framework="torch", not {framework!r}')
        self.batch_size = batch_size
        self._framework = framework
        self._sharding = sharding
        self._pad_last = pad_last
        self._device = device
        self._shuffle = bool(shuffle)
        self._seed = _require_int("seed", seed)
        self._drop_last = bool(drop_last)
        self._rank, self._world_size = rank, world_size
        self._prefetch = prefetch
        self._num_workers = num_workers
        self._pool: WorkerPool | None = None
        self._options = {"nulls": nulls, "ragged": ragged}
        self._is_writable = bool(writable)
        self._stack = _read_stack(stack)
        self._transform = transform
        self._pin_memory = bool(pin_memory)
        self._buffer_rows = buffer_size
        self._progress = progress
        self._order = Order(self._seed, buffer_size if self._shuffle else None)
        opened = open_source(source, columns, filter, bool(memory_map))
        self._identity = fingerprint(opened) if isinstance(opened, IndexedSource) else "stream"
        if self._shuffle and isinstance(opened, IndexedSource):
            opened = opened.cut_for_shuffle()
        self._source = opened
        self._position = Position()
        self._stats = Stats()
        self._own_rows = 0

    # ---- reading

    def __iter__(self) -> Iterator[Any]:
        rank, world_size = self._find_world()
        if self._num_workers:
            return self._iterate(self._begin(rank, world_size, None, self._num_workers))
        return self._iterate(self._begin(rank, world_size))

    def _begin(
        self,
        rank: int,
        world_size: int,
        worker: int | None = 0,
        workers: int = 1,
        *,
        may_go_on: bool = True,
    ) -> Reader:
        """Start the epoch, or what is left of it, for one of `workers` of `rank`.

        Iterators that are under way have no more part in where the loader stands.
        """
        self._position = self._find_next()
        sharding = self._shard(world_size, workers)
        self._position.begin(sharding, may_go_on)
        return Reader(self._position, rank, worker, sharding)

    def _find_next(self) -> Position:
        """Where the next reader begins."""
        before = self._position
        # Who knows the length, as Lightning does, asks for no more than the last batch.
        is_through = before.is_begun and before.batches == self._count_batches(before)
        return Position(before.epoch + 1) if is_through else before.for_next_reader()

    def _count_batches(self, position: Position) -> int | None:
        """Batches of its stage on each rank; None before it and where nobody knows."""
        sharding = position.sharding
        if sharding is None or isinstance(self._source, StreamSource):
            return None
        return count_batches(len(Rest(self._source.num_rows, position.stages)), sharding) or None

    def _shard(self, world_size: int, workers: int = 1) -> Sharding:
        return Sharding(world_size, workers, self.batch_size, self._drop_last)

    def _iterate(self, reader: Reader) -> Iterator[Any]:
        stats, position, now = self._stats, reader.position, time.perf_counter
        process = os.getpid()
        own = reader.count_own(position.batches)
        stream: Any
        convert: Callable[[Any], Any]
        if reader.worker is None:
            stream, convert = self._read_workers(reader), self._read_message
        else:
            stream, convert = self._open_stream(reader)
        with closing(stream), self._make_bar() as bar:
            begin = now()
            for number in count():
                if os.getpid() != process:
                    raise RuntimeError(
                        "this epoch is read by threads or workers of another process, the one that "
                        "was forked: iterate the Loader in the process that reads it"
                    )
                array = next(stream, None)
                read = now()
                stats.source_seconds += read - begin
                if array is None:
                    break
                batch = convert(array)
                rows = reader.valid_rows.pop(number, len(array))
                stats.bytes += array.nbytes
                del array
                given = now()
                stats.conversion_seconds += given - read
                stats.batches += 1
                stats.rows += rows
                own += 1
                position.give(reader.count_all(own))
                self._own_rows = rows
                bar(rows)
                yield batch
                del batch  # its memory may go back before the next one is made
                begin = now()
                stats.consumer_seconds += begin - given
        if isinstance(self._source, IndexedSource):
            self._source.check_read()
        if self._position is position:
            self._position = Position(position.epoch + 1)

    def _read_workers(self, reader: Reader) -> Iterator[Message]:
        from arrowdl.loader._workers.pool import WorkerPool

        pool, self._pool = self._pool, None
        if pool is None or not pool.is_of_this_process():
            pool = WorkerPool(self._copy_for_worker(), self._num_workers)
        messages = pool.read(
            self._describe(reader.position),
            reader.rank,
            reader.sharding.world_size,
            range(reader.position.batches, self._count_batches(reader.position) or sys.maxsize),
            max(1, self._prefetch),
        )
        try:
            with closing(messages):
                if self._device is None:
                    yield from messages
                else:
                    yield from copy_ahead(messages, pool.is_ready, self._device, self._prefetch)
        finally:
            if pool.is_idle:
                self._pool = pool  # for the next epoch

    def _copy_for_worker(self) -> Loader:
        """What only reads and transforms: the rest is done where the training is."""
        worker = copy.copy(self)
        worker._num_workers = worker._prefetch = 0
        worker._device = worker._pool = None
        worker._is_writable = self._is_writable and self._transform is not None  # copied anyway
        worker._pin_memory = worker._progress = False
        if self._sharding is not None:
            worker._sharding, worker._framework = None, "numpy"
        worker._stats = Stats()
        return worker

    def _read_message(self, message: Message) -> Any:
        return self._finish(message.read())

    def _finish(self, batch: Any) -> Any:
        """What is done where the training is, with workers or without."""
        if self._sharding is not None:
            return make_global(self._sharding, batch)
        return pin(batch) if self._pin_memory else batch

    def _open_stream(self, reader: Reader) -> tuple[Any, Callable[[Any], Any]]:
        """What comes for each batch, read ahead, and what makes the batch of it."""
        writes = self._is_writable and self._may_write
        source = self._source
        if writes and isinstance(source, IndexedSource):
            source = source.for_writing()
        stream = read_batches(source, self._order, reader)
        if self._pad_last:
            stream = pad_batches(stream, self.batch_size, reader.valid_rows)
        read_type = stream.device_type
        if self._device is None:
            # In order, files are decoded ahead by pyarrow, and slices are no work for a thread.
            is_plain = not self._shuffle and isinstance(self._source, IndexedSource)
            depth = 0 if is_plain else self._prefetch
        elif self._can_convert_there(stream.schema):
            stream, depth = stream.to(self._device), self._prefetch
        else:
            to_tensors = self._choose_converter({})  # copied into a block anyway
            messages = pack_ahead(stream, to_tensors, self._device, self._prefetch)
            return messages, self._then_finish(Message.read)
        access: dict[str, Any] = {}
        if writes:
            is_copied = self._shuffle or stream.device_type != read_type
            access = {"copy": True} if source.is_shared and not is_copied else {"_own": True}
        to_tensors = self._choose_converter(access)
        return stream.prefetch(depth) if depth else stream, self._then_finish(to_tensors)

    def _choose_converter(self, access: Mapping[str, Any]) -> Callable[[Any], Any]:
        return choose_converter(self._tensors_of, self._stack, {**self._options, **access})

    @property
    def _may_write(self) -> bool:
        """Whether somebody gets tensors that can be written to at all: JAX's cannot."""
        if self._sharding is not None:
            return self._transform is not None
        return self._framework != "jax"

    def _can_convert_there(self, schema: _core.Schema) -> bool:
        if _core.is_host_readable(self._device):
            return True
        return not self._stack and can_convert_there(schema)

    @property
    def _tensors_of(self) -> str:
        return self._framework if self._sharding is None else "numpy"

    def _then_finish(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`convert`, the transform, and what is left to do."""
        steps = [] if self._transform is None else [self._transform]
        if self._pin_memory or self._sharding is not None:
            steps.append(self._finish)
        if not steps:
            return convert

        def convert_and_finish(item: Any) -> Any:
            batch = convert(item)
            for step in steps:
                batch = step(batch)
            return batch

        return convert_and_finish

    def _find_world(self) -> tuple[int, int]:
        if self._rank is not None and self._world_size is not None:
            return self._rank, self._world_size
        return find_world(self._framework)

    def _make_bar(self) -> Any:
        return Bar(self) if self._progress else NoBar()

    # ---- epochs and states

    @property
    def epoch(self) -> int:
        """The epoch that iterating reads, from 0."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Read `epoch` from its start, when iterated next."""
        self._position = Position(_require_int("epoch", epoch, 0))

    @property
    def valid_rows(self) -> int:
        """Rows of the batch given out last that are this rank's own; they come first in it.

        Fewer than it has where it was filled up (`pad_last`), and 0 where it repeats a row of
        another rank, which has one batch more to read: a metric leaves the others out.
        """
        return self._own_rows

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank: one that is resumed has fewer.

        Raises
        ------
        TypeError
            The source is a stream, which does not know its rows.
        """
        if isinstance(self._source, StreamSource):
            raise TypeError(
                "a Loader over a stream has no length: nobody has counted its rows. PyTorch's "
                f"DataLoader needs none: {_TORCH_ADVICE}"
            )
        _, world_size = self._find_world()
        return count_batches(self._source.num_rows, self._shard(world_size))

    def __getitem__(self, index: Any) -> NoReturn:
        """Not there, and the one who asks is as a rule a ``DataLoader`` that was given this."""
        raise TypeError(
            "a Loader is iterated, and has no batch number "
            f"{index!r}. For PyTorch's DataLoader: {_TORCH_ADVICE}"
        )

    def state_dict(self) -> dict[str, Any]:
        """Where this loader stands, for `load_state_dict`.

        Every rank has the same state after the same number of batches: one is enough for all. What
        was prefetched and not given out is not part of it.

        Returns
        -------
        dict
            Of JSON's types, some hundred bytes.
        """
        return self._describe(self._position)

    def _describe(self, position: Position) -> dict[str, Any]:
        return {
            "version": STATE_VERSION,
            "source": self._identity,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "buffer_size": self._buffer_rows,
            **position.to_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on, when iterated next, where a loader stood when it gave `state`.

        No row is missing and none comes twice, whatever the number of ranks, the number of workers
        or the batch size are now.

        Parameters
        ----------
        state : mapping
            Of `state_dict` on any rank, or of torchdata's ``StatefulDataLoader`` over `dataset`.

        Raises
        ------
        ValueError
            The state is of another source or shuffle, whose rows come in another order, or none
            that a Loader can have given.
        """
        state = find_state(state)
        own = self.state_dict()
        meanings = {"source": "dataset", "shuffle": "shuffle"}
        if self._shuffle:
            meanings |= {"seed": "seed", "buffer_size": "buffer_size"}
        for key, meaning in meanings.items():
            if state[key] != own[key]:
                raise ValueError(
                    f"the state is of another {meaning} ({state[key]!r}, here {own[key]!r}): its "
                    "rows come in another order, and some would be missing or come twice"
                )
        position = Position.from_state(state)
        if isinstance(self._source, IndexedSource):
            position.check_rows(self._source.num_rows)
        self._position = position

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: a reader of its own, at the same place."""
        position = copy.deepcopy(self._position)
        return {**self.__dict__, "_pool": None, "_stats": Stats(), "_position": position}

    # ---- for people

    def stats(self) -> Stats:
        """What was read so far, and what it waited for."""
        return self._stats

    def torch_dataset(self) -> TorchDataset:
        """An `IterableDataset` of whole batches, for ``DataLoader(..., batch_size=None)``.

        Its worker processes share the rows of this rank. Each iteration of a DataLoader that has
        such is the next epoch, counted from where this loader stands; the loader itself stays
        there, and knows no state of them: torchdata's ``StatefulDataLoader`` does.
        """
        from arrowdl.loader._integrations.torch import TorchDataset

        return TorchDataset(self)

    def grain_dataset(self) -> GrainDataset:
        """A ``grain.IterDataset`` of whole batches, whose iterators have states."""
        from arrowdl.loader._integrations.grain import GrainDataset

        return GrainDataset(self)

    def __repr__(self) -> str:
        rows = "" if isinstance(self._source, StreamSource) else f"{self._source.num_rows} rows, "
        order = f"shuffled with seed {self._seed}" if self._shuffle else "in order"
        return (
            f"<arrowdl.Loader of {rows}batches of {self.batch_size} for {self._framework}, "
            f"{order}, epoch {self.epoch}>"
        )


def _require_int(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """`value` as an int; NumPy's are as good."""
    limits = "" if least is None else f" of at least {least}"
    limits += "" if most is None else f" and at most {most}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{name}={value!r}: expected an int{limits}")
    number = operator.index(value)
    if (least is not None and number < least) or (most is not None and number > most):
        raise ValueError(f"{name}={value!r}: expected an int{limits}")
    return number


def _read_stack(stack: Any) -> bool | dict[str, list[str]]:
    if stack is None or isinstance(stack, bool):
        return bool(stack)
    if not isinstance(stack, Mapping):
        raise TypeError(f'stack={stack!r}: give True, or names and their columns, {{"x": ["a"]}}')
    for name, columns in stack.items():
        if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
            raise TypeError(f"stack={stack!r}: give a list of at least one column as {name!r}")
    return {name: list(columns) for name, columns in stack.items()}
