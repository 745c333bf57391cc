"""`Note`: which rows a batch has, and which it lacks, beside the rows themselves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from arrowdl import _core
from arrowdl.loader._skip.numbers import read_numbers
from arrowdl.loader._skipped import MissingRows

FindParts = Callable[[int, int], list[int]]  # takes the index of an array, and its own rows


@dataclass
class Note:
    """What is known of a batch beside its rows."""

    # The numbers of the rows, as in `Numbered`: ints, or a list of ints for a block.
    numbers: _core.DeviceArray | list[Any]
    # A part is left out as a whole if a transform fails for it. The number of this rank's rows in
    # each part, at least one; empty if the batch has none.
    parts: list[int]
    report: MissingRows | None = None  # what is missing in the batch

    def list_numbers(self) -> list[Any]:
        """Return the numbers of the rows."""
        if not isinstance(self.numbers, list):
            self.numbers = read_numbers(self.numbers)
        return self.numbers

    def list_spans(self) -> list[tuple[int, int]]:
        """List the first row of each part, and the one after its last."""
        return list(itertools.pairwise(itertools.accumulate(self.parts, initial=0)))
