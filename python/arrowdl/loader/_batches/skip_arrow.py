"""`SkipArrow`: skips the rows for which `transform_arrow` fails."""

from __future__ import annotations

from collections.abc import Callable
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
from arrowdl.loader._skip.numbers import Numbered


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
