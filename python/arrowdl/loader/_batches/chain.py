"""`Chain`: calls `transform`, and the functions of ``map`` and ``filter``, with each batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.failures import (
    FunctionError,
    Substitutes,
    call,
    find_rest,
    list_rows,
    take_rest,
)
from arrowdl.loader._batches.missing import Note, take_rows
from arrowdl.loader._batches.pack import Message
from arrowdl.loader._batches.pad import drop_column, pad_rows
from arrowdl.loader._batches.select_rows import clear_end, read_mask, select_rows
from arrowdl.loader._options import MASK, Step
from arrowdl.loader._skipped import Report
from arrowdl.loader._sources.numbered import Numbered

Convert = Callable[[Any], Any]


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

    @property
    def rows(self) -> _core.DeviceArray:
        """The rows, which a message keeps if steps may be called again."""
        content = self.content.array if isinstance(self.content, Message) else self.content
        assert content is not None
        return content


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


class Retry:
    """How a `Chain` calls its steps again, for the rows of a batch for which one failed.

    Parameters
    ----------
    numbered : Numbered
        What the numbers of the rows mean.
    remake : callable
        Makes what `Chain` converts of an array of rows.
    sample : callable
        Returns rows as `remake` takes them, of several places of the source.
    keeps_rows : bool
        Whether the rows of a batch are still there when it was converted, and no step can write to
        them.
    """

    def __init__(
        self,
        numbered: Numbered,
        remake: Callable[[_core.DeviceArray], Any],
        sample: Callable[[], Iterable[_core.DeviceArray]],
        *,
        keeps_rows: bool,
    ) -> None:
        self.numbered = numbered
        self.remake = remake
        self.substitutes = Substitutes(sample)
        self.keeps_rows = keeps_rows


class Chain:
    """Makes a batch, and calls the steps with it.

    Parameters
    ----------
    convert : callable
        Makes a batch of tensors from an array or a message.
    steps : sequence of Step
    batch_size : int, optional
        To which batches are padded, with `MASK`.
    retry : Retry, optional
        Skip the rows of a batch for which a step fails. None: the error is raised.
    finish : callable, optional
        Called with each batch.

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
        retry: Retry | None,
        finish: Convert | None,
    ) -> None:
        self._convert = convert
        self._steps = steps
        self._batch_size = batch_size
        self._retry = retry if steps else None
        self._finish = finish
        self.seconds = 0.0

    def __call__(self, item: Item) -> Outcome:
        retry = self._retry
        spare: list[_core.DeviceArray] = []
        if retry is not None and not retry.keeps_rows:
            spare = retry.substitutes.copy_rows(item.rows)
        batch = self._convert(item.content)
        begin = time.perf_counter()
        try:
            outcome = self._run(item, batch)
        except FunctionError as failure:
            assert retry is not None
            del batch
            outcome = self._recover(retry, item, spare, failure)
        else:
            if retry is not None:
                retry.substitutes.keep(spare[0] if spare else item.rows)
        self.seconds = time.perf_counter() - begin
        if item.note is not None and item.note.report is not None:
            outcome.report = item.note.report + outcome.report
        if self._finish is not None:
            outcome.batch = self._finish(outcome.batch)
        return outcome

    def _run(self, item: Item, batch: Any) -> Outcome:
        """Call the steps. Rows that `filter` drops leave tensors of the source before a `map`.

        Raises
        ------
        FunctionError
            A step has failed, and the error is not to be raised.
        """
        content = item.content if isinstance(item.content, _core.DeviceArray) else None
        made = Outcome(batch, len(item), item.valid)
        for step in self._steps:
            if not step.is_filter:
                made.batch, content = self._call(step.function, made), None
                continue
            if not made.valid:
                continue  # it has no row of this rank
            mask = read_mask(self._call(step.function, made), made.rows)
            kept = [i for i in range(made.valid) if mask[i]]
            if len(kept) == made.valid:
                continue
            made.filtered += made.valid - len(kept)
            made.valid = len(kept)
            content = self._keep(made, content, kept)
        return made

    def _call(self, function: Callable[[Any], Any], made: Outcome) -> Any:
        if self._retry is None:
            return function(made.batch)
        try:
            return call(function, made.batch)
        except FunctionError as failure:
            failure.filtered = 0 if made.valid else made.filtered
            raise

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

    def _recover(
        self, retry: Retry, item: Item, spare: list[_core.DeviceArray], failure: FunctionError
    ) -> Outcome:
        """Return a batch of the rows for which no step fails, or of a row without valid ones."""
        note, rows = item.note, item.rows
        assert note is not None

        def attempt(start: int, stop: int) -> Outcome:
            return self._try(retry, rows[start:stop], stop - start)

        rest = find_rest(attempt, failure, note, retry.numbered)
        made: Outcome | None = None
        if rest.spans:
            taken = take_rest(rows, rest)
            try:
                made = self._try(retry, taken, len(taken))
            except FunctionError as own:
                failure = own
                rest.drop_rest(own, note, retry.numbered)
        if made is None:
            if retry.keeps_rows:
                spare = list_rows(rows)
            made = retry.substitutes.make(partial(self._try, retry), spare, failure.error)
        made.filtered += rest.filtered
        made.report = rest.report
        return made

    def _try(self, retry: Retry, rows: _core.DeviceArray, valid: int = 0) -> Outcome:
        """Make a batch of `rows`, of which the first ones are valid, and call the steps."""
        if self._batch_size is not None:
            rows = pad_rows(drop_column(rows, MASK), valid, self._batch_size)
        item = Item(retry.remake(rows), valid, None)
        return self._run(item, self._convert(item.content))
