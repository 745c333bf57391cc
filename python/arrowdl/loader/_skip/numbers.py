"""What the numbers of rows mean, and which of them are those of rows that cannot be read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from arrowdl import _core
from arrowdl.loader._skipped import MissingRows, Skipped, describe, find_ranges

MISSING = 2**62  # is added to the number of a row that could not be read
SAMPLES = 16  # rows that are tried first

Place = tuple[str, int]  # path, and row of the file


class Numbered(Protocol):
    """What the numbers of rows mean."""

    @property
    @abstractmethod
    def has_failures(self) -> bool:
        """Whether rows could not be read so far."""

    def report_missing(self, numbers: Sequence[Any]) -> MissingRows:
        """Say why the rows with `numbers`, of `strip_missing`, could not be read."""

    def locate(self, numbers: Sequence[Any]) -> list[Place]:
        """Return where the rows with `numbers` are."""

    def sample(self) -> Iterator[_core.DeviceArray]:
        """Yield rows that can be read, each an array, from several places of the source."""


def report_failed(numbered: Numbered, numbers: Sequence[Any], error: Exception) -> MissingRows:
    """Return the report of a batch with rows of `numbers`, for which a transform failed."""
    rows: dict[str, list[int]] = {}
    for path, row in numbered.locate(numbers):
        rows.setdefault(path, []).append(row)
    text = describe(error)
    entries = [Skipped(path, find_ranges(file_rows), text) for path, file_rows in rows.items()]
    return MissingRows(len(numbers), entries, error)


def read_numbers(numbers: _core.DeviceArray) -> list[Any]:
    """Return the values of an array of int64, or of lists of these, without nulls."""
    import pyarrow as pa

    values = pa.array(numbers.to("cpu"))
    if not pa.types.is_int64(values.type):
        return list(values.to_pylist())
    return memoryview(values.buffers()[1]).cast("q")[values.offset :][: len(values)].tolist()


def is_missing(number: Any) -> bool:
    """Whether the row of a number, or a row of a list of numbers, could not be read."""
    return bool((max(number, default=0) if isinstance(number, list) else number) >= MISSING)


def strip_missing(number: Any) -> Any:
    """Return the number of a row that could not be read, or those in a list of numbers."""
    if isinstance(number, list):
        return [item - MISSING for item in number if item >= MISSING]
    return number - MISSING
