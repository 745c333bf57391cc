"""`SkipArrow`: skips the rows for which `transform_arrow` fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.failures import (
    FunctionError,
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

    def __call__(
        self, transform: Callable[[_core.DeviceArray], Any], array: _core.DeviceArray, index: int
    ) -> Any:
        """Return ``transform(array)``, or what it makes of other rows; see `transform_stream`."""
        try:
            result = transform(array)  # an Arrow array does not change
        except FunctionError as failure:
            return self._recover(transform, array, index, failure)
        self._substitutes.keep(array)
        return result

    def _recover(
        self,
        transform: Callable[[_core.DeviceArray], Any],
        array: _core.DeviceArray,
        index: int,
        failure: FunctionError,
    ) -> Any:
        rows, numbered = array, self._numbered
        while (bad := _find_bad_rows(failure)) and self._notes[index].parts:
            note = self._notes[index] = _drop_rows(self._notes[index], bad, numbered)
            if not note.parts:
                break
            rows = take_rows(rows, [row for row in range(len(rows)) if row not in bad])
            try:
                result = transform(rows)
            except FunctionError as other:
                failure = other
            else:
                self._substitutes.keep(rows)
                return result
        return self._recover_parts(transform, rows, index, failure)

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


def _find_bad_rows(failure: FunctionError) -> Mapping[int, Exception]:
    """Return the rows of a batch that alone have made a function fail, if it says which."""
    return failure.error.errors if isinstance(failure.error, RowsError) else {}


def _drop_rows(note: Note, bad: Mapping[int, Exception], numbered: Numbered) -> Note:
    """Return the note of a batch without some of its rows."""
    numbers, report = note.list_numbers(), note.report
    for row, error in sorted(bad.items()):
        own = report_failed(numbered, [numbers[row]], error)
        report = own if report is None else report + own
    left = [number for row, number in enumerate(numbers) if row not in bad]
    parts = [sum(row not in bad for row in range(*span)) for span in note.list_spans()]
    return Note(left, [rows for rows in parts if rows], report)
