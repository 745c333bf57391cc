"""`Chain`: calls `transform`, and the functions of ``map`` and ``filter``, with each batch."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.draws import Drawing, Draws
from arrowdl.loader._batches.failures import (
    FunctionError,
    Substitutes,
    call,
    find_rest,
    list_rows,
    take_rest,
)
from arrowdl.loader._batches.note import Note
from arrowdl.loader._batches.pack import Message
from arrowdl.loader._batches.rows import drop_column, pad_rows, take_rows
from arrowdl.loader._batches.select_rows import clear_end, read_mask, select_rows
from arrowdl.loader._options.options import MASK, Options
from arrowdl.loader._skip.numbers import Numbered
from arrowdl.loader._skipped import MissingRows

Convert = Callable[[Any], Any]


@dataclass
class Item:
    """What a batch is made of."""

    content: Any
    valid: int  # rows that belong to this rank; they come first
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
    """The arrays of a stream as `Item`."""

    def __init__(
        self,
        stream: Any,  # with `close`
        valid_rows: dict[int, int],  # see `Reader`; taken from it
        notes: dict[int, Note],  # by the index of the array; taken from it
    ) -> None:
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
    """A batch, and what became of its rows."""

    batch: Any
    rows: int  # rows of the batch, and those of this rank, which come first
    valid: int
    filtered: int = 0  # rows of this rank that were dropped by `filter`
    report: MissingRows | None = None  # of rows that were skipped
    is_left: bool = False  # whether a `map` was not called, since filters kept no row for it


class Retry:
    """How a `Chain` calls its steps again, for the rows of a batch for which one failed."""

    def __init__(
        self,
        numbered: Numbered,  # what the numbers of the rows mean
        # returns rows as `Chain` remakes them, of several places of the source
        sample: Callable[[], Iterable[_core.DeviceArray]],
        *,
        # whether the rows of a batch are still there when it was converted, and no step can write
        # to them
        keeps_rows: bool,
    ) -> None:
        self.numbered = numbered
        self.substitutes = Substitutes(sample)
        self.keeps_rows = keeps_rows


class Chain:
    """Makes a batch, and calls the steps with it."""

    def __init__(
        self,
        convert: Convert,  # makes a batch of tensors from an array or a message
        options: Options,
        draws: Draws,
        batch_size: int,  # to which `pad_last` pads
        remake: Convert,  # makes what `convert` takes of an array of rows
        # skip the rows of a batch for which a step fails. None: the error is raised
        retry: Retry | None,
        finish: Convert | None,  # called with each batch
        # reads the rows of the epoch, as `remake` takes them. None for a stream
        read: Callable[[], Iterable[_core.DeviceArray]] | None,
    ) -> None:
        self._convert = convert
        self._steps = [
            (draws.bind(step.function, i), step.is_filter)
            for i, step in enumerate(options.functions.steps)
        ]
        self._draws = draws
        self._count = 0
        self._maps_after_filter = options.functions.maps_after_filter
        self._batch_size = batch_size if options.pad_last else None
        self._remake = remake
        self._retry = retry if self._steps else None
        self._finish = finish
        self._read = read
        self._seen: list[_core.DeviceArray] = []
        self._row_of_filter: tuple[_core.DeviceArray, int] | None = None
        self.seconds = 0.0  # that the last calls of the steps took

    def __call__(self, item: Item, index: int | None = None) -> Outcome:
        """Return the batch of an item; without `index`, of the next item."""
        if index is None:
            index, self._count = self._count, self._count + 1
        retry = self._retry
        spare: list[_core.DeviceArray] = []
        if retry is not None and not retry.keeps_rows:
            spare = retry.substitutes.copy_rows(item.rows)
        notes_rows = self._maps_after_filter and self._read is None and not self._seen
        rows = [copy.deepcopy(item.rows)] if notes_rows else []
        batch = self._convert(item.content)
        begin = time.perf_counter()
        seed = self._draws.find_seed(index)
        try:
            outcome = self._run(item, batch, seed)
        except FunctionError as failure:
            assert retry is not None
            del batch
            outcome = self._recover(retry, item, spare, failure, seed)
        else:
            if retry is not None:
                retry.substitutes.keep(spare[0] if spare else item.rows)
        if outcome.valid and not self._seen:
            self._seen = rows
        if outcome.is_left:
            placeholder = self._stand_in()
            outcome.batch, outcome.rows = placeholder.batch, placeholder.rows
        self.seconds = time.perf_counter() - begin
        if item.note is not None and item.note.report is not None:
            outcome.report = item.note.report + outcome.report
        if self._finish is not None:
            outcome.batch = self._finish(outcome.batch)
        return outcome

    def _run(self, item: Item, batch: Any, seed: int) -> Outcome:
        """Call the steps, with the draws of a seed; raise FunctionError if a skippable one
        fails."""
        # Rows that `filter` drops leave tensors of the source before a `map`.
        content = item.content if isinstance(item.content, _core.DeviceArray) else None
        outcome = Outcome(batch, len(item), item.valid)
        with self._draws.seeded(seed):
            self._call_all(outcome, content, seed)
        return outcome

    def _call_all(self, outcome: Outcome, content: _core.DeviceArray | None, seed: int) -> None:
        """Call the steps with what is made of the rows `content`, or of a message."""
        has_rows = True
        for function, is_filter in self._steps:
            if not is_filter:
                if not has_rows:
                    outcome.is_left = True
                    break
                outcome.batch, content = self._call(function, outcome.batch, seed), None
                continue
            if not (has_rows and (outcome.valid or self._maps_after_filter)):
                continue  # nothing asks what a row of another rank is
            mask = read_mask(self._call(function, outcome.batch, seed), outcome.rows)
            row_numbers = [i for i in range(outcome.valid or outcome.rows) if mask[i]]
            has_rows = bool(row_numbers)
            if all(mask):
                continue
            if outcome.valid:
                outcome.filtered += outcome.valid - len(row_numbers)
                outcome.valid = len(row_numbers)
            content = self._keep(outcome, content, row_numbers)

    def _call(self, function: Drawing, batch: Any, seed: int) -> Any:
        return function(batch, seed) if self._retry is None else call(function, batch, seed)

    def _keep(
        self, outcome: Outcome, content: _core.DeviceArray | None, row_numbers: list[int]
    ) -> _core.DeviceArray | None:
        """Keep the rows `row_numbers`, or the first row if there are none; return their array."""
        index = row_numbers or [0]
        if content is not None:
            content = take_rows(content, index)
            if self._batch_size is not None:
                content = pad_rows(drop_column(content, MASK), outcome.valid, self._batch_size)
            outcome.batch, outcome.rows = self._convert(content), len(content)
            return content
        if self._batch_size is not None:
            index = [index[i % len(index)] for i in range(outcome.rows)]
        batch = select_rows(outcome.batch, index, outcome.rows)
        if self._batch_size is not None and isinstance(batch, dict) and MASK in batch:
            batch[MASK] = clear_end(batch[MASK], outcome.valid)
        outcome.batch, outcome.rows = batch, len(index)
        return None

    def _recover(
        self,
        retry: Retry,
        item: Item,
        spare: list[_core.DeviceArray],
        failure: FunctionError,
        seed: int,
    ) -> Outcome:
        """Return a batch of the rows for which no step fails, or of a row without valid ones."""
        note, rows = item.note, item.rows
        assert note is not None

        def attempt(start: int, stop: int) -> Outcome:
            return self._try(rows[start:stop], seed, stop - start)

        remaining = find_rest(attempt, failure, note, retry.numbered)
        outcome: Outcome | None = None
        if remaining.spans:
            taken = take_rest(rows, remaining)
            try:
                outcome = self._try(taken, seed, len(taken))
            except FunctionError as second_failure:
                failure = second_failure
                remaining.drop_rest(second_failure, note, retry.numbered)
        if outcome is None:
            if retry.keeps_rows:
                spare = list_rows(rows)
            outcome = retry.substitutes.make(partial(self._try, seed=seed), spare, failure.error)
        outcome.report = remaining.report
        return outcome

    def _try(self, rows: _core.DeviceArray, seed: int, valid: int = 0) -> Outcome:
        """Make a batch of `rows`, of which the first ones are valid, and call the steps."""
        if self._batch_size is not None:
            rows = pad_rows(drop_column(rows, MASK), valid, self._batch_size)
        item = Item(self._remake(rows), valid, None)
        return self._run(item, self._convert(item.content), seed)

    def _stand_in(self) -> Outcome:
        """Return a batch without valid rows, of a row that all filters keep, or raise
        ValueError."""
        if self._row_of_filter is None:
            self._row_of_filter = self._find_row_of_filter()
        rows, seed = self._row_of_filter
        try:
            return self._try(copy.deepcopy(rows), seed)
        except FunctionError as failure:  # it has not failed before
            raise failure.error from None

    def _find_row_of_filter(self) -> tuple[_core.DeviceArray, int]:
        """Return rows that all filters keep, and the seed of the draws with which they do."""
        seeds = count(self._draws.find_seed(None))  # a filter may keep rows at random
        for rows in self._seen if self._read is None else self._read():
            seed = next(seeds) % 2**64
            is_kept = self._is_kept(rows, seed)
            if is_kept or self._retry is not None:  # which may fail for other rows of these
                for i in range(len(rows)):
                    row_seed = next(seeds) % 2**64
                    if self._is_kept(rows[i : i + 1], row_seed):
                        return copy.deepcopy(rows[i : i + 1]), row_seed
            if is_kept:
                return copy.deepcopy(rows), seed
        where = "the epoch" if self._read else "the first batches of the stream"
        raise ValueError(
            f"filter() keeps no row of {where}, and the map() after it needs one, for a batch "
            "without rows: filter in the source (filter=, SQL), or call map() first"
        )

    def _is_kept(self, rows: _core.DeviceArray, seed: int) -> bool:
        try:
            return not self._try(copy.deepcopy(rows), seed).is_left
        except FunctionError:
            return False
