"""`Report`: how a `Loader` shows its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from arrowdl.loader._checks import require_bool
from arrowdl.loader._settings.value_object import value_object
from arrowdl.loader._stats import Stats


@value_object
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Show how an epoch goes, for ``Loader(progress=Report(every=60))``.

    ``progress=True`` is ``Report(bar=True)``.

    Parameters
    ----------
    bar : bool
        Show a progress bar of tqdm, on rank 0.
    every : float, optional
        Report the counters of `Loader.stats` each time that this many seconds have passed; reports
        come between batches.
    function : callable, optional
        Is called with a copy of the `Stats` at each report. By default, the logger "arrowdl.loader"
        gets a line about what came since the last report, at level INFO.

    Raises
    ------
    TypeError, ValueError
        A value is not supported, `function` is given without `every`, or nothing would be shown.
    """

    bar: bool = False
    every: float | None = None
    function: Callable[[Stats], Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bar", require_bool("Report.bar", self.bar))
        seconds = self.every
        if seconds is not None:
            is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
            if not (is_number and seconds > 0):
                raise ValueError(f"Report.every={seconds!r}: give seconds, more than 0")
        if self.function is not None and not callable(self.function):
            raise TypeError(
                f"Report.function={self.function!r}: give a function that takes the Stats"
            )
        if self.function is not None and seconds is None:
            raise ValueError("Report.function needs Report.every, the seconds between two reports")
        if not self.bar and seconds is None:
            raise ValueError(
                "Report() shows nothing: give bar=True for a progress bar, or every=, the seconds "
                "between two reports"
            )
