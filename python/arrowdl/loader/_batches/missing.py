"""Drops the rows of batches that could not be read, and remembers which rows each batch has."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

from arrowdl import _core
from arrowdl.loader._batches.failures import sample_rows
from arrowdl.loader._batches.note import FindParts, Note
from arrowdl.loader._batches.rows import remove_numbers, take_rows
from arrowdl.loader._skip.numbers import Numbered, is_missing, strip_missing
from arrowdl.loader._skipped import NUMBER, MissingRows, renew


def drop_missing(
    stream: _core.DeviceStream,  # an array for each batch
    numbered: Numbered,
    # see `Reader`. A batch without a row that can be read becomes another row of the source, and
    # has no valid ones
    valid_rows: dict[int, int],
    notes: dict[int, Note],  # that of each array is added, by its index
    find_parts: FindParts | None = None,  # finds the parts of an array. By default it is one part
) -> _core.DeviceStream:
    """Drop the column of row numbers, and the rows that could not be read.

    Raises Exception if no row of the source can be read.
    """
    first = next(stream, None)
    if first is None:
        return stream.select([one.name for one in stream.schema.children if one.name != NUMBER])
    waiting = [first]
    del first
    filler: list[_core.DeviceArray] = []

    def drop(index: int, array: _core.DeviceArray) -> _core.DeviceArray:
        valid = valid_rows.get(index, len(array))
        parts = [valid] if find_parts is None or not valid else find_parts(index, valid)
        assert sum(parts) == valid
        note = notes[index] = Note(array.field(NUMBER), [rows for rows in parts if rows])
        rows = remove_numbers(array)
        if not numbered.has_failures:
            return rows
        numbers = note.list_numbers()
        lost = [is_missing(number) for number in numbers]
        if not any(lost):
            return rows
        missing = [strip_missing(numbers[i]) for i in range(valid) if lost[i]]
        if missing:
            note.report = numbered.report_missing(missing)
        present = [i for i in range(len(numbers)) if not lost[i]]
        left = [stop - start - sum(lost[start:stop]) for start, stop in note.list_spans()]
        note.parts = [rows for rows in left if rows]
        note.numbers = [numbers[i] for i in present]
        if present:
            return take_rows(rows, present)
        valid_rows[index] = 0
        if not filler:
            reason = note.report or numbered.report_missing([strip_missing(numbers[0])])
            filler.append(_find_row(numbered, reason))
        return copy.deepcopy(filler[0])

    def drop_all() -> Iterator[_core.DeviceArray]:
        for index in itertools.count():
            yield drop(index, waiting.pop())
            waiting.extend(itertools.islice(stream, 1))
            if not waiting:
                return

    return _core.from_arrow_stream(drop_all())


def _find_row(numbered: Numbered, report: MissingRows) -> _core.DeviceArray:
    for row in sample_rows(numbered):
        return row
    raise renew(
        report.error,
        'Loader(on_error="skip") found no row that can be read, to repeat it in the batches that '
        "have none",
    )
