"""`Chain`: calls `transform`, and the functions of ``map`` and ``filter``, with each batch."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.missing import Note, take_rows
from arrowdl.loader._batches.pack import Message
from arrowdl.loader._batches.pad import drop_column, pad_rows
from arrowdl.loader._batches.select_rows import clear_end, read_mask, select_rows
from arrowdl.loader._options import MASK, Step
from arrowdl.loader._skipped import Report, detach, renew
from arrowdl.loader._sources.numbered import Numbered, report_failed

Convert = Callable[[Any], Any]
Content = _core.DeviceArray | Message
_TRIED = 16  # rows of a batch that failed
_SAMPLED = 64  # rows of other places


class FunctionError(Exception):
    """What a function of the user raised, apart from errors of what it returned."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def call(function: Callable[[Any], Any], given: Any) -> Any:
    """Call a function of the user.

    Raises
    ------
    FunctionError
        It has raised an exception other than MemoryError.
    """
    try:
        return function(given)
    except MemoryError:
        raise
    except Exception as error:
        raise FunctionError(error) from None


@dataclass
class Item:
    """What a batch is made of.

    Attributes
    ----------
    content : DeviceArray or Message
    valid : int
        Rows that belong to this rank; they come first.
    note : Note, optional
    """

    content: Any
    valid: int
    note: Note | None

    def __len__(self) -> int:
        return len(self.content)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return int(self.content.nbytes)


class Items:
    """The arrays of a stream as `Item`.

    Parameters
    ----------
    stream : iterator of DeviceArray or Message
        With `close`.
    valid_rows : dict of int to int
        As of `Reader`; taken from it.
    notes : dict of int to Note
        By the index of the array; taken from it.
    """

    def __init__(self, stream: Any, valid_rows: dict[int, int], notes: dict[int, Note]) -> None:
        self._stream = stream
        self._valid_rows = valid_rows
        self._notes = notes
        self._count = 0

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        content = next(self._stream)
        number, self._count = self._count, self._count + 1
        valid = self._valid_rows.pop(number, len(content))
        return Item(content, valid, self._notes.pop(number, None))

    def close(self) -> None:
        """End the stream."""
        self._stream.close()


@dataclass
class Outcome:
    """A batch, and what became of its rows.

    Attributes
    ----------
    batch : object
    rows, valid : int
        Rows of the batch, and those of this rank, which come first.
    filtered : int
        Rows of this rank that were dropped by `filter`.
    report : Report, optional
        Of rows that were skipped.
    """

    batch: Any
    rows: int
    valid: int
    filtered: int = 0
    report: Report | None = None


