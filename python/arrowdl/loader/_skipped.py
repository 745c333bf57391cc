"""`Skipped`: rows that ``Loader(on_error="skip")`` skipped."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

# The system refuses these to every file.
_OF_THE_SYSTEM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_MOST_RANGES = 8  # that a line names
NUMBER = "arrowdl.row_number"  # a column that is added meanwhile: int64, from 0
CANNOT_READ = "arrowdl.Loader cannot read"  # how the note of a damaged file begins
_ADVICE = (
    'on_error="skip" goes on without what cannot be read, up to Skip(max_rows=...) (by default a '
    "tenth of the rows), and logs it"
)

OTHER_READERS = (
    ". polars and DuckDB decode some Parquet files that pyarrow does not: if they read this one, "
    "give the Loader what they return, as in Loader(polars.read_parquet(path))"
)

Ranges = tuple[tuple[int, int], ...]


class OptionError(ValueError):
    """A filter or a schema does not suit the rows: the user's mistake, which is never skipped."""


class MisplacedRowsError(OSError):
    """Rows have come in the place of others: leaving a row group out would not mend that."""


class RowsError(ValueError):
    """Rows of a batch that a function of a column cannot use: others are not affected."""

    __slots__ = ("make_rest",)  # pickle leaves it out

    def __init__(
        self,
        errors: Mapping[int, Exception],  # by row; pickle can load them
        # returns what the function has made of the other rows, if there are some
        make_rest: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(errors)
        self.errors = errors
        self.make_rest = make_rest

    def __str__(self) -> str:
        row, more = min(self.errors), len(self.errors) - 1
        others = f" (and {more} more of its rows)" if more else ""
        return f"row {row} of the batch{others}: {self.errors[row]}"


@dataclass(frozen=True)
class Skipped:
    """Rows that a `Loader` skipped, and why.

    Attributes
    ----------
    path : str
        The file; for a table in a mixture its name there; empty if the source is not a file.
    ranges : tuple of (int, int)
        Ranges of rows, the first included and the last excluded, counted from 0 in the file (or
        table, or stream), after `filter`. Empty for a file whose rows are unknown.
    error : str
        Type and text of the exception.
    row_group : int, optional
        The row group of a Parquet file, if all its rows were skipped.
    """

    path: str
    ranges: Ranges
    error: str
    row_group: int | None = None

    def __str__(self) -> str:
        where = repr(self.path) if self.path else "the source"
        if self.row_group is not None:
            where += f", row group {self.row_group}"
        if not self.ranges:
            return f"all of {where}: {self.error}"
        shown = ", ".join(
            str(start) if stop == start + 1 else f"{start} to {stop - 1}"
            for start, stop in self.ranges[:_MOST_RANGES]
        )
        more = len(self.ranges) - _MOST_RANGES
        others = f" and {more} more ranges" if more > 0 else ""
        return f"rows {shown}{others} of {where}: {self.error}"


@dataclass
class MissingRows:
    """What one batch lacks."""

    rows: int  # of this rank
    entries: list[Skipped]  # where they are; several batches may have rows of one entry
    error: Exception  # the last one

    def __add__(self, other: MissingRows | None) -> MissingRows:
        if other is None:
            return self
        return MissingRows(self.rows + other.rows, [*self.entries, *other.entries], other.error)


def can_skip(error: BaseException) -> bool:
    """Whether an error of reading is of a file, rather than of the options or the system."""
    import pyarrow as pa

    if isinstance(error, (MemoryError, OptionError, MisplacedRowsError)) or not isinstance(
        error, Exception
    ):
        return False
    if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
        return False
    is_foreign = type(error).__module__ not in ("builtins", "arrowdl._core")
    return is_foreign or isinstance(error, (OSError, EOFError, pa.ArrowException))


def advise_skipping(error: Exception) -> None:
    """Say in the error of an epoch that `on_error` can skip a damaged file, if one is the cause."""
    notes = getattr(error, "__notes__", ())
    if can_skip(error) and any(note.startswith(CANNOT_READ) for note in notes):
        error.add_note(_ADVICE)


@contextmanager
def opening(
    left_out: list[Skipped] | None,  # see `open_dataset`
    *,
    # whether a filter may be what fails, of values that are not files' fault
    has_filter: bool = False,
) -> Iterator[None]:
    """Say in the error of a damaged file that `on_error` can skip it, unless it may be left out."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OptionError) or (has_filter and not isinstance(error, OSError)):
            raise
        if left_out is None and (_is_of_content(error) or _is_of_content(error.__cause__)):
            error.add_note(_ADVICE)
        elif left_out is None:
            advise_skipping(error)
        raise


def _is_of_content(error: BaseException | None) -> bool:
    """Whether an error is of what a file has, rather than of its store, by pyarrow's types."""
    import pyarrow as pa

    # An OSError is of Parquet's footer if it is Thrift's, which encodes footers.
    return isinstance(error, pa.ArrowException) or "deserialize thrift" in str(error)


def detach(error: Exception) -> Exception:
    """Drop the frames that an error refers to: they would keep batches alive."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


def renew(error: Exception, note: str) -> Exception:
    """Return a copy of an error that is kept, to be raised, with a note.

    The frames of an error that is raised may have what keeps it.
    """
    try:
        new_error = copy(error)
    except Exception:  # made with other arguments
        new_error = None
    if type(new_error) is not type(error) or new_error is error:
        new_error = RuntimeError(describe(error))
    new_error.__notes__ = [*getattr(error, "__notes__", ()), note]
    return new_error


def describe(error: BaseException) -> str:
    """Return the type of an error and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def describe_units(
    lost: Sequence[Sequence[int]],  # units of each source
    units: Sequence[Sequence[int]],  # rows of the units of each source
) -> str:
    """Say for states which units of several sources could not be read; empty if all could."""
    if not any(lost):
        return ""
    rows = sum(counts[i] for counts, numbers in zip(units, lost, strict=True) for i in numbers)
    return f"{rows} rows ({hashlib.blake2b(repr(lost).encode(), digest_size=8).hexdigest()})"


def check_number_name(names: Iterable[str]) -> None:
    """Raise ValueError if a column has the name of that which is added."""
    if NUMBER in names:
        raise ValueError(
            f'on_error="skip" numbers the rows in a column "{NUMBER}", and the source has one: '
            "rename it, or leave it out with columns="
        )


def simplify(error: Exception) -> Exception:
    """Return an error with the text of `error` alone, which any process can load."""
    kind = type(error)
    return kind(str(error)) if kind.__module__ == "builtins" else OSError(describe(error))


def find_ranges(rows: Iterable[int]) -> Ranges:
    """Return the ranges of consecutive numbers among `rows`, ascending."""
    ranges: list[tuple[int, int]] = []
    for row in sorted(set(rows)):
        if ranges and ranges[-1][1] == row:
            ranges[-1] = (ranges[-1][0], row + 1)
        else:
            ranges.append((row, row + 1))
    return tuple(ranges)
