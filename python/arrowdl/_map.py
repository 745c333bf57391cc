"""`map`: a model over the batches of a stream, whose results become columns.

Three threads work side by side. One reads, converts and copies batches ahead of the model, one
calls the model, and the consumer's copies the results back. Between them are native streams of a
token for each batch, which read ahead, wait, and end with their consumer. A deque holds the
batches of each.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from arrowdl import _core
from arrowdl._frameworks.threads import set_up_thread
from arrowdl._map_results import ResultOptions, read_results
from arrowdl.loader._batches.convert import CONVERTERS, can_convert_on_device, choose_converter
from arrowdl.loader._batches.pack import Message, pack
from arrowdl.loader._checks import require_bool, require_function, require_int
from arrowdl.loader._columns import ColumnOptions

_CPU = 1


def map(
    stream: _core.DeviceStream,
    model: Callable[[Any], Any],
    *,
    columns: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    batch_size: int | None = None,
    device: Any = None,
    output_device: Any = None,
    framework: str = "torch",
    names: str | Sequence[str] = "output",
    schema: Any = None,
    prefetch: int = 2,
    writable: bool = True,
    nulls: Any = "raise",
    ragged: Any = "jagged",
    dtype: Any = None,
    stack: bool | Mapping[str, Sequence[str]] | None = None,
    layout: Any = "auto",
    bool_as: Any = "bits",
) -> _core.DeviceStream:
    """Return the stream that `DeviceStream.map` describes."""
    source = stream.schema
    if source.format != "+s":
        raise TypeError(
            "map() reads columns, and the arrays of this stream are no structs: make a struct of "
            'them, such as {"x": array}'
        )
    known = [child.name for child in source.children]
    fed = columns if isinstance(columns, str) else _read_names("columns", columns, known)
    _require_known("columns", [fed] if isinstance(fed, str) else fed, known)
    kept = _read_names("keep", keep, known)
    _require_known("keep", kept, known)
    depth = require_int("prefetch", prefetch, 0)
    if batch_size is not None:
        batch_size = require_int("batch_size", batch_size, 1)
    if framework not in CONVERTERS:
        raise ValueError(f"framework={framework!r}: expected one of {', '.join(CONVERTERS)}")
    options = ColumnOptions(
        nulls=nulls,
        ragged=ragged,
        dtype=dtype,
    )
    options.check_names(known, stack if isinstance(stack, Mapping) else ())
    if isinstance(fed, str) and (stack or options.has_names):
        raise ValueError(
            f"columns={fed!r} is one tensor, without stack= and options by name: give "
            f"columns=[{fed!r}]"
        )
    is_written = require_bool("writable", writable)
    _core.to_arrow_device(bytes(1), layout=layout, bool_as=bool_as)  # checks the options
    template = None if schema is None else _make_empty(schema)
    results = ResultOptions(
        names=names if isinstance(names, str) else _read_names("names", names, ()),
        copy=is_written,
        layout=layout,
        bool_as=bool_as,
        types=_list_types(schema),
    )
    feed = _Feed(
        stream=stream,
        columns=fed,
        framework=framework,
        stack=stack,
        options=options,
        device=None if device is None else _core.read_device(device, framework),
        is_written=is_written and framework != "jax",
    )
    output = None if output_device is None else _core.read_device(output_device, framework)
    made = _Map(
        source=source,
        feed=feed,
        keep=kept,
        model=require_function("map", model),
        results=results,
        depth=depth,
        output=output,
        output_type=stream.device_type if output is None else output.type,
    )
    if template is not None:
        made.set_types(_split(template))
        made.casts = True
    needed = [name for name in known if name in kept or name in feed.names]
    arrays = stream.select(needed)
    if batch_size is not None:
        arrays = arrays.rebatch(batch_size)
    return _core.open_later(_Opener(made, arrays, template))


def _read_names(option: str, names: Sequence[str] | None, default: Sequence[str]) -> list[str]:
    if names is None:
        return list(default)
    if isinstance(names, str):
        raise TypeError(f"{option}={names!r}: give a list of names, [{names!r}]")
    read = list(names)
    for name in read:
        if not isinstance(name, str):
            raise TypeError(f"{option}={names!r}: {name!r} is no name of a column")
        if read.count(name) > 1:
            raise ValueError(f'{option}={names!r} names "{name}" twice')
    if not read and option != "keep":
        raise ValueError(f"{option}={names!r}: give at least one name")
    return read


def _require_known(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if known.count(name) != 1:
            raise ValueError(
                f'{option}= names "{name}", and the columns are {known}: a name is that of one '
                "column"
            )


def _make_empty(schema: Any) -> _core.DeviceArray:
    """Return a struct without rows.

    Raises
    ------
    TypeError, ValueError
        `schema` is no Arrow schema of columns.
    """
    if not hasattr(schema, "__arrow_c_schema__"):
        raise TypeError(
            f"schema={schema!r}: give an Arrow schema of the columns that the model makes, such as "
            "pyarrow.schema({'output': pyarrow.float32()})"
        )
    empty = _core.from_arrow(_core.read_arrays(iter(()), schema, _CPU))
    if empty.schema.format != "+s":
        raise TypeError(f"schema={schema!r} is of {empty.type}, not of columns")
    if not empty.field_names:
        raise ValueError("schema= has no columns: list those that the model makes")
    return empty


def _list_types(schema: Any) -> dict[str, Any]:
    """Return pyarrow's types of a schema's columns, for lists of Python values."""
    if schema is None:
        return {}
    try:
        import pyarrow as pa
    except ImportError:  # lists need it, and tensors do not
        return {}
    return {own.name: own.type for own in pa.schema(schema)}


class _NoteRows(NamedTuple):
    """A context that adds the rows of a batch to an error.

    A class, since the caches that a model leaves make every call of Python's take longer.
    """

    start: int
    rows: int

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.start + self.rows

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            error.add_note(f"in map(), with rows {self.start} to {self.end - 1}")


class _Batch(NamedTuple):
    """A batch that the model will get: its rows of the stream, and what its tensors are made of."""

    note: _NoteRows
    device: _core.Device
    kept: list[_core.DeviceArray]
    read: Callable[[], Any] = tuple


class _Result(NamedTuple):
    """The columns that the model made for a batch."""

    batch: _Batch
    columns: dict[str, _core.DeviceArray]


class _Feed:
    """Makes the tensors of a batch, as a `Loader` does."""

    def __init__(
        self,
        *,
        stream: _core.DeviceStream,
        columns: str | list[str],
        framework: str,
        stack: bool | Mapping[str, Sequence[str]] | None,
        options: ColumnOptions,
        device: _core.Device | None,
        is_written: bool,
    ) -> None:
        self.columns = columns
        self.names = [columns] if isinstance(columns, str) else columns
        on_host = _core.is_host_readable((stream.device_type, 0))
        is_copied = device is not None and device.type != stream.device_type
        self.device = device
        self._is_ahead = on_host and not is_copied
        to_host = device is None or _core.is_host_readable(device)
        schemas = [child for child in stream.schema.children if child.name in self.names]
        reads_on_host = bool(stack) or options.dtype is not None
        can_convert = not reads_on_host and all(can_convert_on_device(own) for own in schemas)
        self._is_packed = on_host and not to_host and not can_convert
        access: dict[str, Any] = {}
        if is_written and not self._is_packed:
            access = {"_own": True} if is_copied else {"copy": True}
        self._convert = choose_converter(framework, stack, options, access)

    def __call__(self, array: _core.DeviceArray) -> Callable[[], Any]:
        """Start the work on a batch; return what makes its tensors in the model's thread."""
        if isinstance(self.columns, str):
            part = array.field(self.columns)
        else:
            part = _core.make_struct(self.names, [array.field(name) for name in self.names])
        if self._is_packed:
            message = pack(self._convert(part), len(array), (0, 0)).to(self.device)
            return partial(Message.read, message)
        if self.device is not None:
            part = part.to(self.device)
        if self._is_ahead:
            return _Made(self._convert(part))
        return partial(self._convert, part)


