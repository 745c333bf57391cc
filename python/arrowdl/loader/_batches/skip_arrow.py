"""`SkipArrow`: skips the rows for which `transform_arrow` fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.failures import (
    FunctionError,
    Left,
    Substitutes,
    find_rest,
    list_rows,
    sample_rows,
    take_rest,
)
from arrowdl.loader._batches.note import Note
from arrowdl.loader._batches.rows import take_rows
from arrowdl.loader._skip.numbers import Numbered, report_failed
from arrowdl.loader._skipped import RowsError


class SkipArrow:
    """Calls what makes a batch of an array, again for a part of its rows if it fails."""

    def __init__(
        self,
        numbered: Numbered,  # what the numbers of the rows mean
        valid_rows: dict[int, int],
        notes: dict[int, Note],  # see `drop_missing`
    ) -> None:
        self._numbered = numbered
        self._valid_rows = valid_rows
        self._notes = notes
        self._substitutes = Substitutes(partial(sample_rows, numbered))

    def __call__(self, transform: Callable[..., Any], array: _core.DeviceArray, index: int) -> Any:
        """Return what `transform` makes of `array`, or of other rows; see `transform_stream`."""
        left, rows = Left(len(array)), array
        while True:
            try:
                result = transform(rows, left)  # an Arrow array does not change
            except FunctionError as error:
                failure, cause = error, error.error
            else:
                self._drop_rows(left, index)
                for row in left.rows[:1]:
                    self._substitutes.keep(array[row:])
                return result
            # those that alone have made a function fail, if it says which
            if not (isinstance(cause, RowsError) and left.rows and left.drop(cause.errors)):
                break
            rows = take_rows(array, left.rows)
        self._drop_rows(left, index)
        rows = take_rows(array, left.rows) if left.rows else array[:0]
        return self._recover_parts(transform, rows, index, failure)

    def _drop_rows(self, left: Left, index: int) -> None:
        """Note that a batch has some of its rows only."""
        note = self._notes[index]
        if not left.errors or not note.parts:
            return
        numbers, report = note.list_numbers(), note.report
        for row, error in sorted(left.errors.items()):
            row_report = report_failed(self._numbered, [numbers[row]], error)
            report = row_report if report is None else report + row_report
        left_rows = set(left.rows)
        parts = [sum(row in left_rows for row in range(*span)) for span in note.list_spans()]
        parts, numbers = [rows for rows in parts if rows], [numbers[row] for row in left.rows]
        self._notes[index] = Note(numbers, parts, report)

    def _recover_parts(
        self,
        transform: Callable[[_core.DeviceArray], Any],
        array: _core.DeviceArray,
        index: int,
        failure: FunctionError,
    ) -> Any:
        note, numbered = self._notes[index], self._numbered

        def attempt(start: int, stop: int) -> Any:
            return transform(array[start:stop])

        remaining = find_rest(attempt, failure, note, numbered)
        result = None
        if remaining.spans:
            try:
                result = transform(take_rest(array, remaining))
            except FunctionError as second_failure:
                failure = second_failure
                remaining.drop_rest(second_failure, note, numbered)
        if result is None:
            result = self._substitutes.make(transform, list_rows(array), failure.error)
            self._valid_rows[index] = 0
        if remaining.report is not None:
            numbers = note.list_numbers()
            left = [number for start, stop in remaining.spans for number in numbers[start:stop]]
            parts = [stop - start for start, stop in remaining.spans]
            self._notes[index] = Note(left, parts, remaining.report + note.report)
        return result
