"""The progress bar of `Loader(progress=True)`, and a line while a Loader is made."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TextIO

_PATIENCE_SECONDS = 2.0
_TERMINAL_SECONDS = 0.5
_LOG_SECONDS = 30.0


def check_bar() -> None:
    """Raise ModuleNotFoundError if there is no tqdm; it is not imported."""
    if "tqdm" not in sys.modules and find_spec("tqdm") is None:
        raise ModuleNotFoundError(
            "progress=True shows a bar of tqdm, which is not installed: pip install tqdm, or leave "
            "progress= out; progress=Report(every=60) logs lines without it"
        )


class NoBar:
    """Shows nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class Bar:
    """A tqdm bar, which counts batches."""

    def __init__(
        self,
        total: int | None,  # batches of the epoch; None if unknown
        epoch: int,
        done: int,  # batches that were read before
    ) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, desc=f"epoch {epoch}", unit="batch", initial=done)

    def __enter__(self) -> Callable[[int], None]:
        return lambda rows: self._bar.update() and None

    def __exit__(self, *error: object) -> None:
        self._bar.close()


class OpeningLine:
    """A line on the error stream, if opening files takes seconds.

    A terminal shows one line that changes; other streams get a new line each half a minute.
    """

    def __init__(
        self,
        what: str,  # what is done with the files
        total: int,  # files
        out: TextIO | None = None,  # ``sys.stderr`` by default
        clock: Callable[[], float] = time.monotonic,  # returns seconds
    ) -> None:
        self._what = what
        self._total = total
        self._out = sys.stderr if out is None else out
        self._clock = clock
        self._next = clock() + _PATIENCE_SECONDS
        self._is_shown = False

    def __call__(self, done: int) -> None:
        """Show that `done` files are ready."""
        is_last = done == self._total and self._is_shown
        if self._out is None or (self._clock() < self._next and not is_last):
            return
        is_terminal = self._out.isatty()
        text = f"arrowdl.Loader {self._what}: {done} of {self._total} files"
        self._out.write(f"\r{text}" + "\n" * is_last if is_terminal else f"{text}\n")
        self._out.flush()
        self._is_shown = True
        self._next = self._clock() + (_TERMINAL_SECONDS if is_terminal else _LOG_SECONDS)