@dataclass
class _Made:
    """Gives tensors away, so that the model has the only reference."""

    tensors: Any

    def __call__(self) -> Any:
        tensors, self.tensors = self.tensors, None
        return tensors


@dataclass(kw_only=True)
class _Map:
    """The work on each batch."""

    source: _core.Schema
    feed: _Feed
    keep: list[str]
    model: Callable[[Any], Any]
    results: ResultOptions
    depth: int
    output: _core.Device | None
    output_type: int
    types: dict[str, str] = field(default_factory=dict)
    known_by: str = ""
    schemas: dict[str, _core.Schema] = field(default_factory=dict)
    casts: bool = False

    def set_types(
        self, columns: Mapping[str, _core.DeviceArray], known_by: str = "schema= has"
    ) -> None:
        """Require columns of these names and types from now on.

        Raises
        ------
        ValueError
            A column has the name of one that is kept.
        """
        for name, column in columns.items():
            if name in self.keep:
                raise ValueError(
                    f'the model makes a column "{name}", and the stream has one that is kept: name '
                    "it otherwise, or list the columns to keep in keep="
                )
            self.types[name] = column.type
            self.schemas[name] = column.schema
        self.known_by = known_by

    def feed_batches(
        self, arrays: _core.DeviceStream, batches: deque[_Batch], token: _core.DeviceArray
    ) -> Iterator[_core.DeviceArray]:
        """Make batches of `arrays`, in a thread ahead of the model."""
        start = 0
        with closing(arrays):
            for array in arrays:
                rows = len(array)
                if not rows:
                    continue
                note = _NoteRows(start, rows)
                with note:
                    read = self.feed(array)
                batches.append(_Batch(note, array.device, self.select_kept(array), read))
                del read
                start += rows
                del array
                yield token

    def call_model(
        self, tokens: _core.DeviceStream, batches: deque[_Batch], results: deque[_Result]
    ) -> Iterator[_core.DeviceArray]:
        """Call the model with each batch, in one thread: the stream's, if it has a depth."""
        torch = None
        with closing(tokens):
            for token in tokens:
                batch = batches.popleft()
                if self.depth and torch is None:
                    torch = _find_torch()
                if torch is None:
                    run = self.run
                else:  # the context takes 50 µs a call with the caches that a model leaves
                    run = self.run_here
                    if torch.is_grad_enabled():
                        torch.set_grad_enabled(False)
                with batch.note:
                    columns = run(batch.read, batch.note.rows)
                results.append(_Result(batch, columns))
                del batch, columns
                yield token

    def run(self, read: Callable[[], Any], rows: int) -> dict[str, _core.DeviceArray]:
        """Return the columns that the model makes, without gradients."""
        with _no_grad():
            return self.run_here(read, rows)

    def run_here(self, read: Callable[[], Any], rows: int) -> dict[str, _core.DeviceArray]:
        """The same, in a thread that has gradients off."""
        try:
            made = self.model(read())
        except StopIteration as error:  # it would end the stream
            raise RuntimeError("the model raised StopIteration") from error
        return read_results(made, rows, self.results)

    def join(
        self, tokens: _core.DeviceStream, results: deque[_Result]
    ) -> Iterator[_core.DeviceArray]:
        """Copy results to where the stream is, and add the columns that are kept."""
        with closing(tokens):
            for _ in tokens:
                result = results.popleft()
                with result.batch.note:
                    array = self.make_struct(result)
                del result
                yield array
                del array

    def make_struct(self, result: _Result) -> _core.DeviceArray:
        """Return the columns that are kept and those of the model, on one device."""
        columns, batch = result.columns, result.batch
        if self.types:
            columns = self.check_types(columns)
        else:
            self.set_types(columns, f"those of rows {batch.note.start} to {batch.note.end - 1} are")
        target = batch.device if self.output is None else self.output
        copied = _copy_all(columns, target)
        kept = [part if part.device == target else part.to(target) for part in batch.kept]
        return _core.make_struct([*self.keep, *copied], [*kept, *copied.values()])

    def check_types(self, columns: dict[str, _core.DeviceArray]) -> dict[str, _core.DeviceArray]:
        """Return the columns in the order of the first batch or of the schema, cast to that.

        Raises
        ------
        ValueError
            They have other names or types.
        """
        if columns.keys() != self.types.keys():
            raise ValueError(
                f"the model returned the columns {sorted(columns)}, and {self.known_by} "
                f"{sorted(self.types)}: a stream has one schema"
            )
        made = {}
        for name, kind in self.types.items():
            column = columns[name]
            if self.casts and column.type != kind:
                try:
                    column = _core.from_arrow(_Cast(column, self.schemas[name]))
                except ValueError as error:
                    error.add_note(f'in the column "{name}" that the model returned')
                    raise
            if column.type != kind:
                raise ValueError(
                    f'the model returned {columns[name].type} for "{name}", and {self.known_by} '
                    f"{kind}: a stream has one schema, return one type (a list if the rows have "
                    "several lengths)"
                )
            made[name] = column
        return made

    def make_empty(self) -> _core.DeviceArray:
        """Call the model with a batch without rows; return what a stream of its type has.

        Raises
        ------
        Exception
            The model's, with advice.
        """
        array = _make_empty(self.source)
        try:
            columns = self.run(self.feed(array), 0)
        except Exception as error:
            error.add_note(
                "in map(), with no rows: the stream is empty, and has a schema once the model has "
                "returned. Give map() schema=, the columns that the model makes"
            )
            raise
        batch = _Batch(_NoteRows(0, 0), array.device, self.select_kept(array))
        return self.make_struct(_Result(batch, columns))

    def select_kept(self, array: _core.DeviceArray) -> list[_core.DeviceArray]:
        """Return the columns of a batch that are kept."""
        return [array.field(name) for name in self.keep]


