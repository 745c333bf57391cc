"""`Loader`: an Arrow source as batches of tensors, epoch after epoch."""

from __future__ import annotations

import hashlib
import operator
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from arrowdl import _core
from arrowdl.loader._open import open_source
from arrowdl.loader._order import (
    Span,
    Stage,
    choose_part,
    count_batches,
    find_rest,
)
from arrowdl.loader._sources import IndexedSource, StreamSource, fingerprint

if TYPE_CHECKING:
    from arrowdl.loader._torch_dataset import TorchDataset

_CONVERTERS = {"torch": _core.to_torch, "jax": _core.to_jax, "numpy": _core.to_numpy}
_STATE_VERSION = 1


@dataclass
class Stats:
    """What a `Loader` has done since it was made.

    Attributes
    ----------
    batches, rows : int
    waiting_on_source : float
        Seconds in which the training waited for the next batch to be read.
    converting : float
        Seconds of making tensors, `transform` included.
    consumer : float
        Seconds between batches: the training itself.
    """

    batches: int = 0
    rows: int = 0
    waiting_on_source: float = 0.0
    converting: float = 0.0
    consumer: float = 0.0

    @property
    def bottleneck(self) -> Literal["source", "conversion", "consumer"]:
        """What takes most of the time."""
        seconds: dict[Literal["source", "conversion", "consumer"], float] = {
            "source": self.waiting_on_source,
            "conversion": self.converting,
            "consumer": self.consumer,
        }
        return max(seconds, key=lambda name: seconds[name])


