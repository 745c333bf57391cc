"""What is left of a batch after a function of the user has failed for it, and what replaces it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.note import Note
from arrowdl.loader._batches.rows import remove_numbers
from arrowdl.loader._skip.numbers import Numbered, report_failed
from arrowdl.loader._skipped import MissingRows, detach, renew

_TRIED = 16  # rows of a batch that failed
_SAMPLED = 64  # rows of other places


class FunctionError(Exception):
    """What a function of the user raised, apart from errors of what it returned."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the user.

    Raises FunctionError if it has raised an exception other than MemoryError.
    """
    try:
        return function(*arguments)
    except MemoryError:
        raise
    except Exception as error:
        raise FunctionError(error) from None


class Left:
    """Which rows of a batch are left, and why others are not."""

    def __init__(self, rows: int) -> None:
        self.rows: Sequence[int] = range(rows)
        self.errors: dict[int, Exception] = {}

    def drop(self, errors: Mapping[int, Exception]) -> list[int]:
        """Drop rows by their numbers among those that are left; return the numbers of others."""
        remaining = [i for i in range(len(self.rows)) if i not in errors]
        self.errors |= {self.rows[i]: error for i, error in errors.items()}
        self.rows = [self.rows[i] for i in remaining]
        return remaining


@dataclass
class Rest:
    """What is left of the rows of a batch."""

    # first row, and the one after the last, of each part that is left
    spans: list[tuple[int, int]] = field(default_factory=list)
    report: MissingRows | None = None  # of the rows of the other parts

    def drop(
        self, span: tuple[int, int], failure: FunctionError, note: Note, numbered: Numbered
    ) -> None:
        """Note that rows are left out, for which a function has failed."""
        start, stop = span
        if stop > start:
            numbers = note.list_numbers()[start:stop]
            report = report_failed(numbered, numbers, detach(failure.error))
            self.report = report if self.report is None else self.report + report

    def drop_rest(self, failure: FunctionError, note: Note, numbered: Numbered) -> None:
        """Note that what is left is left out, too: a function fails for these parts together."""
        for span in self.spans:
            self.drop(span, failure, note, numbered)
        self.spans = []


def find_rest(
    # takes the first row of a part, and the one after its last. Calls the function with it
    attempt: Callable[[int, int], Any],
    failure: FunctionError,  # of the whole batch
    note: Note,  # of the batch
    numbered: Numbered,  # what the numbers of the rows mean
) -> Rest:
    """Find the parts of a batch for which a function does not fail.

    A part is what one sequence gives to a step. On another number of ranks the parts are in other
    batches: so what is left out of a step depends on the parts alone.
    """
    rest = Rest()
    for span in note.list_spans():
        try:
            if len(note.parts) == 1:
                raise failure
            attempt(*span)
        except FunctionError as error:
            rest.drop(span, error, note, numbered)
        else:
            rest.spans.append(span)
    return rest


def take_rest(rows: _core.DeviceArray, rest: Rest) -> _core.DeviceArray:
    """Return the rows of an array that are left of it, at least one."""
    parts = [rows[start:stop] for start, stop in rest.spans]
    return parts[0] if len(parts) == 1 else _core.concatenate(parts)


def list_rows(rows: _core.DeviceArray) -> list[_core.DeviceArray]:
    """List rows of a batch that `Substitutes.make` may try."""
    return [rows[i : i + 1] for i in range(min(_TRIED, len(rows)))]


class Substitutes:
    """Finds a row for which a function does not fail, to make a batch in place of one that did."""

    def __init__(
        self,
        # returns rows of other places of the source
        sample: Callable[[], Iterable[_core.DeviceArray]],
    ) -> None:
        self._sample = sample
        self._sound_row: _core.DeviceArray | None = None

    def copy_rows(self, rows: _core.DeviceArray) -> list[_core.DeviceArray]:
        """Return copies of rows that `make` may try, unless a row is known."""
        return [] if self._sound_row is not None else list_rows(copy.deepcopy(rows[:_TRIED]))

    def keep(self, rows: _core.DeviceArray) -> None:
        """Remember the first of `rows`, for which the function did not fail."""
        if self._sound_row is None:
            self._sound_row = copy.deepcopy(rows[:1])

    def make(
        self, attempt: Callable[[Any], Any], rows: Sequence[_core.DeviceArray], error: Exception
    ) -> Any:
        """Return what `attempt` makes of a row.

        Raises Exception: `error`, since it fails for all rows that were tried.
        """
        earlier = [] if self._sound_row is None else [self._sound_row]
        for group in (earlier, rows, islice(self._sample(), _SAMPLED)):
            for row in group:
                try:
                    copied = attempt(copy.deepcopy(row))  # a function may write to it
                except FunctionError:
                    continue
                self._sound_row = copy.deepcopy(row)
                return copied
        raise renew(
            error,
            'Loader(on_error="skip") found no row for which the transform does not fail, to repeat '
            "it in place of this batch",
        )


def sample_rows(
    numbered: Numbered, device: _core.Device | None = None
) -> Iterator[_core.DeviceArray]:
    """Yield single rows that can be read, from several places of the source, on `device`."""
    for row in numbered.sample():
        rows = remove_numbers(row)
        yield rows if device is None else rows.to(device)