@dataclass
class _Cast:
    """An array that is exported with a requested schema, which is a cast where it is cheap."""

    array: _core.DeviceArray
    schema: _core.Schema

    def __arrow_c_device_array__(self, requested_schema: Any = None, **_: Any) -> Any:
        return self.array.__arrow_c_device_array__(self.schema.__arrow_c_schema__())


def _copy_all(
    columns: dict[str, _core.DeviceArray], target: _core.Device
) -> dict[str, _core.DeviceArray]:
    """Return the columns on one device: those of another are copied together."""
    devices = {column.device for column in columns.values()}
    if devices == {target}:
        return columns
    if len(devices) > 1:
        return {name: column.to(target) for name, column in columns.items()}
    return _split(_core.make_struct(list(columns), list(columns.values())).to(target))


def _split(array: _core.DeviceArray) -> dict[str, _core.DeviceArray]:
    """Return the fields of a struct by name."""
    return {name: array.field(i) for i, name in enumerate(array.field_names)}


def _no_grad() -> AbstractContextManager[Any]:
    """Set this thread up for torch, if it is loaded; return what turns gradients off.

    A model may ``enable_grad``, which ``inference_mode`` would forbid.
    """
    torch = _find_torch()
    if torch is None or not torch.is_grad_enabled():
        return nullcontext()
    context: AbstractContextManager[Any] = torch.no_grad()
    return context