class Chain:
    """Makes a batch, and calls the steps with it.

    Parameters
    ----------
    convert : callable
        Makes a batch of tensors from an array or a message.
    steps : sequence of Step
    batch_size : int, optional
        To which batches are padded, with `MASK`.
    numbered : Numbered, optional
        Skip the rows of a batch for which a step fails. None: the error is raised.
    finish : callable, optional
        Called with each batch.
    sample : callable
        Returns rows as `convert` takes them, of several places of the source.

    Attributes
    ----------
    seconds : float
        That the last calls of the steps took.
    """

    def __init__(
        self,
        convert: Convert,
        steps: Sequence[Step],
        batch_size: int | None,
        numbered: Numbered | None,
        finish: Convert | None,
        sample: Callable[[], Iterable[_core.DeviceArray]] = tuple,
    ) -> None:
        self._convert = convert
        self._steps = steps
        self._batch_size = batch_size
        self._numbered = numbered
        self._finish = finish
        self._substitutes = None if numbered is None or not steps else Substitutes(sample)
        self.seconds = 0.0

    def __call__(self, item: Item) -> Outcome:
        substitutes = self._substitutes
        spare = substitutes.copy_rows(item.content) if substitutes is not None else []
        batch = self._convert(item.content)
        begin = time.perf_counter()
        try:
            outcome = self._run(item, batch)
        except FunctionError as failure:
            assert substitutes is not None
            outcome = self._substitute(substitutes, item, spare, detach(failure.error))
        else:
            if substitutes is not None:
                substitutes.keep(spare)
        self.seconds = time.perf_counter() - begin
        if item.note is not None and item.note.report is not None:
            outcome.report = item.note.report + outcome.report
        if self._finish is not None:
            outcome.batch = self._finish(outcome.batch)
        return outcome

    def _run(self, item: Item, batch: Any) -> Outcome:
        """Call the steps. Rows that `filter` drops leave tensors of the source before a `map`."""
        content = item.content if isinstance(item.content, _core.DeviceArray) else None
        made = Outcome(batch, len(item), item.valid)
        for step in self._steps:
            if not step.is_filter:
                made.batch, content = self._call(step.function, made.batch), None
                continue
            if not made.valid:
                continue  # it has no row of this rank
            mask = read_mask(self._call(step.function, made.batch), made.rows)
            kept = [i for i in range(made.valid) if mask[i]]
            if len(kept) == made.valid:
                continue
            made.filtered += made.valid - len(kept)
            made.valid = len(kept)
            content = self._keep(made, content, kept)
        return made

    def _call(self, function: Callable[[Any], Any], batch: Any) -> Any:
        return function(batch) if self._substitutes is None else call(function, batch)

    def _keep(
        self, made: Outcome, content: _core.DeviceArray | None, kept: list[int]
    ) -> _core.DeviceArray | None:
        """Keep the rows `kept`, or the first row if there are none; return their array."""
        index = kept or [0]
        if content is not None:
            content = take_rows(content, index)
            if self._batch_size is not None:
                content = pad_rows(drop_column(content, MASK), len(kept), self._batch_size)
            made.batch, made.rows = self._convert(content), len(content)
            return content
        if self._batch_size is not None:
            index = [index[i % len(index)] for i in range(made.rows)]
        batch = select_rows(made.batch, index, made.rows)
        if self._batch_size is not None and isinstance(batch, dict) and MASK in batch:
            batch[MASK] = clear_end(batch[MASK], made.valid)
        made.batch, made.rows = batch, len(index)
        return None

    def _substitute(
        self, substitutes: Substitutes, item: Item, spare: list[Content], error: Exception
    ) -> Outcome:
        """Return a batch without valid rows in place of one for which a step failed."""
        made: Outcome = substitutes.make(self._try, spare, error)
        if item.valid:
            assert self._numbered is not None
            assert item.note is not None
            numbers = item.note.list_numbers()[: item.valid]
            made.report = report_failed(self._numbered, numbers, error)
        return made

    def _try(self, content: Content) -> Outcome:
        if self._batch_size is None:
            return self._run(Item(content, 0, None), self._convert(content))
        if isinstance(content, _core.DeviceArray):
            content = pad_rows(drop_column(content, MASK), 0, self._batch_size)
        batch = self._convert(content)
        if isinstance(content, Message):
            batch[MASK] = batch[MASK] & False
        return self._run(Item(content, 0, None), batch)


class Substitutes:
    """Finds a row for which a function does not fail, to make a batch in place of one that did.

    Parameters
    ----------
    sample : callable
        Returns rows of other places of the source.
    """

    def __init__(self, sample: Callable[[], Iterable[_core.DeviceArray]]) -> None:
        self._sample = sample
        self._found: Content | None = None

    def copy_rows(self, content: Content) -> list[Content]:
        """Return copies of rows that `make` may try, unless a row is known."""
        if self._found is not None:
            return []
        if isinstance(content, Message):
            return [_copy(content)]
        rows = copy.deepcopy(content[:_TRIED])
        return [rows[i : i + 1] for i in range(len(rows))]

    def keep(self, rows: Sequence[Content]) -> None:
        """Remember a row of a batch for which the function did not fail."""
        if rows:
            self._found = rows[0]

    def make(self, attempt: Callable[[Any], Any], rows: Sequence[Content], error: Exception) -> Any:
        """Return what `attempt` makes of a row.

        Raises
        ------
        Exception
            `error`, since it fails for all rows that were tried.
        """
        known = [] if self._found is None else [self._found]
        for group in (known, rows, islice(self._sample(), _SAMPLED)):
            for row in group:
                try:
                    made = attempt(_copy(row))
                except FunctionError:
                    continue
                self._found = row
                return made
        raise renew(
            error,
            'Loader(on_error="skip") found no row for which the transform does not fail, to repeat '
            "it in place of this batch",
        )


def _copy(content: Content) -> Content:
    """Copy what a batch is made of: a transform may write to it."""
    if isinstance(content, Message):
        return replace(content, block=copy.deepcopy(content.block))
    return copy.deepcopy(content)
