"""Drops the rows of batches that could not be read, and remembers which rows each batch has."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from arrowdl import _core
from arrowdl.loader._batches.pad import drop_column
from arrowdl.loader._skip.numbers import Numbered, is_missing, read_numbers, strip_missing
from arrowdl.loader._skipped import NUMBER, MissingRows, renew

FindParts = Callable[[int, int], list[int]]  # takes the index of an array, and its own rows


@dataclass
class Note:
    """What is known of a batch beside its rows.

    Attributes
    ----------
    numbers : DeviceArray or list
        Of its rows, as in `Numbered`: ints, or of a block a list of these.
    parts : list of int
        Own rows of each part that is left out as a whole if a transform fails for it: each at least
        one, one part after the other, and no part if the batch has no own row.
    report : MissingRows, optional
        Of rows that are missing.
    """

    numbers: _core.DeviceArray | list[Any]
    parts: list[int]
    report: MissingRows | None = None

    def list_numbers(self) -> list[Any]:
        """Return the numbers of the rows."""
        if not isinstance(self.numbers, list):
            self.numbers = read_numbers(self.numbers)
        return self.numbers

    def list_spans(self) -> list[tuple[int, int]]:
        """List the first row of each part, and the one after its last."""
        return list(itertools.pairwise(itertools.accumulate(self.parts, initial=0)))


def drop_missing(
    stream: _core.DeviceStream,
    numbered: Numbered,
    valid_rows: dict[int, int],
    notes: dict[int, Note],
    find_parts: FindParts | None = None,
) -> _core.DeviceStream:
    """Drop the column of row numbers, and the rows that could not be read.

    Parameters
    ----------
    stream : DeviceStream
        An array for each batch.
    numbered : Numbered
    valid_rows : dict of int to int
        As of `Reader`. A batch without a row that can be read becomes another row of the source,
        and has no valid ones.
    notes : dict of int to Note
        That of each array is added, by its index.
    find_parts : callable, optional
        Finds the parts of an array. By default it is one part.

    Raises
    ------
    Exception
        No row of the source can be read.
    """
    first = next(stream, None)
    if first is None:
        return stream.select([one.name for one in stream.schema.children if one.name != NUMBER])
    waiting = [first]
    del first
    filler: list[_core.DeviceArray] = []

    def drop(index: int, array: _core.DeviceArray) -> _core.DeviceArray:
        own = valid_rows.get(index, len(array))
        parts = [own] if find_parts is None or not own else find_parts(index, own)
        assert sum(parts) == own
        note = notes[index] = Note(array.field(NUMBER), [rows for rows in parts if rows])
        rows = remove_numbers(array)
        if not numbered.has_failures:
            return rows
        numbers = note.list_numbers()
        lost = [is_missing(number) for number in numbers]
        if not any(lost):
            return rows
        missing = [strip_missing(numbers[i]) for i in range(own) if lost[i]]
        if missing:
            note.report = numbered.report_missing(missing)
        kept = [i for i in range(len(numbers)) if not lost[i]]
        left = [stop - start - sum(lost[start:stop]) for start, stop in note.list_spans()]
        note.parts = [rows for rows in left if rows]
        note.numbers = [numbers[i] for i in kept]
        if kept:
            return take_rows(rows, kept)
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


def sample_rows(
    numbered: Numbered, device: _core.Device | None = None
) -> Iterator[_core.DeviceArray]:
    """Yield rows that can be read, each an array, from several places of the source.

    Parameters
    ----------
    numbered : Numbered
    device : Device, optional
        Where the rows are copied to.
    """
    for row in numbered.sample():
        rows = remove_numbers(row)
        yield rows if device is None else rows.to(device)


def _find_row(numbered: Numbered, report: MissingRows) -> _core.DeviceArray:
    for row in sample_rows(numbered):
        return row
    raise renew(
        report.error,
        'Loader(on_error="skip") found no row that can be read, to repeat it in the batches that '
        "have none",
    )


def remove_numbers(array: _core.DeviceArray) -> _core.DeviceArray:
    """Return the rows without the column of their numbers."""
    return drop_column(array, NUMBER)


def take_rows(array: _core.DeviceArray, index: Sequence[int]) -> _core.DeviceArray:
    """Return the rows of `index`, at least one."""
    rows = _core.number_rows([array], _core.read_row_numbers([0], 1))
    taken, _ = _core.take_rows(rows, _core.read_row_numbers(index, len(array)))
    return taken