def _find_torch() -> Any:
    """Set this thread up for torch; return the module, or None if it is not loaded."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "no_grad"):  # another thread may be importing it
        return None
    set_up_thread()
    return torch


class _Opener:
    """Starts to read, when the stream is first used."""

    def __init__(
        self, work: _Map, arrays: _core.DeviceStream, template: _core.DeviceArray | None
    ) -> None:
        self._work = work
        self._arrays: _core.DeviceStream | None = arrays
        self._template = template

    def __call__(self) -> _core.DeviceStream:
        work, arrays, template = self._work, self._arrays, self._template
        self._arrays = None
        if arrays is None:
            raise RuntimeError("the stream has failed: its error was raised before")
        batches: deque[_Batch] = deque()
        results: deque[_Result] = deque()
        token = _core.to_arrow_device(bytes(1))
        fed = _read_ahead(work.feed_batches(arrays, batches, token), token.schema, work.depth)
        ran = work.call_model(fed, batches, results)
        made = work.join(_read_ahead(ran, token.schema, work.depth), results)
        if template is not None:
            kept = work.select_kept(_make_empty(work.source))
            own = _split(template)
            schema = _core.make_struct([*work.keep, *own], [*kept, *own.values()]).schema
            return _core.read_arrays(made, schema, work.output_type)
        first = next(made, None)
        if first is None:
            return _core.read_arrays(iter(()), work.make_empty().schema, work.output_type)
        return _core.read_arrays(chain([first], made), first.schema, work.output_type)


def _read_ahead(
    tokens: Iterator[_core.DeviceArray], schema: _core.Schema, depth: int
) -> _core.DeviceStream:
    """Return a stream of tokens; with a depth, a native thread takes them."""
    stream = _core.read_arrays(tokens, schema, _CPU)
    return stream.prefetch(depth) if depth else stream
