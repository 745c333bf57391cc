"""`Work`: the three threads of `map` and what each does with a batch.

One reads, converts and copies batches ahead of the model, one calls the model, and the consumer's
copies the results back. Between them are native streams of a token for each batch, which read
ahead, wait, and end with their consumer. A deque holds the batches of each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from arrowdl import _core
from arrowdl._map.feed import Feed
from arrowdl._map.model import Model, find_torch
from arrowdl._map.schema import ResultSchema, make_empty, split

_CPU = 1


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
    passed: list[_core.DeviceArray]
    read: Callable[[], Any] = tuple


class _Result(NamedTuple):
    """The columns that the model made for a batch."""

    batch: _Batch
    columns: dict[str, _core.DeviceArray]


@dataclass(kw_only=True)
class Work:
    """The work on each batch."""

    source: _core.Schema
    feed: Feed
    keep: list[str]
    model: Model
    results: ResultSchema
    depth: int  # batches ahead; without any, the consumer's thread does all
    output: _core.Device | None  # where the columns go, instead of where the batch is
    output_type: int  # of the stream that is made

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
                batches.append(_Batch(note, array.device, self.select_copied(array), read))
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
                    torch = find_torch()
                if torch is None:
                    run = self.model.run
                else:  # the context takes 50 µs a call with the caches that a model leaves
                    run = self.model.run_here
                    if torch.is_grad_enabled():
                        torch.set_grad_enabled(False)
                with batch.note:
                    columns = run(batch.read, batch.note.rows)
                results.append(_Result(batch, columns))
                del batch, columns
                yield token

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
        batch = result.batch
        columns = self.results.check(result.columns, batch.note.start, batch.note.end)
        target = batch.device if self.output is None else self.output
        copied = _copy_all(columns, target)
        passed = [part if part.device == target else part.to(target) for part in batch.passed]
        return _core.make_struct([*self.keep, *copied], [*passed, *copied.values()])

    def make_empty(self) -> _core.DeviceArray:
        """Call the model with a batch without rows; return what a stream of its type has.

        Raises Exception: the model's, with advice.
        """
        array = make_empty(self.source)
        try:
            columns = self.model.run(self.feed(array), 0)
        except Exception as error:
            error.add_note(
                "in map(), with no rows: the stream is empty, and has a schema once the model has "
                "returned. Give map() schema=, the columns that the model makes"
            )
            raise
        batch = _Batch(_NoteRows(0, 0), array.device, self.select_copied(array))
        return self.make_struct(_Result(batch, columns))

    def select_copied(self, array: _core.DeviceArray) -> list[_core.DeviceArray]:
        """Return the columns of a batch that are kept."""
        return [array.field(name) for name in self.keep]


def _copy_all(
    columns: dict[str, _core.DeviceArray], target: _core.Device
) -> dict[str, _core.DeviceArray]:
    """Return the columns on one device: those of another are copied together."""
    devices = {column.device for column in columns.values()}
    if devices == {target}:
        return columns
    if len(devices) > 1:
        return {name: column.to(target) for name, column in columns.items()}
    return split(_core.make_struct(list(columns), list(columns.values())).to(target))


class Opener:
    """Starts to read, when the stream is first used."""

    def __init__(self, work: Work, arrays: _core.DeviceStream) -> None:
        self._work = work
        self._arrays: _core.DeviceStream | None = arrays

    def __call__(self) -> _core.DeviceStream:
        work, arrays = self._work, self._arrays
        self._arrays = None
        if arrays is None:
            raise RuntimeError("the stream has failed: its error was raised before")
        batches: deque[_Batch] = deque()
        results: deque[_Result] = deque()
        token = _core.to_arrow_device(bytes(1))
        fed = _read_ahead(work.feed_batches(arrays, batches, token), token.schema, work.depth)
        ran = work.call_model(fed, batches, results)
        results_read = work.join(_read_ahead(ran, token.schema, work.depth), results)
        if (template := work.results.template) is not None:
            passed = work.select_copied(make_empty(work.source))
            columns = split(template)
            schema = _core.make_struct([*work.keep, *columns], [*passed, *columns.values()]).schema
            return _core.read_arrays(results_read, schema, work.output_type)
        first = next(results_read, None)
        if first is None:
            return _core.read_arrays(iter(()), work.make_empty().schema, work.output_type)
        return _core.read_arrays(chain([first], results_read), first.schema, work.output_type)


def _read_ahead(
    tokens: Iterator[_core.DeviceArray], schema: _core.Schema, depth: int
) -> _core.DeviceStream:
    """Return a stream of tokens; with a depth, a native thread takes them."""
    stream = _core.read_arrays(tokens, schema, _CPU)
    return stream.prefetch(depth) if depth else stream