@dataclass
class _Position:
    """Where an epoch stands: what was read of it, by any number of ranks."""

    epoch: int = 0
    stages: list[Stage] = field(default_factory=list)


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
        Where the batches are copied to (see `DeviceArray.to`), ahead of the training.
    shuffle : bool
        Row groups (or pieces of tables) in another order each epoch, then windows of `buffer_rows`
        consecutive rows of that, each permuted. Streams have their windows permuted only.
    seed : int
        Of the shuffles. The same seed, epoch and source give the same batches on every machine.
    drop_last : bool
        Leave incomplete batches out. Otherwise the last batch of a rank may be shorter than
        `batch_size`, and one row may be repeated, where a rank would have one batch less than the
        others.
    rank, world_size : int, optional
        This process among those that share the rows. By default what ``torch.distributed`` says
        where it is initialised, then the variables ``RANK`` and ``WORLD_SIZE``, then JAX's
        process index; 0 of 1 otherwise.
    prefetch : int
        Batches that a native thread reads ahead; 0 for none.
    nulls, ragged : str
        As of `to_torch`.
    stack : bool or mapping of str to sequence of str, optional
        Columns side by side as one matrix: all of them (the batch is the matrix), or under each
        name those listed; the others stay.
    transform : callable, optional
        Called on each batch; what it returns is given out.
    pin_memory : bool, optional
        Batches in pinned memory, for copies of your own to a GPU (torch). `device` needs none.
    buffer_rows : int
        Rows of a window of the shuffle, which are held in memory.
    progress : bool
        Show a bar of tqdm.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        A source that cannot be read, or an argument that means nothing.

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
        nulls: Literal["raise", "fill", "nan", "mask"] = "raise",
        ragged: Literal["jagged", "padded"] = "jagged",
        stack: bool | Mapping[str, Sequence[str]] | None = None,
        transform: Callable[[Any], Any] | None = None,
        pin_memory: bool | None = None,
        buffer_rows: int = 65_536,
        progress: bool = False,
    ) -> None:
        batch_size = _require_int("batch_size", batch_size, 1, 2**40)
        prefetch = _require_int("prefetch", prefetch, 0, 2**40)
        buffer_rows = _require_int("buffer_rows", buffer_rows, 1, 2**32 - 1)
        if framework not in _CONVERTERS:
            raise ValueError(f"framework={framework!r}: expected one of {', '.join(_CONVERTERS)}")
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
        self._device = device
        self._shuffle = bool(shuffle)
        self._seed = _require_int("seed", seed)
        self._drop_last = bool(drop_last)
        self._rank, self._world_size = rank, world_size
        self._prefetch = prefetch
        self._options = {"nulls": nulls, "ragged": ragged}
        self._stack = _read_stack(stack)
        self._transform = transform
        self._pin_memory = bool(pin_memory)
        self._buffer_rows = buffer_rows
        self._progress = progress
        opened = open_source(source, columns, filter)
        self._identity = fingerprint(opened) if isinstance(opened, IndexedSource) else "stream"
        if self._shuffle and isinstance(opened, IndexedSource):
            opened = opened.cut_for_shuffle()
        self._source = opened
        self._position = _Position()
        self._batches_read = 0  # since `_position`, by each of `_readers`
        self._readers = 1
        self._stats = Stats()

    # ---- reading

    def __iter__(self) -> Iterator[Any]:
        return self._start(*self._find_world())

    def _start(self, rank: int, world_size: int) -> Iterator[Any]:
        """The batches of one of `world_size` readers."""
        is_begun = self._batches_read > 0
        stages = [] if is_begun else self._position.stages
        self._set_position(_Position(self._position.epoch, stages))
        self._readers = world_size
        return self._iterate(self._position, rank, world_size)

    def _set_position(self, position: _Position) -> None:
        """What iterators that are under way have no more part in."""
        self._position = position
        self._batches_read = 0

    def _iterate(self, position: _Position, rank: int, world_size: int) -> Iterator[Any]:
        stats = self._stats
        convert = self._make_converter()
        opened = self._open_stream(position, rank, world_size)
        with closing(opened) as stream, self._make_bar() as bar:
            while True:
                begin = time.perf_counter()
                array = next(stream, None)
                read = time.perf_counter()
                stats.waiting_on_source += read - begin
                if array is None:
                    break
                batch = convert(array)
                rows = len(array)
                del array
                given = time.perf_counter()
                stats.converting += given - read
                stats.batches += 1
                stats.rows += rows
                if self._position is position:
                    self._batches_read += 1
                bar(rows)
                yield batch
                del batch  # its memory may go back before the next one is made
                stats.consumer += time.perf_counter() - given
        if self._position is position:
            self._set_position(_Position(position.epoch + 1))

    def _open_stream(self, position: _Position, rank: int, world_size: int) -> _core.DeviceStream:
        if isinstance(self._source, StreamSource):
            stream = self._open_sequence(self._source, position, rank, world_size)
        else:
            stream = self._open_spans(self._source, position, rank, world_size)
        if self._device is not None:
            stream = stream.to(self._device)
        return stream.prefetch(self._prefetch) if self._prefetch else stream

    def _open_spans(
        self, source: IndexedSource, position: _Position, rank: int, world_size: int
    ) -> _core.DeviceStream:
        rest = find_rest([Span(0, source.num_rows)], position.stages)
        spans = choose_part(rest, rank, world_size, *self._batching)
        if len(spans) <= 1:
            stream = self._read_span(source, position.epoch, spans[0] if spans else Span(0, 0))
        else:
            stream = _core.stream(
                array
                for span in spans
                for array in self._read_span(source, position.epoch, span).rebatch(self.batch_size)
            )
        return stream.rebatch(self.batch_size, drop_last=self._drop_last)

    def _read_span(self, source: IndexedSource, epoch: int, span: Span) -> _core.DeviceStream:
        units = range(len(source.units))
        if not self._shuffle:
            return source.read_rows(span.start, span.stop, units)
        order = _core.permute(len(units), self._make_seed(epoch, "units"))
        window = self._buffer_rows
        first = span.start // window
        stop = min(-(-span.stop // window) * window, source.num_rows)
        stream = source.read_rows(first * window, stop, order)
        stream = stream.shuffle(window, self._make_seed(epoch, "rows"), first_window=first)
        return stream.slice(span.start - first * window, len(span))

    def _open_sequence(
        self, source: StreamSource, position: _Position, rank: int, world_size: int
    ) -> _core.DeviceStream:
        stream = source.open(position.epoch)
        done = sum(stage.rows * stage.world_size for stage in position.stages)
        if self._shuffle:
            first = done // self._buffer_rows
            if first:
                stream = stream.slice(first * self._buffer_rows)
            seed = self._make_seed(position.epoch, "rows")
            stream = stream.shuffle(self._buffer_rows, seed, first_window=first)
            done -= first * self._buffer_rows
        if done:
            stream = stream.slice(done)
        stream = stream.rebatch(self.batch_size * world_size, drop_last=self._drop_last)
        return stream if world_size == 1 else stream.shard(rank, world_size, pad=True)

    @property
    def _batching(self) -> tuple[int, bool]:
        return self.batch_size, self._drop_last

    def _make_seed(self, epoch: int, purpose: str) -> int:
        """64 bits of the seed, the epoch and what they are for."""
        text = f"{self._seed} {epoch} {purpose}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    def _find_world(self) -> tuple[int, int]:
        if self._rank is not None and self._world_size is not None:
            return self._rank, self._world_size
        return _find_world(self._framework)

    # ---- making batches

    def _make_converter(self) -> Callable[[_core.DeviceArray], Any]:
        to_framework: Callable[..., Any] = _CONVERTERS[self._framework]
        options, stack, transform = self._options, self._stack, self._transform

        def convert(array: _core.DeviceArray) -> Any:
            batch = to_framework(array, **options)
            return batch if transform is None else transform(batch)

        def convert_stacked(array: _core.DeviceArray) -> Any:
            batch = to_framework(array, stack=True, **options)
            return batch if transform is None else transform(batch)

        def convert_groups(array: _core.DeviceArray) -> Any:
            batch = _stack_groups(to_framework, array, groups, options)
            return batch if transform is None else transform(batch)

        if not stack:
            converter = convert
        elif stack is True:
            converter = convert_stacked
        else:
            groups = stack
            converter = convert_groups
        if self._pin_memory:
            return lambda array: _pin(converter(array))
        return converter

    def _make_bar(self) -> Any:
        return _Bar(self) if self._progress else _NoBar()

    # ---- epochs and states

    @property
    def epoch(self) -> int:
        """The epoch that iterating reads, from 0."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Read `epoch` from its start, when iterated next."""
        self._set_position(_Position(_require_int("epoch", epoch, 0)))

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank: one that is resumed has fewer.

        Raises
        ------
        TypeError
            The source is a stream, which does not know its rows.
        """
        if isinstance(self._source, StreamSource):
            raise TypeError("a Loader over a stream has no length: nobody has counted its rows")
        _, world_size = self._find_world()
        return count_batches(self._source.num_rows, world_size, *self._batching)

    def state_dict(self) -> dict[str, Any]:
        """Where this loader stands, for `load_state_dict`.

        Every rank has the same state after the same number of batches: one is enough for all. What
        was prefetched and not given out is not part of it.

        Returns
        -------
        dict
            Of JSON's types, some hundred bytes.
        """
        stages = [(stage.world_size, stage.rows) for stage in self._position.stages]
        if self._batches_read:
            # Of a reader whose last batch is short, this is more than there is: so it is of all.
            stages.append((self._readers, self._batches_read * self.batch_size))
        return {
            "version": _STATE_VERSION,
            "source": self._identity,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "buffer_rows": self._buffer_rows,
            "epoch": self._position.epoch,
            "stages": [list(stage) for stage in stages],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on, when iterated next, where a loader stood when it gave `state`.

        No row is missing and none comes twice, whatever the number of ranks or the batch size are
        now.

        Raises
        ------
        ValueError
            The state is of another source, seed or shuffle, whose rows come in another order.
        """
        position = _read_state(state)
        own = self.state_dict()
        for key, meaning in (
            ("source", "dataset"),
            ("seed", "seed"),
            ("shuffle", "shuffle"),
            ("buffer_rows", "buffer_rows"),
        ):
            if state[key] != own[key]:
                raise ValueError(
                    f"the state is of another {meaning} ({state[key]!r}, here {own[key]!r}): its "
                    "rows come in another order, and some would be missing or come twice"
                )
        self._set_position(position)

    # ---- for people

    def stats(self) -> Stats:
        """What was read so far, and what it waited for."""
        return self._stats

    def dataset(self) -> TorchDataset:
        """An `IterableDataset` of whole batches, for ``DataLoader(..., batch_size=None)``.

        Its worker processes share the rows of this rank.
        """
        from arrowdl.loader._torch_dataset import TorchDataset

        return TorchDataset(self)

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


def _read_state(state: Any) -> _Position:
    known = {"version", "source", "seed", "shuffle", "buffer_rows", "epoch", "stages"}
    try:
        if state["version"] == _STATE_VERSION and known <= set(state):
            stages = [
                Stage(_require_int("ranks", ranks, 1), _require_int("rows", rows, 0))
                for ranks, rows in state["stages"]
            ]
            return _Position(_require_int("epoch", state["epoch"], 0), stages)
    except (TypeError, KeyError, ValueError):
        pass
    raise ValueError(f"not a state of a Loader of version {_STATE_VERSION}: {str(state)[:200]}")


def _stack_groups(
    to_framework: Callable[..., Any],
    array: _core.DeviceArray,
    groups: Mapping[str, list[str]],
    options: Mapping[str, str],
) -> dict[str, Any]:
    stacked = {name for columns in groups.values() for name in columns}
    rest = [name for name in array.field_names if name not in stacked]
    for name in groups:
        if name in rest:
            raise ValueError(
                f'stack: "{name}" is a column that is not stacked, and has its place in the batch: '
                "give the matrix another name"
            )
    batch: dict[str, Any] = {}
    for name, columns in groups.items():
        fields = _core.make_struct(columns, [array.field(column) for column in columns])
        batch[name] = to_framework(fields, stack=True, **options)
    for name in rest:
        batch[name] = to_framework(array.field(name), **options)
    return batch


def _pin(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {name: _pin(value) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_pin, batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(_pin(value) for value in batch)
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


def _find_world(framework: str) -> tuple[int, int]:
    torch = sys.modules.get("torch")
    if (
        torch is not None
        and torch.distributed.is_available()
        and torch.distributed.is_initialized()
    ):
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if framework == "jax":
        import jax

        return jax.process_index(), jax.process_count()
    return 0, 1


class _NoBar:
    def __enter__(self) -> Callable[[int], None]:
        return lambda rows: None

    def __exit__(self, *error: object) -> None:
        pass


class _Bar:
    def __init__(self, loader: Loader) -> None:
        from tqdm.auto import tqdm

        try:
            total: int | None = len(loader)
        except TypeError:
            total = None
        self._bar = tqdm(total=total, desc=f"epoch {loader.epoch}", unit="batch")

    def __enter__(self) -> Callable[[int], None]:
        return lambda rows: self._bar.update() and None

    def __exit__(self, *error: object) -> None:
        self._bar.close()
