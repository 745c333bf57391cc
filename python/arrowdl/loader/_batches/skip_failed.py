"""`SkipFailed`: other rows in place of those for which `transform_arrow` fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.chain import FunctionError, Substitutes
from arrowdl.loader._batches.missing import Note, sample_rows
from arrowdl.loader._skipped import detach
from arrowdl.loader._sources.numbered import Numbered, report_failed


class SkipFailed:
    """Skips batches for which `transform_arrow` fails; see `transform_stream`.

    Parameters
    ----------
    numbered : Numbered
    valid_rows : dict of int to int
    notes : dict of int to Note
        As of `drop_missing`.
    """

    def __init__(
        self, numbered: Numbered, valid_rows: dict[int, int], notes: dict[int, Note]
    ) -> None:
        self._numbered = numbered
        self._valid_rows = valid_rows
        self._notes = notes
        self._substitutes = Substitutes(partial(sample_rows, numbered))

    def __call__(
        self,
        transform: Callable[[_core.DeviceArray], Any],
        array: _core.DeviceArray,
        index: int,
    ) -> Any:
        """Return ``transform(array)``, or what it makes of another row."""
        spare = self._substitutes.copy_rows(array)
        try:
            made = transform(array)
        except FunctionError as failure:
            error = detach(failure.error)
            made = self._substitutes.make(transform, spare, error)
            numbers = self._notes[index].list_numbers()
            valid = self._valid_rows.get(index, len(numbers))
            self._valid_rows[index] = 0
            if valid:
                report = report_failed(self._numbered, numbers[:valid], error)
                self._notes[index] = Note([], report + self._notes[index].report)
            return made
        self._substitutes.keep(spare)
        return made
