"""`Assembly`: rows of an epoch to batches, by the steps that the options name.

A step is a file that knows no other: rows that cannot be read are dropped (`missing`), rows are
transformed (`transform_arrow`) and padded (`pad`). `to_device` copies them before or after
`convert` makes tensors, `transform` calls functions, or `chain` if rows may be dropped or skipped,
and `finish` ends in the training's process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.chain import Chain, Convert, Item, Items, Retry
from arrowdl.loader._batches.convert import can_convert_on_device, choose_converter
from arrowdl.loader._batches.draws import Draws, FindSeed
from arrowdl.loader._batches.explain import explain_errors
from arrowdl.loader._batches.failures import sample_rows
from arrowdl.loader._batches.finish import Finish
from arrowdl.loader._batches.missing import drop_missing
from arrowdl.loader._batches.note import FindParts, Note
from arrowdl.loader._batches.pack import Message
from arrowdl.loader._batches.pad import pad_batches
from arrowdl.loader._batches.padding import Counts, Padding
from arrowdl.loader._batches.skip_arrow import SkipArrow
from arrowdl.loader._batches.to_device import Packer, pack_ahead
from arrowdl.loader._batches.transform import Pending, Receive, Transform, convert_in_threads
from arrowdl.loader._batches.transform_arrow import transform_stream
from arrowdl.loader._batches.waits import HostCopies, Waits
from arrowdl.loader._clock import Clock, Work
from arrowdl.loader._options.functions import ArrowStep
from arrowdl.loader._options.options import Options
from arrowdl.loader._skip.numbers import Numbered, Place
from arrowdl.loader._sources.base import Source

CountPadding = Callable[[Any], Counts]
RowStep = Callable[["RowStream"], _core.DeviceStream]
_CPU = 1  # of DLDeviceType
Divide = Callable[[float, float, Any], Mapping[Work, float]]


@dataclass
class RowStream:
    """Rows of an epoch, an array for each batch."""

    stream: _core.DeviceStream
    describe: Callable[[int], str]  # describes a batch by its index, for errors
    valid_rows: dict[int, int]  # see `Reader`
    batch_size: int  # to which `pad_last` pads
    is_new: bool  # whether the memory of the rows has no other user
    find_seed: FindSeed  # see `Draws`
    numbered: Numbered | None = None  # of rows with numbers: rows that fail are skipped
    # finds the parts of an array that are skipped as a whole, if there are several
    find_parts: FindParts | None = None
    read: Callable[[], _core.DeviceStream] | None = None  # reads the rows of the epoch again
    # returns the file of a row, by the index of its array, and the row there; may read to find it
    locate: Callable[[int, int], Place] | None = None
    is_ready: bool = False  # whether they come fast enough without a thread that reads ahead
    # of arrays whose rows were skipped, by their index
    notes: dict[int, Note] = field(default_factory=dict)


@dataclass
class Share:
    """Batches that are being read."""

    items: Any  # an item for each batch, with `len`, its rows, and `nbytes`. It has `close`
    convert: Convert  # makes the batch of an item
    # attributes a wait for an item to reading, converting or copying; see `Waits.divide`
    divide: Divide
    # counts the values of padded columns in an item, and the padding; None without such columns
    count_padding: CountPadding | None = None
    finish: Finish | None = None  # what `convert` ends with


class Assembly:
    """Opens rows as batches."""

    def __init__(
        self,
        options: Options,
        source: Source,  # where the rows are from: its columns, vocabularies and clocks
        clock: Clock,  # of the threads that work on batches ahead
        finish: Finish | None,
    ) -> None:
        self._options = options
        self._source = source
        self._clock = clock
        self._finish = finish

    def open(self, rows: RowStream) -> Share:
        """Return the batches of rows, with all steps."""
        options = self._options
        stream = _run(rows, *self._list_row_steps(), self._check_columns, self._pad)
        padding = None
        if _core.is_host_readable((stream.device_type, 0)):
            padding = Padding(stream.schema, options.columns) or None
        count = partial(_count_padding, padding)
        device = options.target.find_device()
        copies = None if device is None else HostCopies(is_ahead=options.prefetch > 0)
        draws = self._make_draws(rows.find_seed, device)
        if device is None or self._can_convert_on_device(stream, device):
            items, convert = self._open_rows(rows, device, draws, count)
        else:
            items, convert = self._open_messages(rows, device, draws, count)
        sources = [source for _, source in self._source.list_members()]
        clocks = [source.clock for source in sources if source.clock is not None]
        divide = Waits([self._clock, *clocks], copies).divide
        return Share(items, convert, divide, None if padding is None else count, self._finish)

    def prepare(self, rows: RowStream) -> _core.DeviceStream:
        """Return the rows that batches are made of, before they are padded."""
        return _run(rows, *self._list_row_steps())

    def convert_empty(self, schema: _core.Schema) -> tuple[_core.DeviceArray, Any]:
        """Return a batch without rows, as an array and as tensors, with no function of tensors."""
        empty = _core.from_arrow(_core.read_arrays(iter(()), schema, _CPU))
        rows = RowStream(
            _core.chain([empty]),
            lambda index: "a batch without rows, which shows its types",
            {},
            batch_size=0,
            is_new=True,
            find_seed=lambda purpose, index: 0,
        )
        array = next(_run(rows, *self._list_row_steps(), self._check_columns, self._pad))
        return array, self._choose_converter({})(array)

    def _list_row_steps(self) -> tuple[RowStep, ...]:
        return self._drop_missing, self._transform_arrow

    def _drop_missing(self, rows: RowStream) -> _core.DeviceStream:
        if rows.numbered is None:
            return rows.stream
        numbered, find_parts = rows.numbered, rows.find_parts
        return drop_missing(rows.stream, numbered, rows.valid_rows, rows.notes, find_parts)

    def _transform_arrow(self, rows: RowStream) -> _core.DeviceStream:
        functions, numbered = self._options.functions, rows.numbered
        if functions.transform_arrow is None:
            return rows.stream
        # One batch is made while the last rows of another are, if threads may call all steps.
        steps = [_bind(step, self._options) for step in functions.arrow_steps]
        is_parallel = all(getattr(step.function, "is_parallel", False) for step in steps)
        ahead = 2 if is_parallel and self._options.prefetch and numbered is None else 1
        sets_seeds = functions.sets_seeds and ahead == 1  # of the process
        return transform_stream(
            rows.stream,
            steps,
            Draws(rows.find_seed, "transform_arrow", "numpy", None, sets_seeds=sets_seeds),
            self._source.vocabulary,
            rows.describe,
            rows.locate,
            self._clock,
            ahead=ahead,
            # It may keep and reuse the memory.
            copy=self._options.target.writable,
            skip=None if numbered is None else SkipArrow(numbered, rows.valid_rows, rows.notes),
        )

    def _check_columns(self, rows: RowStream) -> _core.DeviceStream:
        """Raise ValueError if the options name other columns, unless that is known before."""
        is_changed = self._options.functions.transform_arrow is not None
        if is_changed or self._source.column_names is None:
            names = [column.name for column in rows.stream.schema.children]
            self._options.check_columns(names)
            if not is_changed:
                self._source.vocabulary.check_names(names)
        return rows.stream

    def _pad(self, rows: RowStream) -> _core.DeviceStream:
        if not self._options.pad_last:
            return rows.stream
        return pad_batches(rows.stream, rows.batch_size, rows.valid_rows)

    def make_converter(self, *, is_new: bool, find_seed: FindSeed) -> Convert:
        """Return the function that makes a batch of an array of rows."""
        # Memory that is not new has other users: it is copied if batches may be written to.
        convert = self._choose_converter(self._choose_access(is_new=is_new))
        return self._then_finish(convert, self._make_draws(find_seed, None), self._finish)

    def _open_rows(
        self,
        rows: RowStream,
        device: _core.Device | None,
        draws: Draws,
        count: CountPadding,
    ) -> tuple[Any, Convert]:
        """Open rows that become tensors where they are wanted."""
        options, stream = self._options, rows.stream
        read_type, depth = stream.device_type, options.prefetch
        if device is not None:
            stream = stream.to(device)
        elif rows.is_ready and options.functions.transform_arrow is None:
            depth = 0
        # What transform_arrow returns is copied when it is called.
        is_new = rows.is_new or options.functions.transform_arrow is not None
        keeps_rows = rows.find_parts is not None and bool(options.functions.steps)
        is_own = not keeps_rows and (is_new or stream.device_type != read_type)
        convert = self._choose_converter(self._choose_access(is_new=is_own))
        stream = stream.prefetch(depth) if depth else stream
        finish = None if options.num_threads else self._finish
        if not self._has_outcomes(rows):
            return self._open_steps(stream, self._then_finish(convert, draws, finish), count)
        retry = self._make_retry(rows, device, keeps_rows=keeps_rows)
        move = _keep if device is None else methodcaller("to", device)
        chain = Chain(convert, options, draws, rows.batch_size, move, retry, finish, rows.read)
        return self._open_steps(Items(stream, rows.valid_rows, rows.notes), chain, count)

    def _open_messages(
        self,
        rows: RowStream,
        device: _core.Device,
        draws: Draws,
        count: CountPadding,
    ) -> tuple[Any, Convert]:
        """Open rows that become tensors on the host, and are copied to the device as one block."""
        options = self._options
        to_tensors = self._choose_converter({})  # copied into a block anyway
        keeps_rows = options.functions.maps_after_filter or (
            rows.numbered is not None and bool(options.functions.steps)
        )
        packer = Packer(to_tensors, device, count, self._clock, keeps_rows=keeps_rows)
        messages = pack_ahead(rows.stream, packer, options.prefetch)
        if not self._has_outcomes(rows):
            return messages, self._then_finish(Message.read, draws, self._finish)
        items = Items(messages, rows.valid_rows, rows.notes)
        retry = self._make_retry(rows, None, keeps_rows=True)
        size, finish = rows.batch_size, self._finish
        return items, Chain(Message.read, options, draws, size, packer, retry, finish, rows.read)

    def _open_steps(self, items: Any, convert: Convert, count: CountPadding) -> tuple[Any, Convert]:
        """Return the batches' items and steps, in threads if there are some."""
        threads, ahead = self._options.num_threads, self._options.prefetch
        if not threads:
            return items, convert
        call = convert if isinstance(convert, (Transform, Chain)) else _drop_index(convert)
        return convert_in_threads(items, call, threads, ahead, count), Receive(self._finish)

    def _has_outcomes(self, rows: RowStream) -> bool:
        return rows.numbered is not None or self._options.functions.filters

    def _make_retry(
        self, rows: RowStream, device: _core.Device | None, *, keeps_rows: bool
    ) -> Retry | None:
        """Return how steps are called again, with rows on `device`."""
        if rows.numbered is None:
            return None
        sample: Callable[[], Iterable[_core.DeviceArray]]
        sample = partial(sample_rows, rows.numbered, device)
        if (
            self._options.functions.transform_arrow is not None
        ):  # it would have to be called for them, too
            sample = tuple
        return Retry(rows.numbered, sample, keeps_rows=keeps_rows)

    def _make_draws(self, find_seed: FindSeed, device: _core.Device | None) -> Draws:
        """Return the draws of the steps, whose batches are on `device`."""
        options = self._options
        framework, sets_seeds = options.target.tensor_framework, options.functions.sets_seeds
        return Draws(find_seed, "transform", framework, device, sets_seeds=sets_seeds)

    def _choose_access(self, *, is_new: bool) -> dict[str, Any]:
        if not self._options.exposes_writable_tensors:
            return {}
        return {"_own": True} if is_new else {"copy": True}

    def _choose_converter(self, access: Mapping[str, Any]) -> Convert:
        options = self._options
        convert = choose_converter(options.target.tensor_framework, options.columns, access)
        # Columns of transform_arrow need not be those of the files.
        is_read = options.functions.transform_arrow is None
        return explain_errors(convert, self._source.files.find_nulls if is_read else _find_none)

    def _can_convert_on_device(self, stream: _core.DeviceStream, device: _core.Device) -> bool:
        is_on_device = not _core.is_host_readable((stream.device_type, 0))
        if is_on_device or _core.is_host_readable(device):
            return True
        columns = self._options.columns
        reads_on_host = columns.stacks or columns.casts
        return not reads_on_host and can_convert_on_device(stream.schema)

    def _then_finish(self, convert: Convert, draws: Draws, finish: Convert | None) -> Convert:
        """Return `convert`, followed by the steps and `finish`."""
        if self._options.functions.steps:
            functions = [step.function for step in self._options.functions.steps]
            return Transform(convert, functions, draws, finish)
        if finish is None:
            return convert
        return lambda item: finish(convert(item))


def _run(rows: RowStream, *steps: RowStep) -> _core.DeviceStream:
    """Give each step the rows of the one before."""
    for step in steps:
        rows.stream = step(rows)
    return rows.stream


def _bind(step: ArrowStep, options: Options) -> ArrowStep:
    """Let a function that reads files, as `Image` does, read them as the Loader does."""
    bind = getattr(step.function, "for_loader", None)
    if bind is None:
        return step
    return ArrowStep(bind(options.storage, options.target.framework), step.column)


def _count_padding(padding: Padding | None, item: Any) -> Counts:
    """Count the values of padded columns in an item, and the padding."""
    if isinstance(item, Item):
        item = item.content
    if isinstance(item, (Message, Pending)):
        return item.padding
    return (0, 0) if padding is None else padding.count(item)


def _keep(rows: _core.DeviceArray) -> _core.DeviceArray:
    return rows


def _find_none(column: str) -> str:
    return ""


def _drop_index(convert: Convert) -> Callable[[Any, int], Any]:
    return lambda item, index: convert(item)
